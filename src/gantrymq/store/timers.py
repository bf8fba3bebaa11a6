"""When the log is committed and forced, queues saved, late replies let out, old files deleted.

`tick(now)` does whatever is due and returns when it wants to be called again. It has no thread and
no clock of its own: a broker calls it from its loop, a test with the time it likes. The intervals
are RocketMQ's (FlushRealTimeService, CommitRealTimeService, FlushConsumeQueueService in
CommitLog.java and DefaultMessageStore.java):

    log, ASYNC_FLUSH    every flushIntervalCommitLog if flushCommitLogLeastPages have begun, and
                        whatever there is if flushCommitLogThoroughInterval has passed
    pool                the same with commitIntervalCommitLog and its two companions
    queues              every flushIntervalConsumeQueue those of which flushConsumeQueueLeastPages
                        have begun; all of them, forced, with the checkpoint, every
                        flushConsumeQueueThoroughInterval
    gate                at the deadline of whoever waits longest
    disks               a second after the start, then every cleanResourceInterval
    cleaning            a minute after the start, then every cleanResourceInterval; while files are
                        being removed, whenever a pause between two of them is over

With SYNC_FLUSH every append asks for its own force, so the log needs no timer. What a full disk has
held up is tried again each time the queues are due.

Owned by the task that owns the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.store.settings import FlushDiskType

if TYPE_CHECKING:
    from gantrymq.store.message_store import MessageStore
    from gantrymq.store.settings import StoreSettings

FIRST_CHECK_S: Final = 1.0
FIRST_CLEAN_S: Final = 60.0
"""An operator who started a store with the wrong settings has so long to stop it."""


class _Rhythm:
    """An interval, and a longer one after which the same is done thoroughly."""

    __slots__ = ("_due", "_interval", "_thorough", "_thorough_due")

    def __init__(self, now: float, interval_ms: int, thorough_ms: int) -> None:
        self._interval = interval_ms / 1000
        self._thorough = thorough_ms / 1000
        self._due = now + self._interval
        self._thorough_due = now + self._thorough

    @property
    def due(self) -> float:
        """Return when it is time again."""
        return self._due

    def take(self, now: float) -> bool | None:
        """Return None if it is not time; else begin the next pause, and tell if it is thorough."""
        if now < self._due:
            return None
        self._due = now + self._interval
        return now >= self._thorough_due

    def was_thorough(self, now: float) -> None:
        """Begin the next long pause."""
        self._thorough_due = now + self._thorough


class StoreTimers:
    """Drives a store through its intervals."""

    def __init__(self, store: MessageStore, settings: StoreSettings, now: float) -> None:
        self._store = store
        self._begin(settings, now)

    def _begin(self, settings: StoreSettings, now: float) -> None:
        self._settings = settings
        flush, queues, pool = settings.flush, settings.queue_flush, settings.pool
        self._queues = _Rhythm(now, queues.interval_ms, queues.thorough_interval_ms)
        self._clean_interval = settings.retention.clean_interval_ms / 1000
        self._check_due = now + FIRST_CHECK_S
        self._clean_due = now + FIRST_CLEAN_S
        self._log: _Rhythm | None = None
        self._commit: _Rhythm | None = None
        if flush.disk_type is FlushDiskType.ASYNC_FLUSH:
            self._log = _Rhythm(now, flush.interval_ms, flush.thorough_interval_ms)
            if settings.uses_pool:
                self._commit = _Rhythm(
                    now, pool.commit_interval_ms, pool.commit_thorough_interval_ms
                )

    def change_settings(self, settings: StoreSettings, now: float) -> None:
        """Go on in the rhythm of other settings; everything is due anew."""
        self._begin(settings, now)

    def tick(self, now: float) -> float:
        """Do what is due; return when to be called again."""
        self._store.gate.expire(now)
        self._tick_commit(now)
        self._tick_log(now)
        self._tick_queues(now)
        cleaner_due = self._tick_cleaner(now)
        rhythms = (self._queues, self._log, self._commit)
        due = [rhythm.due for rhythm in rhythms if rhythm is not None]
        due += [self._check_due, self._clean_due]
        further = (self._store.gate.next_deadline(), cleaner_due)
        return min(due + [when for when in further if when is not None])

    def _tick_commit(self, now: float) -> None:
        thorough = None if self._commit is None else self._commit.take(now)
        if self._commit is None or thorough is None:
            return
        if self._store.commit(0 if thorough else self._settings.pool.commit_least_pages):
            self._commit.was_thorough(now)

    def _tick_log(self, now: float) -> None:
        thorough = None if self._log is None else self._log.take(now)
        if self._log is None or thorough is None:
            return
        self._store.flush_log(0 if thorough else self._settings.flush.least_pages)
        if thorough:
            self._log.was_thorough(now)

    def _tick_queues(self, now: float) -> None:
        thorough = self._queues.take(now)
        if thorough is None:
            return
        self._store.retry_dispatch()
        least_pages = 0 if thorough else self._settings.queue_flush.least_pages
        if self._store.flush_queues(thorough=thorough, least_pages=least_pages) and thorough:
            self._queues.was_thorough(now)

    def _tick_cleaner(self, now: float) -> float | None:
        cleaner = self._store.cleaner
        if now >= self._check_due:
            self._check_due = now + self._clean_interval
            cleaner.check()
        if now >= self._clean_due:
            self._clean_due = now + self._clean_interval
            cleaner.clean()
        return cleaner.tick(now)
