"""Reads the timer's topic from end to end and keeps an entry of every record.

Owned by the event loop's task.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Final

from gantrymq.broker.stored_again import decode
from gantrymq.broker.timer import rules
from gantrymq.broker.timer.takeover import Check
from gantrymq.model.names import TIMER_TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.broker.timer.slots import TimerSlots
    from gantrymq.kernel import Record
    from gantrymq.store.get import Found
    from gantrymq.store.message_store import MessageStore

log = logging.getLogger(__name__)

BATCH: Final = 32
LATE_S: Final = 600
"""A record may get its entry so long after its second, where the clock or the log stood still."""
TOPICS_COUNTED_MAX: Final = 10_000


class TimerCounts(Counter[str]):
    """How many messages wait, by topic."""

    def __init__(self) -> None:
        super().__init__()
        self.moved: dict[str, list[int]] = {}
        """By topic: messages that have come, and that have gone, since this process started."""

    def count(self, due: rules.Due, step: int) -> None:
        """Note that a message has come (1) or gone (-1); markers do not count."""
        if due.marks is None and (due.topic in self or len(self) < TOPICS_COUNTED_MAX):
            if due.topic in self.moved or len(self.moved) < TOPICS_COUNTED_MAX:
                self.moved.setdefault(due.topic, [0, 0])[0 if step > 0 else 1] += abs(step)
            self[due.topic] += step
            if self[due.topic] <= 0:
                del self[due.topic]


class TimerIntake:
    """How far the topic has been read."""

    def __init__(
        self,
        store: MessageStore,
        slots: TimerSlots,
        counts: TimerCounts,
        roll_s: int,
        next_second: Callable[[], int],
        go_on: Callable[[str], None],
    ) -> None:
        """Keep entries that are due at `next_second` at the earliest.

        `go_on` is called when a read is done, with what was wrong with it, if anything.
        """
        self._store = store
        self._slots = slots
        self._counts = counts
        self._roll_s = roll_s
        self._next_second = next_second
        self._go_on = go_on
        self._skip = Check()
        self._end_at_open = 0
        self._back: int | None = None  # where to go on when the read under way is done
        self._known = 0  # records before this offset had an entry once
        self._gone_second = 0  # and were delivered or carried on, if their second was before this
        self.read_offset = 0
        """The first that has not been read."""
        self.is_reading = False

    @property
    def is_read_through(self) -> bool:
        """Tell whether everything that waited at the start has its entry."""
        return self.read_offset >= self._end_at_open

    @property
    def is_caught_up(self) -> bool:
        """Tell whether every record that can be read has its entry."""
        queue = self._store.queues.find(TIMER_TOPIC, rules.TIMER_QUEUE)
        return not self.is_reading and (queue is None or self.read_offset >= queue.max_offset)

    def open(self, read_offset: int, skip: Check) -> None:
        """Begin at an offset, without what somebody else has delivered."""
        least = self._store.reads.min_offset(TIMER_TOPIC, rules.TIMER_QUEUE)
        self._end_at_open = self._store.reads.max_offset(TIMER_TOPIC, rules.TIMER_QUEUE)
        self.read_offset = min(max(read_offset, least), self._end_at_open)
        self._skip = skip

    def go_back(self, offset: int, next_second: int) -> None:
        """Read records again from an offset on: entries of theirs are lost, and nobody knows which.

        What came long before `next_second` was delivered. Of the rest nothing is left out, so that
        a message may come twice.
        """
        self._known = max(self._known, self.read_offset)
        self._gone_second = next_second - LATE_S
        self._end_at_open = max(self._end_at_open, self._known)
        least = self._store.reads.min_offset(TIMER_TOPIC, rules.TIMER_QUEUE)
        self.read_offset = min(max(offset, least), self.read_offset)
        if self.is_reading:
            self._back = self.read_offset

    def step(self) -> bool:
        """Begin to read more; tell whether there was anything to do."""
        if self.is_reading or self._slots.is_full:
            return False
        queue = self._store.queues.find(TIMER_TOPIC, rules.TIMER_QUEUE)
        if queue is None or self.read_offset >= queue.max_offset:
            return False
        self.is_reading = True
        self._store.reads.begin_get(
            TIMER_TOPIC,
            rules.TIMER_QUEUE,
            max(self.read_offset, queue.min_offset),
            BATCH,
            None,
            self._found,
        )
        return True

    def _found(self, found: Found) -> None:
        self.is_reading = False
        if found.trouble:
            self._go_on(found.trouble)
            return
        next_second = self._next_second()
        for raw in found.records:
            record = decode(raw)
            out_ms = rules.out_ms_of(record.properties)
            if out_ms is None:
                log.warning("timer %d does not say when; left out", record.queue_offset)
            elif not self._skip.covers(record.queue_offset, out_ms):
                self._enter(record, out_ms // 1000, next_second)
        self.read_offset = max(self.read_offset, found.next_offset)
        if self._back is not None:
            self.read_offset, self._back = self._back, None
        self._go_on("")

    def _enter(self, record: Record, out_second: int, next_second: int) -> None:
        """Keep the entry of a record."""
        second = min(out_second, record.store_timestamp // 1000 + self._roll_s)
        was_known = record.queue_offset < self._known
        if was_known and second < self._gone_second:
            return
        is_marker = rules.is_marker(record.properties)
        self._slots.add(second, record.queue_offset, next_second, marker=is_marker)
        if not was_known:
            self._counts.count(rules.due_of(record), 1)
