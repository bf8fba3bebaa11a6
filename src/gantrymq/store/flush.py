"""Forcing the log to the disk: one job at a time, each covering all that was committed before it.

`want` asks for an offset. While a job runs, further wishes only move the target, so that one force
serves everyone who came in the meantime: group commit needs no more than that. A failed force is
reported once and for good; the pages behind it are in an unknown state and are never forced again
as if they were clean.

Owned by one task; the force itself runs on a worker, which sees regions and nothing else. How it
went is kept with the job, where `finish` finds it: a store that closes cannot wait for the worker's
report, which only comes when the owner has time for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.clock import SystemClock
from gantrymq.store.durations import Durations
from gantrymq.store.mapped_file import is_due

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.clock import Clock
    from gantrymq.store.commit_log import CommitLog
    from gantrymq.store.files import Region
    from gantrymq.store.worker import Worker


class _Force:
    """One job: ranges of regions to be forced, and how it went."""

    __slots__ = ("_clock", "_ranges", "_spoiled", "end", "error", "is_done", "stamp_ms", "took_s")

    def __init__(
        self,
        end: int,
        stamp_ms: int,
        ranges: list[tuple[Region, int, int]],
        spoiled: Callable[[str], None],
        clock: Clock,
    ) -> None:
        self.end = end
        self.took_s = 0.0
        self._clock = clock
        self.stamp_ms = stamp_ms
        self.is_done = False
        self.error: Exception = RuntimeError("the worker was stopped before it came to it")
        self._ranges = ranges
        self._spoiled = spoiled

    def run(self) -> None:
        """Force; runs on the worker."""
        began = self._clock.monotonic()
        try:
            for region, start, stop in self._ranges:
                region.sync(start, stop)
        except Exception as error:
            self.error = error
            self._spoiled(f"forcing the log failed before offset {self.end}: {error}")
            raise
        self.took_s = self._clock.monotonic() - began
        self.is_done = True


class LogFlush:
    """Brings the log to the disk on request, and tells how far it is."""

    def __init__(
        self,
        log: CommitLog,
        worker: Worker,
        flushed: Callable[[int, int], None],
        failed: Callable[[str], None],
        spoiled: Callable[[str], None] = lambda _reason: None,
        clock: Clock | None = None,
    ) -> None:
        """Tell `flushed` the offset and a store timestamp before which all records are forced.

        `spoiled` is called where the force failed, on the worker; `failed` on the owner's thread.
        """
        self._log = log
        self._worker = worker
        self._flushed = flushed
        self._failed = failed
        self._spoiled = spoiled
        self._clock = clock or SystemClock()
        self._target = 0
        self._running: _Force | None = None
        self._is_closed = False
        self._failure: str | None = None
        self._seen = (0, 0)
        """Of the last job: where the log ended when it was made, and `committed_stamp_ms` then."""
        self._stamp_ms = 0
        self.flushed_offset = 0
        self.syncs = 0
        self.times = Durations()
        """How long each force took."""

    def recovered(self, offset: int) -> None:
        """Begin at an offset that recovery has forced."""
        self.flushed_offset = offset
        self._target = offset

    def want(self, offset: int) -> None:
        """See to it that the log is forced up to `offset`, which must be committed."""
        self._target = max(self._target, offset)
        if (
            self._running is None
            and not self._is_closed
            and self._failure is None
            and self._target > self.flushed_offset
        ):
            force = self._running = self._next()
            self._worker.submit(
                force.run, lambda _: self._done(force), lambda error: self._fail(force, error)
            )

    def cut(self, offset: int) -> None:
        """Note that the log ends at an offset now; what is forced from there on is new."""
        self.flushed_offset = min(self.flushed_offset, offset)
        self._target = min(self._target, offset)
        if self._running is not None:
            self._running.end = min(self._running.end, offset)

    def want_pages(self, least_pages: int) -> None:
        """See to it that what is committed is forced, if so many pages have begun since.

        The page of the tail is left alone, unless that number is 0.
        """
        file = self._log.file_at(self.flushed_offset)
        if file is not None and is_due(
            file.committed, self.flushed_offset - file.start, file.size, least_pages
        ):
            log = self._log
            self.want(log.committed_pages_offset if least_pages else log.committed_offset)

    def _next(self) -> _Force:
        """Make a job of all that is committed: the force costs the same.

        But for the page of the tail, if nobody wants that: the next append would wait for it.
        """
        committed, stamp_ms = self._log.committed_offset, self._log.committed_stamp_ms
        end = self._log.committed_pages_offset
        if self._target > end:
            end, self._stamp_ms = committed, stamp_ms
        elif self._seen[0] <= end:
            self._stamp_ms = self._seen[1]
        self._seen = committed, stamp_ms
        ranges = [
            (file.region, start, stop)
            for file, start, stop in self._log.spans(self.flushed_offset, end)
        ]
        return _Force(end, self._stamp_ms, ranges, self._spoiled, self._clock)

    def _done(self, force: _Force) -> None:
        if self._running is not force:
            return  # `finish` was first
        self._running = None
        self.syncs += 1
        self.times.add(force.took_s)
        for file, _, stop in self._log.spans(self.flushed_offset, force.end):
            file.flushed = max(file.flushed, stop)
        self.flushed_offset = force.end
        self._flushed(force.end, force.stamp_ms)
        self.want(self._target)

    def _fail(self, force: _Force, error: Exception) -> None:
        if self._running is not force:
            return
        self._running = None
        self._failure = f"forcing the log failed at offset {self.flushed_offset}: {error}"
        self._failed(self._failure)

    def finish(self) -> None:
        """Take in the last job and force the rest here and now; the worker must have ended."""
        self._is_closed = True
        if self._running is not None:
            self._settle(self._running)
        if self._failure is None and self._log.committed_offset > self.flushed_offset:
            self._target = self._log.committed_offset
            force = self._running = self._next()
            try:
                force.run()
            except OSError as error:
                self._fail(force, error)
            else:
                self._done(force)

    def _settle(self, force: _Force) -> None:
        if force.is_done:
            self._done(force)
        else:
            self._fail(force, force.error)
