"""Records copied behind one another, by way of consume queue units: the body of a pull's answer."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue
from gantrymq.kernel.reference.bounds import check_log_base, check_range
from gantrymq.kernel.reference.integers import fits, wrap
from gantrymq.kernel.values import EXT_ADDRESS_MAX, PRE_BLANK_SIZE, UNIT_BYTES, Gathered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.kernel.interface import Buffer

_UNIT: Final = struct.Struct(">qiq")


def gather_records(
    units: Buffer,
    start: int,
    end: int,
    log: Buffer,
    log_start: int,
    log_end: int,
    log_base: int,
    hashes: Sequence[int],
    messages_max: int,
    bytes_max: int,
) -> Gathered:
    """Return the records that matching units of a range point to, behind one another."""
    check_range(units, start, end)
    check_range(log, log_start, log_end)
    check_log_base(log_base)
    check_bounds(log_base, hashes, messages_max, bytes_max)
    found, messages, last = bytearray(), 0, -1
    position = start
    with memoryview(log) as records:
        while end - position >= UNIT_BYTES and messages < messages_max:
            log_offset, size, tags_code = _UNIT.unpack_from(units, position)
            if size <= 0:
                break
            if size != PRE_BLANK_SIZE:
                if hashes and tags_code <= EXT_ADDRESS_MAX:
                    break
                if not hashes or wrap(tags_code, 32) in hashes:
                    at = log_offset - log_base
                    if not log_start <= at <= log_end - size:
                        break
                    if messages and len(found) + size > bytes_max:
                        break
                    found += records[at : at + size]
                    messages, last = messages + 1, log_offset
            position += UNIT_BYTES
    return Gathered(bytes(found), messages, position, last)


def check_bounds(log_base: int, hashes: Sequence[int], messages_max: int, bytes_max: int) -> None:
    """Raise InvalidValue for what a walk over units cannot begin with."""
    if log_base < 0:
        raise InvalidValue("gather: log_base must be known")
    if messages_max < 1:
        raise InvalidValue("gather: messages_max must be positive")
    if bytes_max < 1:
        raise InvalidValue("gather: bytes_max must be positive")
    if not all(fits(each, 32) for each in hashes):
        raise InvalidValue("gather: hashes must be 32-bit numbers")
