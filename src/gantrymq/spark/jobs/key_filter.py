"""A Bloom filter of the keys in a file: a search by key opens only files that may have it.

Ten bits a key and four of them set: one file in a hundred is opened for nothing.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

BITS_A_KEY: Final = 10
HASHES: Final = 4
_MAGIC: Final = b"GKF1"


def _places(key: str, bits: int) -> Iterator[int]:
    raw = key.encode()
    first = zlib.crc32(raw)
    step = zlib.crc32(raw, 0x9E3779B9) | 1
    for number in range(HASHES):
        yield (first + number * step) % bits


def key_filter(keys: Collection[str]) -> bytes:
    """Return the filter of some keys."""
    bits = max(len(keys) * BITS_A_KEY, 64)
    table = bytearray(-(-bits // 8))
    for key in keys:
        for place in _places(key, bits):
            table[place >> 3] |= 1 << (place & 7)
    return _MAGIC + bits.to_bytes(8) + bytes(table)


def may_have(raw: bytes, key: str) -> bool:
    """Tell whether a file may have a key; False is certain.

    Raises:
        InvalidValue: these bytes are no filter.
    """
    if raw[:4] != _MAGIC or len(raw) < 12:
        raise InvalidValue("no key filter of ours")
    bits, table = int.from_bytes(raw[4:12]), raw[12:]
    if len(table) != -(-bits // 8):
        raise InvalidValue(f"a key filter of {bits} bits has {len(table)} bytes")
    return all(table[place >> 3] >> (place & 7) & 1 for place in _places(key, bits))
