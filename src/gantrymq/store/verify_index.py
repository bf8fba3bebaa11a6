"""Index files against the log: every entry belongs to a record, every key has an entry.

Entries stand in the order of the log, as dispatch makes keys of it, so the two are compared side by
side, as bytes: the columns of 20-byte entries are cut out and laid beside those of the keys. Only
where they differ each entry is looked at. Two differences are none: Apache 5.x also indexes tags
(`topic#T#tag`), and a recovery may index a message twice.

That the slots lead to the entries is seen by inserting them into an empty file: it must come out
with the same slots and chains.
"""

from __future__ import annotations

import mmap
import struct
import sys
from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import RecordError
from gantrymq.kernel import kernel
from gantrymq.store.index import key_hash
from gantrymq.store.index_file import index_file_bytes
from gantrymq.store.verify_report import Kind, VerifyReport
from gantrymq.wire.record import decode_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gantrymq.store.index import Index
    from gantrymq.store.index_file import IndexFile
    from gantrymq.store.reader import StoreReader

ENTRY_BYTES: Final = 20
"""Of an entry: i32 hash, i64 log offset, i32 seconds, i32 previous; of a key: hash, offset, i64
time."""
_IDENTITY_BYTES: Final = 12
_ENTRY: Final = struct.Struct(">iqii")
_KEY: Final = struct.Struct(">iqq")
_SECONDS_MAX: Final = 2**31 - 1


class _FileEntries:
    """The entries of one file; number 1 is at index 0."""

    def __init__(self, file: IndexFile, slots: int, entries_max: int) -> None:
        self.file = file
        self.header = file.header
        self.count = max(min(self.header.next_number, entries_max) - 1, 0)
        self._start = index_file_bytes(slots, 1)

    def raw(self, begin: int, end: int) -> bytes:
        """Return the bytes of some entries."""
        low, high = self._start + begin * ENTRY_BYTES, self._start + end * ENTRY_BYTES
        return bytes(self.file.region.buffer[low:high])

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> int:
        """Return the log offset of an entry, so that they can be searched."""
        return int(_ENTRY.unpack(self.raw(at, at + 1))[1])


class _Portion(NamedTuple):
    """Some entries of a file, from index `begin` on."""

    file: _FileEntries
    begin: int
    entries: bytes


class IndexCheck:
    """Compares the index of a store with the keys that its log makes."""

    def __init__(self, reader: StoreReader, index: Index, report: VerifyReport) -> None:
        settings = reader.settings.index
        self._reader = reader
        self._report = report
        self._shape = settings.slots, settings.entries
        self._files = [_FileEntries(file, *self._shape) for file in index.files]
        self._at = [bisect_left(file, reader.min_log_offset) for file in self._files]
        report.index_files = len(self._files)
        report.index_entries = sum(file.count for file in self._files)

    def take(self, keys: bytes, log_end: int) -> None:
        """Compare the keys of the next part of the log, which ends at `log_end`."""
        portions = list(self._next_portions(log_end))
        entries = b"".join(portion.entries for portion in portions)
        if _identities(entries) != _identities(keys):
            self._compare(portions, keys)
            return
        position = 0
        for portion in portions:
            part = keys[position : position + len(portion.entries)]
            self._compare_times(portion, part)
            position += len(part)

    def _next_portions(self, log_end: int) -> Iterator[_Portion]:
        """Yield the entries, file by file, that point to the next part of the log."""
        for number, file in enumerate(self._files):
            begin, end = self._at[number], file.count
            if file.header.end_log_offset >= log_end:
                end = bisect_left(file, log_end, begin)
            if begin < end:
                self._at[number] = end
                yield _Portion(file, begin, file.raw(begin, end))

    def finish(self) -> None:
        """Look at entries behind the log's end, and at the chains."""
        for file, at in zip(self._files, self._at, strict=True):
            if at < file.count:
                what = f"{file.count - at} entries point behind the end of the log"
                self._add(file, Kind.INDEX_ENTRY, what, file.count - at)
            self._check_chains(file)

    # -- one by one ------------------------------------------------------------------------------

    def _compare(self, portions: list[_Portion], keys: bytes) -> None:
        wanted = {
            (hashed, log_offset): stored_ms
            for hashed, log_offset, stored_ms in _KEY.iter_unpack(keys)
        }
        found: set[tuple[int, int]] = set()
        for portion in portions:
            number = portion.begin
            for hashed, log_offset, seconds, _previous in _ENTRY.iter_unpack(portion.entries):
                number += 1
                stored_ms = wanted.get((hashed, log_offset))
                if stored_ms is not None:
                    found.add((hashed, log_offset))
                    self._compare_time(portion.file, number, seconds, stored_ms)
                elif not self._is_tag(hashed, log_offset):
                    what = f"entry {number} is no key of a message at log offset {log_offset}"
                    self._add(portion.file, Kind.INDEX_ENTRY, what)
        for hashed, log_offset in wanted:
            if (hashed, log_offset) not in found:
                what = f"a key (hash {hashed}) of the message at {log_offset} is in no index file"
                self._report.add(Kind.INDEX_MISSING, "index", what)

    def _is_tag(self, hashed: int, log_offset: int) -> bool:
        """Tell whether an entry is of the tag of a message, as Apache 5.x indexes them."""
        size = self._reader.log.read(log_offset, 4)
        raw = None if size is None else self._reader.log.read(log_offset, int.from_bytes(size))
        if raw is None:
            return False
        try:
            record = decode_record(raw, 0, len(raw))[0]
        except RecordError:
            return False
        is_there = record.raw.log_offset == log_offset and record.tags is not None
        return is_there and key_hash(record.topic, f"T#{record.tags}") == hashed

    def _compare_times(self, portion: _Portion, keys: bytes) -> None:
        seconds = _integers(_column(portion.entries, 12, 4), "i")
        stored = _integers(_column(keys, 12, 8), "q")
        begin_ms = portion.file.header.begin_timestamp
        if [min(max((ms - begin_ms) // 1000, 0), _SECONDS_MAX) for ms in stored] == list(seconds):
            return
        pairs = zip(seconds, stored, strict=True)
        for number, (have, stored_ms) in enumerate(pairs, portion.begin + 1):
            self._compare_time(portion.file, number, have, stored_ms)

    def _compare_time(self, file: _FileEntries, number: int, seconds: int, stored_ms: int) -> None:
        wanted = min(max((stored_ms - file.header.begin_timestamp) // 1000, 0), _SECONDS_MAX)
        # The seconds of a file's first entry are counted from the end of the file before.
        if seconds != wanted and number > 1:
            what = f"entry {number} says {seconds} s after the file's begin, its message {wanted}"
            self._add(file, Kind.INDEX_ENTRY, what)

    # -- chains ----------------------------------------------------------------------------------

    def _check_chains(self, file: _FileEntries) -> None:
        slots, entries_max = self._shape
        entries = file.raw(0, file.count)
        keys = bytearray(len(entries))
        for byte in range(_IDENTITY_BYTES):
            keys[byte::ENTRY_BYTES] = entries[byte::ENTRY_BYTES]
        image = mmap.mmap(-1, index_file_bytes(slots, entries_max))
        kernel.insert_keys(image, slots, entries_max, keys, 0)
        first, behind, start = (
            index_file_bytes(*shape) for shape in ((0, 0), (slots, 0), (slots, 1))
        )
        again = image[start : start + len(entries)]
        same_slots = image[first:behind] == file.file.region.buffer[first:behind]
        if not same_slots or _column(again, 16, 4) != _column(entries, 16, 4):
            for what in _broken_chains(file, entries, slots):
                self._add(file, Kind.INDEX_CHAIN, what)

    def _add(self, file: _FileEntries, kind: Kind, what: str, count: int = 1) -> None:
        self._report.add(kind, f"index/{file.file.path.name}", what, count)


def _broken_chains(file: _FileEntries, entries: bytes, slots: int) -> Iterator[str]:
    """Yield what is wrong with the chains of a file."""
    newest: dict[int, int] = {}
    for number, (hashed, _offset, _seconds, previous) in enumerate(_ENTRY.iter_unpack(entries), 1):
        slot = (hashed & _SECONDS_MAX) % slots
        if previous != newest.get(slot, 0):
            yield f"entry {number} leads to {previous}, the one before it is {newest.get(slot, 0)}"
        newest[slot] = number
    buffer, at = file.file.region.buffer, index_file_bytes(0, 0)
    for slot in range(slots):
        number = int.from_bytes(buffer[at + 4 * slot : at + 4 * slot + 4], signed=True)
        if number != newest.get(slot, 0):
            yield f"slot {slot} leads to {number}, its newest entry is {newest.get(slot, 0)}"


def _identities(entries: bytes) -> bytes:
    return _column(entries, 0, _IDENTITY_BYTES)


def _column(rows: bytes, start: int, width: int) -> bytes:
    """Return some bytes of every 20, one row behind the other."""
    column = bytearray(len(rows) // ENTRY_BYTES * width)
    for byte in range(width):
        column[byte::width] = rows[start + byte :: ENTRY_BYTES]
    return bytes(column)


def _integers(column: bytes, code: str) -> array[int]:
    numbers = array(code, column)
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers
