"""What clients said about a message: records of the trace topic, read by its id.

A trace message's body has records that end with 0x02, of fields with 0x01 between them; its keys
are the ids of the messages that it tells of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gantrymq.admin import messages
from gantrymq.model.names import TRACE_TOPIC

if TYPE_CHECKING:
    from gantrymq.admin.session import Session

TRACES_MAX = 64


class Trace(NamedTuple):
    """One step of a message's life."""

    time_ms: int
    kind: str
    """Pub, SubBefore, SubAfter, EndTransaction or Recall."""
    group: str
    client_host: str
    cost_ms: int | None
    is_success: bool
    retry_times: int | None
    request_id: str
    """Joins what was said before and after one attempt."""


async def traces_of(
    session: Session,
    message_id: str,
    topic: str = TRACE_TOPIC,
    count: int = TRACES_MAX,
    *,
    problems: list[str],
) -> list[Trace]:
    """Return what clients said about a message, by time; `problems` gets who did not answer.

    Raises:
        TopicNotExist: there is no such trace topic.
        ResponseError: no broker answered well.
    """
    answers = await messages.query(session, topic, message_id, count=count)
    problems += [f"{topic}: {each}" for each in answers.complaints]
    traces: list[Trace] = []
    for each in messages.found_in(answers):
        host = each.record.born_host.address
        text = messages.readable_body(each.record).decode(errors="replace")
        for part in text.split("\x02"):
            trace = _read(part.split("\x01"), message_id, host)
            if trace is not None:
                traces.append(trace)
    return sorted(traces)


def _number(text: str) -> int:
    return int(text) if text.lstrip("-").isdecimal() else 0


def _read(fields: list[str], message_id: str, host: str) -> Trace | None:
    """Return one record, if it is about the message; what is missing at its end stays out."""
    kind = fields[0]
    fields = [*fields, *[""] * 16]
    if kind == "Pub" and message_id in {fields[5], fields[12]}:
        success = fields[13] == "true"
        return Trace(
            _number(fields[1]), kind, fields[3], host, _number(fields[10]), success, None, ""
        )
    if kind == "SubBefore" and fields[5] == message_id:
        at = _number(fields[1])
        return Trace(at, kind, fields[3], host, None, True, _number(fields[6]), fields[4])
    if kind == "SubAfter" and fields[2] == message_id:
        cost, success = _number(fields[3]), fields[4] == "true"
        return Trace(_number(fields[7]), kind, fields[8], host, cost, success, None, fields[1])
    if kind == "EndTransaction" and fields[5] == message_id:
        at, success = _number(fields[1]), fields[11] == "COMMIT_MESSAGE"
        return Trace(at, kind, fields[3], host, None, success, None, "")
    if kind == "Recall" and fields[5] == message_id:
        return Trace(_number(fields[1]), kind, fields[3], host, None, fields[6] == "true", None, "")
    return None
