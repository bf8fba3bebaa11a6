"""The next offset of every queue that is written to.

For topics that take ordinary sends the kernel's lane has the numbers, for it gives them out; for
the rest (system topics, topics that nobody has opened) they are here. A queue is in one of the two,
never in both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gantrymq.kernel.lanes import SendLane
    from gantrymq.store.queue_table import QueueTable


class QueueOffsets:
    """Gives out queue offsets; owned by the task that appends to the log."""

    def __init__(self, lane: SendLane, queues: QueueTable) -> None:
        self._lane = lane
        self._queues = queues
        self._next: dict[tuple[str, int], int] = {}

    def next_offset(self, topic: str, queue_id: int) -> int:
        """Return the offset that the next message of a queue gets."""
        offsets = self._lane.next_offsets(topic.encode())
        if offsets is not None and 0 <= queue_id < len(offsets):
            return offsets[queue_id]
        known = self._next.get((topic, queue_id))
        if known is not None:
            return known
        queue = self._queues.find(topic, queue_id)
        return 0 if queue is None else queue.max_offset

    def take(self, topic: str, queue_id: int, count: int) -> int:
        """Give out `count` offsets of a queue; return the first."""
        first = self.next_offset(topic, queue_id)
        offsets = self._lane.next_offsets(topic.encode())
        if offsets is not None and 0 <= queue_id < len(offsets):
            return self._lane.advance(topic.encode(), queue_id, count)
        self._next[topic, queue_id] = first + count
        return first

    def give_back(self, topic: str, queue_id: int, first: int) -> None:
        """Take back what was given out last, for messages that were not stored after all."""
        offsets = self._lane.next_offsets(topic.encode())
        if offsets is not None and 0 <= queue_id < len(offsets):
            offsets[queue_id] = first
            self._lane.open_topic(topic.encode(), offsets)
        else:
            self._next[topic, queue_id] = first

    def open_topic(self, topic: str, queues: int) -> None:
        """Let the lane take ordinary sends for queues 0 to `queues` - 1 of a topic."""
        offsets = [self.next_offset(topic, queue_id) for queue_id in range(queues)]
        before = self._lane.next_offsets(topic.encode()) or []
        self._lane.open_topic(topic.encode(), offsets)  # if it refuses, nothing has moved
        for queue_id in range(queues, len(before)):
            self._next[topic, queue_id] = before[queue_id]
        for queue_id in range(queues):
            self._next.pop((topic, queue_id), None)

    def close_topic(self, topic: str) -> None:
        """Take ordinary sends for a topic no longer; its offsets are kept."""
        for queue_id, offset in enumerate(self._lane.next_offsets(topic.encode()) or []):
            self._next[topic, queue_id] = offset
        self._lane.close_topic(topic.encode())

    def forget_topic(self, topic: str) -> None:
        """Forget a topic that was deleted."""
        self._lane.close_topic(topic.encode())
        for key in [key for key in self._next if key[0] == topic]:
            del self._next[key]

    def take_counts(self) -> list[tuple[bytes, int, int]]:
        """Return (topic, messages, record bytes) that the lane stored since the last call."""
        return self._lane.take_counts()
