"""All about timers that goes on by itself: takes them in, delivers them, saves how far it is.

What was done counts when it is saved, and it is saved when the log is on the disk as far as it was
then: a power cut leaves no entry without its record, and no delivery out. What was delivered since
is delivered again after a crash.

Owned by the event loop's task.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.broker.timer.delivery import SecondDelivery
from gantrymq.broker.timer.intake import TimerCounts, TimerIntake
from gantrymq.broker.timer.progress import Progress
from gantrymq.broker.timer.takeover import Check, position_after
from gantrymq.model.names import TIMER_TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable, Set

    from gantrymq.broker.timer.slots import TimerSlots
    from gantrymq.clock import Clock
    from gantrymq.store.message_store import MessageStore

log = logging.getLogger(__name__)

STEPS_A_TICK: Final = 8
"""Batches before others have their turn."""
SAVE_S: Final = 1.0
QUIET_SAVE_S: Final = 60.0
"""Where nothing happens but that time passes."""
RETRY_S: Final = 1.0
"""Pause behind something that the store refused."""
DISPATCH_S: Final = 0.05
"""Pause while dispatch has not come by; it wakes us, as a rule."""
ROLL_S_MAX: Final = 2 * 86_400
_TOPIC: Final = TIMER_TOPIC.encode()


class _Mark(NamedTuple):
    """How far we were when the log ended somewhere."""

    read_offset: int
    next_second: int
    log_end: int


class Timers:
    """The timers of a broker."""

    def __init__(
        self,
        store: MessageStore,
        slots: TimerSlots,
        clock: Clock,
        roll_s: int = ROLL_S_MAX,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """Store a record anew after `roll_s`; call `wake` when `tick` has something to do."""
        self._store = store
        self._slots = slots
        self._clock = clock
        self._wake = wake
        self.counts = TimerCounts()
        self._delivery = SecondDelivery(store, slots, self.counts, clock, self._go_on)
        self._intake = TimerIntake(
            store,
            slots,
            self.counts,
            min(max(roll_s, 1), ROLL_S_MAX),
            lambda: self._delivery.open_second,
            self._go_on,
        )
        slots.lost = lambda offset: self._intake.go_back(offset, self._delivery.next_second)
        self._is_pumping = False
        self._barrier_second, self._barrier = 0, 0
        self._is_barred = False
        self._paused_until = 0.0
        self._mark: _Mark | None = None
        self._saved = _Mark(0, 0, 0)
        self._save_due = 0.0
        self._saves = 0

    @property
    def next_second(self) -> int:
        """Return the second that is to be delivered next; everything before it is delivered."""
        return self._delivery.next_second

    @property
    def read_offset(self) -> int:
        """Return the first record of the topic that has no entry yet."""
        return self._intake.read_offset

    @property
    def late_s(self) -> int:
        """Return how many seconds delivery is behind the clock; 0 while nothing waits."""
        if self._slots.is_empty:
            return 0
        return max(0, self._clock.now_ms() // 1000 - self._delivery.next_second)

    # -- start and stop -------------------------------------------------------------------------

    def open(self) -> None:
        """Find out what waits. Blocks; called when the store is open.

        Raises:
            StoreDamaged: our own file and its backup cannot be understood.
            OSError: the disk refuses.
        """
        saved, written = self._slots.open(), self._slots.apache_check()
        least = self._store.reads.min_offset(TIMER_TOPIC, 0)
        start = position_after(saved, written, least, self._clock.now_ms())
        progress = start.progress
        self._slots.begin(progress)
        self._intake.open(progress.read_offset, start.skip)
        self._delivery.next_second = progress.next_second
        self.counts.update(progress.counts)
        self._saved = _Mark(progress.read_offset, progress.next_second, 0)

    def close(self) -> None:
        """Save how far we are. Blocks; the store brings its log to the disk next."""
        if not self._intake.is_read_through:
            return  # what was saved before is right as it is
        mark = _Mark(self._intake.read_offset, self._delivery.next_second, 0)
        self._slots.drop_before(mark.next_second)
        try:
            self._slots.finish(self._progress(mark), self.check(mark).encode())
        except OSError:
            log.exception("how far timers are could not be saved")

    def arrived(self, topics: Set[bytes]) -> None:
        """Notice a record in the topic, or what was waited for; called by dispatch."""
        if self._is_barred or self._delivery.is_unread or _TOPIC in topics:
            self._wake()

    # -- the tick -------------------------------------------------------------------------------

    def tick(self) -> float | None:
        """Do what there is to do; return in how many seconds to be called again, or None."""
        now = self._clock.monotonic()
        if now < self._paused_until:
            return self._paused_until - now
        self._delivery.set_back(self._clock.now_ms() // 1000)
        is_done = self._pump()
        self._save(now)
        if not is_done:
            return 0.0
        if self._is_barred or self._delivery.is_unread:
            return DISPATCH_S
        if self._delivery.is_waiting or self._intake.is_reading:
            return RETRY_S
        if self._slots.is_empty and self._saved.read_offset == self._intake.read_offset:
            return None
        return (1000 - self._clock.now_ms() % 1000) / 1000

    def _pump(self) -> bool:
        """Take steps until there are none, or enough; tell whether there are none."""
        if self._is_pumping:
            return True
        self._is_pumping = True
        try:
            for _ in range(STEPS_A_TICK):
                if self._clock.monotonic() < self._paused_until:
                    return True
                has_read = self._intake.step()
                has_delivered = self._delivery.step(may_begin=self._may_begin())
                if not (has_read or has_delivered):
                    return True
        finally:
            self._is_pumping = False
        return False

    def _may_begin(self) -> bool:
        """Tell whether every record that was stored before this second began has its entry.

        What was stored is read when dispatch has come by, which may be a moment later.
        """
        second = self._clock.now_ms() // 1000
        if second != self._barrier_second:
            self._barrier_second, self._barrier = second, self._store.log.wrote_offset
        self._is_barred = self._store.dispatched_offset < self._barrier
        return not self._is_barred and self._intake.is_caught_up

    def _go_on(self, trouble: str) -> None:
        """Go on behind something that was waited for, at once or after a pause."""
        if trouble:
            log.warning("timer messages wait %g s: %s", RETRY_S, trouble)
            self._paused_until = self._clock.monotonic() + RETRY_S
        if not self._is_pumping:
            self._wake()

    # -- saving ---------------------------------------------------------------------------------

    def _save(self, now: float) -> None:
        """Save what was marked when the log is on the disk as far as it was then."""
        if self._slots.is_busy or not self._intake.is_read_through:
            return
        mark = self._mark
        if mark is None:
            if not self._has_news(now):
                return
            mark = self._mark = _Mark(
                self._intake.read_offset, self._delivery.next_second, self._store.log.wrote_offset
            )
        if self._store.flush.flushed_offset < mark.log_end:
            self._store.flush_log(0)
            return
        self._mark = None
        self._save_due = now + SAVE_S
        self._saves += 1
        self._slots.drop_before(mark.next_second)
        self._slots.save(
            self._progress(mark),
            self.check(mark).encode(),
            lambda: self._is_saved(mark),
            lambda error: log.error("how far timers are could not be saved: %s", error),
        )

    def _has_news(self, now: float) -> bool:
        """Tell whether a save is worth it: something came, or went, or much time passed."""
        if now < self._save_due and not self._slots.is_full:
            return False
        return (
            self._slots.has_news
            or self._delivery.log_end > self._saved.log_end
            or self._intake.read_offset != self._saved.read_offset
            or (not self._slots.is_empty and now >= self._save_due + QUIET_SAVE_S)
        )

    def _is_saved(self, mark: _Mark) -> None:
        self._saved = mark
        self._go_on("")

    def _progress(self, mark: _Mark) -> Progress:
        return Progress(
            read_offset=mark.read_offset,
            next_second=mark.next_second,
            counts=dict(self.counts),
            apache=self.check(mark).short.hex(),
        )

    def check(self, mark: _Mark | None = None) -> Check:
        """Return how far we are in the words of an Apache broker."""
        read_offset, next_second, _ = mark or self._saved
        lowest = min(self._slots.lowest_offset(read_offset), read_offset)
        return Check(next_second * 1000, 0, lowest, lowest, 0, self._clock.now_ms(), self._saves)
