"""Delayed messages: kept in one queue for each level, stored anew for their topic when due.

A message with a level waits in SCHEDULE_TOPIC_XXXX, queue level - 1. All messages of a queue wait
equally long, so that the first is due first, and its consume queue entry says when. One `tick`
looks at every level that may have something due, delivers a bounded number, and returns when it
wants to be called again. A level whose queue is empty costs nothing until something arrives in it.

How far a level has come is kept in `DelayProgress`, which is saved now and then: what was delivered
since is delivered once more after a crash, and nothing is left out. Progress moves on only when the
store has let the delivered message out, as safe as the settings ask.

A message may seem to be due later than its level allows: the wall clock was set back, or the level
shortened. Nobody knows any more when it was stored, but it is there: when the time of the level has
passed from now on, it is due whatever its entry says, and so is all that lies in the queue now. So
nothing is early, and nothing waits longer than twice its time.

Owned by the event loop's task.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from gantrymq.broker.stored_again import as_new, decode
from gantrymq.errors import GantryError
from gantrymq.kernel import EXT_ADDRESS_MAX
from gantrymq.model.names import SCHEDULE_TOPIC
from gantrymq.store.get import units_of
from gantrymq.store.status import GetStatus, PutStatus
from gantrymq.wire.properties import REAL_QUEUE_ID, REAL_TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence, Set

    from gantrymq.broker.delay_progress import DelayProgress
    from gantrymq.clock import Clock
    from gantrymq.kernel import QueueRun, Record
    from gantrymq.store.get import Found
    from gantrymq.store.message_store import MessageStore
    from gantrymq.store.put import NewMessage, Stored
    from gantrymq.store.questions import Questions

log = logging.getLogger(__name__)

UNITS_A_LOOK: Final = 256
"""Messages of one level that are delivered before others have their turn."""
RETRY_MS: Final = 1000
"""Pause behind a delivery that the store refused."""
_SCHEDULE: Final = SCHEDULE_TOPIC.encode()
INT_MAX: Final = 2**31 - 1


def delivered(record: Record) -> NewMessage | None:
    """Return the message that a delayed one becomes; None if it does not say where it belongs."""
    waiting = as_new(record)
    topic = waiting.properties.get(REAL_TOPIC)
    queue_id = waiting.properties.get(REAL_QUEUE_ID, "0")
    if not topic or not queue_id.isdecimal() or int(queue_id) > INT_MAX:
        return None
    # Level, real topic and queue stay among its properties, as with Apache.
    return waiting._replace(topic=topic, queue_id=int(queue_id), waits=False, is_due=True)


def _readable(raw: memoryview) -> Record | None:
    """Return a record; None if it is none, which must not hold up those behind it."""
    try:
        return decode(raw)
    except GantryError:
        return None


class _Level:
    """One level: where it is, and when it has something to do (wall clock; None is never)."""

    __slots__ = ("busy", "due_ms", "number", "seen_due_ms", "seen_until")

    def __init__(self, number: int) -> None:
        self.number = number
        self.due_ms: int | None = 0
        self.busy = False
        self.seen_until = 0
        """Messages before this offset are due at `seen_due_ms`, if their entries say later."""
        self.seen_due_ms = 0

    @property
    def queue_id(self) -> int:
        """Return the queue of the schedule topic."""
        return self.number - 1


class DelayDelivery:
    """Delivers what is due."""

    def __init__(
        self,
        store: MessageStore,
        progress: DelayProgress,
        delays_ms: Sequence[int],
        clock: Clock,
        wake: Callable[[], None] = lambda: None,
        stored: Callable[[Stored], None] = lambda _stored: None,
    ) -> None:
        """Call `wake` when `tick` has something to do before the time it asked for.

        Tell `stored` of every delivery, for statistics.
        """
        self._store = store
        self._progress = progress
        self._delays_ms = tuple(delays_ms)
        self._clock = clock
        self._wake = wake
        self._stored = stored
        self._levels = [_Level(number) for number in range(1, len(delays_ms) + 1)]
        self._is_ticking = False

    def arrived(self, runs: Sequence[QueueRun], topics: Set[bytes]) -> None:
        """Notice a message in an empty level's queue; called by dispatch."""
        for run in runs if _SCHEDULE in topics else ():
            if run[0] == _SCHEDULE and run.queue_id < len(self._levels):
                level = self._levels[run.queue_id]
                if level.due_ms is None:
                    level.due_ms = 0
                    self._wake()

    def tick(self) -> int | None:
        """Deliver what is due; return the wall-clock time of the next call, or None."""
        now_ms = self._clock.now_ms()
        self._is_ticking = True
        try:
            for level, delay_ms in zip(self._levels, self._delays_ms, strict=True):
                due_ms = level.due_ms
                if due_ms is None or level.busy:
                    continue
                # One that is further off than its level allows: the clock was set back.
                if not now_ms < due_ms <= now_ms + max(delay_ms, RETRY_MS):
                    self._look(level, now_ms)
        finally:
            self._is_ticking = False
        dues = [one.due_ms for one in self._levels if one.due_ms is not None and not one.busy]
        return min(dues, default=None)

    def _look(self, level: _Level, now_ms: int) -> None:
        """See how many messages at the front of a level are due, and begin to deliver them.

        Entries that are not in memory are brought by the store's thread meanwhile.
        """
        queue = self._store.queues.find(SCHEDULE_TOPIC, level.queue_id)
        offset = self._progress.find(level.number)
        if queue is None or offset >= queue.max_offset:
            if queue is not None and offset > queue.max_offset:
                self._progress.set(level.number, queue.max_offset)  # the log was cut behind it
            level.due_ms = None
            return
        if offset < queue.min_offset:
            offset = queue.min_offset
            self._progress.set(level.number, offset)
        level.busy = True
        self._store.reads.questions.begin(
            lambda store: self._times(store, level, offset, now_ms),
            lambda times: self._seen(level, offset, times),
            lambda error: self._pause(level, f"reading its entries from {offset} on: {error}"),
        )

    def _times(self, store: Questions, level: _Level, offset: int, now_ms: int) -> list[int]:
        """Return when messages are due, as their entries say, up to the first that is not yet.

        A question: it may be asked several times.
        """
        times: list[int] = []
        units = store.units(SCHEDULE_TOPIC, level.queue_id, offset, UNITS_A_LOOK)
        for place, unit in enumerate(units_of(units), offset):
            said_ms = self._said(store, level, place, unit.tags_code, now_ms)
            times.append(said_ms)
            is_doubted = place < level.seen_until and level.seen_due_ms <= now_ms
            if said_ms > now_ms and not is_doubted:
                break
        return times

    def _seen(self, level: _Level, offset: int, times: Sequence[int]) -> None:
        """Go on when it is known what the entries from an offset on say."""
        level.busy = False
        queue = self._store.queues.find(SCHEDULE_TOPIC, level.queue_id)
        if queue is None or not times:
            self._pause(level, f"the entry of offset {offset} cannot be read")
            return
        now_ms, due = self._clock.now_ms(), 0
        for place, said_ms in enumerate(times, offset):
            level.due_ms = self._due(level, place, said_ms, now_ms, queue.max_offset)
            if level.due_ms > now_ms:
                break
            due += 1
        if due:
            self._deliver(level, offset, due)
        elif not self._is_ticking:
            self._wake()

    def _said(
        self, store: Questions, level: _Level, offset: int, tags_code: int, now_ms: int
    ) -> int:
        """Return when an entry says that its message is due, here or in the queue's extension."""
        if tags_code > EXT_ADDRESS_MAX:
            return tags_code
        more = store.extension(SCHEDULE_TOPIC, level.queue_id, tags_code)
        if more is not None:
            return more.tags_code
        stored_ms = store.stored_at(SCHEDULE_TOPIC, level.queue_id, offset)
        return now_ms if stored_ms is None else stored_ms + self._delays_ms[level.number - 1]

    def _due(self, level: _Level, offset: int, said_ms: int, now_ms: int, end: int) -> int:
        """Return when a message is due whose entry says `said_ms`; see the head of this file."""
        latest = now_ms + self._delays_ms[level.number - 1]
        if said_ms > latest and (offset >= level.seen_until or level.seen_due_ms > latest):
            level.seen_until, level.seen_due_ms = end, latest
        return min(said_ms, level.seen_due_ms) if offset < level.seen_until else said_ms

    def _deliver(self, level: _Level, offset: int, count: int) -> None:
        level.busy = True
        self._store.reads.begin_get(
            SCHEDULE_TOPIC,
            level.queue_id,
            offset,
            count,
            None,
            lambda found: self._took(level, offset, found),
        )

    def _took(self, level: _Level, offset: int, found: Found) -> None:
        try:
            self._found(level, offset, found)
        except Exception as error:
            # Progress has not moved on, so that nothing is lost; the level must not stay busy.
            log.exception("delivering messages of delay level %d failed", level.number)
            self._pause(level, f"{type(error).__name__}: {error}")

    def _found(self, level: _Level, offset: int, found: Found) -> None:
        if found.status is not GetStatus.FOUND and found.next_offset <= offset:
            self._pause(level, f"reading offset {offset} gave {found.status.value}")
            return
        last_end, next_offset, refused = 0, found.next_offset, ""
        for raw in found.records:
            record = _readable(raw)
            message = None if record is None else delivered(record)
            if record is None or message is None:
                log.error(
                    "a message of delay level %d does not say where it belongs; left out",
                    level.number,
                )
                continue
            stored = self._store.put([message])
            if stored.status is PutStatus.MESSAGE_ILLEGAL:
                # It was legal once: maxMessageSize is smaller now. Others do not wait for it.
                log.error(
                    "a message of delay level %d for %s is larger than maxMessageSize; left out, "
                    "queue %d of %s has it at offset %d",
                    level.number,
                    message.topic,
                    level.queue_id,
                    SCHEDULE_TOPIC,
                    record.queue_offset,
                )
                continue
            if stored.status is not PutStatus.PUT_OK:
                next_offset = record.queue_offset
                refused = f"storing for {message.topic} gave {stored.status.value}"
                break
            self._stored(stored)
            last_end = stored.end
        # All of them wait behind the last one's place in the log.
        self._store.hold(last_end, lambda status: self._safe(level, next_offset, status, refused))

    def _safe(self, level: _Level, next_offset: int, status: PutStatus, refused: str) -> None:
        if not status.is_stored:
            self._pause(level, f"delivered messages are not safe: {status.value}")
            return
        self._progress.set(level.number, next_offset)
        if refused:
            self._pause(level, refused)
            return
        level.busy = False
        level.due_ms = 0
        self._wake()

    def _pause(self, level: _Level, why: str) -> None:
        log.warning("delay level %d waits %d ms: %s", level.number, RETRY_MS, why)
        level.busy = False
        level.due_ms = self._clock.now_ms() + RETRY_MS
        self._wake()
