"""The next files of the log, made ahead of need, so that rolling costs a sender nothing.

When a file is taken, the one behind it is begun on a worker: created at full length and, if asked,
touched page by page, so that appending meets no page that must first be found. Its first mebibyte
is touched in any case: the first page of a file that nobody has touched cost the put that rolled
half a millisecond, for the system then reads ahead. Waking the worker costs more than a put, so
with an event loop that is done at the end of the turn. After a start, which takes no file,
`prepare` begins one. A file that was not ready in time is made on the spot. What was made and never
used is removed at the end.

Warming up leaves a whole file of dirty pages, and forcing them in one go would hold up the disk for
everybody. So it is forced in steps while it is touched, and no force has more than one to write.

A file is forced, and its name, before it is used and before the next one is begun. So a power cut
leaves at most one file that has no length, and that is the last one; recovery takes it away. A file
whose making failed half way is removed, or the next attempt would find it there.

Owned by one task.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from gantrymq.kernel import kernel
from gantrymq.store.errors import StoreError
from gantrymq.store.file_queue import file_name
from gantrymq.store.mapped_file import PAGE_BYTES, MappedFile
from gantrymq.store.tail_pages import AHEAD_BYTES_MIN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from gantrymq.store.files import Files, Region
    from gantrymq.store.log_directories import LogDirectories
    from gantrymq.store.tail_pages import TailPages
    from gantrymq.store.transient_pool import TransientPool
    from gantrymq.store.worker import Worker


ALLOCATION_TIMEOUT_S: Final = 5.0
"""How long a roll waits for its file, once: until it is there, further ones fail at once."""


class FileNotMade(StoreError):
    """The next log file could not be made: the text says which, and what the disk said."""


class LogFiles:
    """Makes the files of one log."""

    def __init__(
        self,
        directories: LogDirectories,
        file_bytes: int,
        files: Files,
        worker: Worker,
        *,
        warm_step: int | None = None,
        forced_often: bool = False,
        pool: TransientPool | None = None,
        pages: TailPages | None = None,
        soon: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        """With `warm_step` new files are touched, and forced after every so many bytes.

        `forced_often` is for a log that is forced after every few messages.
        `pages` has the pages of the last one touched in front of the tail. With `soon`
        (`loop.call_soon`) the file behind one that is taken is begun a little later.
        """
        self.file_bytes = file_bytes
        self.avoid: frozenset[Path] = frozenset()
        """Directories that are nearly full; a cleaner looks at the disks and says so."""
        self._directories = directories
        self._files = files
        self._worker = worker
        self._warm_step = warm_step
        self._forced_often = forced_often
        self._pool = pool
        self._pages = pages
        self._soon = soon
        self._wanted: int | None = None
        """Where the file begins that is to be begun soon."""
        self._ahead: tuple[int, Future[Region]] | None = None
        self._ready: MappedFile | None = None
        """The same file, once somebody has seen that it is made."""
        self._late: Future[Region] | None = None
        """A file that was waited for in vain."""
        self._is_closing = False  # seen by the worker

    def path(self, start: int) -> Path:
        """Return where a new file that begins at an offset would be made now."""
        return self._path(start, self.avoid)

    def _path(self, start: int, avoid: frozenset[Path]) -> Path:
        return self._directories.choose(start // self.file_bytes, avoid) / file_name(start)

    def prepare(self, start: int) -> None:
        """Begin to make the file that begins at `start`, unless one is begun already."""
        self._wanted = None
        if self._ahead is None:
            self._ahead = start, self._begin(start)

    def _prepare_soon(self, start: int) -> None:
        """Do the same when this turn of the event loop is over, if there is one."""
        if self._soon is None:
            self.prepare(start)
        elif self._wanted is None:
            self._wanted = start
            self._soon(self._prepare_wanted)
        else:
            self._wanted = start

    def _prepare_wanted(self) -> None:
        if self._wanted is not None and not self._is_closing:
            self.prepare(self._wanted)

    def go_on_with(self, files: Sequence[MappedFile]) -> None:
        """Take files that were there before as those that are appended to."""
        for file in files:
            file.region.will_append(forced_often=self._forced_often)

    def advanced(self, tail: MappedFile) -> None:
        """Note how far the last file is written; called after every append."""
        if self._pages is not None and tail.start + tail.wrote >= self._pages.due:
            self._pages.follow(tail, self._made_ahead)

    def _made_ahead(self) -> Region | None:
        """Return the next file if it is there already; then a roll need not ask for it."""
        if self._ready is None and self._ahead is not None:
            start, making = self._ahead
            if making.done() and making.exception() is None:
                self._ready = MappedFile(start, making.result())
        return None if self._ready is None else self._ready.region

    def _begin(self, start: int) -> Future[Region]:
        avoid = self.avoid
        return self._worker.begin(lambda: self._make(self._path(start, avoid)))

    def take(self, start: int) -> MappedFile:
        """Return the file that begins at `start`, new and empty; the next one is begun.

        Raises:
            FileNotMade: the disk refuses.
        """
        ready, self._ready = self._ready, None
        if ready is not None and ready.start == start and self._pool is None:
            self._ahead = None
            self._prepare_soon(start + self.file_bytes)
            return ready
        buffer = self._borrow(start)
        try:
            region = self._region(start)
        except Exception as error:
            if buffer is not None:
                self.give_back(buffer)
            raise FileNotMade(
                f"{self.path(start)} cannot be made: {error}; is the disk full?"
            ) from error
        self._prepare_soon(start + self.file_bytes)
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
        if self._ahead is not None and self._ahead[0] != start:
            self._discard()
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            try:
                return self._wait(start, ahead[1])
            except Exception:
                if self._ahead is not None:
                    raise  # it is still being made
        return self._wait(start, self._begin(start))

    def _wait(self, start: int, making: Future[Region]) -> Region:
        """Wait for a file, but not again if that was in vain: the owner has others to see to."""
        timeout = 0.0 if making is self._late else ALLOCATION_TIMEOUT_S
        try:
            return making.result(timeout)
        except TimeoutError:
            if making.done() and making.exception() is not None:
                raise  # it is the disk's own word
            self._ahead, self._late = (start, making), making  # it will be there
            raise TimeoutError(
                f"it was not there within {ALLOCATION_TIMEOUT_S:.0f} s; the disk is slow"
            ) from None

    def _make(self, path: Path) -> Region:
        """Make a file; runs on the worker."""
        self._files.make_directory(path.parent)
        region = self._files.create(path, self.file_bytes)
        try:
            region.will_append(forced_often=self._forced_often)
            if self._warm_step is not None:
                self._warm_up(region, self._warm_step)
            region.sync()
            self._files.sync_directory(path.parent)
            first = min(region.size, AHEAD_BYTES_MIN)
            kernel.touch_pages(region.buffer, 0, first, PAGE_BYTES)
        except BaseException:
            region.close()
            with suppress(OSError):
                self._files.remove(region.path)
            raise
        return region

    def _warm_up(self, region: Region, step: int) -> None:
        """Touch every page of a new file, so that the page cache has it, and force it in steps."""
        for position in range(0, region.size, step):
            if self._is_closing:
                raise OSError(errno.ECANCELED, "nobody wants it any more", str(region.path))
            stop = min(position + step, region.size)
            kernel.touch_pages(region.buffer, position, stop, PAGE_BYTES)
            region.sync()

    def close(self) -> None:
        """Have removed what was made ahead and not used; it is gone when the worker has ended."""
        self._is_closing = True
        self._discard()

    def _discard(self) -> None:
        """Have the worker remove what it made, or is making: nobody waits for that."""
        ahead, self._ahead, self._ready = self._ahead, None, None
        if ahead is not None:
            self._worker.begin(lambda: self._remove(ahead[1]))

    def _remove(self, making: Future[Region]) -> None:
        """Remove a file that was made before; runs on the worker."""
        with suppress(OSError):
            # It could not be made: there is nothing to remove.
            region = making.result(0)
            region.close()
            self._files.remove(region.path)
