"""The extension of a consume queue: more than a tags code can say (ConsumeQueueExt.java).

    bytes   field
    i16     unit size         20 + bitmap bytes, at most 32767
    i64     tags code         the tag's hash, or the time of delivery
    i64     store timestamp
    i16 n   bitmap            which SQL92 consumers want the message, as a Bloom filter

Units stand one behind the other. One that does not fit, with 4 bytes to spare, goes to the next
file; i16 -1 then stands in its place. The consume queue keeps a unit's address, its byte position
lowered by 2**63, where the tags code would be: no tag hash and no time is so low.

Owned by the task that owns the queue. A unit that no queue entry refers to does no harm; an entry
whose unit is gone is served as if nothing were known of its tags.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.kernel import EXT_ADDRESS_MAX
from gantrymq.store.queue_files import QueueFiles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gantrymq.kernel import FileWrite
    from gantrymq.store.files import Files
    from gantrymq.store.queue_files import Sync

_HEAD: Final = struct.Struct(">hqqh")
_SIZE: Final = struct.Struct(">h")
_SIZE_MAX: Final = 32767
_SPARE_BYTES: Final = 4
_END_OF_FILE: Final = _SIZE.pack(-1)
_ADDRESS_BASE: Final = -(2**63)
_CHUNK_BYTES: Final = 65536


class ExtUnit(NamedTuple):
    """What the extension knows of a message."""

    tags_code: int
    store_timestamp: int
    bitmap: bytes


def is_ext_address(tags_code: int) -> bool:
    """Tell whether a tags code is the address of a unit in the extension."""
    return tags_code <= EXT_ADDRESS_MAX


class ConsumeQueueExt:
    """The extension of one queue."""

    __slots__ = ("_bytes",)

    def __init__(self, directory: Path, file_bytes: int, files: Files) -> None:
        self._bytes = QueueFiles(directory, file_bytes, files)

    @property
    def min_address(self) -> int:
        """Return the lowest address that may be read."""
        return self._bytes.first + _ADDRESS_BASE

    @property
    def max_address(self) -> int:
        """Return the address that the next unit gets if it fits."""
        return self._bytes.end + _ADDRESS_BASE

    # -- units -----------------------------------------------------------------------------------

    def append(self, unit: ExtUnit) -> int | None:
        """Add a unit; return its address, or None if it is too large for a unit or a file."""
        size = _HEAD.size + len(unit.bitmap)
        file_bytes = self._bytes.file_bytes
        if size > _SIZE_MAX or size + _SPARE_BYTES > file_bytes:
            return None
        room = file_bytes - self._bytes.end % file_bytes
        if size + _SPARE_BYTES > room:
            self._bytes.append(_END_OF_FILE.ljust(room, b"\0"))
        address = self._bytes.end + _ADDRESS_BASE
        if not is_ext_address(address):
            return None
        head = _HEAD.pack(size, unit.tags_code, unit.store_timestamp, len(unit.bitmap))
        self._bytes.append(head + unit.bitmap)
        return address

    def read(self, address: int) -> ExtUnit | None:
        """Return the unit at an address, or None if there is none."""
        position = address - _ADDRESS_BASE
        raw = self._bytes.read(position, _HEAD.size)
        if not is_ext_address(address) or len(raw) < _HEAD.size:
            return None
        size, tags_code, store_timestamp, bitmap_bytes = _HEAD.unpack(raw)
        if bitmap_bytes < 0 or size != _HEAD.size + bitmap_bytes:
            return None
        bitmap = self._bytes.read(position + _HEAD.size, bitmap_bytes)
        return ExtUnit(tags_code, store_timestamp, bitmap) if len(bitmap) == bitmap_bytes else None

    def is_resident(self, address: int) -> bool:
        """Tell whether `read` would not wait for the disk."""
        position = address - _ADDRESS_BASE
        raw = self._bytes.read_now(position, _HEAD.size)
        if raw is None or len(raw) < _HEAD.size:
            return raw is not None
        bitmap_bytes = _HEAD.unpack(raw)[3]
        return self._bytes.read_now(position + _HEAD.size, max(bitmap_bytes, 0)) is not None

    def later(self, address: int) -> Callable[[], object]:
        """Return a call that brings a unit into memory; it may be made on a thread."""
        view = self._bytes.view()
        return lambda: view.read(address - _ADDRESS_BASE, _SIZE_MAX)

    # -- writing out -----------------------------------------------------------------------------

    @property
    def waiting_bytes(self) -> int:
        """Return how much is in memory only."""
        return self._bytes.waiting_bytes

    @property
    def is_pending(self) -> bool:
        """Tell whether there is anything to write out."""
        return self._bytes.is_pending

    def has_begun(self, pages: int) -> bool:
        """Tell whether so many pages have begun since the last write; see `QueueFiles`."""
        return self._bytes.has_begun(pages)

    def pending_writes(self) -> list[FileWrite]:
        """Return what waits as writes for a thread; see `QueueFiles.pending_writes`."""
        return self._bytes.pending_writes()

    def wrote_out(self, up_to_address: int) -> None:
        """Note that those writes are done up to an address: `max_address` of that time."""
        self._bytes.wrote_out(up_to_address - _ADDRESS_BASE)

    @property
    def written_address(self) -> int:
        """Return the address up to which units are in the files."""
        return self._bytes.written + _ADDRESS_BASE

    @property
    def is_unsynced(self) -> bool:
        """Tell whether anything was written that is not forced yet."""
        return self._bytes.is_unsynced

    def pending_syncs(self) -> list[Sync]:
        """Return the files and directories to force; see `QueueFiles.pending_syncs`."""
        return self._bytes.pending_syncs()

    def synced(self, up_to_address: int) -> None:
        """Note that units up to an address are forced: `written_address` of that time."""
        self._bytes.synced(up_to_address - _ADDRESS_BASE)

    # -- recovery and retention ------------------------------------------------------------------

    def load(self, *, after_crash: bool = False) -> None:
        """Learn from the names which files there are; `recover` finds out where the units end."""
        self._bytes.load(after_crash=after_crash)

    def recover(self, last_address: int = 0) -> None:
        """Find the end of the units: behind the last that a queue refers to, at `last_address`.

        Without such an address, or without a unit there, all units are walked over.
        """
        self._bytes.drop_unfinished()
        if not self.truncate_behind(last_address):
            end = self._walk()
            self._bytes.cut(end, end)

    def truncate_behind(self, last_address: int) -> bool:
        """Cut off what follows the unit at an address; tell whether there is such a unit."""
        unit = self.read(last_address)
        if unit is None:
            return False
        end = last_address - _ADDRESS_BASE + _HEAD.size + len(unit.bitmap)
        # Nothing needs wiping: no entry refers to what follows, and only that would give it a life.
        self._bytes.cut(end, end)
        return True

    def files_before(self, address: int) -> tuple[int, list[Path]]:
        """Return the files that lie below an address, oldest first, and where the next begins.

        None of them if it is no address; never the last file.
        """
        keep = self._bytes.first
        if is_ext_address(address):
            keep = self._bytes.keep_from(address - _ADDRESS_BASE)
        return keep, self._bytes.paths_before(keep)

    def drop_files(self, keep: int) -> None:
        """Forget the files before the one that begins at `keep`."""
        self._bytes.drop_before(keep)

    def hold(self, *, held: bool) -> None:
        """Leave writing to the thread; see `QueueFiles.is_held`."""
        self._bytes.is_held = held

    def delete(self) -> list[Path]:
        """Return all that must be removed to be rid of the extension, in order."""
        return self._bytes.all_paths()

    def forget(self) -> None:
        """Be empty to whoever still holds the extension, as its files are going."""
        self._bytes.forget()

    def _walk(self) -> int:
        """Return the position behind the last unit; a bad size means: go on with the next file."""
        files, end, start = self._bytes, self._bytes.first, self._bytes.first
        while start < files.end:
            found = self._walk_file(start)
            if found == start and start > files.first:
                break
            end = found
            start += files.file_bytes
        return end

    def _walk_file(self, start: int) -> int:
        """Return the position behind the last unit of a file."""
        stop = min(start + self._bytes.file_bytes, self._bytes.end)
        position, chunk, chunk_at = start, b"", start
        while stop - position >= _HEAD.size:
            at = position - chunk_at
            if len(chunk) - at < _SIZE.size:
                chunk, chunk_at, at = self._bytes.read(position, _CHUNK_BYTES), position, 0
            (size,) = _SIZE.unpack_from(chunk, at)
            if size < _HEAD.size or position + size > stop:
                break
            position += size
        return position
