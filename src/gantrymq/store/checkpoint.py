"""The checkpoint: up to which store timestamp log, consume queues and index are on the disk.

    0      8      16     24              32                40 ... 4072 .......... 4096
    | log  | queues | index | master flushed | confirm offset | zeros | index again |   big-endian

The first three are RocketMQ's own (StoreCheckpoint.java); the two behind them belong to 5.x and are
kept as they were found, like the rest of the page. After a crash, recovery begins at the log file
in which everything older than `min_timestamp` lies, so a value that is too large loses queue
entries, and one that is too small only costs time. That is why the page is never written in place:
it has no checksum, and half a timestamp may be a larger one. A new page is made beside it, forced,
and renamed over it.

**The index, once more.** A timestamp does not tell apart two messages of one millisecond, of which
the first was forced with its index file and the second came after that; and when a clock was set
back, a millisecond is long. So the page ends with a mark, the index timestamp again, and the log
offset of the last message that is safe in the index. If another broker has changed the timestamp
since, the two differ, and the offset says nothing.

Owned by one task; `image` is taken there, and `write_image` may run on a worker.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.store.files import Files

PAGE_BYTES: Final = 4096
SAFETY_MS: Final = 3000
"""How much earlier than the last timestamps recovery begins: several records share one."""

_TIMES: Final = struct.Struct(">qqq")
_MARK: Final = int.from_bytes(b"gantry:i")
_INDEX: Final = struct.Struct(">qqq")
_INDEX_AT: Final = PAGE_BYTES - _INDEX.size


class Checkpoint:
    """Three timestamps that go forward, and the page that they are kept on."""

    def __init__(self, path: Path, page: bytes = b"") -> None:
        self.path = path
        self._page = bytearray(page[:PAGE_BYTES].ljust(PAGE_BYTES, b"\0"))
        log_ms, queues_ms, index_ms = _TIMES.unpack_from(self._page)
        # A file that another broker left half written may say anything; below zero is nothing.
        self.log_ms: int = max(log_ms, 0)
        self.queues_ms: int = max(queues_ms, 0)
        self.index_ms: int = max(index_ms, 0)
        mark, again_ms, log_offset = _INDEX.unpack_from(self._page, _INDEX_AT)
        is_known = mark == _MARK and again_ms == self.index_ms
        self.index_log_offset: int | None = log_offset if is_known else None
        """Of the last message that is safe in the index; None where that is not known."""

    @property
    def min_timestamp(self) -> int:
        """Return the store timestamp before which log and queues are surely on the disk."""
        return max(min(self.log_ms, self.queues_ms) - SAFETY_MS, 0)

    @property
    def min_timestamp_with_index(self) -> int:
        """Return the same for the index as well."""
        return min(self.min_timestamp, self.index_ms)

    def image(self) -> bytes:
        """Return the page with the timestamps as they are now."""
        _TIMES.pack_into(self._page, 0, self.log_ms, self.queues_ms, self.index_ms)
        index = (0, 0, 0)
        if self.index_log_offset is not None:
            index = _MARK, self.index_ms, self.index_log_offset
        _INDEX.pack_into(self._page, _INDEX_AT, *index)
        return bytes(self._page)

    def save(self, files: Files) -> None:
        """Bring the timestamps to the disk."""
        write_image(files, self.path, self.image())


def load_checkpoint(files: Files, path: Path) -> Checkpoint:
    """Return what a file says; timestamps of 0 if there is none, or it is cut short."""
    page = files.read_at(path, 0, PAGE_BYTES) if files.exists(path) else b""
    return Checkpoint(path, page if len(page) >= _TIMES.size else b"")


def write_image(files: Files, path: Path, image: bytes) -> None:
    """Put a page in the place of the file, whole or not at all."""
    fresh = path.with_name(f"{path.name}.tmp")
    files.write_at(fresh, 0, image, PAGE_BYTES)
    files.sync(fresh)
    files.rename(fresh, path)
    files.sync_directory(path.parent)
