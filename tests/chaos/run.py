"""Real servers and real clients, and faults for a given time: does every setting keep its word?

make chaos SECONDS=120 SEED=7
make chaos SECONDS=60 SEEDS=5 SETTINGS=failover FAULTS=kill,partition

Prints a line for each run. The exit status is 1 if a promise of docs/promises.md was broken; then
what was broken is printed, and the folder of the run is kept, with the servers' logs.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from chaos.cluster import SETTINGS
from chaos.faults import KINDS
from chaos.one_run import Machine, Plan, run_one
from chaos.table import in_words, printed, table

WRONG_SHOWN: Final = 12


def chosen(text: str, known: dict[str, object]) -> list[str]:
    """Return the names in a list with commas; `all` is all of them."""
    names = list(known) if text == "all" else [name.strip() for name in text.split(",")]
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise argparse.ArgumentTypeError(
            f"unknown: {', '.join(unknown)}; known: {', '.join(known)}"
        )
    return names


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="of faults, for each run")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--settings", default="all", type=lambda text: chosen(text, dict(SETTINGS)))
    parser.add_argument("--faults", default="all", type=lambda text: chosen(text, dict(KINDS)))
    parser.add_argument("--keep", action="store_true", help="keep the folders of all runs")
    return parser.parse_args()


def main() -> int:
    """Run what the command line says; 1 if a promise was broken."""
    given = arguments()
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(143))  # so that all is undone
    machine = Machine.here()
    for why in machine.problems:
        sys.stderr.write(f"left out here: {why}\n")
    results = []
    for seed in range(given.seed, given.seed + given.seeds):
        for name in given.settings:
            folder = Path(tempfile.mkdtemp(prefix="gantrymq-chaos-"))
            plan = Plan(SETTINGS[name], seed, given.seconds, machine.possible(given.faults))
            try:
                result = asyncio.run(run_one(plan, folder, machine, sys.stderr.write))
            except BaseException:
                sys.stderr.write(f"{name}, seed {seed} did not end well; it is kept in {folder}\n")
                raise
            results.append(result)
            sys.stderr.write(f"{in_words(result)}\n")
            if result.is_kept and not given.keep:
                shutil.rmtree(folder)
            else:
                sys.stderr.write(printed(result, WRONG_SHOWN))
                (folder / "run.txt").write_text(printed(result, 10_000))
                sys.stderr.write(f"the run is kept in {folder}\n")
    sys.stdout.write(table(results))
    return 0 if all(result.is_kept for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
