"""Bringing consume queues, full index files and the checkpoint to the disk, one job at a time.

An ordinary job writes out what the queues hold in memory. A thorough one forces the files as well,
then the index files that have become full, and then writes the checkpoint, which from then on says
that all of it is there. In this order: the checkpoint never vouches for what may still be lost.

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

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gantrymq.store.checkpoint import Checkpoint
    from gantrymq.store.dispatch import Dispatcher
    from gantrymq.store.files import Files, Region
    from gantrymq.store.index import Index
    from gantrymq.store.queue_table import QueueFlush, QueueTable
    from gantrymq.store.worker import Worker

NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


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
    """One job: plain values, and how it went."""

    def __init__(self, files: Files, flush: QueueFlush, spoiled: Callable[[str], None]) -> None:
        self.flush = flush
        self.dispatched = 0
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
        """Write, force, and save the checkpoint; runs on the worker."""
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
        self._full: dict[Region, int] = {}
        self._stamps = 0, 0
        self.saved_offset = parts.dispatcher.offset
        """Log offset up to which every message is in the queues on the disk, forced."""

    def is_waiting(self, region: Region) -> bool:
        """Tell whether an index file is still to be forced, or is being forced."""
        return region in self._full

    def log_forced(self, stamp_ms: int) -> None:
        """Note that every record older than a store timestamp is on the disk."""
        self._parts.checkpoint.log_ms = max(self._parts.checkpoint.log_ms, stamp_ms)

    def begin(self, *, thorough: bool) -> bool:
        """Start a job on the worker, unless one is under way; tell whether it was started."""
        if self._running is not None:
            return False
        save = self._running = self._job(thorough=thorough)
        self._worker.submit(
            save.run, lambda _: self._done(save), lambda error: self._fail(save, error)
        )
        return True

    def _job(self, *, thorough: bool) -> _Save:
        parts = self._parts
        # How far everything is now; while the job runs it may get further.
        queues_ms, dispatched = parts.dispatcher.last_store_timestamp, parts.dispatcher.offset
        save = _Save(
            parts.files, parts.queues.begin_flush(thorough=thorough), self._trouble.spoiled
        )
        save.dispatched = dispatched
        if not thorough:
            return save
        if parts.index is not None:
            for file in parts.index.take_full():
                self._full[file.region] = file.header.end_timestamp
        save.regions = list(self._full)
        checkpoint = parts.checkpoint
        self._stamps = before = checkpoint.queues_ms, checkpoint.index_ms
        checkpoint.queues_ms = max(before[0], queues_ms)
        checkpoint.index_ms = max(before[1], *self._full.values(), 0)
        save.page = checkpoint.path, checkpoint.image()
        return save

    def _done(self, save: _Save) -> None:
        if self._running is not save:
            return  # `finish` was first
        self._running = None
        self._parts.queues.end_flush(save.flush)
        if save.flush.thorough:
            self.saved_offset = save.dispatched
        for region in save.regions:
            self._full.pop(region, None)
        self._trouble.no_space(None)

    def _fail(self, save: _Save, error: Exception) -> None:
        if self._running is not save:
            return
        self._running = None
        self._parts.queues.end_flush(save.flush, failed=True)
        if save.page is not None:
            self._parts.checkpoint.queues_ms, self._parts.checkpoint.index_ms = self._stamps
        reason = f"saving consume queues failed: {error}"
        if save.lacks_space:
            self._trouble.no_space(reason)
        else:
            self._trouble.failed(reason)

    def finish(self) -> None:
        """Take in the last job; the worker must have ended."""
        save = self._running
        if save is not None and save.is_done:
            self._done(save)
        elif save is not None:
            self._fail(save, save.error)

    def save_all(self) -> bool:
        """Save everything here and now, the index with it; False if the disk refuses."""
        parts = self._parts
        save = self._running = self._job(thorough=True)
        if parts.index is not None:
            save.regions = [file.region for file in parts.index.files]
            parts.checkpoint.index_ms = max(
                parts.checkpoint.index_ms, parts.dispatcher.last_store_timestamp
            )
            save.page = parts.checkpoint.path, parts.checkpoint.image()
        try:
            save.run()
        except OSError as error:
            self._fail(save, error)
            return False
        self._done(save)
        return True
