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
    from gantrymq.store.presence import Presence, Walk

_HEADER: Final = struct.Struct(">qqqqii")
HEADER_BYTES: Final = _HEADER.size
_SLOT_BYTES: Final = 4
_ENTRY: Final = struct.Struct(">iqii")
_SLOT: Final = struct.Struct(">i")
_NEVER_MS: Final = 2**63 - 1


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


def mark_unused(region: Region) -> None:
    """Mark a file that was made ahead of need, so that nobody takes it for the last one.

    Apache RocketMQ, starting after a crash, keeps the index files whose end is not behind the
    checkpoint's time, and goes on in the last of them: one of zeros would be that, and everything
    that is dispatched again would be in the index twice. An end that is behind any time is removed.
    """
    _HEADER.pack_into(region.buffer, 0, 0, _NEVER_MS, 0, 0, 0, 0)


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

    def begin(self) -> None:
        """Begin with nothing, as the first file of an index."""
        _HEADER.pack_into(self._buffer, 0, 0, 0, 0, 0, 0, 1)

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

    def find(
        self, key_hash: int, begin_ms: int, end_ms: int, count_max: int, presence: Presence
    ) -> list[int]:
        """Return log offsets of a hash stored within a range of time, newest first."""
        walk = presence.walk((self.region, key_hash, begin_ms, end_ms))
        header = self.header
        if walk.number is None:
            self._enter(walk, key_hash % self._slots, header.next_number, presence)
        while walk.number and len(walk.found) < count_max:
            presence.need(self.region, self._place(walk.number), _ENTRY.size)
            entry = self._entry(walk.number)
            stored_ms = header.begin_timestamp + 1000 * entry.seconds
            if (
                entry.seconds >= 0
                and entry.key_hash == key_hash
                and begin_ms <= stored_ms <= end_ms
            ):
                walk.found.append(entry.log_offset)
            is_over = entry.seconds < 0 or stored_ms < begin_ms
            # Every number is below the one before it, however the file was damaged: else a chain
            # could lead back to itself.
            goes_on = 0 < entry.previous < walk.number and not is_over
            walk.number = entry.previous if goes_on else 0
            presence.step(walk)
        return walk.found[: max(count_max, 0)]

    def _enter(self, walk: Walk, slot: int, next_number: int, presence: Presence) -> None:
        at = _HEADER.size + _SLOT_BYTES * slot
        presence.need(self.region, at, _SLOT_BYTES)
        (number,) = _SLOT.unpack_from(self._buffer, at)
        walk.number = number if 0 < number < min(next_number, self._entries_max) else 0

    def entries(self) -> Iterator[IndexEntry]:
        """Yield all entries in the order they were written."""
        for number in range(1, min(self.header.next_number, self._entries_max)):
            yield self._entry(number)

    def _place(self, number: int) -> int:
        return _HEADER.size + _SLOT_BYTES * self._slots + _ENTRY.size * number

    def _entry(self, number: int) -> IndexEntry:
        return IndexEntry(*_ENTRY.unpack_from(self._buffer, self._place(number)))

    def close(self) -> None:
        """Give up the mapping."""
        self._buffer = memoryview(b"")
        self.region.close()
