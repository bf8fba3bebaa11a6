"""What a redrive has sent already: its marks in what has come to the targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.admin import messages
from gantrymq.admin.reading import queues_of, read_some
from gantrymq.admin.redrive_plan import FROM, JOB, WINDOW, WINDOW_BYTES, queue_name
from gantrymq.admin.topics import topic_status
from gantrymq.wire.response_errors import TopicNotExist

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from gantrymq.admin.session import Session
    from gantrymq.model.queue import MessageQueue
    from gantrymq.wire.record import MessageRecord

Ends = dict[str, dict[str, int]]
"""Topic to its queues, each with the offset that its next message gets."""


async def target_ends(session: Session, topics: set[str]) -> Ends:
    """Return where the queues of the targets end now."""
    found: Ends = {}
    for topic in sorted(filter(None, topics)):
        try:
            status = await topic_status(session, topic)
        except TopicNotExist:
            found[topic] = {}
            continue
        for error in status.answers.problems.values():
            raise error
        found[topic] = {queue_name(each.queue): each.max_offset for each in status.queues}
    return found


async def in_windows(
    session: Session, address: str, queue: MessageQueue, begin: int, end: int
) -> AsyncIterator[list[MessageRecord]]:
    """Give the messages of a range, some at a time: bounded in number and in bytes."""
    while begin < end:
        behind = min(begin + WINDOW, end)
        some = await read_some(session, address, queue, begin, behind, WINDOW_BYTES)
        yield some.records
        begin = some.next_offset


async def already_sent(session: Session, job: str, ends: Ends) -> dict[str, str]:
    """Return the marks of a job in what has come to the targets, with the new ids."""
    found: dict[str, str] = {}
    for topic, was in ends.items():
        try:
            queues = await queues_of(session, topic)
        except TopicNotExist:
            continue
        for queue, address in queues.items():
            now = await messages.ends(session, address, topic, queue.queue_id)
            begin = max(was.get(queue_name(queue), 0), now.min_offset)
            async for records in in_windows(session, address, queue, begin, now.max_offset):
                for record in records:
                    told = record.properties
                    if told.get(JOB) == job and FROM in told:
                        found[told[FROM]] = record.unique_key or record.offset_id
    return found
