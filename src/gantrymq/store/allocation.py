"""The next files of the log, made ahead of need, so that rolling costs a sender nothing.

When a file is taken, the one behind it is begun on a worker: created at full length and, if asked,
touched page by page, so that appending meets no page that must first be found. A file that was not
ready in time is made on the spot. What was made and never used is removed at the end.

A file is forced, and its name, before it is used and before the next one is begun. So a power cut
leaves at most one file that has no length, and that is the last one; recovery takes it away. A file
whose making failed half way is removed, or the next attempt would find it there.

Owned by one task.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from gantrymq.store.errors import StoreError
from gantrymq.store.file_queue import file_name
from gantrymq.store.mapped_file import PAGE_BYTES, MappedFile

if TYPE_CHECKING:
    from concurrent.futures import Future
    from pathlib import Path

    from gantrymq.store.files import Files, Region
    from gantrymq.store.transient_pool import TransientPool
    from gantrymq.store.worker import Worker


ALLOCATION_TIMEOUT_S: Final = 5.0
"""How long a roll waits for its file."""


class FileNotMade(StoreError):
    """The next log file could not be made: the text says which, and what the disk said."""


class LogFiles:
    """Makes the files of one log directory."""

    def __init__(
        self,
        directory: Path,
        file_bytes: int,
        files: Files,
        worker: Worker,
        *,
        warm: bool = False,
        pool: TransientPool | None = None,
    ) -> None:
        self.directory = directory
        self.file_bytes = file_bytes
        self._files = files
        self._worker = worker
        self._warm = warm
        self._pool = pool
        self._ahead: tuple[int, Future[Region]] | None = None

    def path(self, start: int) -> Path:
        """Return where the file that begins at an offset lies."""
        return self.directory / file_name(start)

    def take(self, start: int) -> MappedFile:
        """Return the file that begins at `start`, new and empty; the next one is begun.

        Raises:
            FileNotMade: the disk refuses.
        """
        buffer = self._borrow(start)
        try:
            region = self._region(start)
        except OSError as error:
            if buffer is not None:
                self.give_back(buffer)
            raise FileNotMade(
                f"{self.path(start)} cannot be made: {error}; is the disk full?"
            ) from error
        following = start + self.file_bytes
        self._ahead = following, self._worker.begin(lambda: self._make(following))
        return MappedFile(start, region, buffer)

    def _borrow(self, start: int) -> memoryview | None:
        """Return a transient buffer for a new file; None if it has to do without."""
        if self._pool is None:
            return None
        buffer = self._pool.borrow()
        if buffer is None and self._pool.fails_fast:
            raise FileNotMade(
                f"{self.path(start)} is not made: no buffer of the transient store pool is free; "
                "raise transientStorePoolSize"
            )
        return buffer

    def give_back(self, buffer: memoryview) -> None:
        """Take a transient buffer back from a file that is full and committed."""
        if self._pool is not None:
            self._pool.give_back(buffer)

    def _region(self, start: int) -> Region:
        """Return the file made ahead, or make it now: an error of some time ago says nothing."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] == start:
            try:
                return ahead[1].result(ALLOCATION_TIMEOUT_S)
            except TimeoutError:
                self._ahead = ahead  # it is still being made, and will be there
                raise
            except OSError:
                pass
        making = self._worker.begin(lambda: self._make(start))
        try:
            return making.result(ALLOCATION_TIMEOUT_S)
        except TimeoutError:
            self._ahead = start, making
            raise

    def _make(self, start: int) -> Region:
        """Make a file; runs on the worker."""
        self._files.make_directory(self.directory)
        region = self._files.create(self.path(start), self.file_bytes)
        try:
            if self._warm:
                touch(region.buffer)
            region.sync()
            self._files.sync_directory(self.directory)
        except OSError:
            region.close()
            with suppress(OSError):
                self._files.remove(region.path)
            raise
        return region

    def close(self) -> None:
        """Remove what was made ahead and not used."""
        ahead, self._ahead = self._ahead, None
        if ahead is None:
            return
        with suppress(OSError):
            # It could not be made: there is nothing to remove.
            region = ahead[1].result(ALLOCATION_TIMEOUT_S)
            region.close()
            self._files.remove(region.path)


def touch(buffer: memoryview) -> None:
    """Write a zero to every page of a new file, so that the page cache has it."""
    for position in range(0, len(buffer), PAGE_BYTES):
        buffer[position] = 0
