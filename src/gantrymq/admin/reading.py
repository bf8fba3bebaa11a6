"""Messages of a queue in bulk: several pulls under way at the same time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from gantrymq.admin.messages import PULL_COUNT, pull, topic_queue

if TYPE_CHECKING:
    from gantrymq.admin.session import Session
    from gantrymq.model.queue import MessageQueue
    from gantrymq.wire.record import MessageRecord

PULLS_AT_ONCE: Final = 4
EMPTY_PULLS_MAX: Final = 1_000


async def queues_of(session: Session, topic: str) -> dict[MessageQueue, str]:
    """Return the queues of a topic and where they are read.

    Raises:
        TopicNotExist: no name server knows it.
    """
    route = await session.route(topic)
    where = {
        each.name: each.addresses[min(each.addresses)] for each in route.brokers if each.addresses
    }
    return {
        topic_queue(topic, each.broker_name, queue_id): where[each.broker_name]
        for each in sorted(route.queues, key=lambda one: one.broker_name)
        if each.broker_name in where
        for queue_id in range(each.read_queues)
    }


async def read_range(
    session: Session, address: str, queue: MessageQueue, begin: int, end: int
) -> list[MessageRecord]:
    """Return the messages of a queue from an offset up to another; those deleted are left out."""
    slots = asyncio.Semaphore(PULLS_AT_ONCE)

    async def part(first: int, behind: int) -> list[MessageRecord]:
        async with slots:
            return await _read_part(session, address, queue, first, behind)

    starts = range(begin, end, PULL_COUNT)
    parts = await asyncio.gather(*(part(at, min(at + PULL_COUNT, end)) for at in starts))
    return [record for found in parts for record in found]


async def _read_part(
    session: Session, address: str, queue: MessageQueue, begin: int, end: int
) -> list[MessageRecord]:
    records: list[MessageRecord] = []
    offset, empty = begin, 0
    while offset < end:
        pulled = await pull(session, address, queue, offset, count=min(PULL_COUNT, end - offset))
        records += [one for one in pulled.records if begin <= one.queue_offset < end]
        empty = 0 if pulled.records else empty + 1
        if pulled.next_offset <= offset or empty > EMPTY_PULLS_MAX:
            break
        offset = pulled.next_offset
    return records
