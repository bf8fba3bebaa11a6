"""The file of one minute: what of it counts, whether it is as it was written, and the writing."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.store import config_files

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gantrymq.store.files import Files

PROGRESS: Final = "progress"


class Slot:
    """One minute: what is in its file, and what is not yet."""

    __slots__ = ("buffer", "found", "lowest", "sum", "written")

    def __init__(
        self, written: int = 0, lowest: int = 2**63 - 1, check_sum: int | None = 0
    ) -> None:
        self.found = written  # bytes that an earlier process wrote
        self.written = written
        self.sum = check_sum  # of the bytes that are written; None is not known
        self.lowest = lowest
        self.buffer = bytearray()

    def note_written(self, data: bytes) -> None:
        """Count what was written."""
        self.written += len(data)
        if self.sum is not None:
            self.sum = zlib.crc32(data, self.sum)

    def is_right(self, content: bytes) -> bool:
        """Tell whether a file holds what was written."""
        same = self.sum is None or zlib.crc32(content) == self.sum
        return same and len(content) == self.written

    def give_up(self) -> None:
        """Have nothing written: the file is of no use."""
        self.found = self.written = self.sum = 0


class Write(NamedTuple):
    """Bytes for the file of a minute."""

    path: Path
    position: int
    data: bytes


class Taken(NamedTuple):
    """What a save took of a minute, and the check sum before it."""

    data: bytes
    check_sum: int | None


def content_of(files: Files, path: Path, count: int) -> bytes:
    """Return what counts of a file, or less where there is not so much; runs on a thread."""
    if not files.exists(path):
        return b""
    return files.read_at(path, 0, min(count, files.size(path)))


def perform(
    files: Files,
    directory: Path,
    writes: Iterable[Write],
    progress: bytes,
    gone: Iterable[int],
) -> None:
    """Do the work of a save; runs on a thread."""
    for path, position, data in writes:
        files.write_at(path, position, data, position + len(data))
        files.sync(path)
    files.sync_directory(directory)
    config_files.save(files, directory / PROGRESS, progress)
    for minute in gone:
        if files.exists(directory / str(minute)):
            files.remove(directory / str(minute))
