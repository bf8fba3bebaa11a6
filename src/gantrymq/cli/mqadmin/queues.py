"""`queryCq`: units of a consume queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gantrymq.admin import brokers
from gantrymq.cli.output import Answer, Table
from gantrymq.wire.headers.query import QueryConsumeQueueRequest

if TYPE_CHECKING:
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given


async def query_cq(session: Session, given: Given) -> Answer:
    """Say what stands in a consume queue."""
    topic = given.text("topic")
    address = given.maybe("broker") or next(iter((await session.masters_of_topic(topic)).values()))
    index = given.number("index")
    entries = await brokers.queue_entries(session, address, QueryConsumeQueueRequest(
        topic=topic, queue_id=given.number("queue"), index=index, count=given.number("count", 10),
        consumer_group=given.maybe("consumer"),
    ))  # fmt: skip
    rows = [
        (index + at, each.physic_offset, each.physic_size, each.tags_code, each.eval,
         each.msg or "")
        for at, each in enumerate(entries.queue_data or ())
    ]  # fmt: skip
    heads = ("#idx", "#physicOffset", "#physicSize", "#tagsCode", "#eval", "#msg")
    table = Table(heads, rows)
    taken = entries.subscription_data
    data = {
        "maxQueueIndex": entries.max_queue_index,
        "minQueueIndex": entries.min_queue_index,
        "queueData": table.data(),
        "subscriptionData": msgspec.to_builtins(taken) if taken is not None else None,
        "filterData": entries.filter_data,
    }
    head = f"max: {entries.max_queue_index}, min: {entries.min_queue_index}"
    return Answer([head, table], data)
