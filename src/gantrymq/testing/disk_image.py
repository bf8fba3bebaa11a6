"""What is on a simulated disk, beside what the machine sees of it: file contents and names."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

PAGE_BYTES: Final = 4096

_tickets: Final = count(1)


class Names(Enum):
    """When a name that was made, renamed or removed is safe."""

    JOURNALED = auto()
    """In order; with a sync of the file, or of its directory."""
    STRICT = auto()
    """In any order; with a sync of the directory alone."""


class Inode:
    """A file's bytes: as the machine sees them, and as they lie on the disk."""

    __slots__ = ("_disk", "_lost", "_sizes", "_ticket", "data", "modified_ms")

    def __init__(self, modified_ms: int) -> None:
        self.data = bytearray()
        self.modified_ms = modified_ms
        self._disk = b""
        self._sizes: list[tuple[int, int]] = []
        # Pages that a failed sync left behind, by position: clean for the kernel, not on the disk.
        self._lost: dict[int, bytes] = {}
        self._ticket = 0

    @classmethod
    def forced(cls, content: bytearray, modified_ms: int) -> Inode:
        """Return a file that lies on the disk as it is."""
        inode = cls(modified_ms)
        inode.data = content
        inode._disk = bytes(content)
        return inode

    def copy(self) -> Inode:
        """Return the same file with memory of its own."""
        inode = Inode(self.modified_ms)
        inode.data = bytearray(self.data)
        inode._disk = self._disk
        inode._sizes = list(self._sizes)
        inode._lost = dict(self._lost)
        return inode

    def resize(self, size: int) -> None:
        """Cut the file, or extend it with zeros."""
        if size == len(self.data):
            return
        if not self.data:
            self.data = bytearray(size)
        elif size < len(self.data):
            del self.data[size:]
        else:
            self.data += bytes(size - len(self.data))
        self._sizes.append((next(_tickets), size))

    def snapshot(self, start: int = 0, end: int | None = None) -> tuple[int, bytes]:
        """Return a ticket and what a sync that begins now has to bring to the disk.

        Of a part of the file whole pages: the rest stays as the disk has it.
        """
        image = bytes(self.data)
        if end is not None:
            begin, stop = start - start % PAGE_BYTES, -(-end // PAGE_BYTES) * PAGE_BYTES
            disk = self._disk[: len(image)].ljust(len(image), b"\0")
            image = disk[:begin] + image[begin:stop] + disk[stop:]
        return next(_tickets), image

    def settle(self, image: bytes, ticket: int | None = None) -> bool:
        """Put an image on the disk, unless a later sync was there first; tell if it is new."""
        if ticket is not None:
            if ticket < self._ticket:
                return False
            self._ticket = ticket
            self._sizes = [change for change in self._sizes if change[0] > ticket]
        if self._lost:
            image = self._without_lost(image)
        if image == self._disk:
            return False
        self._disk = image
        return True

    def lose(self, image: bytes) -> None:
        """Note that a sync failed: the kernel takes these pages for clean from now on."""
        for position in _differing(image, self._disk, PAGE_BYTES):
            self._lost[position] = image[position : position + PAGE_BYTES]

    def rewritten(self, start: int, end: int) -> None:
        """Note that a range was written by position: its pages are dirty, whatever they hold."""
        for position in [page for page in self._lost if start < page + PAGE_BYTES and page < end]:
            del self._lost[position]

    def _without_lost(self, image: bytes) -> bytes:
        """Return the image with what was lost as the disk has it; pages written since are not."""
        kept = bytearray(image)
        for position, lost in list(self._lost.items()):
            end = position + len(lost)
            if image[position:end] == lost:
                kept[position:end] = self._disk[position:end].ljust(len(lost), b"\0")
            else:
                del self._lost[position]
        return bytes(kept)

    def survivor(self, random: Random, keep: float, sector_bytes: int) -> bytearray:
        """Return what a power cut leaves: of each changed sector the old or the new content."""
        size = self._surviving_size(random, keep)
        content = bytearray(self._disk[:size].ljust(size, b"\0"))
        new = self.data[:size]
        for page in _differing(new, content, PAGE_BYTES):
            end = min(page + PAGE_BYTES, len(new))
            for start in range(page, end, sector_bytes):
                stop = min(start + sector_bytes, end)
                if random.random() < keep:
                    content[start:stop] = new[start:stop]
        return content

    def _surviving_size(self, random: Random, keep: float) -> int:
        if not self._sizes or keep <= 0:
            return len(self._disk)
        if keep >= 1:
            return len(self.data)
        return random.choice([len(self._disk), *(size for _ticket, size in self._sizes)])


def _differing(one: bytes | bytearray, other: bytes | bytearray, step: int) -> Iterator[int]:
    """Yield the positions of the blocks in which two contents differ."""
    if one == other:
        return
    for start in range(0, len(one), step):
        if one[start : start + step] != other[start : start + step]:
            yield start


Directories = dict[Path, dict[str, "Inode | None"]]
"""Directory -> name -> file; None stands for a directory."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of names, done at once: a file, or nothing, at `path`; nothing at `source`."""

    path: Path
    inode: Inode | None
    source: Path | None = None
    is_directory: bool = False

    def apply(self, directories: Directories) -> None:
        """Make the change where its directories exist."""
        if self.source is not None:
            directories.get(self.source.parent, {}).pop(self.source.name, None)
        entries = directories.setdefault(self.path.parent, {})
        if self.is_directory:
            entries[self.path.name] = None
            directories.setdefault(self.path, {})
        elif self.inode is None:
            entries.pop(self.path.name, None)
            directories.pop(self.path, None)
        else:
            entries[self.path.name] = self.inode


class NamesJournal:
    """The names that the machine sees, those on the disk, and the edits between the two."""

    def __init__(self, kind: Names) -> None:
        self._kind = kind
        self._seen: Directories = {Path("/"): {}}
        self._disk: Directories = {Path("/"): {}}
        self._pending: list[Edit] = []

    def restore(self, directories: Directories) -> None:
        """Begin with what a power cut left."""
        self._seen = {Path("/"): {}} | {key: dict(names) for key, names in directories.items()}
        self._disk = {key: dict(names) for key, names in self._seen.items()}

    def copy(self, images: dict[Inode, Inode]) -> NamesJournal:
        """Return the same names over other files; files without a new image are gone for good."""

        def moved(inode: Inode | None) -> Inode | None:
            return None if inode is None else images.setdefault(inode, inode)

        after = NamesJournal(self._kind)
        for source, target in ((self._seen, after._seen), (self._disk, after._disk)):
            for directory, names in source.items():
                target[directory] = {name: moved(inode) for name, inode in names.items()}
        after._pending = [
            Edit(edit.path, moved(edit.inode), edit.source, edit.is_directory)
            for edit in self._pending
        ]
        return after

    def find(self, path: Path) -> Inode | None:
        """Return the file at a path."""
        return self._seen.get(path.parent, {}).get(path.name)

    def is_directory(self, path: Path) -> bool:
        """Tell whether a path is a directory."""
        return path in self._seen

    def names(self, directory: Path) -> list[str]:
        """Return the sorted names in a directory."""
        return sorted(self._seen.get(directory, ()))

    def inodes(self) -> list[Inode]:
        """Return every file that has a name, or had one that is still on the disk."""
        return list(dict.fromkeys([*_files(self._seen), *_files(self._disk)]))

    def seen_inodes(self) -> list[Inode]:
        """Return every file that has a name."""
        return list(_files(self._seen))

    def apply(self, edit: Edit) -> None:
        """Change the names that the machine sees."""
        edit.apply(self._seen)
        self._pending.append(edit)

    def make_directory(self, path: Path) -> None:
        """Make a directory and those above it."""
        for directory in reversed((path, *path.parents)):
            if directory not in self._seen:
                self.apply(Edit(directory, None, is_directory=True))

    def remove(self, path: Path) -> None:
        """Take a name away."""
        self.apply(Edit(path, None))

    def forced(self, inode: Inode) -> None:
        """A file was forced: in a journal its name went along."""
        if self._kind is Names.JOURNALED:
            self._commit_until(lambda edit: edit.inode is inode)

    def commit(self, directory: Path) -> None:
        """A directory was forced."""

        def concerned(edit: Edit) -> bool:
            return directory == edit.path.parent or (
                edit.source is not None and directory == edit.source.parent
            )

        if self._kind is Names.JOURNALED:
            self._commit_until(concerned)
            return
        waiting = []
        for edit in self._pending:
            if concerned(edit):
                edit.apply(self._disk)
            else:
                waiting.append(edit)
        self._pending = waiting

    def commit_all(self) -> None:
        """Bring every name to the disk."""
        self._commit_until(lambda _edit: True)

    def _commit_until(self, concerned: Callable[[Edit], bool]) -> None:
        """Bring the edits to the disk up to the last that is concerned."""
        last = max((at for at, edit in enumerate(self._pending) if concerned(edit)), default=-1)
        for edit in self._pending[: last + 1]:
            edit.apply(self._disk)
        del self._pending[: last + 1]

    def survivors(self, random: Random, keep: float) -> Directories:
        """Return the names that a power cut leaves."""
        directories = {key: dict(names) for key, names in self._disk.items()}
        for edit in self._pending:
            if random.random() < keep:
                edit.apply(directories)
            elif self._kind is Names.JOURNALED:
                break
        return _reachable(directories)


def _files(directories: Directories) -> Iterator[Inode]:
    for names in directories.values():
        yield from (inode for inode in names.values() if inode is not None)


def _reachable(directories: Directories) -> Directories:
    """Return what can be walked to from the root: a lost directory takes along what is in it."""
    reached: Directories = {}
    waiting = [Path("/")]
    while waiting:
        directory = waiting.pop()
        reached[directory] = directories.get(directory, {})
        waiting += [directory / name for name, inode in reached[directory].items() if inode is None]
    return reached
