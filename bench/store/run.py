"""Measures the message store on a real disk and prints one JSON object.

    python -m bench.store [--only append,recovery] [--scale 0.01] [--directory DIR] [--no-apache]

At scale 1 it needs some 20 GiB of disk and half an hour; the bars that a result is compared with
are meant for that. Everything is written below the directory, which is the clone's `build` unless
another is named (a disk is measured, so let it be on one), and removed again.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parents[2]
# `tests/support` knows how to start Apache's broker; the rest is for being started as a script.
sys.path[:0] = [str(ROOT), str(ROOT / "src"), str(ROOT / "tests")]

from bench.store.append import append  # noqa: E402
from bench.store.backlog import backlog  # noqa: E402
from bench.store.cold_reader import cold_reader, tail  # noqa: E402
from bench.store.opening import opening  # noqa: E402
from bench.store.place import Place, Result, kernel_name  # noqa: E402
from bench.store.recovery import recovery  # noqa: E402
from bench.store.rolling import roll  # noqa: E402
from bench.store.sync_flush import sync_flush  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CASES: dict[str, Callable[[Place], Result]] = {
    case.__name__: case
    for case in (sync_flush, recovery, opening, tail, roll, cold_reader, backlog, append)
}
"""`append` is the last one: it binds the process to one core."""


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the settings; a wrong one ends the program with status 2."""
    parser = argparse.ArgumentParser(description="Measures the message store on a real disk.")
    parser.add_argument("--only", default="", help=f"some of {','.join(CASES)}")
    parser.add_argument("--scale", type=float, default=1.0, help="size of it all (default 1)")
    parser.add_argument("--directory", type=Path, default=ROOT / "build", help="where to write")
    parser.add_argument("--no-apache", action="store_true", help="leave Apache's broker out")
    settings = parser.parse_args(arguments)
    unknown = [name for name in settings.only.split(",") if name and name not in CASES]
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}")
    if not 0 < settings.scale <= 1:
        parser.error("the scale is above 0 and at most 1")
    return settings


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what was asked for and print it."""
    settings = parse_arguments(arguments)
    wanted = [name for name in settings.only.split(",") if name] or list(CASES)
    results: dict[str, Result] = {}
    settings.directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gantrymq-bench-", dir=settings.directory) as folder:
        place = Place(Path(folder), settings.scale, not settings.no_apache)
        for name, case in CASES.items():
            if name in wanted:
                print(f"bench.store: {name}", file=sys.stderr, flush=True)
                results[name] = case(place)
    machine = {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "kernel": kernel_name(),
    }
    print(json.dumps({"machine": machine, "scale": settings.scale, "results": results}, indent=1))


if __name__ == "__main__":
    main()
