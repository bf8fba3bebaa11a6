"""The disk as an argument: every data file is opened, forced, renamed and removed through `Files`.

`OsFiles` is the machine's disk. Tests put a simulated one in its place, which forgets what was not
forced, tears writes and fails on command; so nothing else in `gantrymq.store` calls `os` or `mmap`.

Two shapes of file:

- a `Region` is mapped and of fixed size: commit log and index files. It is written through its
  buffer and forced as a whole or in part;
- everything else is read and written by position, opened for each call: a broker may have more
  consume queues than a process may have open files, and opening costs a few microseconds.

A mapped file is never unmapped under its reader: a slice handed out keeps the mapping alive, and
`Region.close` only gives up this object's own hold on it.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from gantrymq.kernel import kernel

if TYPE_CHECKING:
    from gantrymq.kernel import FileWrite

    StrPath = str | Path
    """Of 40,000 queues making a `Path` of each would cost more than looking at its files."""

RESIDENT_BYTES_MAX: Final = 1 << 20
"""How far one question about the page cache looks ahead: 256 pages cost as much as one."""
# PyDLL, for the call takes a microsecond and must not give the interpreter away meanwhile.
_mincore: Final = ctypes.PyDLL(None).mincore
_mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
_mincore.restype = ctypes.c_int
# CDLL, which gives the interpreter away: this is the call that waits for the disk.
_msync: Final = ctypes.CDLL(None, use_errno=True).msync
_msync.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_msync.restype = ctypes.c_int
_MS_SYNC: Final = 4


class DiskUsage(NamedTuple):
    """Bytes of the file system that a path lies on."""

    used: int
    available: int
    """What an ordinary user may still write."""

    @property
    def ratio(self) -> float:
        """Return the used part, rounded up to a hundredth, as `df` does."""
        total = self.used + self.available
        return -(-100 * self.used // total) / 100 if total else 0.0


class Region(Protocol):
    """A mapped file of fixed size."""

    path: Path
    size: int
    buffer: memoryview

    def sync(self, start: int = 0, end: int | None = None) -> None:
        """Force what was written to the disk; OSError means that it may not be there.

        With a range at least that; the pages in front of the tail would have to be written often.
        """
        ...

    def resident_end(self, start: int, end: int) -> int:
        """Return how far bytes from `start` on are in memory, so that reading them never waits.

        Looks no further than `end`, and than RESIDENT_BYTES_MAX; `start` if it would wait at once.
        """
        ...

    def will_read(self, start: int, end: int) -> None:
        """Say that bytes will be read soon, so that the disk may begin; nobody waits for it."""
        ...

    def will_append(self, *, forced_often: bool) -> None:
        """Say that the file is written from front to back, so that its pages come in a good size.

        Forced often, each force should find no more to write than was appended: small ones.
        """
        ...

    def close(self) -> None:
        """Give up the mapping; slices that were handed out stay good."""
        ...


class Files(Protocol):
    """What the store may ask of a disk. Every method raises OSError when the disk refuses."""

    def create(self, path: Path, size: int) -> Region:
        """Make a file of zeros, which must not exist, and map it."""
        ...

    def open(self, path: Path, *, writable: bool = True) -> Region:
        """Map a file that exists."""
        ...

    def reserve(self, path: Path) -> None:
        """Have room on the disk for all of a file, also where it was never written to."""
        ...

    def size(self, path: Path) -> int:
        """Return a file's length."""
        ...

    def data_end(self, path: Path) -> int:
        """Return a position behind which a file is known to hold nothing but zeros."""
        ...

    def modified_ms(self, path: Path) -> int:
        """Return when a file was last written, in milliseconds since 1970."""
        ...

    def exists(self, path: Path) -> bool:
        """Tell whether there is anything at a path."""
        ...

    def names(self, directory: Path) -> list[str]:
        """Return the sorted names in a directory; none if it does not exist."""
        ...

    def listing(self, directory: StrPath) -> list[tuple[str, int]]:
        """Return the sorted names in a directory, each with its length; -1 for a directory.

        None if it does not exist; NotADirectoryError if it is a file.
        """
        ...

    def is_directory(self, path: Path) -> bool:
        """Tell whether a path is a directory."""
        ...

    def make_directory(self, path: Path) -> None:
        """Make a directory and those above it."""
        ...

    def remove(self, path: Path) -> None:
        """Remove a file, or an empty directory."""
        ...

    def read(self, path: Path) -> bytes:
        """Return a whole file."""
        ...

    def read_at(self, path: StrPath, position: int, count: int) -> bytes:
        """Return at most `count` bytes from a position."""
        ...

    def read_now(self, path: StrPath, position: int, count: int) -> bytes | None:
        """Return `count` bytes from a position if they are in memory; None if one had to wait."""
        ...

    def write_at(self, path: StrPath, position: int, data: bytes, size: int) -> None:
        """Write at a position; a file that does not exist is made with `size` zeros first."""
        ...

    def write_all(self, writes: list[FileWrite]) -> None:
        """Do what `write_at` does, for many files in order, making directories as need be."""
        ...

    def truncate(self, path: Path, size: int) -> None:
        """Cut or extend a file to a size; it is made if it does not exist."""
        ...

    def sync(self, path: StrPath) -> None:
        """Force a file that was written by position."""
        ...

    def rename(self, source: Path, target: Path) -> None:
        """Put a file in another's place at once."""
        ...

    def sync_directory(self, directory: StrPath) -> None:
        """Force the names in a directory: files made, renamed, removed."""
        ...

    def usage(self, path: Path) -> DiskUsage:
        """Return how full the file system below a path is."""
        ...

    def lock(self, path: Path) -> int:
        """Take the process lock on a file, made if need be; return what `unlock` wants.

        Raises BlockingIOError when another process holds it.
        """
        ...

    def unlock(self, held: int) -> None:
        """Let the process lock go."""
        ...


def write_one_by_one(files: Files, writes: list[FileWrite]) -> None:
    """Do what `Files.write_all` does with `write_at`, for disks that see to every write."""
    for write in writes:
        try:
            files.write_at(*write)
        except FileNotFoundError:
            files.make_directory(Path(write.path).parent)
            files.write_at(*write)


class MappedRegion:
    """A file of the machine's disk, mapped."""

    __slots__ = ("_address", "_handle", "_map", "buffer", "path", "size")

    def __init__(self, path: Path, handle: int, size: int, *, writable: bool) -> None:
        self.path = path
        self.size = size
        self._handle = handle
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        self._map = mmap.mmap(handle, size, access=access)
        self.buffer = memoryview(self._map)
        # 0 where the address cannot be had: nobody knows what is in memory of a read-only map.
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._map)) if writable else 0

    def sync(self, start: int = 0, end: int | None = None) -> None:
        """Force what was written; on Linux this covers what was written through the map."""
        if self._handle < 0:
            raise OSError(errno.EBADF, "the region is closed", str(self.path))
        if end is None or self._address == 0:
            os.fdatasync(self._handle)
            return
        page = start - start % mmap.PAGESIZE
        with memoryview(self._map):  # nobody unmaps it meanwhile
            if _msync(self._address + page, end - page, _MS_SYNC) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), str(self.path))

    def resident_end(self, start: int, end: int) -> int:
        """Ask the kernel which pages of the map it has (mincore(2)); about 3 microseconds.

        A map for reading only cannot be asked, so none of it is said to be there: the owner of a
        log that lies in part on such a disk must not wait for it.
        """
        if self._address == 0:
            return start
        end = min(end, start + RESIDENT_BYTES_MAX)
        page = start - start % mmap.PAGESIZE
        pages = -(-(end - page) // mmap.PAGESIZE)
        answer = ctypes.create_string_buffer(pages)
        if _mincore(self._address + page, end - page, answer) != 0:
            return end
        missing = answer.raw.find(b"\0")
        return end if missing < 0 else max(start, page + missing * mmap.PAGESIZE)

    def will_read(self, start: int, end: int) -> None:
        """Have the kernel read ahead."""
        with suppress(OSError):
            os.posix_fadvise(self._handle, start, end - start, os.POSIX_FADV_WILLNEED)

    def will_append(self, *, forced_often: bool) -> None:
        """Choose the size of the pages that the first writes bring into memory (madvise(2)).

        Left alone, Linux fills as much around such a page as it would read ahead of a reader: eight
        mebibytes on some disks, in one go that nobody interrupts (measured: up to 33 ms), and what
        is forced later is as much as was filled together. Forced often, each page comes alone: a
        force of one message took 0.3 ms where it took 0.9. Otherwise two mebibytes come at once,
        the page of the processor: some 10 % more messages a second.
        """
        if not sys.platform.startswith("linux"):
            return
        with suppress(OSError):  # a kernel that knows no large pages goes on as it is
            if not forced_often:
                self._map.madvise(mmap.MADV_HUGEPAGE)
            self._map.madvise(mmap.MADV_RANDOM)

    def close(self) -> None:
        """Give up the mapping and the handle."""
        if self._handle < 0:
            return
        os.close(self._handle)
        self._handle = -1
        self._address = 0
        with suppress(BufferError):
            # A slice of it is still being sent: the mapping goes with the last of them.
            self.buffer.release()
            self._map.close()


class OsFiles:
    """The machine's disk. It keeps nothing, so every thread may use it."""

    __slots__ = ()

    def create(self, path: Path, size: int) -> MappedRegion:
        """Make a file of zeros and map it."""
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            # Its whole length first: ext4 reserves and lengthens piece by piece, and a power cut in
            # between would leave a length that is neither 0 nor whole, which no start can explain.
            os.ftruncate(handle, size)
            # Reserved, not just extended: on a full disk a write to a page of a hole is SIGBUS, and
            # nobody could refuse the message any more.
            os.posix_fallocate(handle, 0, size)
            return MappedRegion(path, handle, size, writable=True)
        except BaseException:  # also without memory for the map: the next attempt finds no file
            os.close(handle)
            path.unlink()
            raise

    def open(self, path: Path, *, writable: bool = True) -> MappedRegion:
        """Map a file that exists."""
        handle = os.open(path, (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC)
        try:
            return MappedRegion(path, handle, os.fstat(handle).st_size, writable=writable)
        except BaseException:
            os.close(handle)
            raise

    def reserve(self, path: Path) -> None:
        """Give blocks to the holes of a file; what it holds stays."""
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.posix_fallocate(handle, 0, os.fstat(handle).st_size)
        finally:
            os.close(handle)

    def size(self, path: Path) -> int:
        """Return a file's length."""
        return path.stat().st_size

    def data_end(self, path: Path) -> int:
        """Ask the file system where the last hole begins."""
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            end = 0
            while True:
                try:
                    data = os.lseek(handle, end, os.SEEK_DATA)
                except OSError as error:
                    if error.errno == errno.ENXIO:  # nothing but a hole from here on
                        return end
                    raise
                end = os.lseek(handle, data, os.SEEK_HOLE)
        finally:
            os.close(handle)

    def modified_ms(self, path: Path) -> int:
        """Return when a file was last written."""
        return path.stat().st_mtime_ns // 1_000_000

    def exists(self, path: Path) -> bool:
        """Tell whether there is anything at a path."""
        return path.exists()

    def names(self, directory: Path) -> list[str]:
        """Return the sorted names in a directory; none if it does not exist."""
        try:
            # Not `iterdir`, which makes a path of each: there may be 40,000 queues to look into.
            with os.scandir(directory) as entries:
                return sorted(entry.name for entry in entries)
        except FileNotFoundError:
            return []

    def listing(self, directory: StrPath) -> list[tuple[str, int]]:
        """Return the sorted names in a directory with their lengths."""
        try:
            entries = os.scandir(directory)
        except FileNotFoundError:
            return []
        with entries:
            return sorted(
                [(one.name, -1 if one.is_dir() else one.stat().st_size) for one in entries]
            )

    def is_directory(self, path: Path) -> bool:
        """Tell whether a path is a directory."""
        return path.is_dir()

    def make_directory(self, path: Path) -> None:
        """Make a directory and those above it."""
        path.mkdir(parents=True, exist_ok=True)

    def remove(self, path: Path) -> None:
        """Remove a file, or an empty directory."""
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()

    def read(self, path: Path) -> bytes:
        """Return a whole file."""
        return path.read_bytes()

    def read_at(self, path: StrPath, position: int, count: int) -> bytes:
        """Return at most `count` bytes from a position."""
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(handle, count, position)
        finally:
            os.close(handle)

    def read_now(self, path: StrPath, position: int, count: int) -> bytes | None:
        """Read without waiting (preadv2(2)); where that cannot be asked for, it may wait."""
        data = bytearray(count)
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if os.preadv(handle, [data], position, os.RWF_NOWAIT) == count:
                return bytes(data)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            return os.pread(handle, count, position)
        finally:
            os.close(handle)
        return None  # a part of them, or the file is shorter: whoever waits will see

    def write_at(self, path: StrPath, position: int, data: bytes, size: int) -> None:
        """Write at a position; a file that does not exist is made with `size` bytes of zeros."""
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if os.fstat(handle).st_size < size:
                os.ftruncate(handle, size)
            view = memoryview(data)
            while view:
                written = os.pwrite(handle, view, position)
                position += written
                view = view[written:]
        finally:
            os.close(handle)

    def write_all(self, writes: list[FileWrite]) -> None:
        """Write to many files in one call: with a thread's turn for each everybody would wait."""
        kernel.write_files(writes)

    def truncate(self, path: Path, size: int) -> None:
        """Cut or extend a file to a size."""
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.ftruncate(handle, size)
        finally:
            os.close(handle)

    def sync(self, path: StrPath) -> None:
        """Force a file; its pages are found whoever wrote them."""
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fdatasync(handle)
        finally:
            os.close(handle)

    def rename(self, source: Path, target: Path) -> None:
        """Put a file in another's place at once."""
        source.replace(target)

    def sync_directory(self, directory: StrPath) -> None:
        """Force the names in a directory."""
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def usage(self, path: Path) -> DiskUsage:
        """Return how full the file system below a path is."""
        stat = os.statvfs(path)
        return DiskUsage(
            (stat.f_blocks - stat.f_bfree) * stat.f_frsize, stat.f_bavail * stat.f_frsize
        )

    def lock(self, path: Path) -> int:
        """Take the lock on byte 0, as a Java broker does, so that each keeps the other out."""
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
        except OSError:
            os.close(handle)
            raise
        return handle

    def unlock(self, held: int) -> None:
        """Let the process lock go."""
        os.close(held)
