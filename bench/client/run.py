"""Measures the Python client beside others on this machine, and prints a table with the bars.

    python -m bench.client [--only producer,consumer,memory] [--scale 0.05] [--repetitions 3]
                           [--no-peers] [--json FILE] [--directory DIR]

Each client is a process of its own, one after the other, against the same server: ours. The one
that speaks gRPC alone has Apache's proxy, in local mode, with its broker inside. What cannot be had
here is left out, and the table says why. Rates are medians of the repetitions after a warm-up.

At scale 1 it needs some 10 GiB of disk and ten minutes, and nothing else may run: client and server
have a core each. A smaller scale says only that everything runs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parents[2]
# `tests/support` knows how to start Apache's servers; the rest is for being started as a script.
sys.path[:0] = [str(ROOT), str(ROOT / "src"), str(ROOT / "tests")]

from bench.client import cases  # noqa: E402
from bench.client.cases import Settings  # noqa: E402
from bench.client.plans import NotMeasured  # noqa: E402
from bench.client.table import bars, text  # noqa: E402
from bench.compare import brokers  # noqa: E402
from bench.compare.load import compile_generator  # noqa: E402

from gantrymq.kernel import kernel  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence

DISK_BYTES = 10 << 30
NAMES = ("producer", "consumer", "memory")


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the settings; a wrong one ends the program with status 2."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.client",
        description="Measures the Python client beside the C++, gRPC and Java ones.",
    )
    parser.add_argument("--only", default="", help=f"some of {','.join(NAMES)}")
    parser.add_argument("--scale", type=float, default=1.0, help="size of it all (default 1)")
    parser.add_argument("--repetitions", type=int, default=3, help="runs of each (default 3)")
    parser.add_argument("--no-peers", action="store_true", help="leave the other clients out")
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


def _measure(given: argparse.Namespace) -> None:
    given.directory.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(given.directory).free
    needed = int(DISK_BYTES * given.scale) + (1 << 30)
    if free < needed:
        raise NotMeasured(
            f"{given.directory} has {free >> 20} MiB free and {needed >> 20} are needed: name "
            "another --directory, or a smaller --scale"
        )
    wanted = [name for name in given.only.split(",") if name] or list(NAMES)
    growth: float | None = None
    with tempfile.TemporaryDirectory(prefix="gantrymq-client-", dir=given.directory) as folder:
        place = Path(folder)
        settings = Settings(place, compile_generator(place), given.scale, given.repetitions)
        if "producer" in wanted:
            cases.producer(settings, with_peers=not given.no_peers)
        if "consumer" in wanted:
            cases.consumer(settings, with_peers=not given.no_peers)
        if "memory" in wanted:
            growth = cases.memory(settings)
    found = bars(settings.figures, growth)
    judged = given.scale == 1
    if given.json is not None:
        result = {
            "machine": {
                "python": platform.python_version(),
                "system": platform.system(),
                "machine": platform.machine(),
                "cores": os.cpu_count(),
                "kernel": kernel.KERNEL_NAME,
            },
            "scale": given.scale,
            "repetitions": given.repetitions,
            "figures": [asdict(one) for one in settings.figures],
            "bars": [asdict(one) | ({} if judged else {"reached": None}) for one in found],
        }
        given.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(text(settings.figures, found, judged=judged), end="")
    if not judged:
        print(f"scale {given.scale:g}: these figures say only that everything runs")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what was asked for and print it; status 1 if ours cannot be measured."""
    given = parse_arguments(arguments)
    try:
        _measure(given)
    except (NotMeasured, brokers.NotMeasured) as error:
        print(f"bench.client: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
