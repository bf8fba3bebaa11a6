"""Records that a power cut has torn where their own CRC does not look.

A record's CRC covers its body. Its lengths must add up, which finds a sector that is missing from
the header, the body or the topic. But when the last sector of a record was not written and only
properties lie in it, everything adds up and the properties end in zeros: a message that nobody
sent, without its keys, its tag or its unique id. Apache RocketMQ serves it.

Such a record was never forced, so nobody was told that it is safe, and the log ends before it. What
gives it away: from a sector's border on, topic or properties hold nothing but zeros, up to the next
border or the record's end. A topic never holds a zero. Properties may, but not a whole sector of
zeros, nor a zero at their end: such a message would be taken for a tear, so it is refused when it
comes (`check_never_torn`). What Apache has stored, or a master that is one, knows nothing of this
rule; hence only records that the checkpoint does not vouch for are looked at.

A slave takes its master's log in pieces that end anywhere. When its process is killed between two
of them, the last record may lack its end from any byte on, not just from a border; it would be
served, and what the master sends next would go behind it. So the last record of all, the one that
nothing follows, is half a record if its properties end with a zero (`is_half_copied`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue
from gantrymq.kernel import kernel

if TYPE_CHECKING:
    from gantrymq.kernel import Record

SECTOR_BYTES: Final = 512
"""What a disk writes as one; those that write more at once never tear within."""
_HEAD_BYTES: Final = 8
"""Length and magic of the record that may follow."""


def check_never_torn(record: Record) -> None:
    """See that a record cannot be taken for a torn one, wherever it comes to lie.

    Raises:
        InvalidValue: it could be.
    """
    if 0 in record.topic:
        raise InvalidValue("the topic has a zero byte, which no topic may have")
    properties = record.properties
    if 0 in properties and (properties[-1] == 0 or bytes(SECTOR_BYTES) in properties):
        raise InvalidValue(
            f"the properties end with a zero byte, or have {SECTOR_BYTES} of them in a row; after "
            "a power cut that is the mark of a record that was not written to its end"
        )


def find_torn(buffer: memoryview, start: int, end: int) -> int | None:
    """Return where the first torn record of a range begins, or None; the range holds whole records.

    `buffer` is a file of the log from its first byte on, for that is where sectors are counted.
    """
    found = kernel.find_torn(buffer, start, end, SECTOR_BYTES)
    return None if found < 0 else found


def is_half_copied(buffer: memoryview, start: int, end: int) -> bool:
    """Tell whether a record lacks its end: nothing follows it, and its properties end in a zero."""
    if buffer[end - 1] != 0 or any(buffer[end : end + _HEAD_BYTES]):
        return False
    return kernel.decode_record(buffer, start, end, False)[0].properties[-1:] == b"\0"
