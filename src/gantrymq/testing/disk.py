"""A disk in memory that forgets what was not forced, tears writes and fails on command.

`SimulatedFiles` stands in the place of `OsFiles`. It keeps two pictures of every file and of every
directory: what the machine sees, and what is on the disk. Only a sync (or `write_back`, the
kernel's own moment) moves the first to the second. What it models:

- **power cut** (`crash`): of what was written and not forced, each sector survives or not, in any
  order, drawn from the seed. A changed length survives or not on its own: a file whose making was
  not forced may come back empty, or long and full of zeros;
- **names** (made, renamed, removed): with `Names.JOURNALED` they survive in the order they were
  done, and forcing a file forces its own name, as on ext4 and XFS; with `Names.STRICT`, as POSIX
  has it, each pending name survives or not by itself and only `sync_directory` forces it. A rename
  is never seen half done. Data and names are not ordered with each other: a renamed file may be
  empty if it was not forced first;
- **process death** (`kill`): everything written is still there, forced or not; locks are free;
- **a step at which everything stops** (`halt_after`), to try each crash point of a procedure;
- **errors** (`fail`): any operation, any errno, once, n times or for good, for all paths or some.
  After a failed sync the pages count as clean, as Linux has it: the next sync succeeds and leaves
  them behind. Whoever retries a sync into success loses data here as there. Writing the same bytes
  again makes a page dirty again if it is done by `write_at`; through a map it is not noticed;
- **a full disk** (`capacity`, `other_bytes`) and a **read-only** one (`read_only`);
- **a page cache** (`evict`): which pages of a map would have to be waited for;
- **a slow disk**: `on_sync` is called inside every sync and may wait, or cut the power. Only what
  was written before the call began is forced by it.

Not modelled: bits that rot, writes that go astray, errors of reads through a map, directories that
are renamed. Every image is copied whole at a sync, so files of a few MiB are what it is for.

One lock guards names and images; writes through a map need none, as in real life.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from random import Random
from threading import RLock
from typing import TYPE_CHECKING, Final

from gantrymq.store.files import DiskUsage, write_one_by_one
from gantrymq.testing.clock import VirtualClock
from gantrymq.testing.disk_faults import FaultyDisk, Halted, Operation, disk_error
from gantrymq.testing.disk_image import Directories, Edit, Inode, Names, NamesJournal

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.clock import Clock
    from gantrymq.kernel import FileWrite
    from gantrymq.store.files import StrPath

__all__ = ["Halted", "Names", "Operation", "SimulatedFiles", "SimulatedRegion"]

CAPACITY_BYTES: Final = 1 << 40
PAGE_BYTES: Final = 4096


def _pages(start: int, end: int) -> range:
    return range(start // PAGE_BYTES, -(-end // PAGE_BYTES))


class SimulatedRegion:
    """A mapped file of a simulated disk."""

    def __init__(self, disk: SimulatedFiles, path: Path, inode: Inode, *, writable: bool) -> None:
        self.path = path
        self.size = len(inode.data)
        view = memoryview(inode.data)
        self.buffer = view if writable else view.toreadonly()
        self._disk = disk
        self._inode: Inode | None = inode

    def sync(self, start: int = 0, end: int | None = None) -> None:
        """Force what was written, of a range no more than it asks for; OSError as a disk's."""
        if self._inode is None:
            raise OSError(errno.EBADF, "this region is closed", str(self.path))
        self._disk.force(self._inode, self.path, start, end)

    def resident_end(self, start: int, end: int) -> int:
        """Return how far bytes are in memory; `SimulatedFiles.evict` takes them out."""
        return self._disk.resident_end(self.path, start, end)

    def will_read(self, start: int, end: int) -> None:
        """Have nothing to prepare: no test waits for a disk."""

    def will_append(self, *, forced_often: bool) -> None:
        """Have pages of one size alone."""

    def close(self) -> None:
        """Give up the mapping; slices that were handed out stay good."""
        self._inode = None
        with suppress(BufferError):
            self.buffer.release()


class SimulatedFiles(FaultyDisk):
    """A whole disk, and the `Files` that the store wants."""

    def __init__(
        self,
        seed: int = 0,
        *,
        clock: Clock | None = None,
        names: Names = Names.JOURNALED,
        sector_bytes: int = 512,
        capacity: int = CAPACITY_BYTES,
    ) -> None:
        super().__init__()
        self.clock: Clock = VirtualClock() if clock is None else clock
        self.capacity = capacity
        self.other_bytes = 0
        """What somebody else keeps on this disk; raise it to fill the disk up."""
        self.on_sync: Callable[[Path], None] | None = None
        self._names = names
        self._sector_bytes = sector_bytes
        self._random = Random(seed)  # noqa: S311 - a test that fails must fail again
        self._journal = NamesJournal(names)
        self._locks: dict[int, Path] = {}
        self._evicted: dict[Path, set[int]] = {}
        self._guard = RLock()

    # -- what happens to a disk --------------------------------------------------------------------

    def write_back(self, keep: float = 0.5) -> None:
        """Bring some of the changed sectors to the disk now, as the kernel does when it likes."""
        with self._guard:
            for inode in self._journal.inodes():
                image = inode.survivor(self._random, keep, self._sector_bytes)
                inode.settle(bytes(image))

    def crash(self, keep: float | None = None) -> SimulatedFiles:
        """Cut the power; return the disk as the next start finds it. This one is dead.

        `keep` is the chance of an unforced sector, length or name; None draws one of several.
        """
        with self._guard:
            chance = self._random.choice((0.0, 0.1, 0.5, 0.9, 1.0)) if keep is None else keep
            self._is_dead = True
            directories = self._journal.survivors(self._random, chance)
            images: dict[Inode, Inode] = {}
            for entries in directories.values():
                for inode in entries.values():
                    if inode is not None and inode not in images:
                        content = inode.survivor(self._random, chance, self._sector_bytes)
                        images[inode] = Inode.forced(content, inode.modified_ms)
            return self._successor(directories, images)

    def kill(self) -> SimulatedFiles:
        """End the process and not the machine; return the same disk without locks and maps."""
        with self._guard:
            self._is_dead = True
            images = {inode: inode.copy() for inode in self._journal.inodes()}
            after = self._successor({}, {})
            after._journal = self._journal.copy(images)
            return after

    def _successor(self, directories: Directories, images: dict[Inode, Inode]) -> SimulatedFiles:
        after = SimulatedFiles(
            self._random.getrandbits(32),
            clock=self.clock,
            names=self._names,
            sector_bytes=self._sector_bytes,
            capacity=self.capacity,
        )
        after.other_bytes = self.other_bytes
        after._journal.restore(
            {
                directory: {
                    name: None if inode is None else images[inode]
                    for name, inode in entries.items()
                }
                for directory, entries in directories.items()
            }
        )
        return after

    def place(self, path: Path, content: bytes, modified_ms: int | None = None) -> None:
        """Put a file on the disk, forced, with the directories above it."""
        with self._guard:
            self._journal.make_directory(path.parent)
            inode = Inode.forced(
                bytearray(content), self.clock.now_ms() if modified_ms is None else modified_ms
            )
            self._journal.apply(Edit(path, inode))
            self._journal.commit_all()

    def set_modified_ms(self, path: Path, modified_ms: int) -> None:
        """Set when a file was last written."""
        self._inode(path).modified_ms = modified_ms

    def evict(self, path: Path, start: int = 0, end: int | None = None) -> None:
        """Take the pages of a range out of memory; reading them by position brings them back."""
        with self._guard:
            stop = len(self._inode(path).data) if end is None else end
            self._evicted.setdefault(path, set()).update(_pages(start, stop))

    def resident_end(self, path: Path, start: int, end: int) -> int:
        """Return how far from `start` the pages of a file are in memory, `end` at most."""
        with self._guard:
            gone = self._evicted.get(path, set())
            for page in _pages(start, end) if gone else ():
                if page in gone:
                    return max(start, page * PAGE_BYTES)
            return end

    def _need(self, path: Path, count: int) -> None:
        """Raise ENOSPC if the disk cannot take so many more bytes."""
        if count > 0 and count > self.usage(path).available:
            raise disk_error(errno.ENOSPC, path)

    def _inode(self, path: Path) -> Inode:
        inode = self._journal.find(path)
        if inode is None:
            raise disk_error(
                errno.EISDIR if self._journal.is_directory(path) else errno.ENOENT, path
            )
        return inode

    # -- Files ----------------------------------------------------------------------------------

    def create(self, path: Path, size: int) -> SimulatedRegion:
        """Make a file of zeros, which must not exist, and map it."""
        with self._guard:
            self._step(Operation.CREATE, path)
            if self.exists(path):
                raise disk_error(errno.EEXIST, path)
            return SimulatedRegion(self, path, self._make(path, size), writable=True)

    def _make(self, path: Path, size: int) -> Inode:
        if not self._journal.is_directory(path.parent):
            raise disk_error(errno.ENOENT, path)
        self._need(path, size)
        inode = Inode(self.clock.now_ms())
        inode.resize(size)
        self._journal.apply(Edit(path, inode))
        return inode

    def open(self, path: Path, *, writable: bool = True) -> SimulatedRegion:
        """Map a file that exists."""
        with self._guard:
            self._step(Operation.OPEN, path)
            inode = self._inode(path)
            if not inode.data:
                raise ValueError("cannot mmap an empty file")
            return SimulatedRegion(self, path, inode, writable=writable)

    def size(self, path: Path) -> int:
        """Return a file's length."""
        return len(self._inode(path).data)

    def reserve(self, path: Path) -> None:
        """Have no holes: a file here takes its whole length from the start."""
        self._inode(path)

    def data_end(self, path: Path) -> int:
        """Return where the zeros begin that a file ends with."""
        with self._guard:
            return len(bytes(self._inode(path).data).rstrip(b"\0"))

    def modified_ms(self, path: Path) -> int:
        """Return when a file was last written or forced."""
        return self._inode(path).modified_ms

    def exists(self, path: Path) -> bool:
        """Tell whether there is anything at a path."""
        return self._journal.find(path) is not None or self._journal.is_directory(path)

    def names(self, directory: Path) -> list[str]:
        """Return the sorted names in a directory; none if it does not exist."""
        with self._guard:
            return self._journal.names(directory)

    def listing(self, directory: StrPath) -> list[tuple[str, int]]:
        """Return the sorted names in a directory, each with its length; -1 for a directory."""
        directory = Path(directory)
        with self._guard:
            if self._journal.find(directory) is not None:
                raise disk_error(errno.ENOTDIR, directory)
            inodes = [
                (name, self._journal.find(directory / name))
                for name in self._journal.names(directory)
            ]
        return [(name, -1 if inode is None else len(inode.data)) for name, inode in inodes]

    def is_directory(self, path: Path) -> bool:
        """Tell whether a path is a directory."""
        return self._journal.is_directory(path)

    def make_directory(self, path: Path) -> None:
        """Make a directory and those above it."""
        with self._guard:
            if not self._journal.is_directory(path):
                self._step(Operation.MAKE_DIRECTORY, path)
                if self._journal.find(path) is not None:
                    raise disk_error(errno.EEXIST, path)
                self._journal.make_directory(path)

    def remove(self, path: Path) -> None:
        """Remove a file, or an empty directory."""
        with self._guard:
            self._step(Operation.REMOVE, path)
            if not self.exists(path):
                raise disk_error(errno.ENOENT, path)
            if self._journal.names(path):
                raise disk_error(errno.ENOTEMPTY, path)
            self._journal.remove(path)

    def read(self, path: Path) -> bytes:
        """Return a whole file."""
        with self._guard:
            self._step(Operation.READ, path)
            return bytes(self._inode(path).data)

    def read_at(self, path: StrPath, position: int, count: int) -> bytes:
        """Return at most `count` bytes from a position."""
        path = Path(path)
        with self._guard:
            self._step(Operation.READ, path)
            if path in self._evicted:
                self._evicted[path] -= set(_pages(position, position + count))
            return bytes(self._inode(path).data[position : position + count])

    def read_now(self, path: StrPath, position: int, count: int) -> bytes | None:
        """Return `count` bytes from a position, unless `evict` has taken some of them out."""
        path = Path(path)
        end = position + count
        if self.resident_end(path, position, end) < end:
            return None
        return self.read_at(path, position, count)

    def write_at(self, path: StrPath, position: int, data: bytes, size: int) -> None:
        """Write at a position; a file that does not exist is made with `size` zeros first."""
        path = Path(path)
        with self._guard:
            self._step(Operation.WRITE, path)
            inode = self._journal.find(path)
            if inode is None:
                inode = self._make(path, size)
            end = max(len(inode.data), size, position + len(data))
            self._need(path, end - len(inode.data))
            inode.resize(end)
            inode.data[position : position + len(data)] = data
            inode.rewritten(position, position + len(data))
            inode.modified_ms = self.clock.now_ms()

    def write_all(self, writes: list[FileWrite]) -> None:
        """Write to many files."""
        write_one_by_one(self, writes)

    def truncate(self, path: Path, size: int) -> None:
        """Cut or extend a file to a size; BufferError if it is mapped."""
        with self._guard:
            self._step(Operation.TRUNCATE, path)
            inode = self._journal.find(path)
            if inode is None:
                self._make(path, size)
                return
            self._need(path, size - len(inode.data))
            inode.resize(size)
            inode.modified_ms = self.clock.now_ms()

    def sync(self, path: StrPath) -> None:
        """Force a file that was written by position."""
        path = Path(path)
        self.force(self._inode(path), path)

    def force(self, inode: Inode, path: Path, start: int = 0, end: int | None = None) -> None:
        """Bring a file to the disk as it is now; its name too, where the journal has it so."""
        with self._guard:
            ticket, image = inode.snapshot(start, end)
        if self.on_sync is not None:
            self.on_sync(path)
        with self._guard:
            try:
                self._step(Operation.SYNC, path)
            except OSError:
                inode.lose(image)
                raise
            if inode.settle(image, ticket):
                inode.modified_ms = self.clock.now_ms()
            self._journal.forced(inode)

    def rename(self, source: Path, target: Path) -> None:
        """Put a file in another's place at once."""
        with self._guard:
            self._step(Operation.RENAME, target)
            inode = self._inode(source)
            if not self._journal.is_directory(target.parent):
                raise disk_error(errno.ENOENT, target)
            if self._journal.is_directory(target):
                raise disk_error(errno.EISDIR, target)
            self._journal.apply(Edit(target, inode, source))

    def sync_directory(self, directory: StrPath) -> None:
        """Force the names in a directory."""
        directory = Path(directory)
        with self._guard:
            self._step(Operation.SYNC_DIRECTORY, directory)
            if not self._journal.is_directory(directory):
                raise disk_error(errno.ENOENT, directory)
            self._journal.commit(directory)

    def usage(self, path: Path) -> DiskUsage:
        """Return how full the disk is; a file counts with its whole length."""
        del path  # one disk, one file system
        with self._guard:
            files = sum(len(inode.data) for inode in self._journal.seen_inodes())
        used = min(files + self.other_bytes, self.capacity)
        return DiskUsage(used, self.capacity - used)

    def lock(self, path: Path) -> int:
        """Take the process lock on a file, made if need be."""
        with self._guard:
            self._step(Operation.LOCK, path)
            if path in self._locks.values():
                raise BlockingIOError(errno.EAGAIN, "held by another", str(path))
            if self._journal.find(path) is None:
                self._make(path, 0)
            held = max(self._locks, default=0) + 1
            self._locks[held] = path
            return held

    def unlock(self, held: int) -> None:
        """Let the process lock go."""
        with self._guard:
            if self._locks.pop(held, None) is None:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
