"""Sizes are counted many at a time; the counts are those of looking at each."""

from __future__ import annotations

import struct
from random import Random

import pytest

from gantrymq.metrics.sizes import BOUNDS, Sizes
from support.broker_rig import BrokerRig
from support.scraping import RigScrapes


def units(sizes: list[int]) -> bytes:
    return b"".join(struct.pack(">qiq", 7, size, -1) for size in sizes)


@pytest.mark.parametrize("seed", range(5))
def test_counts_are_those_of_looking_at_each(seed: int) -> None:
    random = Random(seed)
    sizes = [random.randrange(1 << random.randrange(1, 31)) for _ in range(2000)]
    sizes += [near + step for near in BOUNDS for step in (-1, 1)]
    found = Sizes()
    for start in range(0, len(sizes), 333):
        found.add(units(sizes[start : start + 333]))
    assert found.below == [sum(s < bound for s in sizes) for bound in BOUNDS] + [len(sizes)]
    assert found.total == sum(sizes)


def test_nothing_is_nothing() -> None:
    found = Sizes()
    found.add(b"")
    assert (set(found.below), found.total) == ({0}, 0)


def test_what_was_there_before_does_not_count() -> None:
    rig = BrokerRig()
    rig.send(b"x" * 100)
    rig.settle()
    scrape = RigScrapes(rig)
    for body in (b"y" * 10, b"y" * 3000, b"y" * 100_000):
        rig.send(body)
    rig.settle()
    found = scrape()
    assert found.value("rocketmq_messages_in_total", topic="T") == 4
    assert found.value("rocketmq_message_size_bucket", topic="T", le="1024.0") == 1
    assert found.value("rocketmq_message_size_bucket", topic="T", le="4096.0") == 2
    assert found.value("rocketmq_message_size_bucket", topic="T", le="+Inf") == 3
    rig.send(b"z")
    rig.settle()
    assert scrape().value("rocketmq_message_size_count", topic="T") == 4
