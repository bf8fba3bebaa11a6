"""Masters of a group with failover killed under load: `make chaos-failover` does it fifty times."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from support.failover_group import Group

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tool("etcd")

ROUNDS = 3


def test_a_killed_master_costs_nobody_a_message(tmp_path: Path) -> None:
    with Group(tmp_path) as group:
        report = group.kill_rounds(ROUNDS, Random(1))
    assert report.lost == 0, report.in_words()
    assert report.acknowledged > 100, report.in_words()
    assert max(report.seconds) < 20, report.in_words()


def test_a_master_that_slept_through_its_lease_takes_nothing(tmp_path: Path) -> None:
    with Group(tmp_path) as group:
        report, taken = group.pause_rounds(2)
    assert (report.lost, taken) == (0, 0), report.in_words()
    assert report.acknowledged > 20, report.in_words()
