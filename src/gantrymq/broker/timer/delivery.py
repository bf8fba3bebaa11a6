"""Delivers timers second by second: reads the records of a second and stores them anew.

When a second is over, the records that its entries name are read and stored where they belong; when
the store has let them out, the next second is looked at. Nothing here waits for the disk.

A record says itself when it is due. One whose turn comes earlier (its log file might be deleted
before) is stored again in the timer's topic. Markers are read before the others of their second,
and take some of those back.

Owned by the event loop's task.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.broker.stored_again import decode
from gantrymq.broker.timer import rules
from gantrymq.errors import GantryError
from gantrymq.model.names import TIMER_TOPIC
from gantrymq.store.status import PutStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gantrymq.broker.timer.intake import TimerCounts
    from gantrymq.broker.timer.slots import TimerSlots
    from gantrymq.clock import Clock
    from gantrymq.kernel import Record
    from gantrymq.store.get import Found
    from gantrymq.store.message_store import MessageStore
    from gantrymq.store.put import NewMessage

log = logging.getLogger(__name__)

BATCH: Final = 32
_NEVER_STORED: Final = {PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED}


class _Turn(NamedTuple):
    """A record whose turn it is, and what becomes of it."""

    offset: int
    due: rules.Due
    message: NewMessage


class SecondDelivery:
    """How far seconds have been delivered."""

    def __init__(
        self,
        store: MessageStore,
        slots: TimerSlots,
        counts: TimerCounts,
        clock: Clock,
        go_on: Callable[[str], None],
    ) -> None:
        """Call `go_on` when what was waited for is there, with what was wrong, if anything."""
        self._store = store
        self._slots = slots
        self._counts = counts
        self._clock = clock
        self._go_on = go_on
        self._second: int | None = None
        self._markers: deque[int] = deque()
        self._offsets: deque[int] = deque()
        self._deleted: set[str] = set()
        self._is_safe = False
        self.next_second = 0
        """Everything due before it is delivered, safe, and can be read."""
        self.is_waiting = False
        """For a read, the gate or the disk."""
        self.log_end = 0
        """Behind the last message that was delivered."""

    @property
    def open_second(self) -> int:
        """Return the first second that a new entry can still be in."""
        return self.next_second if self._second is None else self._second + 1

    def set_back(self, now_second: int) -> None:
        """Follow a clock that was set back."""
        if now_second + 1 < self.next_second and self._second is None:
            self.next_second = now_second

    def step(self, *, may_begin: bool) -> bool:
        """Take the next step; tell whether there was anything to do.

        Another second must not be begun while an entry of it may not have been made.
        """
        if self.is_waiting:
            return False
        if self._second is None:
            return may_begin and self._begin()
        if self._is_safe:
            return self._finish()
        if self._markers or self._offsets:
            self._read(self._markers or self._offsets)
        else:
            self.is_waiting = True
            self._store.hold(self.log_end, self._safe)
        return True

    @property
    def is_unread(self) -> bool:
        """Tell whether dispatch has to come by, so that what was delivered can be read."""
        return self._is_safe

    def _begin(self) -> bool:
        limit = self._clock.now_ms() // 1000
        second = self._slots.next_second(self.next_second, limit)
        if second >= limit:
            self.next_second = max(self.next_second, limit)
            return False
        self.next_second = second
        if not self._slots.is_loaded(second):
            if self._slots.is_busy:
                return False
            self.is_waiting = True
            self._slots.load(second, lambda: self._loaded(""), self._not_loaded)
            return True
        codes = self._slots.take(second)
        if not codes:
            self.next_second = second + 1
            return True
        self._second = second
        self._markers.extend(code >> 1 for code in codes if code & 1)
        self._offsets.extend(code >> 1 for code in codes if not code & 1)
        return True

    def _loaded(self, trouble: str) -> None:
        self.is_waiting = False
        self._go_on(trouble)

    def _not_loaded(self, error: Exception) -> None:
        self._loaded(f"reading their entries failed: {error}")

    def _read(self, offsets: deque[int]) -> None:
        """Read the records of the first entries, as many as follow one another."""
        first = offsets[0]
        count = 1
        while count < min(len(offsets), BATCH) and offsets[count] == first + count:
            count += 1
        self.is_waiting = True
        self._store.reads.begin_get(
            TIMER_TOPIC,
            rules.TIMER_QUEUE,
            first,
            count,
            None,
            lambda found: self._found(offsets, count, found),
        )

    def _found(self, offsets: deque[int], count: int, found: Found) -> None:
        self.is_waiting = False
        if found.trouble:
            self._go_on(found.trouble)
            return
        done = min(max(found.next_offset - offsets[0], 1), count)
        if not found.records:
            log.error(
                "%d timers at offset %d of %s are gone: %s",
                done, offsets[0], TIMER_TOPIC, found.status.value,
            )  # fmt: skip
        for _ in range(done):
            offsets.popleft()
        again, trouble = self._store_all([decode(raw) for raw in found.records])
        offsets.extendleft(reversed(again))
        self._go_on(trouble)

    # -- what becomes of a record ---------------------------------------------------------------

    def _store_all(self, records: Sequence[Record]) -> tuple[list[int], str]:
        """Store what is due; return the offsets of those that the store refuses now, and why."""
        now_ms = self._clock.now_ms()
        targets: dict[tuple[str, int], list[_Turn]] = {}
        for record in records:
            due = rules.due_of(record)
            message = self._made_of(record, due, now_ms)
            if message is not None:
                turn = _Turn(record.queue_offset, due, message)
                targets.setdefault((message.topic, message.queue_id), []).append(turn)
        again, trouble = [], ""
        for turns in targets.values():
            refused = self._put(turns)
            if refused:
                trouble = refused
                again += [turn.offset for turn in turns]
        return sorted(again), trouble

    def _made_of(self, record: Record, due: rules.Due, now_ms: int) -> NewMessage | None:
        """Return what becomes of a record whose turn it is, or None if nothing does."""
        if self._second is not None and due.out_ms // 1000 > self._second:
            if due.out_ms >= now_ms // 1000 * 1000:
                return rules.carried_on(due)
            # It was to be carried on long ago; its second comes in its turn, with its markers.
            self._slots.add(
                due.out_ms // 1000,
                record.queue_offset,
                self._second + 1,
                marker=due.marks is not None,
            )
            return None
        if due.marks is not None:
            self._deleted.add(due.marks)
            return None
        if due.key in self._deleted or not due.topic:
            if not due.topic:
                log.warning("timer %d does not say where it belongs; left out", record.queue_offset)
            self._counts.count(due, -1)
            return None
        return rules.delivered(due, record.store_timestamp, now_ms)

    def _put(self, turns: Sequence[_Turn]) -> str:
        """Store messages of one queue; return why they have to be tried again, if they have."""
        topic = turns[0].message.topic
        try:
            stored = self._store.put([turn.message for turn in turns])
        except GantryError as error:
            status, why = PutStatus.MESSAGE_ILLEGAL, str(error)
        else:
            status, why = stored.status, stored.status.value
            self.log_end = max(self.log_end, stored.end)
        if status in _NEVER_STORED:
            if len(turns) > 1:
                troubles = [self._put([turn]) for turn in turns]
                return next((trouble for trouble in troubles if trouble), "")
            log.error("a timer for %s can never be stored and is left out: %s", topic, why)
        elif status is not PutStatus.PUT_OK:
            return f"storing for {topic} gave {why}"
        for turn in turns:
            self._counts.count(turn.due, -1)
        return ""

    def _safe(self, status: PutStatus) -> None:
        self.is_waiting = False
        if not status.is_stored:
            self._go_on(f"delivered messages are not safe: {status.value}")
            return
        self._is_safe = True
        self._go_on("")

    def _finish(self) -> bool:
        """Go on to the next second when everybody can see what was delivered."""
        if self._second is None or self._store.dispatched_offset < self.log_end:
            return False
        self.next_second = self._second + 1
        self._second = None
        self._is_safe = False
        self._deleted.clear()
        return True
