"""The system flags of a message, and those of a pull: bits with a meaning of their own.

    10 9 8   7       6        5         4         3 2           1       0
    +------+-------+--------+---------+---------+-------------+-------+------------+
    | kind | inner | need   | store   | born    | transaction | multi | compressed |
    |      | batch | unwrap | host v6 | host v6 | type        | tags  |            |
    +------+-------+--------+---------+---------+-------------+-------+------------+

Clients set compression and "prepared"; the broker sets the rest. Only Java clients tell the
kind of compression; 0 is zlib, which is all that the others know.
"""

from enum import IntEnum, IntFlag
from typing import Final

from gantrymq.errors import ContentError


class SystemFlag(IntFlag):
    """Single bits of a message's system flags."""

    COMPRESSED = 0x1
    MULTI_TAGS = 0x2
    BORN_HOST_V6 = 0x10
    STORE_HOST_V6 = 0x20
    NEED_UNWRAP = 0x40  # 5.x, queues of batches
    INNER_BATCH = 0x80  # 5.x, queues of batches


class TransactionType(IntEnum):
    """Bits 2 and 3 of a message's system flags, and `commitOrRollback` of END_TRANSACTION."""

    NONE = 0
    PREPARED = 4
    COMMIT = 8
    ROLLBACK = 12


class Compression(IntEnum):
    """How a compressed body is compressed."""

    LZ4 = 1
    ZSTD = 2
    ZLIB = 3


class PullFlag(IntFlag):
    """Bits of a pull request's system flags."""

    COMMIT_OFFSET = 0x1
    SUSPEND = 0x2
    SUBSCRIPTION = 0x4
    CLASS_FILTER = 0x8  # not used any more
    LITE_PULL = 0x10


# Below, all arithmetic is on plain integers: an IntFlag drops bits that have no name when it is
# complemented, or joined with a negative number, and flags come from outside with any bit set.
_TRANSACTION_MASK: Final = 0xC
_HOST_MASK: Final = 0x30
_HOST_V6_BYTES: Final = 20
_COMPRESSION_SHIFT: Final = 8
_COMPRESSION_MASK: Final = 0x701
_COMPRESSION_KINDS: Final = {0: Compression.ZLIB, **{kind.value: kind for kind in Compression}}


def transaction_type(sys_flag: int) -> TransactionType:
    """Return what the message is in a transaction."""
    return TransactionType(sys_flag & _TRANSACTION_MASK)


def with_transaction_type(sys_flag: int, kind: TransactionType) -> int:
    """Return the flags with another transaction type."""
    return sys_flag & ~_TRANSACTION_MASK | kind.value


def compression(sys_flag: int) -> Compression | None:
    """Return how the body is compressed, or None if it is not.

    Raises ContentError for a kind of compression that does not exist.
    """
    if not sys_flag & SystemFlag.COMPRESSED.value:
        return None
    kind = (sys_flag & _COMPRESSION_MASK) >> _COMPRESSION_SHIFT
    if kind not in _COMPRESSION_KINDS:
        raise ContentError("sysFlag", f"{sys_flag} has the unknown compression {kind}")
    return _COMPRESSION_KINDS[kind]


def with_compression(sys_flag: int, kind: Compression | None) -> int:
    """Return the flags of a body that is compressed in this way, or not."""
    plain = sys_flag & ~_COMPRESSION_MASK
    if kind is None:
        return plain
    return plain | SystemFlag.COMPRESSED.value | kind.value << _COMPRESSION_SHIFT


def with_host_bits(sys_flag: int, born_host_bytes: int, store_host_bytes: int) -> int:
    """Return the flags that say how long the two hosts of a record are: 8 bytes, or 20."""
    born = SystemFlag.BORN_HOST_V6.value if born_host_bytes == _HOST_V6_BYTES else 0
    store = SystemFlag.STORE_HOST_V6.value if store_host_bytes == _HOST_V6_BYTES else 0
    return sys_flag & ~_HOST_MASK | born | store
