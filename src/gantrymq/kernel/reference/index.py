"""Insertion into an index file, the hash table from message keys to log offsets (IndexFile.java).

    bytes   field
    i64     begin timestamp        0   of the first entry; before it, the end of the file before
    i64     end timestamp          8   of the last entry
    i64     begin log offset      16
    i64     end log offset        24
    i32     slots in use          32
    i32     entry count           36   one more than there are: entry 0 is never used
    i32     slot, times `slots`   40   number of its newest entry, 0 for none
    20      entry, times `entries_max`: i32 hash, i64 log offset, i32 seconds since the begin
            timestamp, i32 number of the entry before it in its slot

A slot may hold a number that no entry has: after a crash its page can be newer than the header's.
It counts as empty then, for inserting and for searching alike.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue
from gantrymq.kernel.reference.bounds import check_buffer
from gantrymq.kernel.reference.integers import wrap

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Buffer, WritableBuffer

_HEADER: Final = struct.Struct(">qqqqii")
_SLOT: Final = struct.Struct(">i")
_ENTRY: Final = struct.Struct(">iqii")
_KEY: Final = struct.Struct(">iqq")
_INT32_MAX: Final = 2**31 - 1


def insert_keys(
    target: WritableBuffer, slots: int, entries_max: int, keys: Buffer, start: int
) -> int:
    """Insert keys into the image of an index file; return the position behind the last taken."""
    _check(target, slots, entries_max, keys, start)
    begin_ms, end_ms, begin, end, used, count = _HEADER.unpack_from(target, 0)
    count = max(count, 1)
    position = start
    while len(keys) - position >= _KEY.size:
        key_hash, log_offset, stored_ms = _KEY.unpack_from(keys, position)
        if log_offset >= end:
            if count >= entries_max:
                break
            slot_at = _HEADER.size + _SLOT.size * ((key_hash & _INT32_MAX) % slots)
            entry_at = _HEADER.size + _SLOT.size * slots + _ENTRY.size * count
            (previous,) = _SLOT.unpack_from(target, slot_at)
            if not 0 < previous <= count:
                previous = 0
                used = wrap(used + 1, 32)
            seconds = _seconds_between(begin_ms, stored_ms)
            _ENTRY.pack_into(target, entry_at, key_hash, log_offset, seconds, previous)
            _SLOT.pack_into(target, slot_at, count)
            if count == 1:
                begin_ms, begin = stored_ms, log_offset
            end_ms, end = stored_ms, log_offset
            count += 1
            _HEADER.pack_into(target, 0, begin_ms, end_ms, begin, end, used, count)
        position += _KEY.size
    return position


def _seconds_between(begin_ms: int, stored_ms: int) -> int:
    if begin_ms <= 0 or stored_ms < begin_ms:
        return 0
    return min((stored_ms - begin_ms) // 1000, _INT32_MAX)


def _check(target: WritableBuffer, slots: int, entries_max: int, keys: Buffer, start: int) -> None:
    check_buffer(target, writable=True)
    check_buffer(keys)
    if slots < 1 or entries_max < 1:
        raise InvalidValue("index: slots and entries must be positive")
    if len(target) < _HEADER.size + _SLOT.size * slots + _ENTRY.size * entries_max:
        raise InvalidValue(
            f"index: a file of {len(target)} bytes has no room for {slots} slots"
            f" and {entries_max} entries"
        )
    if start % _KEY.size or not 0 <= start <= len(keys):
        raise InvalidValue("index: keys must be read from a multiple of 20 within them")
