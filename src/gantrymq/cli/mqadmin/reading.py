"""Sub-commands that read messages out of queues."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gantrymq.admin import messages
from gantrymq.admin.reading import queues_of
from gantrymq.cli.mqadmin.messages import message_data, shown_body
from gantrymq.cli.output import Answer, Table
from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given
    from gantrymq.model.queue import MessageQueue
    from gantrymq.wire.record import MessageRecord

READ_MAX = 10_000
"""Messages that one command prints unless told otherwise: a bound, which is said when reached."""
EMPTY_PULLS_MAX = 10_000


async def walk(
    session: Session,
    address: str,
    queue: MessageQueue,
    begin: int,
    end: int,
    expression: str = "*",
) -> AsyncIterator[MessageRecord]:
    """Give the messages of a queue between two offsets."""
    offset, empty = begin, 0
    while offset < end:
        pulled = await messages.pull(session, address, queue, offset, expression=expression)
        for record in pulled.records:
            if record.queue_offset >= end:
                return
            yield record
        empty = 0 if pulled.records else empty + 1
        if pulled.next_offset <= offset or empty > EMPTY_PULLS_MAX:
            return
        offset = pulled.next_offset


async def bounds(
    session: Session, address: str, queue: MessageQueue, begin_ms: int | None, end_ms: int | None
) -> tuple[int, int]:
    """Return the offsets between two times, or of the whole queue."""
    ends = await messages.ends(session, address, queue.topic, queue.queue_id)
    begin, end = ends
    if begin_ms is not None:
        at = await messages.offset_at(session, address, queue.topic, queue.queue_id, begin_ms)
        begin = max(begin, at)
    if end_ms is not None:
        at = await messages.offset_at(session, address, queue.topic, queue.queue_id, end_ms)
        end = min(end, at + 1)
    return begin, end


def message_line(record: MessageRecord, *, with_body: bool) -> str:
    """Return a message in one line, as mqadmin's printMsg begins it."""
    body = shown_body(record) if with_body else "NOT PRINT BODY"
    return (
        f"MSGID: {record.unique_key or record.offset_id} queueId={record.queue_id},"
        f" queueOffset={record.queue_offset}, storeTimestamp={record.raw.store_timestamp},"
        f" tags={record.tags}, keys={' '.join(record.keys)},"
        f" reconsumeTimes={record.raw.reconsume_times} BODY: {body}"
    )


class _Page:
    """Collects messages up to a bound."""

    def __init__(self, count_max: int) -> None:
        self.records: list[tuple[MessageQueue, MessageRecord]] = []
        self.count_max = count_max
        self.is_cut = False

    async def take(
        self, queue: MessageQueue, source: AsyncIterator[MessageRecord], end_ms: int | None
    ) -> None:
        async for record in source:
            if end_ms is not None and record.raw.store_timestamp > end_ms:
                continue
            if len(self.records) >= self.count_max:
                self.is_cut = True
                return
            self.records.append((queue, record))

    def answer(self, *, with_body: bool) -> Answer:
        lines = [message_line(record, with_body=with_body) for _queue, record in self.records]
        data = [message_data(record, queue.broker_name) for queue, record in self.records]
        problems = []
        if self.is_cut:
            problems.append(f"there are more: only the first {self.count_max} are shown (--max)")
        return Answer([*lines], data, problems, status=0 if self.is_cut else None)


async def print_msg(session: Session, given: Given) -> Answer:
    """Print the messages of a topic."""
    topic, expression = given.text("topic"), given.maybe("subExpression") or "*"
    begin_ms, end_ms = given.time("beginTimestamp"), given.time("endTimestamp")
    page = _Page(given.number("max", READ_MAX))
    for queue, address in (await queues_of(session, topic)).items():
        begin, end = await bounds(session, address, queue, begin_ms, end_ms)
        await page.take(queue, walk(session, address, queue, begin, end, expression), end_ms)
        if page.is_cut:
            break
    return page.answer(with_body=given.yes("printBody", default=True))


async def print_msg_by_queue(session: Session, given: Given) -> Answer:
    """Print the messages of a queue, or count them by tag."""
    topic, name = given.text("topic"), given.text("brokerName")
    queue = messages.topic_queue(topic, name, given.number("queueId"))
    address = (await queues_of(session, topic)).get(queue)
    if address is None:
        raise InvalidValue(f"topic {topic} has no queue {name}:{queue.queue_id}")
    begin_ms, end_ms = given.time("beginTimestamp"), given.time("endTimestamp")
    begin, end = await bounds(session, address, queue, begin_ms, end_ms)
    page = _Page(given.number("max", READ_MAX))
    expression = given.maybe("subExpression") or "*"
    await page.take(queue, walk(session, address, queue, begin, end, expression), end_ms)
    if not given.yes("calculate"):
        return page.answer(with_body=given.yes("printBody"))
    counts = Counter(record.tags or "" for _queue, record in page.records)
    rows = [(tag, count) for tag, count in counts.most_common()]
    return Answer([Table(("#Tag", "#Count"), rows)])


async def consume_message(session: Session, given: Given) -> Answer:
    """Read messages of a topic, a broker or a queue; nothing is committed."""
    topic, name = given.text("topic"), given.maybe("brokerName")
    queue_id, start = given.maybe_number("queueId"), given.maybe_number("offset")
    begin_ms, end_ms = given.time("beginTimestamp"), given.time("endTimestamp")
    count = given.number("MessageNumber", 128)
    page = _Page(count)
    group = given.maybe("consumerGroup") or messages.TOOLS_GROUP
    for queue, address in (await queues_of(session, topic)).items():
        if name not in {None, queue.broker_name} or queue_id not in {None, int(queue.queue_id)}:
            continue
        begin, end = await bounds(session, address, queue, begin_ms, end_ms)
        begin = begin if start is None else max(begin, start)
        await page.take(queue, walk(session, address, queue, begin, end), end_ms)
        if page.is_cut:
            break
    page.is_cut = False
    answer = page.answer(with_body=True)
    told = f"group {group}" if group != messages.TOOLS_GROUP else "no group"
    answer.parts.insert(0, f"Consume ok: {len(page.records)} messages, {told}")
    return answer
