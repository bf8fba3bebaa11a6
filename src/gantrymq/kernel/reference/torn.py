"""Records whose properties a power cut has torn, where no CRC looks (`gantrymq.store.torn`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.errors import InvalidValue
from gantrymq.kernel.reference.bounds import check_range
from gantrymq.kernel.reference.records import read_record
from gantrymq.kernel.values import Stop

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Buffer


def find_torn(buffer: Buffer, start: int, end: int, sector_bytes: int) -> int:
    """Return where the first record begins that looks torn, or -1."""
    check_range(buffer, start, end)
    if sector_bytes < 1:
        raise InvalidValue("torn: a sector has at least a byte")
    position = start
    while True:
        found = read_record(buffer, position, end, -1, False)
        if isinstance(found, Stop):
            return -1
        properties = found.end - len(found.record.properties)
        if 0 in found.record.topic or _is_torn(buffer, properties, found.end, sector_bytes):
            return position
        position = found.end


def _is_torn(buffer: Buffer, start: int, end: int, sector_bytes: int) -> bool:
    first = start + -start % sector_bytes
    return any(
        not any(buffer[border : min(border + sector_bytes, end)])
        for border in range(first, end, sector_bytes)
    )
