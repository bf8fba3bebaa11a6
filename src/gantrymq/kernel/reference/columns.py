"""A range of the commit log as columns, in the memory layout of Apache Arrow."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue
from gantrymq.kernel.reference.bounds import check_log_base, check_range
from gantrymq.kernel.reference.properties import named
from gantrymq.kernel.reference.records import Found, read_record
from gantrymq.kernel.values import (
    BINARY_COLUMNS,
    COLUMN_NAMES,
    INT32_COLUMNS,
    INT64_COLUMNS,
    Column,
    Columns,
    Stop,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gantrymq.kernel.interface import Buffer

_BYTES_MAX: Final = 2**29
"""Mending may make a text three times as long, and its offsets have 31 bits."""


def scan_columns(
    buffer: Buffer,
    start: int,
    end: int,
    log_base: int,
    verify_crc: bool,
    names: Sequence[str],
    topics: Sequence[bytes],
    rows_max: int,
    bytes_max: int,
) -> Columns:
    """Return the chosen columns of the records in a range, walking as `scan_records` does."""
    check_range(buffer, start, end)
    check_log_base(log_base)
    _check_arguments(names, rows_max, bytes_max)
    rows: list[Found] = []
    position, scanned, taken = start, 0, 0
    while True:
        found = read_record(buffer, position, end, log_base, verify_crc)
        if isinstance(found, Stop):
            stop = found
            break
        if not topics or found.record.topic in topics:
            # The first row is always taken, or a large record could never be read.
            if rows and (len(rows) == rows_max or taken + found.size > bytes_max):
                stop = Stop.LIMIT
                break
            rows.append(found)
            taken += found.size
        scanned += 1
        position = found.end
    columns = {name: _column(name, rows) for name in dict.fromkeys(names)}
    return Columns(position, len(rows), scanned, stop, columns)


def _check_arguments(names: Sequence[str], rows_max: int, bytes_max: int) -> None:
    for name in names:
        if name not in COLUMN_NAMES:
            raise InvalidValue(f"columns: {name!r} is not one of {', '.join(COLUMN_NAMES)}")
    if rows_max < 1 or not 1 <= bytes_max <= _BYTES_MAX:
        raise InvalidValue(
            "columns: rows_max and bytes_max must be positive, bytes_max at most 536870912"
        )


def _column(name: str, rows: list[Found]) -> Column:
    if name in INT32_COLUMNS:
        return Column(struct.pack(f"<{len(rows)}i", *map(_NUMBERS[name], rows)), None, None)
    if name in INT64_COLUMNS:
        return Column(struct.pack(f"<{len(rows)}q", *map(_NUMBERS[name], rows)), None, None)
    values = list(map(_TEXTS[name], rows))
    if name not in BINARY_COLUMNS:
        values = [None if value is None else mended(value) for value in values]
    return _variable(values)


def _variable(values: list[bytes | None]) -> Column:
    offsets = [0]
    for value in values:
        offsets.append(offsets[-1] + len(value or b""))
    return Column(
        values=b"".join(value or b"" for value in values),
        offsets=struct.pack(f"<{len(offsets)}i", *offsets),
        validity=_bitmap(values) if None in values else None,
    )


def _bitmap(values: list[bytes | None]) -> bytes:
    bits = bytearray((len(values) + 7) // 8)
    for row, value in enumerate(values):
        if value is not None:
            bits[row // 8] |= 1 << row % 8
    return bytes(bits)


def mended(text: bytes) -> bytes:
    """Return UTF-8 text with U+FFFD for what is ill-formed."""
    return text.decode("utf-8", "replace").encode()


def _host(host: bytes) -> bytes:
    address, (port,) = host[:-4], struct.unpack(">i", host[-4:])
    if len(address) == 4:
        shown = ".".join(str(part) for part in address)
    else:
        shown = ":".join(f"{group:x}" for (group,) in struct.iter_unpack(">H", address))
    return f"{shown}:{port}".encode()


def _message_id(row: Found) -> bytes:
    place = row.record.store_host + struct.pack(">q", row.record.log_offset)
    return place.hex().upper().encode()


_NUMBERS: Final[dict[str, Callable[[Found], int]]] = {
    "queue_id": lambda row: row.record.queue_id,
    "store_size": lambda row: row.size,
    "body_crc": lambda row: row.body_crc - (row.body_crc >> 31 << 32),
    "flag": lambda row: row.record.flag,
    "sys_flag": lambda row: row.record.sys_flag,
    "reconsume_times": lambda row: row.record.reconsume_times,
    "queue_offset": lambda row: row.record.queue_offset,
    "log_offset": lambda row: row.record.log_offset,
    "born_timestamp": lambda row: row.record.born_timestamp,
    "store_timestamp": lambda row: row.record.store_timestamp,
    "prepared_offset": lambda row: row.record.prepared_offset,
}
_TEXTS: Final[dict[str, Callable[[Found], bytes | None]]] = {
    "body": lambda row: row.record.body,
    "topic": lambda row: row.record.topic,
    "properties": lambda row: row.record.properties,
    "born_host": lambda row: _host(row.record.born_host),
    "store_host": lambda row: _host(row.record.store_host),
    "message_id": _message_id,
    "tags": lambda row: named(row.record.properties).get(b"TAGS"),
    "keys": lambda row: named(row.record.properties).get(b"KEYS"),
    "unique_key": lambda row: named(row.record.properties).get(b"UNIQ_KEY"),
}
