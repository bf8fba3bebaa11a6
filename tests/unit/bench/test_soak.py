"""`make soak`: slopes are judged rightly, and a short one runs from its start to its picture."""

from __future__ import annotations

import csv
from random import Random
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from bench.soak.run import Plan, soaked, table, write_down
from bench.soak.trends import Sample, Trend, line_slope, trend

if TYPE_CHECKING:
    from pathlib import Path

LIFE_S = 1800.0
LIVES = 8


def series(growth_mib_h: float = 0.0, step_mib: float = 0.0, seed: int = 1) -> list[Sample]:
    """Return lives of half an hour that warm up, with noise; a life may begin higher."""
    dice = Random(seed)
    return [
        Sample(
            life * LIFE_S + age, "a", life, age,
            40 + 10 * min(age / 300, 1) + life * step_mib + growth_mib_h * age / 3600
            + dice.gauss(0, 0.3),
            30,
        )
        for life in range(LIVES)
        for age in range(10, int(LIFE_S), 10)
    ]  # fmt: skip


def test_what_only_warms_up_is_flat() -> None:
    flat = [trend(series(seed=seed), "rss_anon_mib").is_flat for seed in range(40)]
    assert flat.count(False) <= 3


@pytest.mark.parametrize(
    ("grows", "steps"), [(3.0, 0.0), (0.0, 0.5)], ids=["within lives", "from life to life"]
)
def test_what_grows_is_seen(grows: float, steps: float) -> None:
    found = trend(series(grows, steps), "rss_anon_mib")
    assert not found.is_flat
    slope = found.within if grows else found.between
    assert slope is not None
    assert slope.low <= (grows or steps * 3600 / LIFE_S) <= slope.high
    assert "NOT FLAT" in str(slope)


def test_little_says_nothing() -> None:
    assert trend([], "p99_ms") == Trend(None, None)
    one_life = [one for one in series() if one.life == 0]
    assert trend(one_life, "rss_anon_mib").between is None
    assert trend(one_life, "open_files").is_flat
    assert line_slope([(1.0, 2.0)]) == (0.0, 0.0)


def test_a_short_soak(tmp_path: Path) -> None:
    plan = Plan(8 / 3600, lives=2, connections=4, capacity_s=0.5)
    found = soaked(plan, tmp_path)
    assert found.capacity > 500
    lives = {(one.broker, one.life) for one in found.samples}
    assert lives == {(name, life) for name in ("broker-a", "broker-b") for life in (0, 1)}
    assert all(one.rss_anon_mib > 5 and one.open_files > 5 for one in found.samples)
    wanted = found.capacity * plan.share / 2
    rates = [one.sent_per_s for one in found.samples]
    assert sum(rates) / len(rates) > wanted * 0.5, "the load was there"
    write_down(found, tmp_path)
    with (tmp_path / "samples.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(found.samples)
    assert float(rows[0]["p99_ms"]) > 0
    picture = ET.parse(tmp_path / "soak.svg")  # noqa: S314 - our own
    assert len(picture.findall(".//{*}polyline")) == 4 * 4
    assert "rss_anon_mib" in table(found, plan)
