"""Runs many seeds of the cluster's simulation, on all cores; ends at the first violation.

make simulate SEEDS=100000 FIRST=0
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.cluster_world import Violation, World


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run_seed(seed: int) -> tuple[int, int, int, str]:
    """Return seed, messages acknowledged, epochs, and what went wrong."""
    logging.disable(logging.CRITICAL)
    world = World(seed)
    try:
        world.run()
    except Violation as error:
        return seed, 0, 0, str(error)
    return seed, len(world.acknowledged), len(world.masters), ""


def main() -> int:
    """Run what the command line says; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    chosen = parser.parse_args()
    begun, done, acknowledged, epochs = time.monotonic(), 0, 0, 0
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    with multiprocessing.Pool(chosen.processes) as pool:
        for seed, some, more, wrong in pool.imap_unordered(run_seed, seeds, chunksize=50):
            if wrong:
                say(f"seed {seed}: {wrong}\nmake simulate FIRST={seed} SEEDS=1 runs it again")
                return 1
            done, acknowledged, epochs = done + 1, acknowledged + some, epochs + more
            if done % 10_000 == 0:
                say(f"{done} seeds, {time.monotonic() - begun:.0f} s")
    say(
        f"{done} seeds without a violation in {time.monotonic() - begun:.0f} s: "
        f"{acknowledged} messages acknowledged, {epochs} epochs"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
