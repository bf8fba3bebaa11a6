"""Where a benchmark works: a directory, how large everything is, and stores in it.

Scale 1 is what the bars are about, with RocketMQ's own file sizes. A smaller scale shrinks data and
files alike, so that files still roll and nothing takes long; its numbers say only that it runs.
"""

from __future__ import annotations

import os
import queue
import shutil
import struct
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.clock import SystemClock
from gantrymq.kernel import kernel
from gantrymq.store.files import OsFiles
from gantrymq.store.message_store import Identity, MessageStore
from gantrymq.store.settings import read_settings
from gantrymq.store.timers import StoreTimers
from gantrymq.store.worker import ThreadWorker, Workers
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.command import Command
from gantrymq.wire.frame import encode_frame
from gantrymq.wire.headers.send import SendMessageV2Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gantrymq.store.recovery import RecoveryReport

Result = dict[str, object]
"""What one case gave, by name; it goes out as JSON."""

GIB: Final = 1 << 30
PAGE_BYTES: Final = 4096
LOG_FILE_BYTES_MIN: Final = 1 << 20
SLOTS: Final = 5_000_000
TOPIC: Final = "BenchTopic"
QUEUES: Final = 8
BORN_MS: Final = 1_794_778_260_337
HOST: Final = bytes([127, 0, 0, 1]) + struct.pack(">i", 10911)


@dataclass(frozen=True)
class Place:
    """A directory for the benchmarks, and their scale."""

    directory: Path
    scale: float
    with_apache: bool = True

    def amount(self, full: int, least: int = 1) -> int:
        """Return how much of something there is at this scale."""
        return max(least, int(full * self.scale))

    def properties(self, root: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the settings of a store under RocketMQ's names, for us and for Apache."""
        properties = {"storePathRootDir": str(root)}
        if self.scale < 1:
            pages = self.amount(GIB, LOG_FILE_BYTES_MIN) // PAGE_BYTES
            slots = self.amount(SLOTS, 1000)
            properties["mappedFileSizeCommitLog"] = str(pages * PAGE_BYTES)
            properties["maxHashSlotNum"] = str(slots)
            properties["maxIndexNum"] = str(4 * slots)
        return properties | dict(extra or {})

    @contextmanager
    def root(self, name: str) -> Iterator[Path]:
        """Give a directory that does not exist yet and is gone afterwards."""
        path = self.directory / name
        shutil.rmtree(path, ignore_errors=True)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


class Owner:
    """The thread that owns a store: runs what its workers post, when it gets to it."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    def post(self, call: Callable[[], None]) -> None:
        """Have a call made by the owner; any thread may."""
        self._calls.put(call)

    def run_posted(self, wait_seconds: float = 0.0) -> None:
        """Make the calls that are there, having waited for the first."""
        try:
            call = self._calls.get(timeout=wait_seconds) if wait_seconds else self._next()
            while True:
                call()
                call = self._next()
        except queue.Empty:
            return

    def _next(self) -> Callable[[], None]:
        return self._calls.get_nowait()


class OpenStore:
    """A store in use, with its threads and timers as in a broker."""

    def __init__(self, properties: Mapping[str, str], *, in_turns: bool = False) -> None:
        """With `in_turns`, what can wait is done by `breathe`, as at the end of a loop's turn."""
        self.owner = Owner()
        self.settings = read_settings(properties)
        self.store = MessageStore(
            self.settings,
            Identity(HOST),
            files=OsFiles(),
            clock=SystemClock(),
            workers=Workers.made(lambda name: ThreadWorker(name, self.owner.post)),
            soon=self.owner.post if in_turns else None,
        )
        self.report: RecoveryReport = self.store.open(os.getpid())
        self._timers = StoreTimers(self.store, self.settings, time.monotonic())
        self._due = 0.0

    def append(self, sends: bytes) -> int:
        """Store a receive buffer full of sends; return how many messages there were."""
        run = self.store.append_sends(sends, 0, len(sends), HOST)
        if run.consumed != len(sends):
            raise RuntimeError(f"the lane stopped early: {run.stop!r}")
        return run.messages

    def breathe(self, wait_seconds: float = 0.0) -> None:
        """Do what workers have posted and timers want."""
        self.owner.run_posted(wait_seconds)
        now = time.monotonic()
        if now >= self._due:
            self._due = self._timers.tick(now)

    def fill(self, log_bytes: int, buffers: list[bytes]) -> int:
        """Append until the log has grown by so much; return the number of messages."""
        messages, end = 0, self.store.log.wrote_offset + log_bytes
        while self.store.log.wrote_offset < end:
            for buffer in buffers:
                messages += self.append(buffer)
                self.breathe()
                if self.store.log.wrote_offset >= end:
                    break
        return messages

    def close(self) -> None:
        """Close it; it must go well."""
        if not self.store.close():
            raise RuntimeError(f"not closed cleanly: {self.store.gate.failure}")


def sends(count: int, body: bytes, *, first: int = 0, topic: str = TOPIC) -> bytes:
    """Return so many sends, each with a key of its own, spread over the queues of a topic."""
    frames: list[bytes] = []
    for number in range(first, first + count):
        header = SendMessageV2Request(
            producer_group="bench",
            topic=topic,
            default_topic="TBW102",
            default_topic_queue_nums=QUEUES,
            queue_id=number % QUEUES,
            sys_flag=0,
            born_timestamp=BORN_MS,
            flag=0,
            properties=f"UNIQ_KEY\x017F00000100002A139A55{number:012X}\x02WAIT\x01true\x02TAGS\x01A",
            reconsume_times=0,
            unit_mode=False,
            max_reconsume_times=0,
            batch=False,
        )
        command = Command.request(RequestCode.SEND_MESSAGE_V2, number, header.encode(), body)
        frames.append(encode_frame(command))
    return b"".join(frames)


def buffers_of(buffers: int, count: int, body: bytes) -> list[bytes]:
    """Return receive buffers with `count` sends each; no key comes twice."""
    return [sends(count, body, first=number * count) for number in range(buffers)]


def percentile(sorted_values: list[int], part: float) -> int:
    """Return the value that `part` of all do not exceed."""
    return sorted_values[min(len(sorted_values) - 1, int(part * len(sorted_values)))]


def log_files(root: Path) -> list[Path]:
    """Return the files of a store's log, oldest first."""
    return sorted((root / "commitlog").iterdir())


def drop_from_cache(paths: list[Path]) -> None:
    """Have the system forget the pages of files; what is dirty is written out first."""
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fdatasync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)


def disk_bytes_read() -> int:
    """Return what this process has had read from disks so far: what no cache had."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes"))


def read_through(root: Path) -> int:
    """Read every file below a directory, so that the cache has it; return the bytes."""
    total = 0
    chunk = bytearray(1 << 20)
    for path in root.rglob("*"):
        if path.is_file():
            with path.open("rb", buffering=0) as file:
                while count := file.readinto(chunk):
                    total += count
    return total


def kernel_name() -> str:
    """Return which kernel is measured."""
    return kernel.KERNEL_NAME
