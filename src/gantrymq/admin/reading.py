"""Messages of a queue in bulk: several pulls under way at the same time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.admin.messages import PULL_COUNT, pull, topic_queue
from gantrymq.model.names import dlq_topic
from gantrymq.wire.response_errors import TopicNotExist

if TYPE_CHECKING:
    from gantrymq.admin.session import Session
    from gantrymq.clock import Clock
    from gantrymq.model.queue import MessageQueue
    from gantrymq.wire.record import MessageRecord

PULLS_AT_ONCE: Final = 4
EMPTY_PULLS_MAX: Final = 1_000
WORK_S_MAX: Final = 0.004
"""Work on the loop in one piece: brokers and dashboards share it."""


class Breaths:
    """Lets others have the loop in a long piece of work."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = clock.monotonic()

    async def take(self) -> None:
        """Wait for the others, if the work went on long enough."""
        if self._clock.monotonic() - self._since >= WORK_S_MAX:
            await asyncio.sleep(0)
            self._since = self._clock.monotonic()


class Some(NamedTuple):
    """Messages of a queue, and the offset to go on from."""

    records: list[MessageRecord]
    next_offset: int


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


async def dead_letter_queues(session: Session, group: str) -> dict[MessageQueue, str]:
    """Return the dead-letter queues of a group, and where they are read.

    Raises:
        TopicNotExist: it has none.
    """
    try:
        return await queues_of(session, dlq_topic(group))
    except TopicNotExist:
        raise TopicNotExist(f"group {group} has no dead letters: there is no {dlq_topic(group)}"
                            ) from None  # fmt: skip


async def read_range(
    session: Session, address: str, queue: MessageQueue, begin: int, end: int
) -> list[MessageRecord]:
    """Return the messages of a queue from an offset up to another; those deleted are left out."""
    return (await read_some(session, address, queue, begin, end)).records


async def read_some(
    session: Session,
    address: str,
    queue: MessageQueue,
    begin: int,
    end: int,
    bytes_max: int | None = None,
) -> Some:
    """Return messages as `read_range` does, up to about so many bytes."""
    slots = asyncio.Semaphore(PULLS_AT_ONCE)
    budget = _Budget(bytes_max)

    async def part(first: int, behind: int) -> Some:
        async with slots:
            return await _read_part(session, address, queue, first, behind, budget)

    starts = range(begin, end, PULL_COUNT)
    parts = await asyncio.gather(*(part(at, min(at + PULL_COUNT, end)) for at in starts))
    records: list[MessageRecord] = []
    for first, found in zip(starts, parts, strict=True):
        records += found.records
        if found.next_offset < min(first + PULL_COUNT, end):
            # What later parts brought is left for the next time: nothing may be jumped over.
            return Some(records, found.next_offset)
    return Some(records, end)


class _Budget:
    """Bytes that several pulls may bring together."""

    def __init__(self, bytes_max: int | None) -> None:
        self._left = bytes_max

    @property
    def is_spent(self) -> bool:
        return self._left is not None and self._left <= 0

    def spend(self, records: list[MessageRecord]) -> None:
        if self._left is not None:
            self._left -= sum(each.stored_bytes for each in records)


async def _read_part(
    session: Session,
    address: str,
    queue: MessageQueue,
    begin: int,
    end: int,
    budget: _Budget,
) -> Some:
    records: list[MessageRecord] = []
    offset, empty = begin, 0
    while offset < end:
        if budget.is_spent:
            return Some(records, offset)
        pulled = await pull(session, address, queue, offset, count=min(PULL_COUNT, end - offset))
        budget.spend(pulled.records)
        records += [one for one in pulled.records if begin <= one.queue_offset < end]
        empty = 0 if pulled.records else empty + 1
        if pulled.next_offset <= offset or empty > EMPTY_PULLS_MAX:
            break
        offset = pulled.next_offset
    return Some(records, end)
