"""The search among consume queue units."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.kernel.values import QueueUnit

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Kernel


def units(*parts: tuple[int, int, int]) -> bytes:
    return b"".join(struct.pack(">qiq", *part) for part in parts)


QUEUE = units((0, 100, 1), (100, 100, -2), (200, 100, 0), (300, 100, 1), (400, 100, 7))


def offsets(found: list[QueueUnit]) -> list[int]:
    return [unit.log_offset for unit in found]


def test_no_hashes_match_everything(kernel: Kernel) -> None:
    found, position = kernel.match_tags(QUEUE, 0, len(QUEUE), [], 32)
    assert found[1] == QueueUnit(100, 100, -2)
    assert type(found[1]) is QueueUnit
    assert (offsets(found), position) == ([0, 100, 200, 300, 400], 100)


@pytest.mark.parametrize(
    ("hashes", "expected"),
    [([1], [0, 300]), ([-2, 7], [100, 400]), ([0], [200]), ([5], []), ([1, 1], [0, 300])],
)
def test_hashes(kernel: Kernel, hashes: list[int], expected: list[int]) -> None:
    found, position = kernel.match_tags(QUEUE, 0, len(QUEUE), hashes, 32)
    assert (offsets(found), position) == (expected, 100)


def test_the_scan_ends_behind_the_last_match_asked_for(kernel: Kernel) -> None:
    found, position = kernel.match_tags(QUEUE, 0, len(QUEUE), [1], 1)
    assert (offsets(found), position) == ([0], 20)
    found, position = kernel.match_tags(QUEUE, 20, len(QUEUE), [1], 1)
    assert (offsets(found), position) == ([300], 80)


def test_a_queue_ends_at_the_first_empty_unit(kernel: Kernel) -> None:
    for size in (0, -1, -(2**31)):
        queue = units((0, 100, 1), (0, size, 0), (100, 100, 1))
        assert kernel.match_tags(queue, 0, len(queue), [], 32)[1] == 20


def test_less_than_a_unit_is_left_alone(kernel: Kernel) -> None:
    assert kernel.match_tags(QUEUE, 3, 22, [], 32) == ([], 3)
    found, position = kernel.match_tags(b"x" + QUEUE, 1, 40, [], 32)
    assert (offsets(found), position) == ([0], 21)


def test_pre_blank_units_are_passed_over(kernel: Kernel) -> None:
    queue = units((0, 2147483647, 0), (0, 2147483647, 1), (5, 100, 1))
    found, position = kernel.match_tags(queue, 0, len(queue), [], 1)
    assert (offsets(found), position) == ([5], 60)


def test_addresses_in_the_extension_always_match(kernel: Kernel) -> None:
    queue = units((0, 9, -(2**63)), (1, 9, -2147483649), (2, 9, -2147483648), (3, 9, -1))
    found, _position = kernel.match_tags(queue, 0, len(queue), [5], 32)
    assert offsets(found) == [0, 1]


def test_a_delivery_time_is_compared_by_its_low_half(kernel: Kernel) -> None:
    queue = units((0, 9, 0x1_0000_0005), (1, 9, 0x1_FFFF_FFFE))
    assert offsets(kernel.match_tags(queue, 0, len(queue), [5], 32)[0]) == [0]
    assert offsets(kernel.match_tags(queue, 0, len(queue), [-2], 32)[0]) == [1]


@pytest.mark.parametrize("matches_max", [0, -1])
def test_at_least_one_match(kernel: Kernel, matches_max: int) -> None:
    with pytest.raises(InvalidValue, match=r"^match: matches_max must be positive$"):
        kernel.match_tags(QUEUE, 0, len(QUEUE), [], matches_max)
