"""A disk that is only looked at: what is written to it is seen here and nowhere else.

Recovery changes a store: it cuts, wipes and dispatches again. A reader wants what recovery finds
and must not change a byte. So it runs that very recovery over a `ShadowFiles`, which answers from
the real files and keeps every change in memory; there is no second recovery that could disagree
with the first.

    blocks   a file written by position: the 4096-byte blocks that differ from the real ones. Most
             of what recovery cuts off it makes again, byte for byte, so that a block which is like
             the real one again is not kept; nor is one of a file that was removed and made again
    map      a file opened for writing: a private mapping, copied page by page when it is written
             to, so that a mapped file of 1 GiB costs what was changed in it. One that was made here
             (an index of 420 MB) lies in a temporary file without a name (in TMPDIR, or else in
             /var/tmp), and in memory only if there is no room for that

Like `OsFiles` this is one of the few places that call `mmap` themselves: only the operating system
can make a mapping that is writable and leaves its file alone. Real files are opened for reading
only. Owned by the one task that reads.
"""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Final

from gantrymq.store.files import OsFiles, write_one_by_one

if TYPE_CHECKING:
    from gantrymq.kernel import FileWrite
    from gantrymq.store.files import DiskUsage, Region, StrPath

BLOCK_BYTES: Final = 4096
_ON_DISK: Final = "/var/tmp"  # noqa: S108 - files without a name are made in it


class ShadowRegion:
    """A view of a private mapping; giving it up leaves the mapping to the disk."""

    __slots__ = ("buffer", "path", "size")

    def __init__(self, path: Path, mapping: mmap.mmap) -> None:
        self.path = path
        self.size = len(mapping)
        self.buffer = memoryview(mapping)

    def sync(self, start: int = 0, end: int | None = None) -> None:
        """Have nothing to force."""

    def resident_end(self, start: int, end: int) -> int:
        """Take all of it for resident: whoever reads here waits for nobody but itself."""
        return end

    def will_read(self, start: int, end: int) -> None:
        """Have nothing to prepare."""

    def will_append(self, *, forced_often: bool) -> None:
        """Have pages of one size alone."""

    def close(self) -> None:
        """Give up the view; slices that were handed out stay good."""
        with suppress(BufferError):
            self.buffer.release()


class _Shadow:
    """A file that was changed or made here."""

    __slots__ = ("blocks", "map", "real_bytes", "size")

    def __init__(self, size: int, real_bytes: int) -> None:
        self.size = size
        self.real_bytes = real_bytes
        """How much of the real file still shows."""
        self.blocks: dict[int, bytearray | None] = {}
        """What was written; None: what the real file has there, although it does not show."""
        self.map: mmap.mmap | None = None


def _scratch_directory() -> str | None:
    """Return where large temporary files go: TMPDIR, or /var/tmp, for /tmp is often memory."""
    if "TMPDIR" in os.environ or not os.access(_ON_DISK, os.W_OK):
        return None
    return _ON_DISK


def _scratch(size: int) -> mmap.mmap:
    """Return a mapping of zeros that need not stay in memory, if the disk has room for it."""
    try:
        with TemporaryFile(dir=_scratch_directory()) as file:
            # Reserved: on a full disk a write to a page of a hole is SIGBUS.
            os.posix_fallocate(file.fileno(), 0, size)
            return mmap.mmap(file.fileno(), size)
    except OSError:
        return mmap.mmap(-1, size)


class ShadowFiles:
    """`Files` that read the machine's disk and write to memory."""

    def __init__(self) -> None:
        self._disk = OsFiles()
        self._shadows: dict[Path, _Shadow] = {}
        self._made: dict[Path, set[str]] = {}
        self._gone: set[Path] = set()

    @property
    def kept_bytes(self) -> int:
        """Return how much of what was written by position is in memory."""
        shadows = self._shadows.values()
        return sum(len(block) for one in shadows for block in one.blocks.values() if block)

    # -- mapped files ----------------------------------------------------------------------------

    def create(self, path: Path, size: int) -> Region:
        """Make a file of zeros, in memory, and map it."""
        if self.exists(path):
            raise FileExistsError(f"{path} exists")
        self._note(path)
        shadow = self._shadows[path] = _Shadow(size, 0)
        shadow.map = _scratch(size)
        return ShadowRegion(path, shadow.map)

    def open(self, path: Path, *, writable: bool = True) -> Region:
        """Map a file; a writable mapping is private."""
        if not writable and path not in self._shadows and path not in self._gone:
            return self._disk.open(path, writable=False)
        shadow = self._shadow(path)
        if shadow.map is None:
            shadow.map = self._mapping(path, shadow)
            shadow.blocks.clear()
        return ShadowRegion(path, shadow.map)

    def _mapping(self, path: Path, shadow: _Shadow) -> mmap.mmap:
        if shadow.size == 0:
            raise ValueError(f"{path} is empty and cannot be mapped")
        if shadow.real_bytes == shadow.size:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                mapping = mmap.mmap(handle, shadow.size, access=mmap.ACCESS_COPY)
            finally:
                os.close(handle)
        else:
            mapping = mmap.mmap(-1, shadow.size)
            if shadow.real_bytes:
                mapping[: shadow.real_bytes] = self._disk.read_at(path, 0, shadow.real_bytes)
        for number, block in shadow.blocks.items():
            start = number * BLOCK_BYTES
            part = min(BLOCK_BYTES, shadow.size - start)
            held = self._real_block(path, number) if block is None else block
            mapping[start : start + part] = bytes(held[:part])
        return mapping

    # -- bytes by position -----------------------------------------------------------------------

    def read(self, path: Path) -> bytes:
        """Return a whole file."""
        return self.read_at(path, 0, self.size(path))

    def read_at(self, path: StrPath, position: int, count: int) -> bytes:
        """Return at most `count` bytes from a position."""
        path = Path(path)
        shadow = self._shadows.get(path)
        if shadow is None:
            self._check_there(path)
            return self._disk.read_at(path, position, count)
        stop = min(position + count, shadow.size)
        if shadow.map is not None:
            return shadow.map[position:stop]
        real = min(stop, shadow.real_bytes) - position
        data = bytearray(self._disk.read_at(path, position, real) if real > 0 else b"")
        data += bytes(max(stop - position - len(data), 0))
        for number in range(position // BLOCK_BYTES, -(-stop // BLOCK_BYTES)):
            if number in shadow.blocks:
                block = shadow.blocks[number]
                held = self._real_block(path, number) if block is None else block
                start = number * BLOCK_BYTES
                low, high = max(start, position), min(start + BLOCK_BYTES, stop)
                data[low - position : high - position] = held[low - start : high - start]
        return bytes(data)

    def _real_block(self, path: Path, number: int) -> bytes:
        """Return a block of the real file, zeros where that has none."""
        try:
            data = self._disk.read_at(path, number * BLOCK_BYTES, BLOCK_BYTES)
        except FileNotFoundError:
            data = b""
        return data.ljust(BLOCK_BYTES, b"\0")

    def read_now(self, path: StrPath, position: int, count: int) -> bytes | None:
        """Return bytes from a position; who reads a store for himself may wait."""
        return self.read_at(path, position, count)

    def write_at(self, path: StrPath, position: int, data: bytes, size: int) -> None:
        """Write at a position, in memory; bytes that are there already cost nothing."""
        path = Path(path)
        shadow = self._shadow(path, size)
        self._grow(shadow, max(size, position + len(data)))
        if self.read_at(path, position, len(data)) == data:
            return
        if shadow.map is not None:
            shadow.map[position : position + len(data)] = data
            return
        end = position + len(data)
        for number in range(position // BLOCK_BYTES, -(-end // BLOCK_BYTES)):
            start = number * BLOCK_BYTES
            block = shadow.blocks.get(number)
            if block is None:
                now = self.read_at(path, start, BLOCK_BYTES)
                block = bytearray(now.ljust(BLOCK_BYTES, b"\0"))
            low, high = max(start, position), min(start + BLOCK_BYTES, end)
            block[low - start : high - start] = data[low - position : high - position]
            self._keep(path, shadow, number, block)

    def write_all(self, writes: list[FileWrite]) -> None:
        """Write to many files."""
        write_one_by_one(self, writes)

    def _keep(self, path: Path, shadow: _Shadow, number: int, block: bytearray) -> None:
        """Keep a block that was written to, unless the real file has the same there."""
        if block != self._real_block(path, number):
            shadow.blocks[number] = block
        elif (number + 1) * BLOCK_BYTES <= shadow.real_bytes:
            shadow.blocks.pop(number, None)
        else:
            shadow.blocks[number] = None

    def truncate(self, path: Path, size: int) -> None:
        """Cut or extend a file to a size, in memory."""
        content = self.read_at(path, 0, size) if self.exists(path) else b""
        self._note(path)
        self._shadows[path] = _Shadow(size, 0)
        self.write_at(path, 0, content.ljust(size, b"\0"), size)

    def rename(self, source: Path, target: Path) -> None:
        """Put a file in another's place, in memory."""
        content = self.read(source)
        if source != target:
            self.truncate(target, 0)
            self.write_at(target, 0, content, len(content))
            self.remove(source)

    def _shadow(self, path: Path, size: int | None = None) -> _Shadow:
        """Return a file's shadow; a file that does not exist is made if a size is given."""
        shadow = self._shadows.get(path)
        if shadow is None:
            if size is None or self.exists(path):
                self._check_there(path)
                real = self._disk.size(path)
                shadow = _Shadow(real, real)
            else:
                shadow = _Shadow(size, 0)
            self._note(path)
            self._shadows[path] = shadow
        return shadow

    def _grow(self, shadow: _Shadow, size: int) -> None:
        if size > shadow.size:
            shadow.size = size
            if shadow.map is not None:
                larger = mmap.mmap(-1, size)
                larger[: len(shadow.map)] = shadow.map[:]
                shadow.map = larger

    # -- names -----------------------------------------------------------------------------------

    def size(self, path: Path) -> int:
        """Return a file's length."""
        shadow = self._shadows.get(path)
        if shadow is not None:
            return shadow.size
        self._check_there(path)
        return self._disk.size(path)

    def data_end(self, path: Path) -> int:
        """Return a position behind which a file is known to hold nothing but zeros."""
        shadow = self._shadows.get(path)
        return self._disk.data_end(path) if shadow is None else shadow.size

    def modified_ms(self, path: Path) -> int:
        """Return when the real file was last written; 0 for one that was made here."""
        return self._disk.modified_ms(path) if self._disk.exists(path) else 0

    def exists(self, path: Path) -> bool:
        """Tell whether there is anything at a path."""
        if path in self._shadows or path in self._made:
            return True
        return path not in self._gone and self._disk.exists(path)

    def is_directory(self, path: Path) -> bool:
        """Tell whether a path is a directory."""
        if path in self._made:
            return True
        return path not in self._gone and self._disk.is_directory(path)

    def names(self, directory: Path) -> list[str]:
        """Return the sorted names in a directory; none if it does not exist."""
        real = [name for name in self._disk.names(directory) if directory / name not in self._gone]
        made = self._made.get(directory)
        return sorted({*real, *made}) if made else real

    def listing(self, directory: StrPath) -> list[tuple[str, int]]:
        """Return the sorted names in a directory, each with its length; -1 for a directory."""
        directory = Path(directory)
        if not self._made and not self._gone and not self._shadows:
            return self._disk.listing(directory)
        if directory not in self._made and self.exists(directory):
            self._disk.listing(directory)  # says so if it is a file
        paths = [(name, directory / name) for name in self.names(directory)]
        return [(name, -1 if self.is_directory(at) else self.size(at)) for name, at in paths]

    def make_directory(self, path: Path) -> None:
        """Make a directory and those above it, in memory."""
        if not self.is_directory(path):
            self.make_directory(path.parent)
            self._made.setdefault(path, set())
            self._note(path)

    def remove(self, path: Path) -> None:
        """Remove a file, or an empty directory, from sight."""
        if not self.exists(path):
            raise FileNotFoundError(f"{path} is not there")
        self._shadows.pop(path, None)
        self._made.pop(path, None)
        self._made.get(path.parent, set()).discard(path.name)
        if self._disk.exists(path):
            self._gone.add(path)

    def _note(self, path: Path) -> None:
        """Have a name in its directory, which must be there, as on a real disk."""
        if not self.is_directory(path.parent):
            raise FileNotFoundError(f"{path.parent} is not there")
        self._gone.discard(path)
        if not self._disk.exists(path):
            self._made.setdefault(path.parent, set()).add(path.name)

    def _check_there(self, path: Path) -> None:
        if path in self._gone:
            raise FileNotFoundError(f"{path} was removed")

    # -- what needs no doing ---------------------------------------------------------------------

    def reserve(self, path: Path) -> None:
        """Have all the room there is."""

    def sync(self, path: StrPath) -> None:
        """Have nothing to force."""

    def sync_directory(self, directory: StrPath) -> None:
        """Have nothing to force."""

    def usage(self, path: Path) -> DiskUsage:
        """Return how full the file system below a path is."""
        return self._disk.usage(path)

    def lock(self, path: Path) -> int:
        """Take no lock: reading is allowed whoever writes."""
        return -1

    def unlock(self, held: int) -> None:
        """Have no lock to let go."""
