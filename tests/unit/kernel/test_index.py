"""Insertion into index files, and the walk over consume queue units."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.kernel.values import PRE_BLANK_SIZE

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Kernel

HEADER = struct.Struct(">qqqqii")
SLOTS, ENTRIES_MAX = 3, 5
FILE_BYTES = 40 + 4 * SLOTS + 20 * ENTRIES_MAX
NO_LIMIT = 2**63 - 1


def keys(*parts: tuple[int, int, int]) -> bytes:
    return b"".join(struct.pack(">iqq", *part) for part in parts)


def header(file: bytearray) -> tuple[int, ...]:
    return HEADER.unpack_from(file, 0)


def slots(file: bytearray) -> tuple[int, ...]:
    return struct.unpack_from(f">{SLOTS}i", file, 40)


def entry(file: bytearray, number: int) -> tuple[int, ...]:
    return struct.unpack_from(">iqii", file, 40 + 4 * SLOTS + 20 * number)


def test_a_new_file(kernel: Kernel) -> None:
    file = bytearray(FILE_BYTES)
    two = keys((7, 100, 50_000), (4, 100, 50_000), (8, 300, 53_999))
    assert kernel.insert_keys(file, SLOTS, ENTRIES_MAX, two, 0) == 60
    assert header(file) == (50_000, 53_999, 100, 300, 2, 4)
    assert slots(file) == (0, 2, 3)
    # The first entry finds no begin timestamp; those behind it count from its own.
    assert [entry(file, number) for number in range(4)] == [
        (0, 0, 0, 0), (7, 100, 0, 0), (4, 100, 0, 1), (8, 300, 3, 0),
    ]  # fmt: skip


def test_a_file_that_follows_another(kernel: Kernel) -> None:
    file = bytearray(FILE_BYTES)
    HEADER.pack_into(file, 0, 40_000, 40_000, 90, 90, 0, 1)
    old = (1, 89, 39_000)
    assert kernel.insert_keys(file, SLOTS, ENTRIES_MAX, keys(old, (1, 90, 45_000)), 0) == 40
    assert entry(file, 1) == (1, 90, 5, 0), "seconds since the end of the file before"
    assert header(file) == (45_000, 45_000, 90, 90, 1, 2)


def test_a_full_file_takes_no_more(kernel: Kernel) -> None:
    file = bytearray(FILE_BYTES)
    many = keys(*((number, 100 * number, 1000) for number in range(1, 9)))
    assert kernel.insert_keys(file, SLOTS, ENTRIES_MAX, many, 20) == 20 + 20 * (ENTRIES_MAX - 1)
    before = bytes(file)
    # What is already in the index is passed over by a full file too.
    assert kernel.insert_keys(file, SLOTS, ENTRIES_MAX, many, 0) == 80
    assert file == before


@pytest.mark.parametrize("slot", [-1, 2, 3, 99])
def test_a_slot_from_nowhere_is_empty(kernel: Kernel, slot: int) -> None:
    file = bytearray(FILE_BYTES)
    struct.pack_into(">i", file, 40, slot)
    kernel.insert_keys(file, SLOTS, ENTRIES_MAX, keys((3, 100, 1000)), 0)
    assert entry(file, 1)[3] == 0
    assert header(file)[4] == 1


@pytest.mark.parametrize(
    ("begin", "stored", "seconds"),
    [
        (0, 5000, 0),
        (-5, 5000, 0),
        (9000, 5000, 0),
        (1, 1000, 0),
        (1, 1001, 1),
        (1, NO_LIMIT, 2**31 - 1),
    ],
)
def test_seconds(kernel: Kernel, begin: int, stored: int, seconds: int) -> None:
    file = bytearray(FILE_BYTES)
    HEADER.pack_into(file, 0, begin, begin, 0, 0, 0, 2)
    kernel.insert_keys(file, SLOTS, ENTRIES_MAX, keys((3, 100, stored)), 0)
    assert entry(file, 2)[2] == seconds


def test_bytes_that_are_no_key_stay(kernel: Kernel) -> None:
    file = bytearray(FILE_BYTES)
    assert kernel.insert_keys(file, SLOTS, ENTRIES_MAX, keys((3, 1, 1)) + bytes(19), 0) == 20
    assert kernel.insert_keys(file, SLOTS, ENTRIES_MAX, b"", 0) == 0


@pytest.mark.parametrize(
    ("slot_count", "entries_max", "start", "words"),
    [
        (0, 5, 0, "index: slots and entries must be positive"),
        (3, 0, 0, "index: slots and entries must be positive"),
        (3, 6, 0, "index: a file of 152 bytes has no room for 3 slots and 6 entries"),
        (3, 5, 10, "index: keys must be read from a multiple of 20 within them"),
        (3, 5, 40, "index: keys must be read from a multiple of 20 within them"),
        (3, 5, -20, "index: keys must be read from a multiple of 20 within them"),
    ],
)
def test_refusals(
    kernel: Kernel, slot_count: int, entries_max: int, start: int, words: str
) -> None:
    with pytest.raises(InvalidValue, match=words):
        kernel.insert_keys(bytearray(FILE_BYTES), slot_count, entries_max, bytes(20), start)


# -- units -----------------------------------------------------------------------------------------


def units(*parts: tuple[int, int, int]) -> bytes:
    return b"".join(struct.pack(">qiq", *part) for part in parts)


GOOD = units((0, PRE_BLANK_SIZE, 0), (100, 91, -(2**40)), (191, 100, 5))


@pytest.mark.parametrize(
    ("tail", "limit", "expected"),
    [
        (b"", NO_LIMIT, (60, 291, -(2**40))),
        (bytes(20), NO_LIMIT, (60, 291, -(2**40))),
        (units((-1, 91, 0)), NO_LIMIT, (60, 291, -(2**40))),
        (units((291, -1, 0)), NO_LIMIT, (60, 291, -(2**40))),
        (units((290, 91, 0)), NO_LIMIT, (60, 291, -(2**40))),  # overlaps the one before
        (units((0, PRE_BLANK_SIZE, 0)), NO_LIMIT, (80, 291, -(2**40))),
        (units((291, 91, 0)) + bytes(19), NO_LIMIT, (80, 382, -(2**40))),
        (b"", 191, (40, 191, -(2**40))),
        (b"", 100, (20, 7, 0)),
    ],
)
def test_scan_units(
    kernel: Kernel, tail: bytes, limit: int, expected: tuple[int, int, int]
) -> None:
    queue = GOOD + tail
    assert kernel.scan_units(queue, 0, len(queue), 7, limit) == expected


def test_scan_units_begins_behind_what_is_known(kernel: Kernel) -> None:
    assert kernel.scan_units(GOOD, 20, 60, 100, NO_LIMIT) == (60, 291, -(2**40))
    assert kernel.scan_units(GOOD, 20, 60, 101, NO_LIMIT) == (20, 101, 0)
    with pytest.raises(InvalidValue, match="range: start=0 end=61"):
        kernel.scan_units(GOOD, 0, 61, 0, NO_LIMIT)
