"""Index files against the log: every entry belongs to a record, every key has an entry.

Entries stand in the order of the log, as dispatch makes keys of it, so the two are compared side by
side, as bytes: the columns of 20-byte entries are cut out and laid beside those of the keys. Only
where they differ each entry is looked at. Two differences are none: Apache 5.x also indexes tags
(`topic#T#tag`), and a recovery may index a message twice.

That the slots lead to the entries is another question, and `verify_chains.py` asks it.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import RecordError
from gantrymq.store.index import key_hash
from gantrymq.store.index_image import ENTRY, IDENTITY_BYTES, FileEntries, big_endian, column
from gantrymq.store.verify_chains import broken_chains
from gantrymq.store.verify_report import Kind, VerifyReport
from gantrymq.wire.record import decode_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gantrymq.store.index import Index
    from gantrymq.store.reader import StoreReader

_KEY: Final = struct.Struct(">iqq")
_SECONDS_MAX: Final = 2**31 - 1


class _Portion(NamedTuple):
    """Some entries of a file, from index `begin` on."""

    file: FileEntries
    begin: int
    entries: bytes


class IndexCheck:
    """Compares the index of a store with the keys that its log makes."""

    def __init__(self, reader: StoreReader, index: Index, report: VerifyReport) -> None:
        settings = reader.settings.index
        self._reader = reader
        self._report = report
        self._shape = settings.slots, settings.entries
        self._files = [FileEntries(file, *self._shape) for file in index.files]
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
            for what in broken_chains(file):
                self._add(file, Kind.INDEX_CHAIN, what)

    # -- one by one ------------------------------------------------------------------------------

    def _compare(self, portions: list[_Portion], keys: bytes) -> None:
        wanted = {
            (hashed, log_offset): stored_ms
            for hashed, log_offset, stored_ms in _KEY.iter_unpack(keys)
        }
        found: set[tuple[int, int]] = set()
        for portion in portions:
            number = portion.begin
            for hashed, log_offset, seconds, _previous in ENTRY.iter_unpack(portion.entries):
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
        seconds = big_endian(column(portion.entries, 12, 4), "i")
        stored = big_endian(column(keys, 12, 8), "q")
        begin_ms = portion.file.header.begin_timestamp
        latest_ms = begin_ms + 1000 * _SECONDS_MAX
        if (
            stored
            and begin_ms <= min(stored) <= max(stored) < latest_ms
            and [(stored_ms - begin_ms) // 1000 for stored_ms in stored] == seconds.tolist()
        ):
            return
        pairs = zip(seconds, stored, strict=True)
        for number, (have, stored_ms) in enumerate(pairs, portion.begin + 1):
            self._compare_time(portion.file, number, have, stored_ms)

    def _compare_time(self, file: FileEntries, number: int, seconds: int, stored_ms: int) -> None:
        wanted = min(max((stored_ms - file.header.begin_timestamp) // 1000, 0), _SECONDS_MAX)
        # The seconds of a file's first entry are counted from the end of the file before.
        if seconds != wanted and number > 1:
            what = f"entry {number} says {seconds} s after the file's begin, its message {wanted}"
            self._add(file, Kind.INDEX_ENTRY, what)

    def _add(self, file: FileEntries, kind: Kind, what: str, count: int = 1) -> None:
        self._report.add(kind, f"index/{file.file.path.name}", what, count)


def _identities(entries: bytes) -> bytes:
    return column(entries, 0, IDENTITY_BYTES)
