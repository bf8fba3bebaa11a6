"""Does something to the master of a group with failover again and again, and says what it cost.

make chaos-failover ROUNDS=50                 kill -9 under load
make chaos-failover ROUNDS=20 WHAT=partition  cut off from etcd and slaves, in network namespaces
make chaos-failover ROUNDS=20 WHAT=promotion  what a new master knows of topics and offsets
make chaos-failover ROUNDS=1 WHAT=consumer    a consumer through a master's death, 100,000 messages
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.failover_group import Group
from support.master_death import AFTER, Pair, read_through_death
from support.partitions import PartitionedGroup, problem
from support.promotion_check import promotion_rounds

BEHIND_S_MAX = 1.0
CONSUMED = 100_000
CONSUMED_S_MAX = 600


def kill(folder: Path, rounds: int, lease_s: int, dice: Random) -> bool:
    """Kill it; tell whether nothing was lost."""
    with Group(folder, lease_s=lease_s) as group:
        report = group.kill_rounds(rounds, dice)
    sys.stdout.write(f"{report.in_words()}\n")
    return report.lost == 0


def partition(folder: Path, rounds: int, lease_s: int, dice: Random) -> bool:
    """Cut it off; tell whether there was one master at any time, and nothing was lost."""
    why = problem()
    if why is not None:
        sys.stderr.write(f"{why}\n")
        return False
    with PartitionedGroup(folder, lease_s=lease_s) as group:
        report, both = group.partition_rounds(rounds, dice)
    words = report.in_words().replace("killed", "cut off")
    sys.stdout.write(f"{words}; {both} sends taken by two masters at one time\n")
    return report.lost == 0 and both == 0


def promotion(folder: Path, rounds: int, lease_s: int, dice: Random) -> bool:
    """Kill it while offsets are committed; tell whether its successor knows what it should."""
    with Group(folder, lease_s=lease_s) as group:
        found = promotion_rounds(group, rounds, dice)
    for number, one in enumerate(found, 1):
        sys.stdout.write(f"round {number}: {one.in_words()}\n")
    worst = max(one.behind_s for one in found)
    lost = sum(one.lost + one.topics_lost for one in found)
    sys.stdout.write(f"{rounds} rounds: {lost} lost, behind by {worst:.3f} s of commits at most\n")
    return lost == 0 and worst <= BEHIND_S_MAX and all(one.commits and one.topics for one in found)


def consumer(folder: Path, rounds: int, _lease_s: int, _dice: Random) -> bool:
    """Let a consumer read through a master's death and return; tell whether it got everything."""
    is_all = True
    for number in range(rounds):
        (folder / str(number)).mkdir()
        with ExitStack() as stack:
            pair = Pair(stack, folder / str(number))
            reading = read_through_death(pair, CONSUMED)
            reader = asyncio.run(asyncio.wait_for(reading, CONSUMED_S_MAX))
        missing = set(range(CONSUMED + AFTER)) - set(reader.got)
        twice = len(reader.got) - len(set(reader.got))
        sys.stdout.write(
            f"{len(set(reader.got))} messages read, {len(missing)} lost, {twice} twice\n"
        )
        is_all &= not missing
    return is_all


def main() -> int:
    """Run what the command line says; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--lease", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    runs = {"kill": kill, "partition": partition, "promotion": promotion, "consumer": consumer}
    parser.add_argument("--what", choices=sorted(runs), default="kill")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        is_kept = runs[chosen.what](Path(folder), chosen.rounds, chosen.lease, Random(chosen.seed))
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
