"""Driver, executors and Python workers killed at random points, and what is in the sink at the end.

A topic is copied to another one, so that source and sink are tested together: the stream reads with
checkpoints, the sink writes at a level, and the same query is killed and started again until it is
done. A few kills in every run; GANTRYMQ_SPARK_KILLS=20 kills each query so many times, also one on
a cluster whose executors die. GANTRYMQ_SEED chooses when.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark.copying import copying
from support.fault_world import IS_LONG
from support.spark import run_to_end

if TYPE_CHECKING:
    from spark.conftest import World

KILLS = int(os.environ.get("GANTRYMQ_SPARK_KILLS", "50" if IS_LONG else "0"))
SEED = int(os.environ.get("GANTRYMQ_SEED", "7"))
COUNT = 1200
"""Messages to copy, when there are a few kills."""
BATCH = 150
CHILD = Path(__file__).with_name("copying.py")
RUN_S_MAX = 240.0
LOCAL = "local[2,4]"
CLUSTER = "local-cluster[2,1,1024]"


def descendants(pid: int) -> list[tuple[int, str]]:
    """Return the processes below one, with their command lines, those below others last."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(0), [])
        waiting += below
        found += below
    lines = []
    for one in found:
        try:
            command = Path(f"/proc/{one}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        lines.append((one, command))
    return lines


def victims(driver: int, kind: str) -> list[int]:
    """Return the processes of a kind."""
    if kind == "driver":
        return [driver]
    wanted = "CoarseGrainedExecutorBackend" if kind == "executor" else "pyspark.daemon"
    found = [pid for pid, command in descendants(driver) if wanted in command]
    # The first daemon forks the workers; killing a worker is the finer fault.
    return found[-1:] if kind == "worker" else found


class Copy:
    """A query that is killed and started again."""

    def __init__(self, world: World, level: str, folder: Path, name: str, kills: int) -> None:
        self.world = world
        self.source, self.target = f"{name}-from", f"{name}-to"
        self.count_all = max(COUNT, kills * BATCH * 3)
        world.send(self.source, [b"%06d" % number for number in range(self.count_all)])
        world.send(self.target, [b"before"])
        self.plan = {
            "checkpoint": str(folder / "checkpoint"),
            "source": {
                "nameServer": world.broker.namesrv,
                "topic": self.source,
                "startingOffsets": "earliest",
                "maxRowsPerTrigger": BATCH,
            },
            "sink": {"nameServer": world.broker.namesrv, "topic": self.target, "level": level},
        }
        self.killed = Counter[str]()
        self.log = folder / "driver.log"

    def count(self) -> int:
        """Return how many messages have arrived."""
        return len(self.world.broker.messages(self.target))

    def run(self, master: str, kinds: list[str], chance: random.Random) -> None:
        """Run it in a process of its own, and kill somebody of each kind on the way."""
        environment = {**os.environ, "SPARK_WORKER_DIR": str(self.log.parent / "work")}
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, str(CHILD), json.dumps({"master": master, **self.plan})],
                stdout=log, stderr=log, env=environment, start_new_session=True,
            )  # fmt: skip
        try:
            for kind in kinds:
                self._kill(process, kind, chance)
        finally:
            end_group(process)

    def _kill(self, process: subprocess.Popen[bytes], kind: str, chance: random.Random) -> None:
        """Wait until some messages have arrived, a number that chance says, and kill."""
        limit = self.count() + chance.randrange(0, BATCH * 2)
        deadline = time.monotonic() + RUN_S_MAX
        while self.count() <= limit and process.poll() is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"nothing arrives; see {self.log}")
            time.sleep(0.02)
        time.sleep(chance.random() / 5)
        for pid in victims(process.pid, kind)[:1]:
            if process.poll() is None:
                os.kill(pid, signal.SIGKILL)
                self.killed[kind] += 1

    def finish(self) -> None:
        """Let it come to its end, in this process."""
        run_to_end(copying(self.world.spark, self.plan))

    def check(self, level: str) -> None:
        """Compare what has arrived with what was sent."""
        arrived = Counter(message.body for message in self.world.broker.messages(self.target))
        expected = {b"before", *(b"%06d" % number for number in range(self.count_all))}
        assert set(arrived) == expected, f"{len(expected - set(arrived))} lost, seed {SEED}"
        twice = [body for body, count in arrived.items() if count > 1]
        print(  # noqa: T201 - shown with -s
            f"{level}: killed {dict(self.killed)}, {len(expected)} messages, 0 lost, "
            f"{len(twice)} twice, seed {SEED}"
        )
        if level != "at_least_once":
            assert not twice, f"{len(twice)} came twice, {twice[:5]}, seed {SEED}"


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End what a driver leaves behind: it leads a session of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


Case = tuple[str, str, list[list[str]]]
SHORT: list[Case] = [
    ("idempotent", LOCAL, [["worker", "driver"]]),
    ("transactional", LOCAL, [["driver"]]),
    ("at_least_once", LOCAL, [["driver"]]),
]
LONG: list[Case] = [
    (level, LOCAL, [["worker", "driver"] if number % 2 else ["driver"] for number in range(KILLS)])
    for level in ("at_least_once", "idempotent", "transactional")
] + [("idempotent", CLUSTER, [["executor", "executor", "driver"]] * (KILLS // 2))]


@pytest.mark.parametrize(("level", "master", "rounds"), LONG if KILLS else SHORT)
def test_every_message_arrives_as_its_level_promises(
    world: World, tmp_path: Path, level: str, master: str, rounds: list[list[str]]
) -> None:
    chance = random.Random(SEED)
    kills = sum(map(len, rounds))
    name = f"kill-{level}-{master.partition('[')[0]}"
    copy = Copy(world, level, tmp_path, name, kills)
    for kinds in rounds:
        copy.run(master, kinds, chance)
    copy.finish()
    copy.check(level)
    assert copy.killed.total() >= kills * 0.8, copy.log.read_text()[-3000:]
