"""The files of one consume queue, or of its extension, whose tail is kept in memory.

A broker may have 40,000 queues and a process 20,000 open files, so these files are not mapped: what
is appended waits in memory until somebody writes it out, and older bytes are read by position.

    first          tail start   written           end
    |------------------|-----------|----------------|
     in the files only   in both     in memory only

Losing what was not written out is no harm: after a crash it is built again from the commit log.

**The owner and the thread.** One task owns a `QueueFiles`. Writing out takes three steps: the owner
asks for `pending_writes`, a thread does them (`write_out`), the owner notes it (`wrote_out`).
Meanwhile everything stays readable and more may be appended. Forcing the files to the disk is the
same dance with `pending_syncs`, `sync_out` and `synced`.

**What lies behind the end.** Apache RocketMQ does not wipe what it cuts off, so bytes of former
units may follow the end in a file. A later recovery, ours or Apache's, would take them for units as
soon as the gap before them is closed. Therefore what is cut off here is overwritten with zeros at
once, and as long as the end is in a file that was there when the queue was loaded, every write
carries a zero unit behind its last byte: nobody has looked at what follows it.
"""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from gantrymq.errors import InvalidValue
from gantrymq.kernel import UNIT_BYTES, FileWrite, kernel
from gantrymq.store.errors import StoreDamaged
from gantrymq.store.file_queue import drop_unfinished, file_name, file_starts, is_file_name
from gantrymq.store.mapped_file import is_due

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gantrymq.store.files import Files, StrPath

WAITING_BYTES_MAX: Final = 65536
"""More than this is not kept waiting for the next flush."""
PAGE_BYTES: Final = 4096
RECENT_BYTES: Final = 32 * UNIT_BYTES
"""Written bytes that stay in memory: consumers that keep up ask for the last batch."""


class Sync(NamedTuple):
    """A file, or a directory with the names in it, that is to be forced."""

    path: str
    is_directory: bool = False


def write_out(files: Files, writes: Iterable[FileWrite]) -> None:
    """Do the writes that owners handed out; may run on any thread."""
    files.write_all([part for write in writes for part in _first_page_last(write)])


def _first_page_last(write: FileWrite) -> tuple[FileWrite, ...]:
    """Return a write in parts, so that a kill in the middle of it leaves no unit without its end.

    The system ends a write between two pages if its process is killed, and a unit may lie on both.
    Apache would take it for a good one, with half a tags code. While the first page is missing,
    the queue ends before it.
    """
    head = PAGE_BYTES - write.position % PAGE_BYTES
    if len(write.data) <= head:
        return (write,)
    behind = write._replace(position=write.position + head, data=write.data[head:])
    return behind, write._replace(data=write.data[:head])


def sync_out(files: Files, syncs: Iterable[Sync]) -> None:
    """Force the files and directories that owners handed out; may run on any thread."""
    for path, is_directory in dict.fromkeys(syncs):
        if is_directory:
            files.sync_directory(path)
        else:
            files.sync(path)


def remove_all(files: Files, paths: Iterable[Path]) -> None:
    """Remove files and directories in order, those that are there; may run on any thread.

    Each removal is forced before the next: a power cut that brought back one of them alone would
    leave a gap between files.
    """
    for path in paths:
        with suppress(FileNotFoundError):
            files.remove(path)
        with suppress(FileNotFoundError):
            files.sync_directory(path.parent)


class QueueFiles:
    """Bytes that only grow, in files of equal size; positions count from the first byte ever."""

    __slots__ = (
        "_directory",
        "_file_bytes",
        "_files",
        "_files_end",
        "_has_unfinished",
        "_named_end",
        "_stale_until",
        "_tail_start",
        "_taken",
        "_unknown_until",
        "_unsynced_from",
        "first",
        "is_held",
        "restarts",
        "tail",
        "written",
    )

    def __init__(self, directory: StrPath, file_bytes: int, files: Files) -> None:
        self._directory = str(directory)
        self._file_bytes = file_bytes
        self._files = files
        self.tail = kernel.QueueTail()
        """What is in memory; open while adding to it needs nothing else to be done."""
        self._has_unfinished = False
        self.is_held = False
        """Nothing is written but by the thread that saves the queues."""
        self.restarts = -1
        self._restart_at(0)

    def _restart_at(self, start: int) -> None:
        self.restarts += 1
        self.first = self.end = self.written = self._tail_start = start
        self.tail.is_open = False
        self._files_end = self._named_end = start  # behind the last file made, and safely named
        self._stale_until = 0  # zeros are due from the end up to here
        self._unknown_until = 0  # up to here nobody knows what follows the end
        self._taken: int | None = None  # a thread is writing up to here
        self._unsynced_from: int | None = None
        self.tail.data.clear()

    # -- what there is ---------------------------------------------------------------------------

    @property
    def end(self) -> int:
        """Return the position behind the last byte."""
        return self.tail.end

    @end.setter
    def end(self, position: int) -> None:
        self.tail.end = position

    @property
    def directory(self) -> Path:
        """Return where the files lie."""
        return Path(self._directory)

    @property
    def file_bytes(self) -> int:
        """Return the length of a file."""
        return self._file_bytes

    @property
    def waiting_bytes(self) -> int:
        """Return how much is in memory only."""
        return self.end - self.written

    @property
    def is_pending(self) -> bool:
        """Tell whether there is anything to write out."""
        return self.end > self.written or self._stale_until > self.end

    def has_begun(self, pages: int) -> bool:
        """Tell whether so many pages have begun, or a file was filled, since the last write.

        With 0 pages whether there is anything to write out.
        """
        if pages <= 0 or self._stale_until > self.end:
            return self.is_pending
        start = self._start_of(self.written)
        position = min(self.end - start, self._file_bytes)
        return is_due(position, self.written - start, self._file_bytes, pages)

    @property
    def is_unsynced(self) -> bool:
        """Tell whether anything was written that is not forced yet."""
        return self._unsynced_from is not None

    def load(self, *, after_crash: bool = False) -> None:
        """Learn from the names which files there are; all of them count as full.

        A power cut may leave files without length, or none, between others. What lies behind them
        was not forced either and is built again, so after a crash it is removed.

        Raises:
            StoreDamaged: there is something else, or files that are not of one queue.
        """
        found = self._files.listing(self._directory)
        if after_crash:
            found = self._drop_unforced(found)
        starts = file_starts(self._directory, found, self._file_bytes)
        if starts and starts[0] % self._file_bytes:
            raise StoreDamaged(
                f"{self._path(starts[0])} is named by an offset that no file of {self._file_bytes} "
                "bytes begins at; give it its old name back, or move it elsewhere"
            )
        self._has_unfinished = len(starts) < len(found)
        self._restart_at(starts[0] if starts else 0)
        if starts:
            behind = starts[-1] + self._file_bytes
            self.end = self.written = self._tail_start = behind
            self._files_end = self._unknown_until = behind
            # A process that was killed may not have forced the names that are seen here.
            self._named_end = starts[0] if after_crash else behind

    def _drop_unforced(self, found: list[tuple[str, int]]) -> list[tuple[str, int]]:
        """Remove what a power cut left incomplete, and all behind it; return the rest."""
        lengths = {0, self._file_bytes}
        if any(size not in lengths or not is_file_name(name) for name, size in found):
            return found  # no crash does that: `file_starts` will say what it is
        good, expected = 0, found[0][0] if found else ""
        for name, size in found:
            if name != expected or size == 0:
                break
            good += 1
            expected = file_name(int(found[0][0]) + good * self._file_bytes)
        self._remove([f"{self._directory}/{name}" for name, _size in found[good:]])
        return found[:good]

    def _remove(self, paths: list[str]) -> None:
        """Remove files, and see that a power cut does not bring back what was in them."""
        for path in reversed(paths):
            with suppress(FileNotFoundError):  # the cleaner was first
                self._files.remove(Path(path))
        if paths:
            self._files.sync_directory(self._directory)

    def read(self, position: int, count: int) -> bytes:
        """Return up to `count` bytes, fewer at the end, none before the first file.

        Raises:
            StoreDamaged: a file is shorter than it was.
        """
        stop = min(position + count, self.end)
        if position < self.first or stop <= position:
            return b""
        parts = []
        while position < min(stop, self._tail_start):
            start = self._start_of(position)
            part = min(stop, self._tail_start, start + self._file_bytes) - position
            data = self._files.read_at(self._path(start), position - start, part)
            if len(data) != part:
                raise StoreDamaged(
                    f"{self._path(start)} has fewer than {self._file_bytes} bytes by now; "
                    "`gantrymq store rebuild` makes consume queues again from the commit log"
                )
            parts.append(data)
            position += part
        if position < stop:
            first = self._tail_start
            parts.append(bytes(self.tail.data[position - first : stop - first]))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read_now(self, position: int, count: int) -> bytes | None:
        """Return the same as `read` if that does not wait for the disk, otherwise None."""
        if position >= self._tail_start:
            return self.read(position, count)
        stop = min(position + count, self.end)
        start = self._start_of(position)
        if position < self.first or stop > min(start + self._file_bytes, self._tail_start):
            # Two files, or a file and memory: rare, and nobody knows of both.
            if not self._is_resident(position, stop):
                return None
            return self.read(position, count)
        return self._files.read_now(self._path(start), position - start, stop - position)

    def _is_resident(self, position: int, stop: int) -> bool:
        """Tell whether the part of a range that lies in files can be read without waiting."""
        position, stop = max(position, self.first), min(stop, self._tail_start)
        while position < stop:
            start = self._start_of(position)
            part = min(stop, start + self._file_bytes) - position
            if self._files.read_now(self._path(start), position - start, part) is None:
                return False
            position += part
        return True

    def view(self) -> Self:
        """Return what there is now, to be read by a thread while this one grows.

        A read raises FileNotFoundError if its file has been removed since.
        """
        view = copy(self)
        view.tail = self.tail.copy()
        return view

    def _start_of(self, position: int) -> int:
        return position - position % self._file_bytes

    def _end_of(self, position: int) -> int:
        """Return where the last file ends that holds bytes before a position."""
        return self._start_of(position + self._file_bytes - 1)

    def _path(self, start: int) -> str:
        return f"{self._directory}/{start:020d}"

    def _paths(self, start: int, stop: int) -> list[str]:
        return [self._path(at) for at in range(start, stop, self._file_bytes)]

    # -- growing ---------------------------------------------------------------------------------

    def append(self, data: bytes) -> None:
        """Add bytes at the end; write them out at once if too many wait."""
        tail = self.tail
        tail.data.extend(data)
        tail.end = end = tail.end + len(data)
        if end - self.written > WAITING_BYTES_MAX and self._taken is None and not self.is_held:
            self.write_now()

    def write_now(self) -> None:
        """Write out what waits, on this thread, unless another is at it."""
        end, writes = self.end, self.pending_writes()
        try:
            write_out(self._files, writes)
        except OSError:
            self.wrote_out(self.written)
            raise
        self.wrote_out(end)

    def pending_writes(self) -> list[FileWrite]:
        """Return what waits as writes for a thread; none while the last ones are under way.

        `wrote_out` must follow in any case.
        """
        if self._taken is not None or not self.is_pending:
            return []
        data = bytes(self.tail.data[self.written - self._tail_start :]) + bytes(self._zeros_due())
        writes, position = [], self.written
        while data:
            start = self._start_of(position)
            part = data[: start + self._file_bytes - position]
            writes.append(FileWrite(self._path(start), position - start, part, self._file_bytes))
            data = data[len(part) :]
            position += len(part)
        self._taken = self.end
        if self._unsynced_from is None or self._unsynced_from > self.written:
            self._unsynced_from = self.written
        return writes

    def _zeros_due(self) -> int:
        """Return how many zeros must follow the end, within the file that it is in."""
        stale_until = self._stale_until
        if self.end < self._unknown_until:
            stale_until = max(stale_until, self.end + UNIT_BYTES)
        file_end = self._start_of(self.end) + self._file_bytes
        if self.end % self._file_bytes == 0 and self._files_end <= self.end:
            return 0  # the next file is not made yet, and will be made of zeros
        return max(min(stale_until, file_end) - self.end, 0)

    def wrote_out(self, position: int) -> None:
        """Note that the writes handed out last are done up to a position.

        All of them if it is the end of that time, none of them if it is `written`.
        """
        if self._taken is None:
            return
        if position >= self._taken:
            self._stale_until = 0
        self.written = max(self.written, min(position, self._taken))
        self._files_end = max(self._files_end, self._end_of(self.written))
        self._taken = None
        if not self.is_pending:
            self.tail.is_open = False  # who saves the queues must hear of the next unit
        superfluous = self.written - RECENT_BYTES - self._tail_start
        if superfluous > 0:
            del self.tail.data[:superfluous]
            self._tail_start += superfluous

    def pending_syncs(self) -> list[Sync]:
        """Return the files, and directories, to force so that all writes handed out are safe."""
        if self._unsynced_from is None:
            return []
        begin = max(self._unsynced_from, self.first)
        stop = max(self.written, self._taken or 0, min(begin + 1, self._files_end))
        syncs = [Sync(path) for path in self._paths(self._start_of(begin), stop)]
        if stop > self._named_end:
            topic = self._directory.rpartition("/")[0]
            directories = self._directory, topic, topic.rpartition("/")[0]
            syncs += [Sync(one, is_directory=True) for one in directories]
        return syncs

    def synced(self, position: int) -> None:
        """Note that what was written up to a position is forced."""
        if self._unsynced_from is not None:
            self._unsynced_from = None if position >= self.written else position
        self._named_end = max(self._named_end, self._end_of(position))

    # -- shrinking -------------------------------------------------------------------------------

    def cut(self, position: int, stale_until: int, *, wipes_later: bool = False) -> None:
        """Forget what lies behind a position and remove the files that are all behind it.

        The first file stays, if only for its name. Bytes up to `stale_until` are wiped now: once
        the log has grown again, nobody could tell them from good ones. Who has everything written
        out before that may have them wiped with the next write.
        """
        self._check_idle()
        keep_until = self._end_of(max(position, self.first + 1))
        self._remove(self._paths(keep_until, self._files_end))
        self._files_end = min(self._files_end, keep_until)
        self.end = position
        self.tail.is_open = False
        self.written = min(self.written, position)
        if position <= self._tail_start:
            self.tail.data.clear()
            self._tail_start = position
        else:
            del self.tail.data[position - self._tail_start :]
        self._stale_until = min(max(self._stale_until, stale_until), self._files_end)
        if self._stale_until > self.end and not wipes_later:
            self.write_now()

    def drop_unfinished(self) -> None:
        """Remove the empty file that a crash may leave behind when it was about to be made."""
        if self._has_unfinished:
            self._has_unfinished = False
            drop_unfinished(self._files, self.directory)

    def restart(self, position: int) -> None:
        """Remove everything and begin again at the start of the file that a position lies in."""
        self._check_idle()
        self._remove(self._paths(self.first, self._files_end))
        self._restart_at(self._start_of(position))

    def keep_from(self, position: int) -> int:
        """Return where the first file begins that holds anything at or behind a position.

        The last file that is on the disk is never passed: the queue would lose its place with it.
        """
        return max(self._start_of(min(position, self.written - 1)), self.first)

    def paths_before(self, keep: int) -> list[Path]:
        """Return the files before the one that begins at `keep`, in order."""
        return [Path(path) for path in self._paths(self.first, keep)]

    def drop_before(self, keep: int) -> None:
        """Forget the files before the one that begins at `keep`."""
        self.first = max(self.first, keep)

    def forget(self) -> None:
        """Be empty to whoever still holds it; the files are somebody else's business now."""
        self.first = self._tail_start = self.end
        self.tail.is_open = False
        self.tail.data.clear()

    def all_paths(self) -> list[Path]:
        """Return all that must be removed to be rid of it, in order: files, then the directory."""
        stop = max(self._files_end, self._taken or 0)
        paths = [Path(path) for path in self._paths(self.first, stop)]
        if paths or self._files.is_directory(self.directory):
            paths.append(self.directory)
        return paths

    def _check_idle(self) -> None:
        if self._taken is not None:
            raise InvalidValue(f"{self._directory} is being written to: wait until that is done")
