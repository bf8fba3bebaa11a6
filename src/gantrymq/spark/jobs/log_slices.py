"""A commit log cut into slices that tasks walk on their own, and joined again without a seam.

A slice is a range of bytes of one file. A task cannot know where the first record of its slice
begins, so it looks for one: a magic value with the record's own log offset beside it, which must be
the place where it stands (`slice_walk.py`). Each record belongs to the slice that it begins
in, however far it reaches into the next one.

Whether that was right is seen when the edges are joined: a slice must begin where the one before it
ended. Bytes between them are damage. A slice that begins *before* that has taken something inside
a body for a record (somebody stored a copy of a log in a message); then `Misaligned` names the
place, and the walk is made again with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from gantrymq.store.checkpoint import load_checkpoint
from gantrymq.store.files import OsFiles
from gantrymq.store.log_directories import log_directories
from gantrymq.store.process_lock import was_aborted
from gantrymq.store.recovery import LogRecovery
from gantrymq.store.shape import settings_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.store.settings import StoreSettings

SLICE_BYTES: Final = 64 << 20


class LogSlice(msgspec.Struct, frozen=True):
    """Bytes `begin` to `end` of a file; a record may reach to `limit`."""

    number: int
    path: str
    log_base: int
    begin: int
    end: int
    limit: int
    is_exact: bool
    """A record must stand at `begin`."""


class Damage(msgspec.Struct, rename="camel"):
    """A place where a record should be and is none."""

    log_offset: int
    stop: str
    size: int
    is_zeros: bool


class Edge(msgspec.Struct, rename="camel"):
    """Where the records of a slice begin and end, as log offsets; -1 without any."""

    number: int
    begin: int
    end: int
    is_blank: bool = False
    """The file ends behind the last record, with a blank one."""
    is_open: bool = False
    """There is no record behind `end` up to the end of the slice."""
    damages: list[Damage] = msgspec.field(default_factory=list)


class Store(NamedTuple):
    """A store directory and the settings that it was made with."""

    root: Path
    settings: StoreSettings
    was_aborted: bool


def open_store(path: str, configuration: str | None = None) -> Store:
    """Return a store directory, which is only read.

    Raises:
        GantryError: there is none, or the configuration says something that cannot be.
        OSError: it cannot be read.
    """
    files, root = OsFiles(), Path(path).absolute()
    settings = settings_of(root, files, None if configuration is None else Path(configuration))
    return Store(root, settings, was_aborted(files, root))


def recovered_end(store: Store) -> int:
    """Return where a broker's recovery would end the log."""
    files, settings = OsFiles(), store.settings
    recovery = LogRecovery(log_directories(settings.paths), settings.files.commit_log_bytes, files)
    first = recovery.clean_start()
    if store.was_aborted:
        checkpoint = load_checkpoint(files, settings.paths.root / "checkpoint")
        first = recovery.crash_start(checkpoint.min_timestamp)
    return recovery.walk(first, verify_crc=settings.recovery.checks_crc).offset


def log_files(store: Store) -> dict[int, Path]:
    """Return the files of the log by the offset that they begin at."""
    files, found = OsFiles(), dict[int, Path]()
    for directory in log_directories(store.settings.paths).all:
        for name in files.names(directory):
            if name.isdecimal() and not files.is_directory(directory / name):
                found[int(name)] = directory / name
    return dict(sorted(found.items()))


def plan_slices(
    store: Store, end: int | None = None, slice_bytes: int = SLICE_BYTES
) -> list[LogSlice]:
    """Cut the log into slices, up to a log offset or to where its files hold anything."""
    slices: list[LogSlice] = []
    files = OsFiles()
    for base, path in log_files(store).items():
        limit = files.data_end(path) if end is None else min(files.size(path), end - base)
        for begin in range(0, limit, slice_bytes):
            stop = min(begin + slice_bytes, limit)
            slices.append(LogSlice(len(slices), str(path), base, begin, stop, limit, begin == 0))
    return slices


class Joined(NamedTuple):
    """All slices as one log."""

    damages: list[Damage]
    """Within the log: something good follows."""
    end: int
    """Behind the last record."""
    tail: Damage | None
    """What stands behind it in its file, if it is not all zeros."""
    misaligned: dict[int, int]
    """Slices that began within a record, and the log offset where they should."""


def join_edges(slices: Sequence[LogSlice], edges: Sequence[Edge]) -> Joined:
    """Put the edges together; see the head of this file."""
    join = _Join()
    for piece, edge in zip(slices, edges, strict=True):
        join.take(piece, edge)
    return join.finish()


class _Join:
    """The state of joining: where the next record must begin, and what is wrong so far."""

    def __init__(self) -> None:
        self.damages: list[Damage] = []
        self.misaligned: dict[int, int] = {}
        self._expected = 0
        self._base = -1
        self._is_blank = True
        self._open: Damage | None = None

    def take(self, piece: LogSlice, edge: Edge) -> None:
        """Take the next slice."""
        if piece.log_base != self._base:
            self._begin_file(piece)
        if self._is_blank:
            return  # filler, whatever it holds
        if edge.begin < 0:
            if self._expected < piece.log_base + piece.end and self._open is None:
                # It began in the slice before, or nothing follows what ended there.
                self._open = Damage(self._expected, "NO_RECORD", 0, is_zeros=True)
            return
        if edge.begin < self._expected:
            self.misaligned[piece.number] = self._expected
            return
        self._close(edge.begin)
        if edge.begin > self._expected:
            size = edge.begin - self._expected
            self.damages.append(Damage(self._expected, "NO_RECORD", size, is_zeros=False))
        self._expected = edge.end
        self.damages += edge.damages[: -1 if edge.is_open else None]
        if edge.is_open:
            self._open = edge.damages[-1]
        self._is_blank = edge.is_blank

    def _begin_file(self, piece: LogSlice) -> None:
        if not self._is_blank and self._open is None:
            # The file ended without a blank record and without anything else.
            self._open = Damage(self._expected, "NO_RECORD", 0, is_zeros=True)
        if self._base >= 0 and not self._is_blank:
            self._close(piece.log_base)
        self._base, self._is_blank = piece.log_base, False
        self._expected, self._open = piece.log_base, None

    def _close(self, begin: int) -> None:
        """End the open damage where a record begins."""
        if self._open is not None:
            self._open.size = begin - self._open.log_offset
            if self._open.size > 0:
                self.damages.append(self._open)
            self._expected, self._open = begin, None

    def finish(self) -> Joined:
        """Return the log."""
        tail = self._open
        if tail is not None and (tail.is_zeros or self._is_blank):
            tail = None
        return Joined(self.damages, self._expected, tail, self.misaligned)


def realigned(slices: Sequence[LogSlice], misaligned: dict[int, int]) -> list[LogSlice]:
    """Return the slices with the places where those that were wrong must begin."""
    found = []
    for piece in slices:
        begin = misaligned.get(piece.number)
        if begin is None:
            found.append(piece)
        else:
            at = min(begin - piece.log_base, piece.end)
            found.append(msgspec.structs.replace(piece, begin=at, is_exact=True))
    return found
