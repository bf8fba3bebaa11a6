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
    from gantrymq.store.get import Found
    from gantrymq.store.message_store import MessageStore

log = logging.getLogger(__name__)

BATCH: Final = 32
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
                latest = record.store_timestamp // 1000 + self._roll_s
                self._slots.add(
                    min(out_ms // 1000, latest),
                    record.queue_offset,
                    next_second,
                    marker=rules.is_marker(record.properties),
                )
                self._counts.count(rules.due_of(record), 1)
        self.read_offset = max(self.read_offset, found.next_offset)
        self._go_on("")
