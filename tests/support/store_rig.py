"""One store on a simulated disk with everything in reach, for the unit tests of the store."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gantrymq.kernel import kernel
from gantrymq.store.message_store import Identity, MessageStore
from gantrymq.store.put import NewMessage, Stored
from gantrymq.store.settings import StoreSettings, read_settings
from gantrymq.store.timers import StoreTimers
from gantrymq.store.worker import Workers
from gantrymq.testing.clock import VirtualClock
from gantrymq.testing.disk import SimulatedFiles
from gantrymq.testing.workers import StepWorker
from support.samples import json_request, send_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gantrymq.kernel.values import Record
    from gantrymq.store.recovery import RecoveryReport
    from gantrymq.store.status import PutStatus

ROOT = Path("/store")
LOG = ROOT / "commitlog"
STORE_HOST = bytes([127, 0, 0, 1]) + struct.pack(">i", 10911)
BORN_HOST = bytes([10, 0, 0, 1]) + struct.pack(">i", 12345)
SMALL = {
    "storePathRootDir": str(ROOT),
    "mappedFileSizeCommitLog": "4096",
    "mappedFileSizeConsumeQueue": "200",
    "maxHashSlotNum": "20",
    "maxIndexNum": "40",
}


def message(
    body: bytes = b"hello", topic: str = "T", queue_id: int = 0, **more: object
) -> NewMessage:
    """Return a message to be put; `properties` are none unless given."""
    given = {"properties": {}, "born_timestamp": 1, "born_host": BORN_HOST} | more
    return NewMessage(topic, queue_id, body, **given)  # type: ignore[arg-type]


def frames(bodies: Sequence[bytes], topic: str = "T", queue_id: int = 0) -> bytes:
    """Return sends as a client writes them to its socket."""
    return b"".join(
        json_request(
            310, send_fields(b=topic, e=str(queue_id), i="TAGS\x01TagA"), body, opaque=number
        )
        for number, body in enumerate(bodies)
    )


def open_settings(changes: dict[str, str]) -> StoreSettings:
    """Return the settings of a small store with some of them changed."""
    return read_settings(SMALL | changes)


@dataclass
class Rig:
    """A store, its disk, its clock, and workers that wait for `run` and `report`."""

    settings: dict[str, str] = field(default_factory=dict)
    disk: SimulatedFiles = field(default_factory=SimulatedFiles)
    clock: VirtualClock = field(default_factory=VirtualClock)
    memory_bytes: int = 0
    soon: Callable[[Callable[[], None]], object] | None = None

    def __post_init__(self) -> None:
        """Open it, and topic T with two queues."""
        self.disk.clock = self.clock
        workers = {name: StepWorker() for name in Workers._fields}
        self.workers = list(workers.values())
        self.log_flush = workers["log_flush"]
        self.queue_flush = workers["queue_flush"]
        self.allocation = workers["allocation"]
        self.index_allocation = workers["index_allocation"]
        self.cold_read = workers["cold_read"]
        settings = open_settings(self.settings)
        self.store = MessageStore(
            settings,
            Identity(STORE_HOST),
            files=self.disk,
            clock=self.clock,
            workers=Workers.made(workers.__getitem__),
            memory_bytes=self.memory_bytes,
            soon=self.soon,
        )
        self.report: RecoveryReport = self.store.open(pid=1)
        self.store.open_topic("T", 2)
        self.timers = StoreTimers(self.store, settings, self.clock.monotonic())

    def again(self, disk: SimulatedFiles | None = None, **changes: str) -> Rig:
        """Return the store as the next process finds it: after a kill, unless a disk is given."""
        found = self.disk.kill() if disk is None else disk
        return Rig(self.settings | changes, found, self.clock, self.memory_bytes)

    def put(self, *bodies: bytes, **more: object) -> Stored:
        """Put messages of one queue."""
        return self.store.put([message(body, **more) for body in bodies])  # type: ignore[arg-type]

    def hold(self, stored: Stored, *, waits: bool = True) -> list[PutStatus]:
        """Return a list that the status of a put will be found in."""
        out: list[PutStatus] = []
        self.store.hold(stored.end, out.append, waits=waits)
        return out

    def settle(self) -> None:
        """Let every worker come to its end."""
        for worker in self.workers:
            worker.drain()

    def tick(self, seconds: float = 0.0) -> None:
        """Let time pass and the timers see it."""
        self.clock.jump(seconds)
        self.timers.tick(self.clock.monotonic())

    def records(self, topic: str = "T", queue_id: int = 0) -> list[Record]:
        """Return all messages of a queue."""
        found: list[Record] = []
        while True:
            batch = self.store.get(topic, queue_id, len(found), 32)
            if not batch.records:
                return found
            found += [kernel.decode_record(raw, 0, len(raw), True)[0] for raw in batch.records]

    def bodies(self, topic: str = "T", queue_id: int = 0) -> list[bytes]:
        """Return the bodies of all messages of a queue."""
        return [record.body for record in self.records(topic, queue_id)]


def sync_rig(**changes: str) -> Rig:
    """Return a store with SYNC_FLUSH."""
    return Rig({"flushDiskType": "SYNC_FLUSH"} | changes)
