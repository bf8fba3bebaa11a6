"""The tail latency of appending while files roll: undisturbed, and beside a reader of cold data.

Sends of 1 KiB are appended at a steady rate until several files have rolled. Four times: new files
touched ahead or not, and with a transient store pool or straight into the map.

`tail` does that alone. `cold_reader` first writes a store of 5 GiB and drops its pages; then a
thread reads it from its first byte to its last, by position, as a cold range is to be read,
dropping what it has read, over and over.
"""

from __future__ import annotations

import threading
import time
from itertools import cycle
from typing import TYPE_CHECKING, Final

from bench.store.place import (
    GIB,
    QUEUES,
    TOPIC,
    OpenStore,
    Place,
    Result,
    buffers_of,
    disk_bytes_read,
    drop_from_cache,
    log_files,
    percentile,
)

from gantrymq.store.files import OsFiles

if TYPE_CHECKING:
    from pathlib import Path

COLD_BYTES: Final = 5 * GIB
COLD_BYTES_MIN: Final = 3 << 20
BODY: Final = b"x" * 1024
PER_BUFFER: Final = 32
BUFFERS: Final = 64
BYTES_PER_SECOND: Final = 80 << 20
ROLLS: Final = 3
SECONDS_MAX: Final = 180
READ_BYTES: Final = 1 << 18
POOL_BUFFERS: Final = 3
BAR_MS: Final = 20.0


class _ColdReader:
    """A thread that reads files over and over, never from the cache."""

    def __init__(self, paths: list[Path], read_bytes: int = READ_BYTES) -> None:
        self._paths = paths
        self._read_bytes = read_bytes
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cold-reader")
        self.bytes_read = 0

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for it."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        files = OsFiles()
        for path in cycle(self._paths):  # ends at once without any
            position = 0
            while not self._stop.is_set():
                chunk = files.read_at(path, position, self._read_bytes)
                if not chunk:
                    break
                position += len(chunk)
                self.bytes_read += len(chunk)
            if self._stop.is_set():
                return
            drop_from_cache([path])


def cold_reader(place: Place) -> Result:
    """Measure appends beside a cold reader, each way of writing."""
    buffers = buffers_of(BUFFERS, PER_BUFFER, BODY)
    with place.root("cold") as root:
        opened = OpenStore(place.properties(root))
        opened.store.open_topic(TOPIC, QUEUES)
        opened.fill(place.amount(COLD_BYTES, COLD_BYTES_MIN), buffers)
        opened.close()
        cold = log_files(root)[:-1]  # the last one is appended to
        cold_bytes = sum(path.stat().st_size for path in cold)
        return {"cold_bytes": cold_bytes, **_compared(place, root, cold, buffers)}


def tail(place: Place) -> Result:
    """Measure appends with nobody beside them, each way of writing."""
    with place.root("tail") as root:
        return _compared(place, root, [], buffers_of(BUFFERS, PER_BUFFER, BODY))


def _compared(place: Place, root: Path, cold: list[Path], buffers: list[bytes]) -> Result:
    ways = [
        _one(place, root, cold, buffers, warm=warm, pool=pool)
        for warm in (False, True)
        for pool in (False, True)
    ]
    best = min(ways, key=_tail)
    return {
        "bytes_per_second": BYTES_PER_SECOND,
        "messages_per_append": PER_BUFFER,
        "ways": ways,
        "best": {"warm": best["warm"], "pool": best["pool"]},
        "bar_p999_ms": BAR_MS,
        "reached": _tail(best) < BAR_MS,
    }


def _tail(way: Result) -> float:
    value = way["p999_ms"]
    return value if isinstance(value, float) else float("inf")


def _one(
    place: Place, root: Path, cold: list[Path], buffers: list[bytes], *, warm: bool, pool: bool
) -> Result:
    extra = {
        "warmMapedFileEnable": str(warm).lower(),
        "transientStorePoolEnable": str(pool).lower(),
        "transientStorePoolSize": str(POOL_BUFFERS),
    }
    opened = OpenStore(place.properties(root, extra))
    opened.store.open_topic(TOPIC, QUEUES)
    opened.append(buffers[0])  # the tail is there
    drop_from_cache(cold)
    reader = _ColdReader(cold)
    reader.start()
    begun, from_disk = time.perf_counter(), disk_bytes_read()
    try:
        took, rolling = _append_steadily(opened, buffers, place)
    finally:
        reader.stop()
    seconds = time.perf_counter() - begun
    opened.close()
    took.sort()
    return {
        "warm": warm,
        "pool": pool,
        "appends": len(took),
        "rolls_ms": [round(one / 1e6, 4) for one in rolling],
        "seconds": round(seconds, 3),
        "cold_bytes_read": reader.bytes_read,
        "disk_bytes_read": disk_bytes_read() - from_disk,
        "median_ms": round(percentile(took, 0.5) / 1e6, 4),
        "p99_ms": round(percentile(took, 0.99) / 1e6, 4),
        "p999_ms": round(percentile(took, 0.999) / 1e6, 4),
        "max_ms": round(took[-1] / 1e6, 4),
    }


def _append_steadily(
    opened: OpenStore, buffers: list[bytes], place: Place
) -> tuple[list[int], list[int]]:
    """Append at a steady rate until enough files have rolled.

    Returns the nanoseconds of each append, and of those that began a file.
    """
    took: list[int] = []
    rolling: list[int] = []
    log = opened.store.log
    begin, begun = log.wrote_offset, time.perf_counter()
    deadline = begun + max(5.0, SECONDS_MAX * place.scale)
    for buffer in cycle(buffers):
        now = time.perf_counter()
        if len(rolling) >= ROLLS or now > deadline:
            return took, rolling
        ahead = (log.wrote_offset - begin) / BYTES_PER_SECOND - (now - begun)
        opened.breathe(max(0.0, ahead))
        files = len(log.files)
        before = time.perf_counter_ns()
        opened.append(buffer)
        took.append(time.perf_counter_ns() - before)
        if len(log.files) > files:
            rolling.append(took[-1])
    raise AssertionError("a cycle ended")
