"""Records that a power cut has torn where their own CRC does not look.

A record's CRC covers its body. Its lengths must add up, which finds a sector that is missing from
the header, the body or the topic. But when the last sector of a record was not written and only
properties lie in it, everything adds up and the properties end in zeros: a message that nobody
sent, without its keys, its tag or its unique id. Apache RocketMQ serves it.

Such a record was never forced, so nobody was told that it is safe, and the log ends before it. What
gives it away: from a sector's border on, topic or properties hold nothing but zeros, up to the next
border or the record's end. A topic never holds a zero. Properties could, and if a producer filled a
whole sector of them with zeros, or made them end with zeros exactly behind a border, this would be
taken for a tear; hence only records that the checkpoint does not vouch for are looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.kernel import kernel

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Buffer

SECTOR_BYTES: Final = 512
"""What a disk writes as one; those that write more at once never tear within."""
ROWS_MAX: Final = 65536
BYTES_MAX: Final = 1 << 26


def find_torn(buffer: memoryview, start: int, end: int, log_base: int) -> int | None:
    """Return where the first torn record of a range begins, or None; the range holds whole records.

    `buffer` is a file of the log from its first byte on, for that is where sectors are counted.
    """
    position = start
    while position < end:
        found = kernel.scan_columns(
            buffer, position, end, log_base, False, ("topic", "properties"), (), ROWS_MAX, BYTES_MAX
        )
        if found.end == position:
            return None
        if any(0 in column.values for column in found.columns.values()):
            torn = _first_torn(buffer, position, found.end)
            if torn is not None:
                return torn
        position = found.end
    return None


def _first_torn(buffer: memoryview, position: int, end: int) -> int | None:
    while position < end:
        record, behind = kernel.decode_record(buffer, position, end, False)
        if 0 in record.topic or _is_torn(buffer, behind - len(record.properties), behind):
            return position
        position = behind
    return None


def _is_torn(buffer: Buffer, start: int, end: int) -> bool:
    first = start + -start % SECTOR_BYTES
    return any(
        not any(buffer[border : min(border + SECTOR_BYTES, end)])
        for border in range(first, end, SECTOR_BYTES)
    )
