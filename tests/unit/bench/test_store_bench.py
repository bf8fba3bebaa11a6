"""The store's benchmarks run, at a scale where their figures mean nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

ROOT = Path(__file__).parents[3]
SECONDS_MAX = 120
SCALE = "0.001"
FIGURES = {
    "append": ("messages_per_second", "bar_messages_per_second"),
    "sync_flush": ("acknowledged_per_sync", "acknowledged_per_second"),
    "recovery": ("empty", "cases"),
    "opening": ("cold", "warm"),
    "tail": ("ways", "best"),
    "roll": ("ways", "bar_p999_to_median"),
    "cold_reader": ("ways", "bar_p999_ms"),
    "backlog": ("mb_per_second", "disk_mb_per_second"),
}


class Output(msgspec.Struct):
    """What a run prints."""

    machine: dict[str, object]
    scale: float
    results: dict[str, dict[str, object]]


def run(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run the benchmarks in a process of their own: one of them binds it to a core."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        [sys.executable, "-m", "bench.store", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        check=False,
        timeout=SECONDS_MAX,
    )


@pytest.mark.parametrize("case", FIGURES)
def test_a_benchmark_runs_and_leaves_nothing(case: str, tmp_path: Path) -> None:
    done = run("--only", case, "--scale", SCALE, "--no-apache", "--directory", str(tmp_path))
    assert done.returncode == 0, done.stderr.decode()
    output = msgspec.json.decode(done.stdout, type=Output)
    assert set(output.results) == {case}
    assert {*FIGURES[case], "reached"} <= output.results[case].keys()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [("--only", "speed"), ("--scale", "0"), ("--scale", "2")])
def test_wrong_arguments_are_refused(arguments: tuple[str, str]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == b""
