"""Reading a queue without ever waiting for the disk on the owner's thread.

A message whose bytes are in the page cache is answered at once, as a slice of the mapped log. The
rest is read on a worker. What is hot is decided in two steps (`WarmLog`):

1. The last TAIL_BYTES of the log are: they were just written, or recovery has just walked over
   them. This costs a comparison, and is all that a consumer who keeps up ever meets.
2. Otherwise the kernel is asked (`Region.resident_end`, mincore(2)): some 3 microseconds for up to
   1 MiB of log, so once for neighbouring messages.

**A cold range is copied**, by a read that lets other threads run (`ColdLog`), and not warmed and
then sliced: under the memory pressure that made it cold, pages may be gone again before the answer
is sent, and the send would wait for the disk. It costs a copy of at most a batch; a batch from disk
is small (maxTransferBytesOnMessageInDisk). Files are read by their path, so a file that is deleted
meanwhile is like one deleted before: its messages are passed over.

**Units of a queue** that are not in memory are read by the worker first, and the owner asks again
when they are there.

**A filter that looks into messages** asks for the same bytes by the same way, so it never waits on
the owner's thread either. After `LOOKS_MAX` messages that did not come to a batch it is sent to the
worker even if all is hot, for it may take long; there it ends after SCAN_READ_BYTES_MAX, with what
it has and the offset to go on from.

**Turns.** Readers take turns (`cold_lanes.py`): one with many cold reads waits for itself.

**Bounds.** JOBS_MAX reads wait for the worker, whose answers have ANSWER_BYTES_MAX together. One
more is answered at once: NO_MATCHED_MESSAGE with the offset it asked for (or as far as it came),
which every client takes for "ask again from there"; it loses nothing. `Found.trouble` says why, so
that a broker may take its time with the answer, and `from_slave` sends the reader to a slave if
there is one. A disk that fails is answered the same way. A reader that has used up what it may
read of the disk is told when to come again, too (`Found.wait_s`).

Owned by the task that owns the log; the worker sees paths, units and a filter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.kernel import PRE_BLANK_SIZE, UNIT_BYTES
from gantrymq.store.cold_lanes import NOBODY, ColdLanes
from gantrymq.store.errors import StoreDamaged
from gantrymq.store.get import (
    EVERYTHING,
    EnoughRead,
    Found,
    NotNow,
    Question,
    collect,
    units_of,
    units_scanned,
)
from gantrymq.store.status import GetStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from gantrymq.clock import Clock
    from gantrymq.store.commit_log import CommitLog
    from gantrymq.store.consume_queue import ConsumeQueue
    from gantrymq.store.files import Files
    from gantrymq.store.get import Filter, QueueReader
    from gantrymq.store.mapped_file import MappedFile
    from gantrymq.store.worker import Worker

TAIL_BYTES: Final = 8 << 20
"""The end of the log that is taken for hot without asking."""
WINDOW_BYTES: Final = 1 << 20
"""How much of the log one question about the page cache is about."""
LOOKS_MAX: Final = 128
"""Messages beyond a batch that a filter looks into on the owner's thread."""
CHUNK_BYTES: Final = 64 << 10
"""What a cold read takes at once, unless a message is longer."""
SCAN_READ_BYTES_MAX: Final = 4 << 20
"""What one cold read takes from the disk; the message that passes it is the last."""
JOBS_MAX: Final = 256
ANSWER_BYTES_MAX: Final = 64 << 20


class WarmLog:
    """The log, as far as reading it does not wait; made for one read."""

    __slots__ = ("_from", "_hot_from", "_log", "_looks", "_until", "committed_offset", "file_bytes")

    def __init__(self, log: CommitLog, looks_max: int, tail_bytes: int) -> None:
        self.committed_offset = log.committed_offset
        self.file_bytes = log.file_bytes
        self._log = log
        self._looks = looks_max
        self._hot_from = self.committed_offset - tail_bytes
        self._from = self._until = 0

    def read(self, log_offset: int, count: int) -> memoryview | None:
        """Return bytes of the log as a slice of its map; NotNow if they are not in memory."""
        self._looks -= 1
        if self._looks < 0:
            raise NotNow
        file = self._log.file_at(log_offset)
        if file is None:
            return None
        position = log_offset - file.start
        if log_offset < self._hot_from and not self._is_resident(file, position, count):
            raise NotNow
        return file.read(position, count)

    def _is_resident(self, file: MappedFile, position: int, count: int) -> bool:
        begin, end = file.start + position, file.start + position + count
        if not self._from <= begin < end <= self._until:
            stop = min(position + max(count, WINDOW_BYTES), file.committed)
            self._from = begin
            self._until = file.start + self._resident_end(file, position, stop, count)
        return end <= self._until

    @staticmethod
    def _resident_end(file: MappedFile, position: int, stop: int, count: int) -> int:
        """Ask again while a message is longer than what one question covers."""
        until = file.region.resident_end(position, stop)
        while until < min(position + count, stop):
            further = file.region.resident_end(until, stop)
            if further == until:
                break
            until = further
        return until


class ColdLog:
    """The log as a worker reads it: from the files, in chunks, up to a bound."""

    __slots__ = (
        "_chunk",
        "_chunk_at",
        "_files",
        "_left",
        "_paths",
        "committed_offset",
        "file_bytes",
    )

    def __init__(
        self, files: Files, paths: Mapping[int, Path], file_bytes: int, committed_offset: int
    ) -> None:
        """Take the path of each file by its start."""
        self.committed_offset = committed_offset
        self.file_bytes = file_bytes
        self._files = files
        self._paths = paths
        self._chunk = memoryview(b"")
        self._chunk_at = 0
        self._left = SCAN_READ_BYTES_MAX

    def read(self, log_offset: int, count: int) -> memoryview | None:
        """Return bytes of the log; None if they, or their file, are gone."""
        at = log_offset - self._chunk_at
        if not 0 <= at <= at + count <= len(self._chunk):
            if not self._fill(log_offset, count):
                return None
            at = 0
        return self._chunk[at : at + count]

    def _fill(self, log_offset: int, count: int) -> bool:
        position = log_offset % self.file_bytes
        path = self._paths.get(log_offset - position)
        room = min(self.file_bytes - position, self.committed_offset - log_offset)
        if path is None or not 0 <= count <= room:
            return False
        if self._left <= 0:
            raise EnoughRead
        try:
            data = self._files.read_at(path, position, min(max(count, CHUNK_BYTES), room))
        except FileNotFoundError:
            return False
        self._left -= len(data)
        if len(data) < count:
            raise StoreDamaged(f"{path} ends before byte {position + count} of {self.file_bytes}")
        self._chunk, self._chunk_at = memoryview(data), log_offset
        return True


class _Job:
    """One reader that waits for the worker."""

    __slots__ = ("answer_bytes", "began", "done", "otherwise", "reader", "result")

    def __init__(
        self, reader: str, done: Callable[[Found], None], otherwise: Found, answer_bytes: int
    ) -> None:
        self.reader = reader
        self.done = done
        self.otherwise = otherwise
        self.answer_bytes = answer_bytes
        self.result: Found | None = None
        self.began = 0.0


class ColdReads:
    """Answers readers, at once or from a worker; see the head of this file."""

    def __init__(
        self,
        log: CommitLog,
        reader: QueueReader,
        files: Files,
        worker: Worker,
        clock: Clock,
        took: Callable[[float], None],
    ) -> None:
        """Tell `took` how many seconds a reader waited for the worker."""
        self._log = log
        self._reader = reader
        self._files = files
        self._worker = worker
        self.lanes = ColdLanes(worker, clock)
        self._clock = clock
        self._took = took
        self.tail_bytes = TAIL_BYTES
        self._jobs: dict[_Job, None] = {}
        self._answer_bytes = 0
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """Return how many readers wait for the worker."""
        return len(self._jobs)

    def begin(
        self,
        queue: ConsumeQueue | None,
        offset: int,
        count_max: int,
        choose: Filter | None,
        done: Callable[[Found], None],
        reader: str = NOBODY,
    ) -> None:
        """Call `done` with messages from `offset` on: now, or from the worker's report.

        `reader` is who reads, by a name; see `cold_lanes`.
        """
        try:
            asked = self._reader.ask(queue, offset, count_max, choose, waits=queue is None)
        except NotNow:
            if queue is not None:
                self._begin_units(queue, offset, count_max, choose, done, reader)
            return
        self._begin_records(asked, done, reader)

    def _begin_units(
        self,
        queue: ConsumeQueue,
        offset: int,
        count_max: int,
        choose: Filter | None,
        done: Callable[[Found], None],
        reader: str,
    ) -> None:
        """Have the units of a queue read, and go on with them."""
        otherwise = _come_again(offset, queue.min_offset, queue.max_offset)
        job = _Job(reader, done, otherwise, 0)
        if not self._enter(job):
            return

        def are_read(_: object) -> None:
            if not self._leave(job):
                return
            try:
                # If they are gone from memory already, the owner waits this once.
                asked = self._reader.ask(queue, offset, count_max, choose)
            except (OSError, StoreDamaged) as error:
                asked = _failed(otherwise, error)
            self._begin_records(asked, done, reader)

        self.lanes.submit(
            reader,
            queue.later(offset, units_scanned(count_max)),
            are_read,
            lambda error: self._answer(job, _failed(job.otherwise, error)),
        )

    def _begin_records(
        self, asked: Found | Question, done: Callable[[Found], None], reader: str
    ) -> None:
        if isinstance(asked, Found):
            done(asked)
            return
        limits = self._reader.limits
        try:
            found = collect(
                WarmLog(self._log, limits.memory_count + LOOKS_MAX, self.tail_bytes), limits, asked
            )
        except NotNow as turn:
            self._begin_cold(_rest(asked, turn.next_offset), done, reader)
        else:
            done(found)

    def _begin_cold(self, asked: Question, done: Callable[[Found], None], reader: str) -> None:
        otherwise = _come_again(asked.offset, asked.min_offset, asked.max_offset)
        job = _Job(reader, done, otherwise, self._answer_bound(asked))
        if not self._enter(job):
            return
        log = ColdLog(
            self._files, self._paths(asked), self._log.file_bytes, self._log.committed_offset
        )
        self.lanes.submit(
            reader,
            lambda: self._run(job, log, asked),
            lambda _: self._was_read(job),
            lambda error: self._answer(job, _failed(job.otherwise, error)),
        )

    def _was_read(self, job: _Job) -> None:
        found = job.result or job.otherwise
        self.lanes.was_read(job.reader, found.record_bytes)
        self._answer(job, found)

    def _enter(self, job: _Job) -> bool:
        """Count a job that is to wait for the worker; answer it if too many do."""
        trouble, wait_s = self.lanes.over(job.reader)
        if self._is_closed:
            trouble = "the store is closed"
        elif trouble:
            pass
        elif len(self._jobs) >= JOBS_MAX:
            trouble = f"{len(self._jobs)} reads wait for the disk already"
        elif self._jobs and self._answer_bytes + job.answer_bytes > ANSWER_BYTES_MAX:
            trouble = f"reads with {self._answer_bytes} bytes wait for the disk already"
        if trouble:
            job.done(job.otherwise._replace(trouble=trouble, wait_s=wait_s))
            return False
        self._jobs[job] = None
        self._answer_bytes += job.answer_bytes
        job.began = self._clock.monotonic()
        return True

    def _leave(self, job: _Job) -> bool:
        """Count a job no more; False if `close` was first."""
        if job not in self._jobs:
            return False
        del self._jobs[job]
        self._answer_bytes -= job.answer_bytes
        self._took(self._clock.monotonic() - job.began)
        return True

    def _answer_bound(self, asked: Question) -> int:
        """Return what an answer may have: a full batch, or the one message that is longer."""
        sizes = (unit.size for unit in units_of(asked.units) if unit.size != PRE_BLANK_SIZE)
        return max(max(sizes, default=0), self._reader.limits.memory_bytes)

    def _paths(self, asked: Question) -> dict[int, Path]:
        """Return the files that all units of a question lie in, by their start.

        All of them: to the worker a message without a file is one that is gone.
        """
        paths: dict[int, Path] = {}
        known = range(0)
        for unit in units_of(asked.units):
            if unit.log_offset in known or unit.size == PRE_BLANK_SIZE:
                continue
            file = self._log.file_at(unit.log_offset)
            if file is not None:
                paths[file.start] = file.region.path
                known = range(file.start, file.start + self._log.file_bytes)
        return paths

    def _run(self, job: _Job, log: ColdLog, asked: Question) -> None:
        """Read; runs on the worker."""
        if self._is_closed:
            return
        # What comes from the disk is looked at, whoever wrote it there.
        asked = asked._replace(checked_below=EVERYTHING)
        found = collect(log, self._reader.limits, asked)
        # Out of their chunks, which are larger than what is kept of them.
        records = [memoryview(bytes(record)) for record in found.records]
        job.result = found._replace(records=records)

    def _answer(self, job: _Job, found: Found) -> None:
        if self._leave(job):
            job.done(found)

    def close(self) -> None:
        """Stop the worker, and answer everybody who waits for it."""
        self._is_closed = True
        self.lanes.close()
        self._worker.close()
        for job in list(self._jobs):
            self._answer(
                job, job.result or job.otherwise._replace(trouble="the store was closed meanwhile")
            )


def _rest(asked: Question, next_offset: int) -> Question:
    """Return what is left of a question behind the units that were looked at.

    Without a filter a batch takes one unit after the other, so that no more of them are of use than
    messages were asked for.
    """
    begin, end = (next_offset - asked.offset) * UNIT_BYTES, len(asked.units)
    if asked.choose is None:
        end = begin + max(asked.count_max, 1) * UNIT_BYTES
    return asked._replace(units=asked.units[begin:end], offset=next_offset)


def _come_again(offset: int, least: int, most: int) -> Found:
    return Found(GetStatus.NO_MATCHED_MESSAGE, offset, least, most, [], from_slave=True)


def _failed(otherwise: Found, error: Exception) -> Found:
    return otherwise._replace(trouble=f"reading the store failed: {error}")
