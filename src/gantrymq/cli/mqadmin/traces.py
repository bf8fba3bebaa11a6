"""`queryMsgTraceById`: what traces say of a message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.admin.traces import traces_of
from gantrymq.cli.output import Answer, Table, moment
from gantrymq.model.names import TRACE_TOPIC
from gantrymq.wire.response_errors import NoMessage

if TYPE_CHECKING:
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given

HEADS = ("#Type", "#Group", "#Client", "#Time", "#CostTime(ms)", "#Status", "#Retry")


async def query_msg_trace_by_id(session: Session, given: Given) -> Answer:
    """Say who sent a message and who took it, as their traces say."""
    topic, key = given.maybe("traceTopic") or TRACE_TOPIC, given.text("msgId")
    problems: list[str] = []
    count = given.number("maxNum", 64)
    found = await traces_of(session, key, topic, count, problems=problems)
    if not found and not problems:
        raise NoMessage(f"topic {topic} has no trace of {key}: its clients may not trace")
    rows = [
        (each.kind, each.group, each.client_host, moment(each.time_ms), each.cost_ms,
         "success" if each.is_success else "failed", each.retry_times)
        for each in found
    ]  # fmt: skip
    return Answer([Table(HEADS, rows)], problems=problems)
