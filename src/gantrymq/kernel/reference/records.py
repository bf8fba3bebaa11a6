"""The stored message, one layout for disk, replication and pull replies (CommitLog.java, 4.9.7).

    bytes   field                     at (two IPv4 hosts)
    i32     total size                 0
    i32     magic                      4   DAA320A7; DAA320AB has a two-byte topic length
    i32     body CRC                   8   CRC-32 with the sign bit cleared; 0 without a body
    i32     queue id                  12
    i32     flag                      16   the application's own
    i64     queue offset              20
    i64     physical offset           28   where this record begins in the log
    i32     sysFlag                   36   0x10, 0x20: born, store host is IPv6
    i64     born timestamp            40
    8 | 20  born host                 48   address and i32 port
    i64     store timestamp           56
    8 | 20  store host                64
    i32     reconsume times           72
    i64     prepared offset           76   of the half message of a transaction
    i32 n   body                      84
    i8 n    topic                          i16 n in version 2
    i16 n   properties

The smallest has 91 bytes. A blank record, `i32 bytes to the end of the file, i32 magic CBD43194`,
says that the file holds nothing more, so a record is only written where 8 bytes stay free.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import InvalidValue, RecordError
from gantrymq.kernel.reference.bounds import check_log_base, check_range, check_room
from gantrymq.kernel.reference.integers import fits, wrap
from gantrymq.kernel.values import (
    BLANK_BYTES_MIN,
    BLANK_MAGIC,
    RECORD_MAGIC_V1,
    RECORD_MAGIC_V2,
    Record,
    Scan,
    Stop,
)

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Buffer, WritableBuffer

_BORN_IPV6: Final = 0x10
_STORE_IPV6: Final = 0x20
_HEAD: Final = struct.Struct(">iIIiiqqiq")
"""Total size to born timestamp."""
_TAIL: Final = struct.Struct(">iqi")
"""Reconsume times, prepared offset, body length."""
_BYTES_MIN: Final = 91
_LENGTH_MAX: Final = 32767


class Found(NamedTuple):
    """A good record and where it ends."""

    record: Record
    size: int
    body_crc: int
    end: int


def crc32(data: Buffer) -> int:
    """Return the CRC-32 of `data` with the sign bit cleared, as records keep it."""
    return zlib.crc32(data) & 0x7FFFFFFF


def string_hash(text: bytes) -> int:
    """Return Java's `String.hashCode` of UTF-8 text, signed."""
    units = text.decode("utf-8", "replace").encode("utf-16-be")
    value = 0
    for (unit,) in struct.iter_unpack(">H", units):
        value = value * 31 + unit & 0xFFFFFFFF
    return wrap(value, 32)


# -- writing -----------------------------------------------------------------------------------


def record_bytes(record: Record) -> int:
    """Return the size of a record when encoded; raise InvalidValue for what cannot be."""
    _check_numbers(record)
    _check_host("born host", record.born_host, record.sys_flag & _BORN_IPV6)
    _check_host("store host", record.store_host, record.sys_flag & _STORE_IPV6)
    if not record.topic:
        raise InvalidValue("record: the topic is empty")
    if len(record.topic) > _LENGTH_MAX:
        raise InvalidValue(f"record: topic of {len(record.topic)} bytes is over {_LENGTH_MAX}")
    if len(record.properties) > _LENGTH_MAX:
        raise InvalidValue(
            f"record: properties of {len(record.properties)} bytes are over {_LENGTH_MAX}"
        )
    hosts = len(record.born_host) + len(record.store_host)
    texts = len(record.body) + len(record.topic) + len(record.properties)
    size = _BYTES_MIN - 16 + hosts + texts + _is_long(record.topic)
    if not fits(size, 32):
        raise InvalidValue(f"record: {size} bytes are over 2147483647")
    return size


def encode_record(target: WritableBuffer, position: int, limit: int, record: Record) -> int:
    """Write a record at `position`; return the position behind it, or -1 if there is no room."""
    check_room(target, position, limit)
    size = record_bytes(record)
    # A blank record must still fit behind it, or the file could not be closed.
    if size > limit - position - BLANK_BYTES_MIN:
        return -1
    version_2 = _is_long(record.topic)
    head = _HEAD.pack(
        size,
        RECORD_MAGIC_V2 if version_2 else RECORD_MAGIC_V1,
        crc32(record.body),
        record.queue_id,
        record.flag,
        record.queue_offset,
        record.log_offset,
        record.sys_flag,
        record.born_timestamp,
    )
    encoded = b"".join(
        (
            head,
            record.born_host,
            struct.pack(">q", record.store_timestamp),
            record.store_host,
            _TAIL.pack(record.reconsume_times, record.prepared_offset, len(record.body)),
            record.body,
            struct.pack(">h" if version_2 else ">b", len(record.topic)),
            record.topic,
            struct.pack(">h", len(record.properties)),
            record.properties,
        )
    )
    # The magic comes last: a process that is killed in between leaves no record, not half of one.
    target[position + 8 : position + size] = encoded[8:]
    target[position : position + 4] = encoded[:4]
    target[position + 4 : position + 8] = encoded[4:8]
    return position + size


def encode_blank(target: WritableBuffer, position: int, limit: int) -> None:
    """Write the 8-byte blank record that makes `target[position:limit]` end-of-file filler."""
    check_room(target, position, limit)
    if limit - position < BLANK_BYTES_MIN:
        raise InvalidValue(f"blank: {limit - position} bytes left, {BLANK_BYTES_MIN} needed")
    struct.pack_into(">i", target, position, limit - position)
    struct.pack_into(">I", target, position + 4, BLANK_MAGIC)


def _is_long(topic: bytes) -> bool:
    """Tell whether a topic needs version 2: one signed byte cannot hold its length."""
    return len(topic) > 127


def _check_numbers(record: Record) -> None:
    of_32_bits = (record.queue_id, record.flag, record.sys_flag, record.reconsume_times)
    of_64_bits = (
        record.queue_offset,
        record.log_offset,
        record.born_timestamp,
        record.store_timestamp,
        record.prepared_offset,
    )
    if not all(fits(n, 32) for n in of_32_bits) or not all(fits(n, 64) for n in of_64_bits):
        raise InvalidValue("record: a number is out of range")


def _check_host(what: str, host: bytes, ipv6: int) -> None:
    wanted = 20 if ipv6 else 8
    if len(host) != wanted:
        raise InvalidValue(f"record: {what} has {len(host)} bytes, its sysFlag asks for {wanted}")


# -- reading -----------------------------------------------------------------------------------


def decode_record(buffer: Buffer, position: int, end: int, verify_crc: bool) -> tuple[Record, int]:
    """Return the record at `position` and the position behind it, or raise RecordError."""
    check_range(buffer, position, end)
    found = read_record(buffer, position, end, -1, False)
    if isinstance(found, Stop):
        raise _record_error(found, buffer, position, end)
    computed = crc32(found.record.body)
    if verify_crc and found.record.body and computed != found.body_crc:
        raise RecordError(
            "record.bodyCrc", f"0x{found.body_crc:08X} stored, 0x{computed:08X} computed"
        )
    return found.record, found.end


def _record_error(stop: Stop, buffer: Buffer, position: int, end: int) -> RecordError:
    if stop in {Stop.END, Stop.INCOMPLETE}:
        return RecordError("record.size", f"{end - position} bytes left, a record needs more")
    size, magic = struct.unpack_from(">iI", buffer, position)
    if stop is Stop.BAD_SIZE:
        return RecordError(
            "record.lengths", f"the inner lengths do not add up to the total size of {size}"
        )
    return RecordError("record.magic", f"0x{magic:08X} is no message record")


def read_record(  # noqa: PLR0911 - one line a reason, in the order that the contract gives
    buffer: Buffer, position: int, end: int, log_base: int, verify_crc: bool
) -> Found | Stop:
    """Return the record at `position`, or why there is none; `Stop.END` where the range ends.

    The order of the checks is part of the contract: recovery acts upon the first that fails.
    """
    left = end - position
    if left < 8:
        return Stop.INCOMPLETE if left else Stop.END
    size, magic = struct.unpack_from(">iI", buffer, position)
    if magic == BLANK_MAGIC:
        return Stop.BLANK
    if magic not in {RECORD_MAGIC_V1, RECORD_MAGIC_V2}:
        return Stop.BAD_MAGIC
    if size < _BYTES_MIN + (magic == RECORD_MAGIC_V2):
        return Stop.BAD_SIZE
    if size > left:
        return Stop.INCOMPLETE
    found = _dissect(bytes(buffer[position : position + size]), position + size)
    if found is None:
        return Stop.BAD_SIZE
    if log_base >= 0 and found.record.log_offset != log_base + position:
        return Stop.BAD_OFFSET
    if verify_crc and found.record.body and crc32(found.record.body) != found.body_crc:
        return Stop.BAD_CRC
    return found


def _dissect(raw: bytes, end: int) -> Found | None:
    """Take a record apart; None if its inner lengths do not add up to its size."""
    size, magic, crc, queue_id, flag, queue_offset, log_offset, sys_flag, born_timestamp = (
        _HEAD.unpack_from(raw)
    )
    stored_at = 48 + (20 if sys_flag & _BORN_IPV6 else 8)
    tail_at = stored_at + 8 + (20 if sys_flag & _STORE_IPV6 else 8)
    body_at = tail_at + _TAIL.size
    length_form = ">h" if magic == RECORD_MAGIC_V2 else ">b"
    # What body, topic and properties must share among them, to the byte.
    spare = size - body_at - struct.calcsize(length_form) - 2
    if spare < 0:
        return None
    reconsume_times, prepared_offset, body_bytes = _TAIL.unpack_from(raw, tail_at)
    if not 0 <= body_bytes <= spare:
        return None
    topic_at = body_at + body_bytes + struct.calcsize(length_form)
    (topic_bytes,) = struct.unpack_from(length_form, raw, body_at + body_bytes)
    if not 0 <= topic_bytes <= spare - body_bytes:
        return None
    (properties_bytes,) = struct.unpack_from(">h", raw, topic_at + topic_bytes)
    if properties_bytes != spare - body_bytes - topic_bytes:
        return None
    record = Record(
        queue_id=queue_id,
        flag=flag,
        queue_offset=queue_offset,
        log_offset=log_offset,
        sys_flag=sys_flag,
        born_timestamp=born_timestamp,
        born_host=raw[48:stored_at],
        store_timestamp=struct.unpack_from(">q", raw, stored_at)[0],
        store_host=raw[stored_at + 8 : tail_at],
        reconsume_times=reconsume_times,
        prepared_offset=prepared_offset,
        body=raw[body_at : body_at + body_bytes],
        topic=raw[topic_at : topic_at + topic_bytes],
        properties=raw[topic_at + topic_bytes + 2 :],
    )
    return Found(record, size, crc, end)


def scan_records(
    buffer: Buffer, start: int, end: int, log_base: int, verify_crc: bool, records_max: int
) -> Scan:
    """Walk the records of a range and check them."""
    check_range(buffer, start, end)
    check_log_base(log_base)
    check_records_max(records_max)
    position, records, first, last = start, 0, 0, 0
    while records < records_max or position == end:
        found = read_record(buffer, position, end, log_base, verify_crc)
        if isinstance(found, Stop):
            return Scan(position, records, found, first, last)
        last = found.record.store_timestamp
        first = last if records == 0 else first
        records += 1
        position = found.end
    return Scan(position, records, Stop.LIMIT, first, last)


def check_records_max(records_max: int) -> None:
    """Raise InvalidValue for a walk that may take no record."""
    if records_max < 1:
        raise InvalidValue("scan: records_max must be positive")


def find_record(buffer: Buffer, start: int, end: int, log_base: int) -> int:
    """Return the first position in [start, end - 36] that looks like a record's start, or -1."""
    check_range(buffer, start, end)
    check_log_base(log_base)
    for position in range(start, end - 35):
        size, magic = struct.unpack_from(">iI", buffer, position)
        if magic not in {RECORD_MAGIC_V1, RECORD_MAGIC_V2} or size < _BYTES_MIN:
            continue
        if struct.unpack_from(">q", buffer, position + 28)[0] == log_base + position:
            return position
    return -1
