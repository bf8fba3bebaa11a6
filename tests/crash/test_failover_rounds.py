"""Short forms of `make chaos-failover WHAT=partition` and `WHAT=promotion`."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from support import partitions
from support.failover_group import Group
from support.promotion_check import promotion_rounds

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tool("etcd")


def test_a_master_that_is_cut_off_takes_nothing_beside_its_successor(tmp_path: Path) -> None:
    why = partitions.problem()
    if why is not None:
        pytest.skip(why)
    with partitions.PartitionedGroup(tmp_path) as group:
        report, both = group.partition_rounds(1, Random(1))
    assert (report.lost, both) == (0, 0), report.in_words()
    assert report.acknowledged > 50, report.in_words()


def test_a_new_master_knows_topics_and_offsets(tmp_path: Path) -> None:
    with Group(tmp_path) as group:
        (found,) = promotion_rounds(group, 1, Random(1))
    assert (found.lost, found.topics_lost) == (0, 0), found.in_words()
    assert found.commits > 10, found.in_words()
    assert found.topics > 3, found.in_words()
    assert found.behind_s <= 1.0, found.in_words()
