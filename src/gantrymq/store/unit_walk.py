"""Questions about the units of a consume queue that one walk over them answers.

Messages stand in a queue in log order, and pre-blank units, which are in no order, between them.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.kernel import PRE_BLANK_SIZE, UNIT_BYTES, kernel

if TYPE_CHECKING:
    from gantrymq.store.queue_files import QueueFiles

UNIT: Final = struct.Struct(">qiq")
PRE_BLANK: Final = UNIT.pack(0, PRE_BLANK_SIZE, 0)
NO_LIMIT: Final = 2**63 - 1
_CHUNK_BYTES: Final = 3276 * UNIT_BYTES
_FIRST_CHUNK_BYTES: Final = 204 * UNIT_BYTES
"""Of thousands of queues many have but a few units."""


class Walk(NamedTuple):
    """What a walk over units found."""

    end: int
    log_end: int
    """Behind the last message; 0 without one."""
    ext_address: int
    """The last one; 0 without one."""
    log_offset: int | None
    """Of the message that the walk began with; None if it did not begin with one."""
    ends_in_garbage: bool
    """It ended before something that is neither a good unit nor zeros."""


def walk(files: QueueFiles, start: int, stop: int, log_limit: int = NO_LIMIT) -> Walk:
    """Walk over good units up to a message at or behind `log_limit`; see `kernel.scan_units`."""
    position, log_end, ext_address = start, 0, 0
    first: int | None = None
    chunk_bytes = _FIRST_CHUNK_BYTES
    while position < stop:
        chunk = files.read(position, min(chunk_bytes, stop - position))
        chunk_bytes = _CHUNK_BYTES
        good, log_end, found = kernel.scan_units(chunk, 0, len(chunk), log_end, log_limit)
        if position == start and good and chunk[:UNIT_BYTES] != PRE_BLANK:
            first = log_offset_of(chunk)
        ext_address = found or ext_address
        position += good
        if good < len(chunk):
            garbage = any(chunk[good : good + UNIT_BYTES])
            return Walk(position, log_end, ext_address, first, garbage)
    return Walk(position, log_end, ext_address, first, ends_in_garbage=False)


def log_offset_of(unit: bytes) -> int:
    """Return the log offset of a unit."""
    return int.from_bytes(unit[:8], signed=True)


def log_end_before(files: QueueFiles, position: int) -> int:
    """Return the log offset behind the last message before a position; 0 without one."""
    while position > files.first:
        begin = max(position - _CHUNK_BYTES, files.first)
        units = files.read(begin, position - begin)
        if units != PRE_BLANK * (len(units) // UNIT_BYTES):
            return kernel.scan_units(units, 0, len(units), 0, NO_LIMIT)[1]
        position = begin
    return 0


def find_message(
    files: QueueFiles, start: int, stop: int, log_offset: int
) -> tuple[int, int] | None:
    """Return position and log offset of the first message at or behind a log offset."""
    position = walk(files, _skip_chunks(files, start, stop, log_offset), stop, log_offset).end
    found = log_offset_of(files.read(position, UNIT_BYTES)) if position < stop else -1
    return (position, found) if found >= log_offset else None


def _skip_chunks(files: QueueFiles, start: int, stop: int, log_offset: int) -> int:
    """Return a position before which all messages are below a log offset.

    A search by halves over chunks, for a file may have 300,000 units; it gives up where a pre-blank
    unit says nothing about its place in the log.
    """
    least, most = 0, (stop - start) // _CHUNK_BYTES
    while least < most:
        middle = (least + most + 1) // 2
        unit = files.read(start + middle * _CHUNK_BYTES, UNIT_BYTES)
        if not unit or unit == PRE_BLANK:
            break
        if log_offset_of(unit) < log_offset:
            least = middle
        else:
            most = middle - 1
    return start + least * _CHUNK_BYTES
