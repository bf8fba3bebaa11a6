"""What is in hand of a queue: what may be committed, and when to pull no more."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.client.consuming.process_queue import Held, HoldLimits, ProcessQueue
from gantrymq.errors import InvalidValue
from gantrymq.model.queue import MessageQueue, QueueId

if TYPE_CHECKING:
    from gantrymq.client.received import ReceivedMessage

QUEUE = MessageQueue("T", "b", QueueId(0))
NOBODY = cast("ReceivedMessage", None)


def held(queue: ProcessQueue, *offsets: int, size: int = 10) -> list[Held]:
    """Pull messages at offsets into a queue."""
    arrived = [Held(queue, NOBODY, offset, size) for offset in offsets]
    queue.position = max(offsets) + 1
    queue.hold(arrived)
    return arrived


def test_the_lowest_that_is_not_done_may_be_committed() -> None:
    queue = ProcessQueue(QUEUE, 5, HoldLimits())
    assert queue.commit_offset == 5
    five, six, seven = held(queue, 5, 6, 7)
    assert queue.commit_offset == 5
    queue.settle(six)
    assert (queue.commit_offset, len(queue), queue.bytes_held) == (5, 3, 20)
    queue.settle(five)
    assert (queue.commit_offset, len(queue), queue.bytes_held) == (7, 1, 10)
    queue.settle(seven)
    assert (queue.commit_offset, len(queue), queue.bytes_held) == (8, 0, 0)


def test_a_stretch_that_was_left_out_counts_as_read() -> None:
    queue = ProcessQueue(QUEUE, 0, HoldLimits())
    queue.position = 800
    assert queue.commit_offset == 800
    (only,) = held(queue, 900)
    queue.position = 1000
    assert queue.commit_offset == 900
    queue.settle(only)
    assert queue.commit_offset == 1000


def test_done_twice_is_done_once() -> None:
    queue = ProcessQueue(QUEUE, 0, HoldLimits())
    one, two, three = held(queue, 0, 1, 2)
    for message in (two, two, one, one, two):
        queue.settle(message)
    assert (queue.commit_offset, queue.bytes_held) == (2, 10)
    queue.settle(three)
    queue.settle(three)
    assert (queue.commit_offset, queue.bytes_held) == (3, 0)


@given(
    gaps=st.lists(st.integers(1, 5), min_size=1, max_size=40),
    order=st.randoms(use_true_random=False),
)
def test_nothing_is_committed_past_what_is_not_done(gaps: list[int], order: st.DataObject) -> None:
    queue, offsets, at = ProcessQueue(QUEUE, 0, HoldLimits()), [], 0
    for gap in gaps:
        at += gap
        offsets.append(at)
    waiting = held(queue, *offsets)
    left = set(offsets)
    order.shuffle(waiting)  # type: ignore[attr-defined]
    for message in waiting:
        queue.settle(message)
        left.discard(message.offset)
        assert queue.commit_offset == (min(left) if left else queue.position)
    assert (len(queue), queue.bytes_held) == (0, 0)


@pytest.mark.parametrize(
    ("limits", "offsets"),
    [
        (HoldLimits(messages=3), (0, 1, 2)),
        (HoldLimits(bytes=30), (0, 1, 2)),
        (HoldLimits(span=100), (0, 1, 101)),
    ],
)
def test_three_bounds(limits: HoldLimits, offsets: tuple[int, ...]) -> None:
    queue, rooms = ProcessQueue(QUEUE, 0, limits), []
    rooms.append(queue.has_room)
    first, *_others = held(queue, *offsets)
    rooms.append(queue.has_room)
    queue.settle(first)
    rooms.append(queue.has_room)
    assert rooms == [True, False, True]


def test_messages_behind_a_stuck_one_count_for_the_span_alone() -> None:
    queue = ProcessQueue(QUEUE, 0, HoldLimits(messages=3, span=5))
    for start in (0, 3):
        for message in held(queue, *range(start, start + 3)):
            if message.offset:
                queue.settle(message)
    assert queue.has_room  # one message in hand, up to offset 5
    held(queue, 6)
    assert not queue.has_room


def test_room_is_waited_for_and_a_dropped_queue_lets_go() -> None:
    async def main() -> None:
        queue = ProcessQueue(QUEUE, 0, HoldLimits(messages=1))
        (first,) = held(queue, 0)
        waiting = asyncio.create_task(queue.room())
        await asyncio.sleep(0)
        assert not waiting.done()
        queue.settle(first)
        await waiting
        held(queue, 1)
        waiting = asyncio.create_task(queue.room())
        await asyncio.sleep(0)
        queue.drop()
        await waiting

    asyncio.run(asyncio.wait_for(main(), 5))


def test_an_offset_is_committed_once() -> None:
    queue, seen = ProcessQueue(QUEUE, 3, HoldLimits()), []
    seen.append(queue.uncommitted)
    queue.note_committed(3)
    seen.append(queue.uncommitted)
    (only,) = held(queue, 3)
    seen.append(queue.uncommitted)
    queue.settle(only)
    seen.append(queue.uncommitted)
    assert seen == [3, None, None, 4]


def test_limits_that_let_nothing_through() -> None:
    with pytest.raises(InvalidValue, match="hold_messages"):
        HoldLimits(messages=0)
