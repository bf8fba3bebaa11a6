"""The walk over consume queue units that recovery, truncation and retention are made of."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from gantrymq.kernel.reference.bounds import check_range
from gantrymq.kernel.values import EXT_ADDRESS_MAX, PRE_BLANK_SIZE, UNIT_BYTES

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Buffer

_UNIT: Final = struct.Struct(">qiq")


def scan_units(
    buffer: Buffer, start: int, end: int, log_end: int, log_limit: int
) -> tuple[int, int, int]:
    """Walk good units; return where they end, the log offset behind them, the last ext address."""
    check_range(buffer, start, end)
    position, address = start, 0
    while end - position >= UNIT_BYTES:
        log_offset, size, tags_code = _UNIT.unpack_from(buffer, position)
        if log_offset < 0 or size <= 0:
            break
        if size != PRE_BLANK_SIZE:
            if log_offset < log_end or log_offset >= log_limit:
                break
            log_end = log_offset + size
            if tags_code <= EXT_ADDRESS_MAX:
                address = tags_code
        position += UNIT_BYTES
    return position, log_end, address
