"""Deleting what is too old or takes too much room, and looking after the disks meanwhile.

`StoreTimers` asks for two things, each every cleanResourceInterval: `check` looks at the disks, and
stops and resumes writes (`disk.py` has the rules); `clean` decides what goes (`retention.py`) and
removes it, as a procedure whose disk work is a worker's:

    1   log files, oldest first, one by one, deleteCommitLogFilesInterval apart
    2   every queue begins at the first message that is left; its files before that message go,
        with those of its extension, and deleteConsumeQueueFilesInterval passes behind each queue
    3   index files that only know of messages that are gone
    4   topics that are kept shorter than their files (`topic_cleaning.py`)

**A crash between any two steps** leaves a store that opens: the log is shorter than what the queues
and the index know, and a start moves the queues' beginnings. Every removal is forced before the
next one, so that what is left never has a gap. A log file goes only after

- it is forced, dispatched, and all it says is in consume queue files that are forced. Otherwise a
  crash would take the queue offsets with it: a queue whose last messages were in that file would
  begin again at a lower offset, and its consumers would pass over what comes;
- no force of the log has it in its hands, which follows from the first.

If the queues cannot be saved because the disk is full to the last byte, only files that were saved
before can go. **A removal goes first, forgetting follows**: a file whose removal failed is still
there for its readers, and is decided again after redeleteHangedFileInterval. Only on a disk that is
mounted for reading it is left behind (`log_directories.py`), or nothing behind it could ever go. A
file that went while
somebody reads it stays mapped as long as there are slices of it.

Everything is removed by the worker that writes queues out: what a flush is writing is not removed
under it, and what it writes later comes behind the removal.

Owned by one task.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from gantrymq.store.disk import DiskGuard, DiskLevel, full_logs, level, measure
from gantrymq.store.errors import StoreDamaged
from gantrymq.store.log_directories import leave_behind
from gantrymq.store.queue_files import remove_all
from gantrymq.store.retention import DeletionOrder, LogFileAge, decide, local_hour
from gantrymq.store.stepping import Pause, Stepper
from gantrymq.store.topic_cleaning import CleanedParts, TopicCleaner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gantrymq.store.consume_queue import ConsumeQueue
    from gantrymq.store.disk import DiskUse
    from gantrymq.store.files import Files
    from gantrymq.store.mapped_file import MappedFile
    from gantrymq.store.queue_expiry import QueueBegin, QueueSearch
    from gantrymq.store.settings import PathSettings, StoreSettings
    from gantrymq.store.stepping import Procedure
    from gantrymq.store.worker import Worker

__all__ = ["CleanedParts", "Removed", "StoreCleaner"]

NO_ROOM: Final = "disk space"
"""What `Writability` knows the cleaner's refusal by."""
READ_ONLY: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
"""How a disk says that nothing can be removed from it."""
QUEUES_AT_ONCE: Final = 64
"""Queues that are searched in one job."""
QUEUES_A_TURN: Final = 1024
"""Queues that are looked at before the owner comes to its other work."""
SAVE_POLL_S: Final = 0.1
SAVE_POLLS: Final = 50
"""How often one looks whether the queues are saved, before a file is left to the next run."""
JOB_POLL_S: Final = 0.1
"""A job may be followed by a pause: the owner looks that often while one runs."""


@dataclass(slots=True)
class Removed:
    """How many files went since the store was opened."""

    log_files: int = 0
    queue_files: int = 0
    index_files: int = 0


class StoreCleaner:
    """Keeps a store within its time and its room."""

    def __init__(self, settings: StoreSettings, parts: CleanedParts, worker: Worker) -> None:
        self.settings = settings
        """May be replaced by one with other live settings."""
        self.removed = Removed()
        self.disk_use: DiskUse | None = None
        """How full the disks were when they were last looked at."""
        self.last_error: str | None = None
        """What went wrong when something was last to be removed; None if nothing did."""
        self._parts = parts
        self._worker = worker
        self._stepper = Stepper(worker, parts.clock)
        self._guard = DiskGuard()
        self._order = DeletionOrder()
        self.topics = TopicCleaner(parts, worker, self._note_failure)
        self._queues_follow = 0
        """Log offset of the log's first byte when all queues last began there."""
        self._retry_at = 0.0
        self._is_looking = False
        self._is_stopped = False

    # -- the disks -------------------------------------------------------------------------------

    def check(self) -> None:
        """Look at the disks: stop writes if one is full, and let them go on.

        The worker looks, as a disk may take its time; one look at a time.
        """
        if not self._is_looking and not self._is_stopped:
            self._is_looking = True
            self._worker.submit(self._look(), self._checked, self._not_checked)

    def _checked(self, use: DiskUse) -> None:
        self._is_looking = False
        self._guard.checked(use, self.settings.disk)
        self._tell(use)

    def _not_checked(self, error: Exception) -> None:
        self._is_looking = False
        self._note_failure(error)

    def _look(self) -> Callable[[], DiskUse]:
        """Return a call that measures the disks; it may be made on a thread."""
        paths = self.settings.paths
        written = [path for path in paths.commit_log if path not in paths.read_only_commit_log]
        return partial(measure, self._parts.files, written, paths.consume_queue)

    def _tell(self, use: DiskUse) -> None:
        self.disk_use = use
        why = self._guard.why()
        if why is None:
            self._parts.writability.allow(NO_ROOM)
        else:
            self._parts.writability.forbid(NO_ROOM, why)
        self._parts.log_files.avoid = full_logs(use, self.settings.disk)

    # -- when ------------------------------------------------------------------------------------

    def order(self) -> None:
        """Delete what has expired at the next looks, whatever the hour."""
        self._order.give()

    def clean(self) -> None:
        """Look at the disks, decide what goes, and begin to remove it."""
        if not self._stepper.is_busy and not self._is_stopped:
            self._stepper.begin(self._run(), self._ended)

    def tick(self, now: float) -> float | None:
        """Go on with what was begun; return when to be called again, None if nothing was."""
        self._stepper.tick(now)
        if not self._stepper.is_busy:
            return None
        due = self._stepper.resume_at
        return now + JOB_POLL_S if due is None else due

    def stop(self) -> None:
        """Begin nothing more, for the store is being closed."""
        self._is_stopped = True
        self._stepper.stop()

    def _ended(self, error: Exception | None) -> None:
        if error is not None:
            self._note_failure(error)

    def _note_failure(self, error: Exception) -> None:
        self.last_error = f"removing files failed: {error}"
        pause_s = self.settings.retention.retry_interval_ms / 1000
        self._retry_at = self._parts.clock.monotonic() + pause_s

    # -- what goes -------------------------------------------------------------------------------

    def _run(self) -> Procedure:
        use: DiskUse = yield self._look()
        self._guard.cleaned(use, self.settings.disk)
        self._tell(use)
        if self._parts.saver() is None or self._parts.clock.monotonic() < self._retry_at:
            return
        self.topics.retry()
        yield from self._remove_log_files(level(use, self.settings.disk))
        log_min = self._parts.log.min_offset
        if log_min > self._queues_follow:
            yield from self._move_queues(log_min)
            self._queues_follow = log_min
        yield from self._remove_index_files(log_min)
        yield from self.topics.hide_expired()
        self.last_error = None

    def _remove_log_files(self, disk_level: DiskLevel) -> Procedure:
        parts, retention = self._parts, self.settings.retention
        ages: list[LogFileAge] = yield self._ages()
        now_ms = parts.clock.now_ms()
        decided = decide(
            ages,
            now_ms,
            local_hour(now_ms),
            disk_level,
            retention,
            self.settings.disk,
            ordered=self._order.take(),
        )
        for expired in decided.files:
            file = parts.log.files[0]
            yield from self._save_queues(file)
            if file.start != expired.start or not self._may_go(file):
                return
            yield partial(_remove_log_file, parts.files, self.settings.paths, file)
            parts.log.drop_first()
            self.removed.log_files += 1
            yield file.close  # on the worker: to unmap a large file takes its time
            yield Pause(retention.log_pause_ms / 1000)

    def _ages(self) -> Callable[[], list[LogFileAge]]:
        # No more of them than can go now, and the one behind them.
        some = self._parts.log.files[: self.settings.retention.files_per_run_max + 1]
        return partial(
            _ages, self._parts.files, [(file.start, file.region.path, file.size) for file in some]
        )

    def _save_queues(self, file: MappedFile) -> Procedure:
        """Have the queues forced that know of a file's messages, if that was not done yet."""
        for _ in range(SAVE_POLLS):
            saver = self._parts.saver()
            if saver is None or saver.saved_offset >= file.start + file.size:
                return
            self._parts.save()
            yield Pause(SAVE_POLL_S)

    def _may_go(self, file: MappedFile) -> bool:
        """Tell whether nothing is lost with a file; see the head of this file."""
        parts, saver, end = self._parts, self._parts.saver(), file.start + file.size
        if saver is None or parts.log.files[0] is not file or len(parts.log.files) < 2:
            return False
        return min(parts.flush.flushed_offset, parts.dispatched(), saver.saved_offset) >= end

    def _move_queues(self, log_min: int) -> Procedure:
        queues = list(self._parts.queues)
        for first in range(0, len(queues), QUEUES_A_TURN):
            behind = self._parts.queues.behind_log(log_min, queues[first : first + QUEUES_A_TURN])
            yield from self._move_some(behind, log_min)
            yield Pause(0.0)

    def _move_some(self, behind: Sequence[ConsumeQueue], log_min: int) -> Procedure:
        queues = self._parts.queues
        for first in range(0, len(behind), QUEUES_AT_ONCE):
            # The worker reads, a few pages for each: these files may not have been read for long.
            some = behind[first : first + QUEUES_AT_ONCE]
            searches = [queues.search(queue, log_min) for queue in some]
            found: Sequence[QueueBegin | None] = yield partial(_find_all, searches)
            for queue, search, begin in zip(some, searches, found, strict=True):
                if begin is not None:
                    yield from self._move_queue(queue, search, begin)

    def _move_queue(self, queue: ConsumeQueue, search: QueueSearch, begin: QueueBegin) -> Procedure:
        expired = self._parts.queues.expire(queue, search, begin)
        if expired is None:
            return
        yield partial(remove_all, self._parts.files, expired.paths)
        self._parts.queues.drop(expired)
        self.removed.queue_files += len(expired.paths)
        yield Pause(self.settings.retention.queue_pause_ms / 1000)

    def _remove_index_files(self, log_min: int) -> Procedure:
        index, saver = self._parts.index, self._parts.saver()
        if index is None or saver is None:
            return
        for file in index.expired(log_min):
            if saver.is_waiting(file.region):
                return
            yield partial(remove_all, self._parts.files, [file.path])
            index.forget(file)
            self.removed.index_files += 1
            yield file.close


def _remove_log_file(files: Files, paths: PathSettings, file: MappedFile) -> None:
    """Remove a log file, or leave it behind where nothing can be removed; runs on the worker."""
    path = file.region.path
    try:
        remove_all(files, [path])
    except OSError as error:
        if error.errno not in READ_ONLY or path.parent not in paths.read_only_commit_log:
            raise
        leave_behind(files, paths.root, file.start + file.size)


def _ages(files: Files, some: Sequence[tuple[int, Path, int]]) -> list[LogFileAge]:
    """Return how old files are; runs on the worker."""
    return [LogFileAge(start, _modified_ms(files, path), size) for start, path, size in some]


def _modified_ms(files: Files, path: Path) -> int:
    try:
        return files.modified_ms(path)
    except FileNotFoundError:
        return 0  # its name is gone already, and that could not be forced


def _find_all(searches: Sequence[QueueSearch]) -> list[QueueBegin | None]:
    """Find where queues begin; None for one that was begun anew, or is damaged."""
    found: list[QueueBegin | None] = []
    for search in searches:
        try:
            found.append(search.find())
        except (FileNotFoundError, StoreDamaged):
            found.append(None)
    return found
