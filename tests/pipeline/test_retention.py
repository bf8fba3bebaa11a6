"""What a broker deletes when, and who would lose messages by it. No Spark session is started."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gantrymq.spark.report.html import report_html
from gantrymq.store.retention import HOUR_MS
from support.golden_trees import NOW_MS, configuration, unpacked
from support.pipeline import run

if TYPE_CHECKING:
    from pathlib import Path


def aged_store(folder: Path, hours: float) -> Path:
    """Return a store whose log files were written some hours ago, one hour apart."""
    root = unpacked("apache-4.9.7-clean", folder)
    files = sorted((root / "commitlog").iterdir())
    for number, path in enumerate(files):
        at = (NOW_MS - (hours - number) * HOUR_MS) / 1000
        os.utime(path, (at, at))
    return root


def test_groups_are_warned_of_what_goes_soon(tmp_path: Path) -> None:
    root = aged_store(tmp_path, hours=60)
    config = tmp_path / "broker.conf"
    known = configuration("apache-4.9.7-clean").read_text()
    config.write_text(f"{known}\nfileReservedTime=72\ndeleteWhen=04\n")
    report = run("retention", path=str(root), config=str(config), now=int(NOW_MS), horizon_hours=48)
    assert all(check.passed for check in report.checks)
    at_risk = {row["group"] for row in report.tables["groups"] if row["at risk"]}
    assert at_risk == {"cg_partial"}
    assert report.figures["files due now"] == 0
    files = report.tables["log files"]
    assert files[-1]["goes in hours"] is None
    hours = [float(row["goes in hours"] or 0) for row in files[:-1]]
    assert hours == sorted(hours)
    assert 12 <= hours[0] <= 36 + 1
    assert report_html(report).count("<svg") == 2


def test_what_is_due_is_what_the_brokers_rule_deletes(tmp_path: Path) -> None:
    root = aged_store(tmp_path, hours=500)
    report = run("retention", path=str(root), now=int(NOW_MS))
    assert report.figures["files due now"] == len(report.tables["log files"]) - 1
    assert report.checks
    assert all(check.passed for check in report.checks)
