"""A real process is killed at random and at named points; nothing that it acknowledged is lost.

Each child goes on in the directory that the one before it left behind, so that recoveries follow
one another. After each kill a copy of the directory is opened here and read as a whole.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from crash.child import (
    POINTS,
    QUEUES,
    RARE_POINTS,
    STORE_HOST,
    TOPIC,
    Job,
    body_of,
    key_of,
    properties_of,
    settings_of,
)
from gantrymq.clock import SystemClock
from gantrymq.kernel import kernel
from gantrymq.store.files import OsFiles
from gantrymq.store.index import key_hash
from gantrymq.store.message_store import Identity, MessageStore
from gantrymq.store.worker import InlineWorker, Workers
from gantrymq.wire.properties import decode_properties
from support.apache_rules import Key, indexed_keys, lost_by_apache

if TYPE_CHECKING:
    from collections.abc import Iterator

RANDOM_KILLS = 60
"""For each kind of store."""
TRIES_MAX = 5
KILLS_A_DIRECTORY = 12
MESSAGES_MAX = 6000
ROOT = Path(__file__).parents[2]

Name = tuple[int, int, int]
"""Run, queue, number."""


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("child.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    ) as process:
        yield Nursery(process)
        process.kill()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Return a directory in memory, where there is one: a kill is no different there, and fast."""
    memory = Path("/dev/shm")  # noqa: S108 - a directory of its own is made in it
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory, prefix="gantrymq-kill-") as made:
        yield Path(made)


@dataclass
class Nursery:
    """The process that children are forked from."""

    process: subprocess.Popen[str]

    def run(self, job: Job, kill_after: float | None) -> Report:
        """Run a child to its end, which may be soon."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(job) + "\n")
        report, pid = Report(), 0
        for line in stdout:
            kind, *rest = line.split()
            numbers = tuple(map(int, rest))
            if kind == "P":
                (pid,) = numbers
            elif kind == "S":
                report.sent.add(numbers)  # type: ignore[arg-type]
            elif kind == "A":
                report.acknowledged.add(numbers)  # type: ignore[arg-type]
            elif kind == "D":
                kill_after = None
                stdin.write("let it go\n")
            elif kind == "E":
                (report.status,) = numbers
                return report
            if pid and kill_after is not None and (kind == "O" or kill_after < 0):
                # Below zero: while it opens its store.
                time.sleep(abs(kill_after))
                os.kill(pid, signal.SIGKILL)
                kill_after = None
        raise AssertionError("the nursery is gone")


@dataclass
class Report:
    """What a child said before it died."""

    sent: set[Name] = field(default_factory=set)
    acknowledged: set[Name] = field(default_factory=set)
    status: int = 0


@dataclass
class Trial:
    """Directories in which children live and die, and what must be found there."""

    nursery: Nursery
    place: Path
    sync: bool
    pool: bool = False
    apaches: bool = True
    """See what Apache would make of the directory, too."""
    kills: int = 0
    acknowledged: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Begin with nothing."""
        self._runs = count(1)
        self._directories = count(1)
        self._fresh()

    def _fresh(self) -> None:
        self.directory = self.place / f"store-{next(self._directories)}"
        self.sent: set[Name] = set()
        self.must: set[Name] = set()
        self._since = 0

    def kill_at(self, point: str, at: int) -> None:
        """Let a child run until it comes to a point for the n-th time.

        Some are reached by a timer: a child that was ready before it is followed by another.
        """
        kills = self.kills
        for _ in range(TRIES_MAX):
            self._live(point, at, None)
            if self.kills > kills:
                return

    def kill_after(self, seconds: float) -> None:
        """Let a child run for a time; below zero, counted from its start and not its opening."""
        self._live("", 0, seconds)

    def _live(self, point: str, at: int, seconds: float | None) -> None:
        if self._since == KILLS_A_DIRECTORY:
            shutil.rmtree(self.directory)
            self._fresh()
        self._since += 1
        job = Job(
            next(self._runs), str(self.directory), self.sync, MESSAGES_MAX, point, at, self.pool
        )
        report = self.nursery.run(job, seconds)
        assert report.status in {0, -signal.SIGKILL}, f"{job} ended with {report.status}"
        self.kills += report.status != 0
        self.counts[f"{point or 'random'}{'' if report.status else ' (never came)'}"] += 1
        self.acknowledged += len(report.acknowledged)
        self.sent |= report.sent
        if not self.pool or self.sync:
            self.must |= report.acknowledged
        self._check(job)

    def _check(self, job: Job) -> None:
        self.directory.mkdir(exist_ok=True)  # it may have been killed before it made it
        if self.apaches:
            lost = lost_by_apache(settings_of(self.directory, sync=self.sync))
            assert not lost, f"after {job} Apache would lose {len(lost)}: {lost[:5]}"
        copy = self.place / "copy"
        shutil.copytree(self.directory, copy)
        try:
            found = read_all(copy, sync=self.sync)
        except BaseException as error:
            error.add_note(f"after {job}")
            raise
        finally:
            shutil.rmtree(copy)
        missing = sorted(self.must - found)
        assert not missing, f"after {job}: {len(missing)} messages are lost: {missing[:5]}"
        strange = sorted(found - self.sent)
        assert not strange, f"after {job}: never sent: {strange[:5]}"
        # What one start recovers is there for good.
        self.must |= found


def read_all(directory: Path, *, sync: bool) -> set[Name]:
    """Open a store as the next process would and return every message; each must be whole."""
    inline = InlineWorker()
    store = MessageStore(
        settings_of(directory, sync=sync),
        Identity(STORE_HOST),
        files=OsFiles(),
        clock=SystemClock(),
        workers=Workers.made(lambda _name: inline),
    )
    store.open(os.getpid())
    keys = indexed_keys(directory / "index", settings_of(directory, sync=sync).index.slots)
    found: set[Name] = set()
    for queue_id in range(QUEUES):
        names = list(read_queue(store, queue_id, keys))
        assert names == sorted(set(names)), "a message is there twice, or out of order"
        found |= set(names)
    assert store.close()
    return found


def read_queue(store: MessageStore, queue_id: int, keys: set[Key]) -> Iterator[Name]:
    """Yield the messages of a queue, from its first offset on without a gap."""
    offset = 0
    while records := store.get(TOPIC, queue_id, offset, 32).records:
        for raw in records:
            record, _end = kernel.decode_record(raw, 0, len(raw), True)
            run, queue_said, number = map(int, record.body.split(b":")[:3])
            name = (run, queue_said, number)
            assert queue_said == record.queue_id == queue_id
            assert record.queue_offset == offset
            assert record.body == body_of(*name)
            assert properties_of(*name).items() <= decode_properties(record.properties).items()
            hashed = key_hash(TOPIC, key_of(*name))
            assert (hashed, record.log_offset) in keys, f"the key of {name} is not in the index"
            yield name
            offset += 1
    queue = store.queues.find(TOPIC, queue_id)
    assert offset == (0 if queue is None else queue.max_offset)


KINDS = [
    pytest.param(True, False, id="sync"),
    pytest.param(False, False, id="async"),
    pytest.param(True, True, id="sync-pool"),
]


@pytest.mark.parametrize(("sync", "pool"), KINDS)
def test_killed_at_random(
    nursery: Nursery,
    place: Path,
    sync: bool,
    pool: bool,
    request: pytest.FixtureRequest,
) -> None:
    trial, random = Trial(nursery, place, sync, pool), Random(f"{sync} {pool}")
    while trial.kills < RANDOM_KILLS:
        # Every fifth dies while it opens its store: an opening takes a few milliseconds.
        if random.random() < 0.2:
            trial.kill_after(-random.uniform(0.0005, 0.015))
        else:
            trial.kill_after(random.expovariate(1 / 0.03))
    request.node.user_properties.append(("kills", trial.kills))
    request.node.user_properties.append(("acknowledged", trial.acknowledged))
    assert trial.kills == RANDOM_KILLS
    assert trial.acknowledged > 20 * trial.kills, "they did not live long enough to be of any use"


@pytest.mark.parametrize(("sync", "pool"), KINDS[:2])
def test_killed_at_every_point(
    nursery: Nursery,
    place: Path,
    sync: bool,
    pool: bool,
    request: pytest.FixtureRequest,
) -> None:
    trial = Trial(nursery, place, sync, pool)
    for at in (1, 2, 3, 7, 20):
        for point in POINTS if at > 1 else POINTS + RARE_POINTS:
            trial.kill_at(point, at)
    request.node.user_properties.append(("kills", trial.kills))
    request.node.user_properties.append(("points", str(dict(trial.counts))))
    assert trial.kills == 5 * len(POINTS) + len(RARE_POINTS), trial.counts


def test_the_pool_loses_only_what_was_not_committed(nursery: Nursery, tmp_path: Path) -> None:
    trial, random = Trial(nursery, tmp_path, sync=False, pool=True), Random(1)
    while trial.kills < 10:
        trial.kill_after(random.uniform(0.0, 0.05))
    assert trial.must, "something was committed in time"
