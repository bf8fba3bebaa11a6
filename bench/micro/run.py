"""Times the kernel's functions and prints one JSON object.

    python -m bench.micro [--kernel compiled] [--seconds 1] [--only append_json,dispatch]

Each case runs in rounds of some 512 messages until its time is up, at least seven times; what
counts is the median round. The process keeps to one core where the system lets it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

ROOT = Path(__file__).parents[2]
if __package__ in {None, ""}:  # started as a script
    sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from bench.micro.cases import CASES, Work  # noqa: E402

from gantrymq.kernel import available  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence

ROUNDS_MIN = 7


class Result(TypedDict):
    """What one case gave."""

    kernel: str
    case: str
    rounds: int
    messages_per_round: int
    median_ns_per_message: float
    best_ns_per_message: float
    messages_per_second: int


def pin_to_one_core() -> int | None:
    """Stay on one core; return which, or None where the system has no such call."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def measure(work: Work, seconds: float) -> list[int]:
    """Return the nanoseconds of each round; the first, which warms up, is not counted."""
    work.run()
    rounds: list[int] = []
    end = time.perf_counter_ns() + int(seconds * 1e9)
    while len(rounds) < ROUNDS_MIN or time.perf_counter_ns() < end:
        begun = time.perf_counter_ns()
        work.run()
        rounds.append(time.perf_counter_ns() - begun)
    return rounds


def result_of(kernel: str, case: str, work: Work, rounds: list[int]) -> Result:
    """Return the numbers that a reader wants."""
    median = statistics.median(rounds) / work.messages
    return {
        "kernel": kernel,
        "case": case,
        "rounds": len(rounds),
        "messages_per_round": work.messages,
        "median_ns_per_message": round(median, 1),
        "best_ns_per_message": round(min(rounds) / work.messages, 1),
        "messages_per_second": round(1e9 / median),
    }


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the settings; a wrong one ends the program with status 2."""
    kernels = [each.KERNEL_NAME for each in available()]
    parser = argparse.ArgumentParser(description="Times the kernel's functions.")
    parser.add_argument("--kernel", choices=[*kernels, "both"], default="both")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each case (default 0.5)")
    parser.add_argument("--only", default="", help=f"some of {','.join(CASES)}")
    settings = parser.parse_args(arguments)
    unknown = [name for name in settings.only.split(",") if name and name not in CASES]
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}")
    return settings


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what was asked for and print it."""
    settings = parse_arguments(arguments)
    wanted = [name for name in settings.only.split(",") if name] or list(CASES)
    core = pin_to_one_core()
    results: list[Result] = []
    for kernel in available():
        if settings.kernel not in {"both", kernel.KERNEL_NAME}:
            continue
        for name in wanted:
            work = CASES[name](kernel)
            rounds = measure(work, settings.seconds)
            results.append(result_of(kernel.KERNEL_NAME, name, work, rounds))
    machine = {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "core": core,
    }
    print(json.dumps({"machine": machine, "results": results}, indent=1))


if __name__ == "__main__":
    main()
