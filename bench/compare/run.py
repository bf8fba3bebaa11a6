"""Measures gantrymq and Apache RocketMQ 5.5.0 on this machine and prints them side by side.

    python -m bench.compare [--only loads,boot] [--scale 0.02] [--repetitions 3]
                            [--no-apache] [--json FILE] [--directory DIR]

The two run one after the other, never together: a case is measured for one broker, that broker is
ended, then for the other. Both get the same settings file, the same generator (`bench/mqload.c`)
and the same probe. Apache comes from Maven Central as the interop tests fetch it, and is warmed up
for 30 seconds before it is measured. What is printed are medians.

At scale 1 it needs some 25 GiB of disk and half an hour, and nothing else may run:
generator and broker have a core each. A smaller scale says only that everything runs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parents[2]
# `tests/support` knows how to start Apache's broker; the rest is for being started as a script.
sys.path[:0] = [str(ROOT), str(ROOT / "src"), str(ROOT / "tests")]

from bench.compare import brokers, cases  # noqa: E402
from bench.compare.brokers import APACHE, OURS, NotMeasured  # noqa: E402
from bench.compare.cases import Settings  # noqa: E402
from bench.compare.load import compile_generator  # noqa: E402
from bench.compare.recovery import killed_store, recovery  # noqa: E402
from bench.compare.rows import compare, table  # noqa: E402

from gantrymq.kernel import kernel  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.compare.rows import Figures

DISK_BYTES = 25 << 30
CASES: dict[str, Callable[[Settings, str], Figures]] = {
    case.__name__: case
    for case in (cases.boot, cases.loads, cases.sync_flush, cases.memory_after, cases.topics)
}
NAMES = (*CASES, "recovery")


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the settings; a wrong one ends the program with status 2."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.compare",
        description="Measures gantrymq and Apache RocketMQ 5.5.0 one after the other.",
    )
    parser.add_argument("--only", default="", help=f"some of {','.join(NAMES)}")
    parser.add_argument("--scale", type=float, default=1.0, help="size of it all (default 1)")
    parser.add_argument("--repetitions", type=int, default=3, help="runs of each (default 3)")
    parser.add_argument("--no-apache", action="store_true", help="leave Apache's broker out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too")
    parser.add_argument("--directory", type=Path, default=ROOT / "build", help="where to write")
    settings = parser.parse_args(arguments)
    unknown = [name for name in settings.only.split(",") if name and name not in NAMES]
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    if not 0 < settings.scale <= 1:
        parser.error("the scale is above 0 and at most 1")
    if not 1 <= settings.repetitions <= 100:
        parser.error("repetitions are 1 to 100")
    return settings


class Comparison:
    """What is being measured, and what has been found so far."""

    def __init__(self, settings: Settings, makers: Sequence[str]) -> None:
        self._settings = settings
        self._makers = makers
        self.figures: dict[str, Figures] = {OURS: {}, APACHE: {}}
        self.left_out: dict[str, str] = {}
        """What could not be measured of Apache, and why."""

    def measure(self, wanted: Sequence[str]) -> None:
        """Measure what is wanted.

        Raises:
            NotMeasured: ours does not do what is to be measured.
        """
        for name, case in CASES.items():
            if name in wanted:
                for maker in self._makers:
                    self._one(name, maker, case)
        if "recovery" in wanted:
            with killed_store(self._settings) as killed:
                for maker in self._makers:
                    self._one("recovery", maker, lambda s, m: recovery(s, m, killed))

    def _one(self, name: str, maker: str, case: Callable[[Settings, str], Figures]) -> None:
        print(f"bench.compare: {name}, {maker}", file=sys.stderr, flush=True)
        try:
            self.figures[maker] |= case(self._settings, maker)
        except NotMeasured as error:
            if maker == OURS:
                raise NotMeasured(f"{name}: {error}") from None
            self.left_out[name] = str(error)
            print(f"bench.compare: {name}, {maker}: left out: {error}", file=sys.stderr)


def _makers(settings: argparse.Namespace, left_out: dict[str, str]) -> list[str]:
    """Return who is measured; Apache is left out where it cannot be had."""
    if settings.no_apache:
        left_out["all"] = "not asked for"
        return [OURS]
    why = brokers.problem(APACHE)
    if why is None:
        return [APACHE, OURS]
    left_out["all"] = why
    print(f"bench.compare: Apache's broker is left out: {why}", file=sys.stderr)
    return [OURS]


def _result(comparison: Comparison, scale: float, repetitions: int) -> dict[str, object]:
    compared = compare(comparison.figures[OURS], comparison.figures[APACHE])
    return {
        "machine": {
            "python": platform.python_version(),
            "system": platform.system(),
            "machine": platform.machine(),
            "cores": os.cpu_count(),
            "kernel": kernel.KERNEL_NAME,
        },
        "scale": scale,
        "repetitions": repetitions,
        "rows": [
            {
                **asdict(one.row), "required": one.row.required, "gantrymq": one.ours,
                "apache": one.apache, "ratio": one.ratio,
                "reached": one.reached if scale == 1 else None,
            }
            for one in compared
        ],
        "apache_left_out": comparison.left_out,
    }  # fmt: skip


def _compare(settings: argparse.Namespace) -> None:
    settings.directory.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(settings.directory).free
    needed = int(DISK_BYTES * settings.scale) + (1 << 30)
    if free < needed:
        raise NotMeasured(
            f"{settings.directory} has {free >> 20} MiB free and {needed >> 20} are needed: name "
            "another --directory, or a smaller --scale"
        )
    wanted = [name for name in settings.only.split(",") if name] or list(NAMES)
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(
                tempfile.TemporaryDirectory(prefix="gantrymq-compare-", dir=settings.directory)
            )
        )
        how = Settings(folder, compile_generator(folder), settings.scale, settings.repetitions)
        left_out: dict[str, str] = {}
        comparison = Comparison(how, _makers(settings, left_out))
        comparison.left_out |= left_out
        comparison.measure(wanted)
    result = _result(comparison, settings.scale, settings.repetitions)
    if settings.json is not None:
        settings.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    compared = compare(comparison.figures[OURS], comparison.figures[APACHE])
    print(table(compared, judged=settings.scale == 1), end="")
    if settings.scale != 1:
        print(f"scale {settings.scale:g}: these figures say only that everything runs")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what was asked for and print it; status 1 if ours cannot be measured."""
    settings = parse_arguments(arguments)
    try:
        _compare(settings)
    except NotMeasured as error:
        print(f"bench.compare: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
