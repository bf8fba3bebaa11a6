"""The twins agree about index files and consume queue units, as `test_twins.py` says of the rest.

What the kernel writes into is compared byte for byte, also where it raises.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from hypothesis import example, given
from hypothesis import strategies as st

from gantrymq.errors import GantryError
from gantrymq.kernel.values import PRE_BLANK_SIZE
from support.kernels import KERNELS
from support.strategies import integers, ranges

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.kernel.interface import Kernel

HEADER = struct.Struct(">qqqqii")
KEY = struct.Struct(">iqq")
UNIT = struct.Struct(">qiq")
INT64_MAX = 2**63 - 1


def check_agreement(act: Callable[[Kernel], object]) -> None:
    """Do the same with every kernel; result, or error, must be the same in every word."""
    outcomes: dict[str, tuple[str, str]] = {}
    for name, each in KERNELS.items():
        try:
            outcomes[name] = ("result", repr(act(each)))
        except GantryError as error:
            outcomes[name] = (type(error).__name__, str(error))
    for name, found in outcomes.items():
        assert found == outcomes["readable"], name


def near(*values: int) -> st.SearchStrategy[int]:
    """Draw numbers around others: that is where comparisons go wrong."""
    return st.sampled_from(sorted(value + by for value in values for by in (-1, 0, 1)))


SMALL = st.integers(0, 12)
OFFSETS = SMALL.map(lambda number: number * 100) | integers(64)
TIMES = near(0, 1000, 2500, 2**31 * 1000) | integers(64)
HASHES = SMALL | near(2**31 - 2) | integers(32)
KEYS = st.lists(st.tuples(HASHES, OFFSETS, TIMES), max_size=12).map(
    lambda keys: b"".join(KEY.pack(*key) for key in keys)
)
HEADERS = st.builds(
    HEADER.pack, TIMES, TIMES, OFFSETS, OFFSETS, integers(32), near(0, 1, 3, 6) | integers(32)
)


@st.composite
def index_files(draw: st.DrawFn) -> tuple[bytes, int, int]:
    """Draw an index file, new, good or spoiled, and its numbers of slots and entries."""
    slots, entries_max = draw(st.integers(1, 5)), draw(st.integers(1, 7))
    room = 4 * slots + 20 * entries_max
    kind = draw(st.sampled_from(["new", "slots", "noise"]))
    header = bytes(40) if kind == "new" else draw(HEADERS)
    if kind == "noise":
        body = draw(st.binary(min_size=room, max_size=room))
    else:
        numbers = draw(st.lists(st.integers(-1, 8), min_size=slots, max_size=slots))
        body = (
            bytes(room) if kind == "new" else struct.pack(f">{slots}i", *numbers).ljust(room, b"\0")
        )
    return header + body, slots, entries_max


@given(index_files(), KEYS, SMALL)
@example((bytes(40 + 4 + 20 * 3), 1, 3), KEY.pack(7, 100, 0) * 5, 0)
def test_insert_keys(file: tuple[bytes, int, int], keys: bytes, first: int) -> None:
    image, slots, entries_max = file

    def insert(kernel: Kernel) -> tuple[int, bytes]:
        target = bytearray(image)
        position = kernel.insert_keys(target, slots, entries_max, keys, min(20 * first, len(keys)))
        return position, bytes(target)

    check_agreement(insert)


@given(
    index_files(),
    st.integers(-1, 8) | st.just(2**70),
    st.integers(-1, 9) | st.just(2**70),
    st.integers(-25, 70) | st.just(2**70),
)
def test_insert_keys_refuses_alike(
    file: tuple[bytes, int, int], slots: int, entries_max: int, start: int
) -> None:
    keys = KEY.pack(5, 100, 1000) * 2 + b"\0" * 7

    def insert(kernel: Kernel) -> tuple[int, bytes]:
        target = bytearray(file[0])
        return kernel.insert_keys(target, slots, entries_max, keys, start), bytes(target)

    check_agreement(insert)


SIZES = st.sampled_from([0, -1, 1, 100, PRE_BLANK_SIZE - 1, PRE_BLANK_SIZE]) | integers(32)
TAGS = near(-2147483648, 0) | integers(64)
UNITS = st.lists(
    st.tuples(OFFSETS | near(INT64_MAX - 101), SIZES, TAGS).map(
        lambda parts: UNIT.pack(min(parts[0], INT64_MAX), *parts[1:])
    ),
    max_size=12,
).map(b"".join)
ORDERED = st.integers(0, 12).map(
    lambda count: b"".join(UNIT.pack(100 * n, 100, -(2**62) + n) for n in range(count))
)
LIMITS = near(1, 100, 500) | st.just(INT64_MAX)


@given(UNITS | ORDERED | st.binary(max_size=90), st.data(), LIMITS, LIMITS)
@example(UNIT.pack(INT64_MAX - 5, 100, 0) * 2, None, 0, INT64_MAX)
def test_scan_units(units: bytes, data: st.DataObject | None, log_end: int, log_limit: int) -> None:
    start, end = (0, len(units)) if data is None else data.draw(ranges(len(units)))
    check_agreement(lambda kernel: kernel.scan_units(units, start, end, log_end, log_limit))
