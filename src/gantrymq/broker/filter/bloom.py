"""The Bloom filter that marks messages for SQL92 consumers (BloomFilter.java, BitsArray.java).

A group has a few bits for each topic, found by hashing `group#topic`. When a message is dispatched,
the bits of all groups whose expression is true for it are set in its bitmap, which goes into the
consume queue's extension. A pull then skips the messages that lack one of the group's bits, without
reading them. Bit p is the bit of value 1 << p % 8 in byte p // 8.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterable

ERROR_PERCENT: Final = 20
"""Default of `maxErrorRateOfBloomFilter`."""
CONSUMERS_EXPECTED: Final = 32
"""Default of `expectConsumerNumUseFilter`."""
BITMAP_BYTES_MAX: Final = 32767 - 20
"""What a unit of the extension can hold beside its fixed fields."""

_MASK: Final = 2**64 - 1


class BloomBits(NamedTuple):
    """The bits of one group on one topic."""

    bit_count: int
    """Length of the bitmaps that they belong to."""
    positions: tuple[int, ...]


class BloomFilter(NamedTuple):
    """How long a bitmap is and how many bits a group has in it."""

    bit_count: int
    hash_count: int

    @classmethod
    def for_consumers(
        cls, error_percent: int = ERROR_PERCENT, expected: int = CONSUMERS_EXPECTED
    ) -> BloomFilter:
        """Return the filter for a rate of false hits and a number of groups on a topic.

        Raises:
            InvalidValue: there is no such rate or number, or the bitmap would be too long.
        """
        if not 1 <= error_percent <= 99:
            raise InvalidValue(f"maxErrorRateOfBloomFilter is {error_percent}; it must be 1 to 99")
        if expected < 1:
            raise InvalidValue(f"expectConsumerNumUseFilter is {expected}; it must be 1 or more")
        rate = error_percent / 100
        hash_count = math.ceil(math.log(rate) / math.log(0.5))
        # Each step as in Java, since a last digit decides what is rounded up.
        log2_of_rate = math.log(1 / rate) / math.log(2)
        bits = math.ceil(expected * log2_of_rate * (math.log(math.e) / math.log(2)))
        bit_count = 8 * math.ceil(bits / 8)
        if bit_count > 8 * BITMAP_BYTES_MAX:
            raise InvalidValue(
                f"expectConsumerNumUseFilter is {expected}, for which a bitmap needs "
                f"{bit_count // 8} bytes; at most {BITMAP_BYTES_MAX} can be stored: lower it, "
                "or raise maxErrorRateOfBloomFilter"
            )
        return cls(bit_count, hash_count)

    def bits_of(self, group: str, topic: str) -> BloomBits:
        """Return the bits of a group on a topic."""
        return BloomBits(self.bit_count, self.positions(f"{group}#{topic}"))

    def positions(self, text: str) -> tuple[int, ...]:
        """Return where the bits of a text are."""
        digest = murmur3(text.encode(errors="replace"))
        low, high = _signed32(digest), _signed32(digest >> 32)
        found = []
        for number in range(1, self.hash_count + 1):
            combined = _signed32(low + number * high)
            found.append((~combined if combined < 0 else combined) % self.bit_count)
        return tuple(found)

    def owns(self, bits: BloomBits | None) -> bool:
        """Tell whether bits were found with a filter like this one."""
        return (
            bits is not None
            and bits.bit_count == self.bit_count
            and len(bits.positions) == self.hash_count
            and all(0 <= position < self.bit_count for position in bits.positions)
        )


def bitmap_of(bit_count: int, groups: Iterable[BloomBits]) -> bytes:
    """Return a bitmap in which the bits of these groups are set."""
    bitmap = bytearray((bit_count + 7) // 8)
    for bits in groups:
        for position in bits.positions:
            bitmap[position >> 3] |= 1 << (position & 7)
    return bytes(bitmap)


def is_marked(bitmap: bytes, bits: BloomBits) -> bool:
    """Tell whether all bits of a group are set in a bitmap of its length."""
    return all(bitmap[position >> 3] >> (position & 7) & 1 for position in bits.positions)


def _signed32(number: int) -> int:
    return ((number + 2**31) & 0xFFFFFFFF) - 2**31


# -- MurmurHash3, x64, 128 bits, seed 0 ----------------------------------------------------------

_C1: Final = 0x87C37B91114253D5
_C2: Final = 0x4CF5AD432745937F


def murmur3(data: bytes) -> int:
    """Return the first 64 of the 128 bits, as Guava's `asLong` does."""
    first = second = 0
    whole = len(data) - len(data) % 16
    for at in range(0, whole, 16):
        first ^= _mixed_first(int.from_bytes(data[at : at + 8], "little"))
        first = ((_rotated(first, 27) + second) * 5 + 0x52DCE729) & _MASK
        second ^= _mixed_second(int.from_bytes(data[at + 8 : at + 16], "little"))
        second = ((_rotated(second, 31) + first) * 5 + 0x38495AB5) & _MASK
    second ^= _mixed_second(int.from_bytes(data[whole + 8 :], "little"))
    first ^= _mixed_first(int.from_bytes(data[whole : whole + 8], "little"))
    first ^= len(data)
    second ^= len(data)
    first = (first + second) & _MASK
    second = (second + first) & _MASK
    return (_finished(first) + _finished(second)) & _MASK


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> (64 - bits)) & _MASK


def _mixed_first(number: int) -> int:
    return _rotated(number * _C1 & _MASK, 31) * _C2 & _MASK


def _mixed_second(number: int) -> int:
    return _rotated(number * _C2 & _MASK, 33) * _C1 & _MASK


def _finished(number: int) -> int:
    number = (number ^ number >> 33) * 0xFF51AFD7ED558CCD & _MASK
    number = (number ^ number >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return number ^ number >> 33
