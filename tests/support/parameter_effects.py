"""What is seen of a store when one of its parameters is changed, each as one plain value.

Every function takes settings under RocketMQ's names, has a store on a simulated disk do something,
and returns what an operator would see of it: places, lengths, seconds, counts.
"""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.store.checkpoint import load_checkpoint
from gantrymq.store.queue_saving import PROMPT_QUEUES_MAX
from gantrymq.store.retention import HOUR_MS, local_hour
from gantrymq.store.status import PutStatus
from gantrymq.testing.clock import START_MS
from gantrymq.testing.disk import Operation, SimulatedFiles
from support.store_rig import LOG, ROOT, Rig, message

if TYPE_CHECKING:
    from collections.abc import Callable

Settings = dict[str, str]
BIG: Final = {"mappedFileSizeCommitLog": "1048576", "mappedFileSizeConsumeQueue": "20000"}
POOL: Final = {"transientStorePoolEnable": "true", "transientStorePoolSize": "2"}
EXT: Final = {"enableConsumeQueueExt": "true"}
PAGE: Final = 4096
QUEUE_FILE: Final = ROOT / "consumequeue" / "T" / "0" / f"{0:020d}"
PLACES: Final = (ROOT, Path("/elsewhere"), Path("/log"))
CAPACITY: Final = 1 << 30
HOUR: Final = local_hour(START_MS)
EVERY_HOUR: Final = {"deleteWhen": ";".join(f"{hour:02d}" for hour in range(24))}
NEVER: Final = {"deleteWhen": f"{(HOUR + 12) % 24:02d}"}
FOREVER_S: Final = 120.0


def until(rig: Rig, is_done: Callable[[], bool], step: float = 0.05) -> float:
    """Let time pass in small steps until something is so; return how long it took."""
    passed = 0.0
    while not is_done():
        assert passed < FOREVER_S, "it never happens"
        rig.tick(step)
        rig.settle()
        passed += step
    return round(passed, 3)


def is_flushed(rig: Rig) -> bool:
    """Tell whether the log is on the disk, up to the page of its tail."""
    done = rig.store.flush.flushed_offset
    return done > 0 and done >= rig.store.log.committed_pages_offset


def pass_seconds(rig: Rig, seconds: int) -> None:
    """Let time pass, a second at a time."""
    for _ in range(seconds):
        rig.tick(1.0)
        rig.settle()


def grown_old(settings: Settings) -> Rig:
    """Return a store with four days old messages of two queues in five log files."""
    rig = Rig(settings, SimulatedFiles(capacity=CAPACITY))
    for number in range(20):
        rig.put(b"%02d" % number + bytes(900), queue_id=number % 2)
    pass_seconds(rig, 62)
    for name in rig.disk.names(LOG):
        rig.disk.set_modified_ms(LOG / name, rig.clock.now_ms() - 96 * HOUR_MS)
    return rig


def has_deleted(rig: Rig) -> bool:
    """Tell whether the log has lost files."""
    return rig.store.log.min_offset > 0


# -- where and how large -------------------------------------------------------------------------


def places(settings: Settings) -> list[str]:
    """Return the directories that hold the log and everything else."""
    rig = Rig(settings)
    rig.put(b"x")
    assert rig.store.close()
    inside = [path for place in PLACES for path in (place, place / "commitlog")]
    logs = [str(path) for path in inside if f"{0:020d}" in rig.disk.names(path)]
    return logs + [str(path) for path in PLACES if "checkpoint" in rig.disk.names(path)]


def log_length(settings: Settings) -> int:
    """Return the length of a log file."""
    rig = Rig(settings)
    rig.put(b"x")
    return rig.disk.size(LOG / f"{0:020d}")


def queue_length(settings: Settings) -> int:
    """Return the length of a queue file."""
    rig = Rig(settings)
    rig.put(b"x")
    assert rig.store.close()
    return rig.disk.size(QUEUE_FILE)


def extension_lengths(settings: Settings) -> list[int]:
    """Return the lengths of the files beside a queue."""
    rig = Rig(settings)
    rig.put(b"x", properties={"TAGS": "a"})
    assert rig.store.close()
    directory = ROOT / "consumequeue_ext" / "T" / "0"
    return [rig.disk.size(directory / name) for name in rig.disk.names(directory)]


def largest_body(settings: Settings) -> int:
    """Return the largest body that is taken, of some."""
    rig = Rig({"mappedFileSizeCommitLog": str(16 << 20)} | settings)
    sizes = (1000, 1001, 4 << 20, (4 << 20) + 1)
    return max(
        size for size in sizes if rig.store.put([message(bytes(size))]).status is PutStatus.PUT_OK
    )


# -- when something is done ----------------------------------------------------------------------


def seconds_to_force(body: bytes) -> Callable[[Settings], float]:
    """Return what tells how long it takes until the log is forced behind a put."""

    def see(settings: Settings) -> float:
        rig = Rig(BIG | settings)
        rig.put(body)
        rig.log_flush.drain()
        return 0.0 if is_flushed(rig) else until(rig, lambda: is_flushed(rig))

    return see


def seconds_to_commit(body: bytes) -> Callable[[Settings], float]:
    """Return what tells how long it takes until what lies in the pool can be read."""

    def see(settings: Settings) -> float:
        rig = Rig(BIG | POOL | settings)
        rig.put(body)
        return until(rig, lambda: rig.bodies() == [body])

    return see


def seconds_to_queue_file(settings: Settings) -> float:
    """Return how long it takes until a queue is written."""
    rig = Rig(BIG | settings)
    rig.put(b"x")
    return until(rig, lambda: rig.disk.exists(QUEUE_FILE))


def seconds_to_queue_file_among_many(settings: Settings) -> float:
    """Return how long it takes until a queue is written while more change than are prompt."""
    rig = Rig(BIG | settings)
    for queue_id in range(PROMPT_QUEUES_MAX + 1):
        rig.put(b"x", queue_id=queue_id)
    return until(rig, lambda: rig.disk.exists(QUEUE_FILE))


def seconds_to_queue_force(settings: Settings) -> float:
    """Return how long it takes until the checkpoint vouches for the queues."""
    rig = Rig(BIG | settings)
    rig.put(b"x")
    path = ROOT / "checkpoint"
    return until(rig, lambda: load_checkpoint(rig.disk, path).queues_ms > 0)


def seconds_to_see_a_full_disk(settings: Settings) -> float:
    """Return how long it takes until a disk that fills up is noticed."""
    rig = Rig(settings, SimulatedFiles(capacity=CAPACITY))
    pass_seconds(rig, 1)
    rig.disk.other_bytes = CAPACITY * 95 // 100
    return until(rig, lambda: rig.store.writability.reason is not None)


# -- what is deleted, and when -------------------------------------------------------------------


def seconds_between_log_files(settings: Settings) -> float:
    """Return the pause between two log files that are removed."""
    rig = grown_old(EVERY_HOUR | settings)
    until(rig, lambda: has_deleted(rig))
    count = len(rig.disk.names(LOG))
    return until(rig, lambda: len(rig.disk.names(LOG)) < count)


def seconds_between_queues(settings: Settings) -> float:
    """Return the pause between two queues that lose files."""
    rig = grown_old(EVERY_HOUR | {"mappedFileSizeConsumeQueue": "40"} | settings)
    folders = [QUEUE_FILE.parent.parent / str(number) for number in (0, 1)]
    counts = [len(rig.disk.names(folder)) for folder in folders]

    def shorter() -> int:
        pairs = zip(folders, counts, strict=True)
        return sum(len(rig.disk.names(folder)) < count for folder, count in pairs)

    until(rig, lambda: shorter() > 0)
    return until(rig, lambda: shorter() == 2)


def seconds_to_the_next_try(settings: Settings) -> float:
    """Return how long it takes until a removal that failed is tried again, in tens."""
    rig = grown_old(EVERY_HOUR | settings)
    rig.disk.fail(Operation.REMOVE, errno.EBUSY)
    until(rig, lambda: rig.store.cleaner.last_error is not None)
    return until(rig, lambda: has_deleted(rig)) // 10 * 10


def deletes(disk_percent: int = 0) -> Callable[[Settings], bool]:
    """Return what tells whether files of four days go, on a disk as full as that."""

    def see(settings: Settings) -> bool:
        rig = grown_old(settings)
        rig.disk.other_bytes = CAPACITY * disk_percent // 100
        pass_seconds(rig, 30)
        return has_deleted(rig)

    return see


def messages_behind_a_damaged_body(settings: Settings) -> int:
    """Return how many of three messages are there after a kill, a byte of the second changed."""
    rig = Rig(settings)
    for letter in (b"a", b"b", b"c"):
        rig.put(letter * 60)
    disk = rig.disk.kill()
    first = LOG / f"{0:020d}"
    place = disk.read(first).index(b"b" * 60) + 5
    disk.write_at(first, place, b"X", disk.size(first))
    return rig.again(disk).store.get("T", 0, 0, 32).max_offset


def forces_while_warming(settings: Settings) -> int:
    """Return how often a new file of eight pages is forced while it is touched."""
    warm = {"warmMapedFileEnable": "true", "mappedFileSizeCommitLog": str(8 * PAGE)}
    counts = []
    for more in (warm | settings, warm | {"warmMapedFileEnable": "false"}):
        rig = Rig(more)
        rig.put(b"x")
        counts.append(rig.disk.counts[Operation.SYNC])
    return counts[0] - counts[1]
