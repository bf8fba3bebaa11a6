"""Archive jobs as processes of their own, killed at random moments."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pyarrow import parquet

from gantrymq.spark.jobs.lake import Lake

if TYPE_CHECKING:
    import random

MASTER = "local[2,3]"
STARTED_S = 120.0
ENDED_S = 60.0


class Job(NamedTuple):
    """An archive job: where from, where to."""

    namesrv: str
    topic: str
    lake: Path
    log: Path
    master: str = MASTER

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        """Start it, in a process group of its own."""
        command = [
            sys.executable, "-m", "gantrymq", "pipeline", "run", "archive", "--master", self.master,
            "--name-server", self.namesrv, "--topic", self.topic, "--to", str(self.lake),
            "--batch-rows", "400", "--slice-rows", "60",
            "--conf", "spark.driver.memory=600m", "--conf", "spark.driver.host=127.0.0.1",
            "--conf", "spark.driver.bindAddress=127.0.0.1", *more,
        ]  # fmt: skip
        with self.log.open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def descendants(pid: int) -> dict[int, str]:
    """Return the processes below one, with their command lines."""
    parents: dict[int, list[int]] = {}
    lines: dict[int, str] = {}
    for path in Path("/proc").iterdir():
        if not path.name.isdecimal():
            continue
        with suppress(OSError):
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(path.name))
            raw = (path / "cmdline").read_bytes()
            lines[int(path.name)] = raw.replace(b"\0", b" ").decode(errors="replace")
    found: dict[int, str] = {}
    waiting = [pid]
    while waiting:
        for child in parents.get(waiting.pop(), []):
            found[child] = lines.get(child, "")
            waiting.append(child)
    return found


def activity(lake: Path) -> tuple[int, int]:
    """Return something that changes as soon as a job writes."""
    making, manifest = lake / "data" / ".making", lake / "manifest"
    return (
        making.stat().st_mtime_ns if making.exists() else 0,
        len(list(manifest.iterdir())) if manifest.exists() else 0,
    )


def kill(process: subprocess.Popen[bytes], what: str) -> str:
    """Kill -9 the driver, the JVM or a Python worker; return what it was."""
    below = descendants(process.pid)
    targets = {
        "driver": [process.pid],
        "jvm": [pid for pid, line in below.items() if "SparkSubmit" in line],
        "worker": [pid for pid, line in below.items() if "pyspark.daemon" in line],
    }[what]
    if not targets:
        return "nothing"
    with suppress(ProcessLookupError):
        os.kill(targets[-1], signal.SIGKILL)
    return what


def end_all(process: subprocess.Popen[bytes]) -> None:
    """End what is left of a job: the group is its own."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(ENDED_S)


def run_and_kill(job: Job, rng: random.Random, what: str) -> str:
    """Start a job, kill a part of it at a random moment of its work; return what was killed."""
    before = activity(job.lake)
    process = job.start()
    try:
        give_up = time.monotonic() + STARTED_S
        while activity(job.lake) == before:
            if process.poll() is not None:
                return "ended before"
            assert time.monotonic() < give_up, job.log.read_text()[-2000:]
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 1.5))
        if process.poll() is not None:
            return "ended before"
        killed = kill(process, what)
        if what == "worker":
            # Spark tries the task again; the job goes on, and is killed a little later.
            time.sleep(rng.uniform(0, 1.0))
            then = kill(process, "driver")
            killed = then if killed == "nothing" else killed
        time.sleep(rng.uniform(0, 0.3))  # what outlives the driver may still write
        return killed
    finally:
        end_all(process)


def archived(lake: Path) -> Counter[tuple[int, int, bytes]]:
    """Return how often each (queue, offset, body) is in the files that count."""
    found: Counter[tuple[int, int, bytes]] = Counter()
    for one in Lake.open(str(lake)).files():
        if one.path:
            table = parquet.ParquetFile(lake / one.path).read(
                columns=["queueId", "queueOffset", "body"]
            )
            found.update(
                (row["queueId"], row["queueOffset"], row["body"]) for row in table.to_pylist()
            )
    return found
