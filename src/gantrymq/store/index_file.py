"""One index file: from the hash of a message key to log offsets (IndexFile.java).

`gantrymq.kernel.reference.index` draws the layout. The file is mapped and written by the kernel;
what is here reads it. An entry is found by following the chain of its slot from the newest entry
back, so an answer is newest first. Two keys may have the same hash: whoever reads the messages has
to compare, and also has to see whether there is a message at all, for an entry may outlive it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.kernel import kernel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gantrymq.kernel.interface import Buffer
    from gantrymq.store.files import Region

_HEADER: Final = struct.Struct(">qqqqii")
_SLOT_BYTES: Final = 4
_ENTRY: Final = struct.Struct(">iqii")
_SLOT: Final = struct.Struct(">i")


class IndexHeader(NamedTuple):
    """The first 40 bytes."""

    begin_timestamp: int
    end_timestamp: int
    begin_log_offset: int
    end_log_offset: int
    used_slots: int
    next_number: int
    """Number of the next entry: one more than there are; 0 in a file never written to."""


class IndexEntry(NamedTuple):
    """An entry as it stands in the file."""

    key_hash: int
    log_offset: int
    seconds: int
    previous: int


def index_file_bytes(slots: int, entries_max: int) -> int:
    """Return the length of an index file."""
    return _HEADER.size + _SLOT_BYTES * slots + _ENTRY.size * entries_max


class IndexFile:
    """A mapped index file; owned by the task that owns the log."""

    __slots__ = ("_buffer", "_entries_max", "_slots", "region")

    def __init__(self, region: Region, slots: int, entries_max: int) -> None:
        self.region = region
        self._buffer = region.buffer
        self._slots = slots
        self._entries_max = entries_max

    @property
    def path(self) -> Path:
        """Return where the file lies."""
        return self.region.path

    @property
    def header(self) -> IndexHeader:
        """Return the header as it is now."""
        return IndexHeader(*_HEADER.unpack_from(self._buffer, 0))

    @property
    def is_full(self) -> bool:
        """Tell whether the next key goes to another file."""
        return self.header.next_number >= self._entries_max

    def follow(self, before: IndexHeader) -> None:
        """Begin where the file before ended; the first entry's seconds count from there."""
        end_ms, end = max(before.end_timestamp, 0), max(before.end_log_offset, 0)
        _HEADER.pack_into(self._buffer, 0, end_ms, end_ms, end, end, 0, 1)

    def insert(self, keys: Buffer, start: int) -> int:
        """Insert keys as dispatch makes them; return the position behind the last one taken."""
        return kernel.insert_keys(self._buffer, self._slots, self._entries_max, keys, start)

    def overlaps(self, begin_ms: int, end_ms: int) -> bool:
        """Tell whether the file may have entries of a range of time."""
        first, last, *_rest = self.header
        return (
            (begin_ms < first and end_ms > last)
            or first <= begin_ms <= last
            or first <= end_ms <= last
        )

    def find(self, key_hash: int, begin_ms: int, end_ms: int) -> Iterator[int]:
        """Yield log offsets of a hash stored within a range of time, newest first."""
        header = self.header
        for entry in self._chain(key_hash % self._slots, header.next_number):
            if entry.seconds < 0:
                return
            stored_ms = header.begin_timestamp + 1000 * entry.seconds
            if entry.key_hash == key_hash and begin_ms <= stored_ms <= end_ms:
                yield entry.log_offset
            if stored_ms < begin_ms:
                return

    def entries(self) -> Iterator[IndexEntry]:
        """Yield all entries in the order they were written."""
        for number in range(1, min(self.header.next_number, self._entries_max)):
            yield self._entry(number)

    def _chain(self, slot: int, next_number: int) -> Iterator[IndexEntry]:
        """Yield the entries of a slot, newest first.

        Every number is below the one before it, however the file was damaged: else a chain could
        lead back to itself.
        """
        (number,) = _SLOT.unpack_from(self._buffer, _HEADER.size + _SLOT_BYTES * slot)
        limit = min(next_number, self._entries_max)
        while 0 < number < limit:
            entry = self._entry(number)
            yield entry
            limit, number = number, entry.previous

    def _entry(self, number: int) -> IndexEntry:
        start = _HEADER.size + _SLOT_BYTES * self._slots
        return IndexEntry(*_ENTRY.unpack_from(self._buffer, start + _ENTRY.size * number))

    def close(self) -> None:
        """Give up the mapping."""
        self._buffer = memoryview(b"")
        self.region.close()
