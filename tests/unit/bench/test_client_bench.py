"""The client's benchmark runs, at a scale where its figures mean nothing, and judges rightly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from bench.client.plans import NotMeasured, Sample, consume_rate, send_rate
from bench.client.table import JAVA, OURS, PYTHON, Figure, bars, text

ROOT = Path(__file__).parents[3]
SECONDS_MAX = 120


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the benchmark in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "bench.client", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )


def test_every_case_is_measured_and_nothing_is_left(tmp_path: Path) -> None:
    work, written = tmp_path / "work", tmp_path / "figures.json"
    done = run(
        "--scale", "0.01", "--repetitions", "1", "--no-peers",
        "--directory", str(work), "--json", str(written),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    output = msgspec.json.decode(written.read_bytes())
    assert [one["case"] for one in output["figures"]] == ["producer", "consumer", "consumer"]
    assert all(one["per_second"] > 100 for one in output["figures"])
    assert isinstance(output["bars"][-1]["found"], float)
    assert {bar["reached"] for bar in output["bars"]} == {None}, "a small scale judges nothing"
    assert list(work.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [("--only", "speed"), ("--scale", "0"), ("--scale", "2"), ("--repetitions", "0")]
)
def test_bad_arguments_are_refused(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""


def test_a_rate_leaves_out_the_warm_up_and_takes_the_median_part() -> None:
    slow = [Sample(0.1 * number, number, 0) for number in range(10)]
    parts = (100, 500, 200)
    samples = list(slow)
    done, now = 10, 1.0
    for rate in parts:
        for _ in range(10):
            samples.append(Sample(now, done, 0))
            done, now = done + rate // 10, now + 0.1
    samples.append(Sample(now, done, 0))
    assert send_rate(samples, 1.0, 3) == pytest.approx(200)
    with pytest.raises(NotMeasured, match="larger --scale"):
        send_rate(samples, now, 3)


def test_a_consumer_that_waits_at_the_end_is_not_slower_for_it() -> None:
    busy = [Sample(float(second), 100 * second, 0) for second in range(11)]
    idle = [Sample(20.0, 1000, 0)]
    assert consume_rate(busy + idle) == pytest.approx(100)


def figures(ours: float, python: float, java: float, case: str = "producer") -> list[Figure]:
    """Return what was measured in a case; the slower ones must not count."""
    return [
        Figure(case, "gantrymq", OURS, ours),
        Figure(case, "gantrymq, in another way", OURS, ours * 100, extra=True),
        Figure(case, "one", PYTHON, python / 2),
        Figure(case, "two", PYTHON, python),
        Figure(case, "three", PYTHON, None, "not here"),
        Figure(case, "Java", JAVA, java),
    ]


@pytest.mark.parametrize(
    ("ours", "reached"), [(300.0, [True, True]), (299.0, [False, True]), (150.0, [False, False])]
)
def test_a_producer_is_judged_by_both_bars(ours: float, reached: list[bool]) -> None:
    assert [bar.reached for bar in bars(figures(ours, 100.0, 200.0), None)] == reached


def test_a_consumer_need_not_be_faster_than_java() -> None:
    python, java, growth = bars(figures(300.0, 100.0, 1000.0, "consumer"), 1.5)
    assert (python.reached, java.reached, growth.reached) == (True, None, False)
    (growth,) = bars([], 0.2)
    assert growth.reached


def test_what_is_missing_is_not_judged_and_says_why() -> None:
    measured = [
        Figure("producer", "gantrymq", OURS, 5.0),
        Figure("producer", "x", PYTHON, None, "no"),
    ]
    found = bars(measured, None)
    assert [bar.reached for bar in found] == [None, None]
    assert "left out: no" in text(measured, found, judged=True)
