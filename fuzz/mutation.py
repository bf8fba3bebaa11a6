"""Changing a good input into one that nobody meant: for the built-in engine.

Lengths are what parsers trip over, so half of the changes aim at them: a number of 1, 2, 4 or 8
bytes is replaced by a border value or moved by a little, in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from random import Random

INPUT_BYTES_MAX: Final = 1 << 16

BORDERS: Final = (
    0, 1, 2, 4, 8, 90, 91, 92, 127, 128, 255, 256, 32767, 32768, 65535, 65536, (1 << 24) - 1,
    1 << 24, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1,
)  # fmt: skip
WORDS: Final = (
    b"", b"\x00", b"\x01", b"\x02", b"\xff", b"\x80", b"\xc3\x28", b"\xed\xa0\x80", b"\\ud800",
    b"\\u0000", b"{", b"}", b"[", b"]", b'"', b",", b":", b"null", b"true", b"-", b"+1", b"1e9",
    b"1.5", b"NaN", b"99999999999999999999", b"1" * 5000, b'{"a":' * 70, b"[" * 200, b"extFields",
    b"code", b"%RETRY%", b"KEYS\x01k k\x02", b"DELAY\x013\x02", b"WAIT\x01false\x02",
    b"\xda\xa3\x20\xa7", b"\xda\xa3\x20\xab", b"\xcb\xd4\x31\x94",
)  # fmt: skip

Mutation = Callable[[bytearray, "Random", Sequence[bytes]], None]


def _number(data: bytearray, random: Random, _others: Sequence[bytes]) -> None:
    size = random.choice((1, 2, 4, 4, 4, 8))
    if len(data) < size:
        return
    at = random.randrange(len(data) - size + 1)
    if random.random() < 0.5:
        value = random.choice(BORDERS)
    else:
        value = int.from_bytes(data[at : at + size]) + random.randint(-4, 4)
    data[at : at + size] = (value % (1 << (8 * size))).to_bytes(size)


def _bit(data: bytearray, random: Random, _others: Sequence[bytes]) -> None:
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _truncate(data: bytearray, random: Random, _others: Sequence[bytes]) -> None:
    del data[random.randrange(len(data) + 1) :]


def _cut(data: bytearray, random: Random, _others: Sequence[bytes]) -> None:
    at = random.randrange(len(data) + 1)
    del data[at : at + random.randint(1, 16)]


def _insert(data: bytearray, random: Random, _others: Sequence[bytes]) -> None:
    at = random.randrange(len(data) + 1)
    data[at:at] = random.choice(WORDS) if random.random() < 0.7 else random.randbytes(4)


def _overwrite(data: bytearray, random: Random, _others: Sequence[bytes]) -> None:
    word = random.choice(WORDS)
    at = random.randrange(len(data) + 1)
    data[at : at + len(word)] = word


def _repeat(data: bytearray, random: Random, _others: Sequence[bytes]) -> None:
    at = random.randrange(len(data) + 1)
    piece = data[at : at + random.randint(1, 64)]
    data[at:at] = piece * random.randint(1, 8)


def _splice(data: bytearray, random: Random, others: Sequence[bytes]) -> None:
    other = random.choice(others)
    at = random.randrange(len(data) + 1)
    data[at:] = other[random.randrange(len(other) + 1) :]


def _append(data: bytearray, random: Random, others: Sequence[bytes]) -> None:
    data += random.choice(others)


MUTATIONS: Final[tuple[Mutation, ...]] = (
    _number, _number, _number, _number,
    _bit, _truncate, _cut, _insert, _overwrite, _repeat, _splice, _append,
)  # fmt: skip


def mutated(seed: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    """Return `seed` with one to four changes; `others` are what pieces are taken from."""
    data = bytearray(seed)
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 4))):
        random.choice(MUTATIONS)(data, random, others)
    return bytes(data[:INPUT_BYTES_MAX])
