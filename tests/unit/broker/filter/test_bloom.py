"""The bits of groups in bitmaps; the numbers are those that Apache's classes give."""

from __future__ import annotations

import pytest

from gantrymq.broker.filter.bloom import BloomBits, BloomFilter, bitmap_of, is_marked, murmur3
from gantrymq.errors import InvalidValue


def test_the_default_filter() -> None:
    assert BloomFilter.for_consumers() == BloomFilter(bit_count=112, hash_count=3)


@pytest.mark.parametrize(
    ("percent", "expected", "filter_"),
    [(1, 1, (16, 7)), (99, 1, (8, 1)), (50, 64, (96, 1)), (20, 64, (216, 3)), (10, 128, (616, 4))],
)
def test_sizes(percent: int, expected: int, filter_: tuple[int, int]) -> None:
    assert BloomFilter.for_consumers(percent, expected) == filter_


@pytest.mark.parametrize(
    ("group", "topic", "positions"),
    [
        ("G1", "TopicTest", (106, 23, 102)),
        ("cg_sql_a", "FilterTopic", (53, 105, 103)),
        ("cg_sql_b", "FilterTopic", (30, 108, 8)),
        ("cg_sql_c", "FilterTopic", (65, 14, 49)),
        ("cg_sql_d", "FilterTopic2", (103, 59, 16)),
    ],
)
def test_positions(group: str, topic: str, positions: tuple[int, ...]) -> None:
    assert BloomFilter.for_consumers().bits_of(group, topic) == BloomBits(112, positions)


def test_hash() -> None:
    assert murmur3(b"") == 0
    # First half of the digest that the algorithm's author publishes for this sentence.
    assert murmur3(b"The quick brown fox jumps over the lazy dog") == 0xE34BBC7BBC071B6C


@pytest.mark.parametrize(("percent", "expected"), [(0, 32), (100, 32), (20, 0), (1, 10**6)])
def test_what_cannot_be_is_refused(percent: int, expected: int) -> None:
    with pytest.raises(InvalidValue, match=r"maxErrorRateOfBloomFilter|expectConsumerNum"):
        BloomFilter.for_consumers(percent, expected)


def test_bitmap() -> None:
    one, two = BloomBits(16, (0, 9)), BloomBits(16, (9, 15))
    assert bitmap_of(16, []) == b"\0\0"
    assert bitmap_of(16, [one]) == b"\x01\x02"
    assert bitmap_of(16, [one, two]) == b"\x01\x82"
    assert bitmap_of(12, [BloomBits(12, (11,))]) == b"\0\x08"
    assert is_marked(b"\x01\x02", one)
    assert not is_marked(b"\x01\x02", two)
    assert is_marked(b"\x01\x82", two)


def test_groups_do_not_get_in_each_others_way_often() -> None:
    bloom = BloomFilter.for_consumers()
    present = [bloom.bits_of(f"group-{n}", "T") for n in range(32)]
    bitmap = bitmap_of(bloom.bit_count, present)
    assert all(is_marked(bitmap, bits) for bits in present)
    absent = [bloom.bits_of(f"other-{n}", "T") for n in range(1000)]
    assert sum(is_marked(bitmap, bits) for bits in absent) < 300


def test_bits_of_another_filter_are_not_its_own() -> None:
    bloom = BloomFilter.for_consumers()
    assert bloom.owns(bloom.bits_of("g", "t"))
    assert not bloom.owns(None)
    assert not bloom.owns(BloomFilter.for_consumers(20, 64).bits_of("g", "t"))
    assert not bloom.owns(BloomBits(112, (1, 2)))
    assert not bloom.owns(BloomBits(112, (1, 2, 112)))
    assert not bloom.owns(BloomBits(112, (1, 2, -1)))
