"""Bringing consume queues, full index files and the checkpoint to the disk, one job at a time.

An ordinary job writes out what the queues hold in memory. A thorough one forces the files as well,
then the index files that have become full, and then writes the checkpoint, which from then on says
that all of it is there. In this order: the checkpoint never vouches for what may still be lost.

A job goes in portions of queues, one behind the other, for the owner has to gather what they hold:
of 40,000 queues at once that would take it a tenth of a second. Where few have changed, an ordinary
job takes all of them: who reads the files beside the broker, as a Spark job does, sees a message
within a second. Where many have, it looks at some thousand, those that have waited longest, and
takes those that have something worth writing: a queue that gets one unit a second costs as much as
one that gets a thousand. A job that is to make room in memory takes all.

Two kinds of trouble are kept apart. A disk without room for a write has lost nothing: the units are
still in memory, writes are refused, and the next job tries again. A force that fails has lost
something for good, and the store stops.

Owned by one task. How a job went is kept with it, for `finish`, as in `flush.py`.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.store.checkpoint import write_image
from gantrymq.store.queue_files import sync_out, write_out
from gantrymq.store.queue_table import QueueFlush

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gantrymq.store.checkpoint import Checkpoint
    from gantrymq.store.consume_queue import ConsumeQueue
    from gantrymq.store.dispatch import Dispatcher
    from gantrymq.store.files import Files, Region
    from gantrymq.store.index import Index
    from gantrymq.store.queue_table import QueueTable
    from gantrymq.store.worker import Worker

NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
PORTION_QUEUES: Final = 1024
PROMPT_QUEUES_MAX: Final = 1024
"""Up to this many changed queues, all are written by every job, however little they hold."""
ORDINARY_QUEUES_MAX: Final = 4096
"""Of more than this, the others wait for the next ordinary job."""


@dataclass(frozen=True, slots=True)
class SavedParts:
    """What is saved, and what knows how far it is."""

    files: Files
    queues: QueueTable
    index: Index | None
    dispatcher: Dispatcher
    checkpoint: Checkpoint


class Trouble(NamedTuple):
    """Who is told when something goes wrong."""

    spoiled: Callable[[str], None]
    """A force failed; called on the worker."""
    failed: Callable[[str], None]
    """It is over: nothing can be relied on."""
    no_space: Callable[[str | None], None]
    """There was no room for a write; None: now there is."""


class _Save:
    """One job: a portion as plain values, what is left, and how it went."""

    def __init__(
        self,
        files: Files,
        due: list[ConsumeQueue],
        spoiled: Callable[[str], None],
        *,
        thorough: bool,
    ) -> None:
        self.due = due
        """The queues whose turn has not come."""
        self.thorough = thorough
        self.flush = QueueFlush([], [], [], [], thorough)
        self.queues_ms = self.dispatched = 0
        """How far everything was when it began."""
        self.regions: list[Region] = []
        self.page: tuple[Path, bytes] | None = None
        self.is_done = False
        self.error: Exception = RuntimeError("the worker was stopped before it came to it")
        self._files = files
        self._spoiled = spoiled
        self._has_written = False

    @property
    def lacks_space(self) -> bool:
        """Tell whether it failed for want of room, before anything was to be forced."""
        error = self.error
        return not self._has_written and isinstance(error, OSError) and error.errno in NO_SPACE

    def run(self) -> None:
        """Write and force a portion; the last one saves the checkpoint; runs on the worker."""
        self._has_written = False
        try:
            write_out(self._files, self.flush.writes)
            self._has_written = True
            sync_out(self._files, self.flush.syncs)
            for region in self.regions:
                region.sync()
            for directory in {region.path.parent for region in self.regions}:
                self._files.sync_directory(directory)
            self._has_written = False
            if self.page is not None:
                write_image(self._files, *self.page)
        except Exception as error:
            self.error = error
            if not self.lacks_space:
                self._spoiled(f"saving consume queues failed: {error}")
            raise
        self.is_done = True


class QueueSaver:
    """Saves what was built from the log."""

    def __init__(self, parts: SavedParts, worker: Worker, trouble: Trouble) -> None:
        self._parts = parts
        self._worker = worker
        self._trouble = trouble
        self._running: _Save | None = None
        self._full: dict[Region, tuple[int, int]] = {}
        """Index files to be forced, with the store timestamp and log offset of their ends."""
        self._stamps: tuple[int, int, int | None] = 0, 0, None
        self._lacks_space = False
        """The last job found no room on the disk."""
        self.saved_offset = parts.dispatcher.offset
        """Log offset up to which every message is in the queues on the disk, forced."""

    def is_waiting(self, region: Region) -> bool:
        """Tell whether an index file is still to be forced, or is being forced."""
        return region in self._full

    def log_forced(self, stamp_ms: int) -> None:
        """Note that every record older than a store timestamp is on the disk."""
        self._parts.checkpoint.log_ms = max(self._parts.checkpoint.log_ms, stamp_ms)

    def begin(self, *, thorough: bool, least_pages: int = 0) -> bool:
        """Start a job on the worker, unless one is under way; tell whether it was started.

        An ordinary job among many queues leaves those of which fewer than `least_pages` have begun.
        """
        if self._running is not None:
            return False
        # Whether a disk that was full has room now is known only by writing.
        if self._lacks_space or self._parts.queues.changed <= PROMPT_QUEUES_MAX:
            least_pages = 0
        save = self._running = self._job(thorough=thorough, least_pages=least_pages)
        self._submit(save)
        return True

    def _job(self, *, thorough: bool, least_pages: int = 0) -> _Save:
        parts = self._parts
        if thorough:
            due = parts.queues.take_all()
        else:
            due = parts.queues.take_due(ORDINARY_QUEUES_MAX if least_pages else None, least_pages)
        save = _Save(parts.files, due, self._trouble.spoiled, thorough=thorough)
        # How far everything is now; while the job runs it may get further.
        save.queues_ms = parts.dispatcher.last_store_timestamp
        save.dispatched = parts.dispatcher.offset
        return save

    def _submit(self, save: _Save) -> None:
        """Have the worker do the next portion."""
        self._gather(save, PORTION_QUEUES)
        self._worker.submit(
            save.run, lambda _: self._done(save), lambda error: self._fail(save, error)
        )

    def _gather(self, save: _Save, queues_max: int) -> None:
        """Make a portion of a job; the last one is about index and checkpoint too."""
        parts = self._parts
        save.is_done = False
        portion = save.due[-queues_max:]
        del save.due[-queues_max:]
        save.flush = parts.queues.begin_flush(thorough=save.thorough, queues=portion)
        if save.due or not save.thorough:
            return
        if parts.index is not None:
            for file in parts.index.take_full():
                header = file.header
                self._full[file.region] = header.end_timestamp, header.end_log_offset
        save.regions = list(self._full)
        checkpoint = parts.checkpoint
        self._stamps = checkpoint.queues_ms, checkpoint.index_ms, checkpoint.index_log_offset
        checkpoint.queues_ms = max(checkpoint.queues_ms, save.queues_ms)
        for stamp_ms, log_offset in self._full.values():
            if stamp_ms >= checkpoint.index_ms:
                checkpoint.index_ms, checkpoint.index_log_offset = stamp_ms, log_offset
        save.page = checkpoint.path, checkpoint.image()

    def _done(self, save: _Save) -> None:
        if self._running is not save:
            return  # `finish` was first
        self._parts.queues.end_flush(save.flush)
        if save.due:
            self._submit(save)
            return
        self._running = None
        if save.thorough:
            self.saved_offset = save.dispatched
        for region in save.regions:
            self._full.pop(region, None)
        self._lacks_space = False
        self._trouble.no_space(None)

    def _fail(self, save: _Save, error: Exception) -> None:
        if self._running is not save:
            return
        self._running = None
        self._parts.queues.end_flush(save.flush, failed=True)
        self._parts.queues.give_back(save.due)
        if save.page is not None:
            checkpoint = self._parts.checkpoint
            checkpoint.queues_ms, checkpoint.index_ms, checkpoint.index_log_offset = self._stamps
        reason = f"saving consume queues failed: {error}"
        self._lacks_space = save.lacks_space
        if save.lacks_space:
            self._trouble.no_space(reason)
        else:
            self._trouble.failed(reason)

    def finish(self) -> None:
        """Take in the last job; the worker must have ended."""
        save = self._running
        if save is not None and save.is_done and save.due:
            self._running = None
            self._parts.queues.end_flush(save.flush)
            self._parts.queues.give_back(save.due)
        elif save is not None and save.is_done:
            self._done(save)
        elif save is not None:
            self._fail(save, save.error)

    def save_all(self) -> bool:
        """Save everything here and now, the index with it; False if the disk refuses."""
        parts = self._parts
        save = self._running = self._job(thorough=True)
        self._gather(save, max(len(save.due), 1))
        if parts.index is not None:
            save.regions = [file.region for file in parts.index.files]
            parts.checkpoint.index_ms = max(
                parts.checkpoint.index_ms, parts.dispatcher.last_store_timestamp
            )
            parts.checkpoint.index_log_offset = parts.index.end_log_offset
            save.page = parts.checkpoint.path, parts.checkpoint.image()
        try:
            save.run()
        except OSError as error:
            self._fail(save, error)
            return False
        self._done(save)
        return True
