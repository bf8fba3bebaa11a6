"""A broker's store in a process of its own, which is killed while it works.

Run as a program it is a nursery: it imports everything once, and forks a child for each line of
JSON that it reads, a `Job`. Child and nursery write to one pipe, a line at a time:

    P 1234        the child's process id
    O             its store is open
    S 3 1 17      message 17 of run 3 for queue 1 is about to be sent
    A 3 1 17      it was acknowledged
    D             the child is dead; a line that is read now lets it go
    E -9          its exit status, or the signal that ended it

A `Job` may name a point at which the child kills itself: the n-th time that some operation of the
disk begins, is half done, or has ended, or that a message is dispatched or acknowledged. The points
are made here, around the real `OsFiles`; the store knows nothing of them.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import struct
import sys
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from gantrymq.clock import SystemClock
from gantrymq.store.files import MappedRegion, OsFiles, write_one_by_one
from gantrymq.store.message_store import Identity, MessageStore
from gantrymq.store.put import NewMessage
from gantrymq.store.queue_files import PAGE_BYTES
from gantrymq.store.settings import StoreSettings, read_settings
from gantrymq.store.status import PutStatus
from gantrymq.store.timers import StoreTimers
from gantrymq.store.worker import ThreadWorker, Workers

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.kernel import FileWrite
    from gantrymq.store.files import StrPath

STORE_HOST = bytes([127, 0, 0, 1]) + struct.pack(">i", 10911)
BORN_HOST = bytes([10, 0, 0, 1]) + struct.pack(">i", 12345)
TOPIC = "Crash"
QUEUES = 3
LANE_QUEUES = 2
"""The rest is put by Python."""
FRAME_HEADER = (
    '{"code":310,"extFields":{"a":"g","b":"%s","c":"TBW102","d":"4","e":"%d","f":"0",'
    '"g":"1700000000000","h":"0","i":"KEYS\\u0001%s\\u0002TAGS\\u0001t","j":"0","k":"false","l":"0",'
    '"m":"false"},'
    '"flag":0,"language":"JAVA","opaque":1,"serializeTypeCurrentRPC":"JSON","version":399}'
)


class Job(NamedTuple):
    """What a child has to do."""

    run: int
    directory: str
    sync: bool
    messages_max: int
    point: str = ""
    at: int = 0
    pool: bool = False


def settings_of(directory: Path, *, sync: bool, pool: bool = False) -> StoreSettings:
    """Return small files and short intervals."""
    return read_settings(
        {
            "storePathRootDir": str(directory),
            "mappedFileSizeCommitLog": "32768",
            "mappedFileSizeConsumeQueue": "10000",
            "maxHashSlotNum": "50",
            "maxIndexNum": "200",
            "messageIndexSafe": "true",
            "flushDiskType": "SYNC_FLUSH" if sync else "ASYNC_FLUSH",
            "transientStorePoolEnable": str(pool).lower(),
            "flushIntervalCommitLog": "3",
            "flushCommitLogThoroughInterval": "9",
            "flushIntervalConsumeQueue": "4",
            "flushConsumeQueueThoroughInterval": "11",
        }
    )


def body_of(run: int, queue_id: int, number: int) -> bytes:
    """Return what a message holds: its name, and as much more as the name decides."""
    name = f"{run}:{queue_id}:{number}:".encode()
    length = Random(f"{run}/{queue_id}/{number}").choice((20, 60, 200, 700, 3000))
    return name.ljust(length, b"%d" % (number % 10))


def key_of(run: int, queue_id: int, number: int) -> str:
    """Return its key."""
    return f"k{run}-{queue_id}-{number}"


def properties_of(run: int, queue_id: int, number: int) -> dict[str, str]:
    """Return its properties."""
    return {"KEYS": key_of(run, queue_id, number), "TAGS": "t"}


def say(text: str) -> None:
    """Write a line, at once and whole."""
    os.write(1, f"{text}\n".encode())


class Killer:
    """Ends the process at one point, without any ceremony."""

    def __init__(self, point: str, at: int) -> None:
        self._point = point
        self._left = at

    def pass_by(self, point: str) -> None:
        """Die here, if this is the place and the time."""
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def watch_regions(killer: Killer) -> None:
    """Make forcing a mapped file a point; it is the one operation that is not asked of `Files`."""
    force = MappedRegion.sync

    def sync(region: MappedRegion, start: int = 0, end: int | None = None) -> None:
        killer.pass_by("force begins")
        force(region, start, end)
        killer.pass_by("force ended")

    MappedRegion.sync = sync  # type: ignore[assignment, method-assign]


class KilledFiles(OsFiles):
    """The machine's disk, with a point before and behind everything that changes it."""

    __slots__ = ("_killer",)

    def __init__(self, killer: Killer) -> None:
        self._killer = killer

    def _around(self, name: str, step: Callable[[], None]) -> None:
        self._killer.pass_by(f"{name} begins")
        step()
        self._killer.pass_by(f"{name} ended")

    def create(self, path: Path, size: int) -> MappedRegion:
        """Make a file."""
        self._killer.pass_by("create begins")
        region = super().create(path, size)
        self._killer.pass_by("create ended")
        return region

    def write_at(self, path: StrPath, position: int, data: bytes, size: int) -> None:
        """Write, in two parts if there are several pages: a kill may end a write between them."""
        self._killer.pass_by("write begins")
        part = PAGE_BYTES - position % PAGE_BYTES
        super().write_at(path, position, data[:part], size)
        self._killer.pass_by("write half done")
        if data[part:]:
            super().write_at(path, position + part, data[part:], size)
        self._killer.pass_by("write ended")

    def write_all(self, writes: list[FileWrite]) -> None:
        """Write to many files."""
        write_one_by_one(self, writes)

    def truncate(self, path: Path, size: int) -> None:
        """Cut."""
        self._around("truncate", lambda: OsFiles.truncate(self, path, size))

    def sync(self, path: StrPath) -> None:
        """Force."""
        self._around("sync", lambda: OsFiles.sync(self, path))

    def rename(self, source: Path, target: Path) -> None:
        """Rename."""
        self._around("rename", lambda: OsFiles.rename(self, source, target))

    def remove(self, path: Path) -> None:
        """Remove."""
        self._around("remove", lambda: OsFiles.remove(self, path))

    def sync_directory(self, directory: StrPath) -> None:
        """Force names."""
        self._around("sync-directory", lambda: OsFiles.sync_directory(self, directory))


POINTS = (
    *(
        f"{operation} {when}"
        for operation in ("create", "write", "force", "sync", "rename", "sync-directory")
        for when in ("begins", "ended")
    ),
    "write half done",
    "appended",
    "dispatched",
    "let out",
    "told",
)
"""Where a child may be told to die."""
RARE_POINTS = ("truncate begins", "truncate ended", "remove begins", "remove ended")
"""Where it comes only once or twice."""


class Child:
    """A store under load, until it is killed or has sent enough."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.random = Random(job.run)
        self.killer = Killer(job.point, job.at)
        watch_regions(self.killer)
        self.calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.numbers = [0] * QUEUES
        self.waiting = 0
        settings = settings_of(Path(job.directory), sync=job.sync, pool=job.pool)
        self.clock = SystemClock()
        self.store = MessageStore(
            settings,
            Identity(STORE_HOST),
            files=KilledFiles(self.killer),
            clock=self.clock,
            workers=Workers.made(lambda name: ThreadWorker(name, self.calls.put)),
            arrived=lambda _run: self.killer.pass_by("dispatched"),
        )
        self.timers = StoreTimers(self.store, settings, self.clock.monotonic())

    def work(self) -> None:
        """Do the job."""
        self.store.open(os.getpid())
        self.store.open_topic(TOPIC, LANE_QUEUES)
        say("O")
        while sum(self.numbers) < self.job.messages_max:
            if self.random.random() < 0.7:
                self._send(self.random.randint(1, 6))
            else:
                self._put(self.random.choice((1, 1, 3)))
            self.timers.tick(self.clock.monotonic())
            self._take_calls()
        self.store.close()

    def _take_calls(self) -> None:
        """Do what workers report; wait for them when many messages are not answered."""
        while True:
            try:
                call = self.calls.get(block=self.waiting > 8, timeout=60)
            except queue.Empty:
                return
            call()

    def _names(self, queue_id: int, count: int) -> list[tuple[int, int, int]]:
        first = self.numbers[queue_id]
        self.numbers[queue_id] += count
        names = [(self.job.run, queue_id, number) for number in range(first, first + count)]
        say("\n".join(_line("S", name) for name in names))
        return names

    def _send(self, count: int) -> None:
        names = [
            name
            for _ in range(count)
            for name in self._names(self.random.randrange(LANE_QUEUES), 1)
        ]
        buffer = b"".join(map(_frame, names))
        position = 0
        while position < len(buffer):
            run = self.store.append_sends(buffer, position, len(buffer), BORN_HOST)
            position = run.consumed
            done, names = names[: run.requests], names[run.requests :]
            self._hold(done, self.store.log.wrote_offset)

    def _put(self, count: int) -> None:
        names = self._names(QUEUES - 1, count)
        messages = [
            NewMessage(TOPIC, QUEUES - 1, body_of(*name), properties_of(*name), 1, BORN_HOST)
            for name in names
        ]
        stored = self.store.put(messages)
        if stored.status is PutStatus.PUT_OK:
            self._hold(names, stored.end)

    def _hold(self, names: list[tuple[int, int, int]], end: int) -> None:
        self.killer.pass_by("appended")
        self.waiting += 1

        def let_out(status: PutStatus) -> None:
            self.waiting -= 1
            self.killer.pass_by("let out")
            if status is PutStatus.PUT_OK:
                say("\n".join(_line("A", name) for name in names))
                self.killer.pass_by("told")

        self.store.hold(end, let_out)


def _line(kind: str, name: tuple[int, int, int]) -> str:
    return " ".join([kind, *map(str, name)])


def _frame(name: tuple[int, int, int]) -> bytes:
    header = (FRAME_HEADER % (TOPIC, name[1], key_of(*name))).encode()
    body = body_of(*name)
    return struct.pack(">iI", 4 + len(header) + len(body), len(header)) + header + body


def nurse() -> None:
    """Fork a child for every line that comes in; see the head of this file.

    A dead child is kept until the test knows, so that its process id is nobody else's meanwhile.
    """
    for line in sys.stdin:
        job = Job(*json.loads(line))
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                Child(job).work()
                status = 0
            finally:
                os._exit(status)
        say(f"P {pid}")
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        say("D")
        sys.stdin.readline()
        _pid, status = os.waitpid(pid, 0)
        say(f"E {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    nurse()
