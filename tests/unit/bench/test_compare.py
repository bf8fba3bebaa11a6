"""The comparison runs, at a scale where its figures mean nothing, and judges rightly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from bench.compare.rows import ROWS, SINGLE, TOPICS_RATE, Compared, compare, table

ROOT = Path(__file__).parents[3]
SECONDS_MAX = 120


class Output(msgspec.Struct):
    """What a run writes."""

    machine: dict[str, object]
    scale: float
    rows: list[dict[str, object]]
    apache_left_out: dict[str, str]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the comparison in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "bench.compare", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )


def test_every_row_is_measured_and_nothing_is_left(tmp_path: Path) -> None:
    work, written = tmp_path / "work", tmp_path / "figures.json"
    done = run(
        "--scale", "0.002", "--repetitions", "1", "--no-apache",
        "--directory", str(work), "--json", str(written),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split()[:3] == ["what", "unit", "gantrymq"]
    assert [line[: len(row.what)] for line, row in zip(lines[1:], ROWS, strict=False)] == [
        row.what for row in ROWS
    ]
    output = msgspec.json.decode(written.read_bytes(), type=Output)
    assert [row["figure"] for row in output.rows] == [row.figure for row in ROWS]
    missing = [row["figure"] for row in output.rows if not isinstance(row["gantrymq"], float | int)]
    assert missing == []
    rates = [row["gantrymq"] for row in output.rows if row["unit"] == "/s"]
    assert all(isinstance(rate, float) and rate > 0 for rate in rates)
    assert {row["reached"] for row in output.rows} == {None}, "a small scale judges nothing"
    assert output.apache_left_out == {"all": "not asked for"}
    assert list(work.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [("--only", "speed"), ("--scale", "0"), ("--scale", "2"), ("--repetitions", "0")]
)
def test_bad_arguments_are_refused(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""


def judged(figure: str, ours: float, apache: float, **others: float) -> bool | None:
    """Return the verdict on one row."""
    (one,) = (
        one
        for one in compare({figure: ours, **others}, {figure: apache})
        if one.row.figure == figure
    )
    return one.reached


@pytest.mark.parametrize(
    ("figure", "ours", "apache", "reached"),
    [
        (SINGLE, 180_000, 30_000, True),
        (SINGLE, 179_000, 30_000, False),
        ("latency_p99", 700, 1400, True),
        ("latency_p99", 701, 1400, False),
        ("boot", 1.0, 8.0, True),
        ("boot", 1.01, 8.0, False),
        ("delivery_p99", 9.9, 12.0, True),
        ("delivery_p99", 9.9, 5.0, False),
        ("delivery_p99", 10.0, 12.0, False),
        ("sync_flush_errors", 0, 1700, True),
        ("sync_flush_errors", 1, 1700, False),
        ("memory_idle", 79.9, 900, True),
        ("memory_idle", 80.0, 900, False),
        ("latency_p999", 1, 1000, None),
    ],
)
def test_a_row_is_judged_by_what_is_required(
    figure: str, ours: float, apache: float, reached: bool | None
) -> None:
    assert judged(figure, ours, apache) is reached


def test_many_topics_are_compared_with_one() -> None:
    assert judged(TOPICS_RATE, 90_000, 20_000, **{SINGLE: 180_000}) is True
    assert judged(TOPICS_RATE, 89_000, 20_000, **{SINGLE: 180_000}) is False
    assert judged(TOPICS_RATE, 89_000, 20_000) is None


def test_what_was_not_measured_is_not_judged() -> None:
    compared = compare({SINGLE: 180_000}, {})
    assert {one.reached for one in compared} == {None}
    assert len(table(compared, judged=True).splitlines()) == 1 + len(ROWS)


def test_the_table_says_what_is_not_reached() -> None:
    row = next(row for row in ROWS if row.figure == SINGLE)
    (line,) = table([Compared(row, 100_000, 30_000)], judged=True).splitlines()[1:]
    assert line.split()[-5:] == ["at", "least", "6", "x", "NO"]
    assert "3.33 x" in line
