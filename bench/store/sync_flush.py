"""SYNC_FLUSH with many writers: how many acknowledgements one force of the disk lets out."""

from __future__ import annotations

import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

from bench.store.place import QUEUES, TOPIC, OpenStore, Result, percentile, sends

from gantrymq.store.status import PutStatus

if TYPE_CHECKING:
    from bench.store.place import Place

WRITERS: Final = 512
SECONDS: Final = 10
SECONDS_MIN: Final = 0.2
BODY: Final = b"x" * 128
BAR: Final = 50


class _Writers:
    """Each sends one message, waits until it is acknowledged, and sends the next."""

    def __init__(self, opened: OpenStore) -> None:
        self._opened = opened
        self._ready: deque[int] = deque(range(WRITERS))
        self._frames = [sends(1, BODY, first=number) for number in range(WRITERS)]
        self._sent_ns = [0] * WRITERS
        self.waits_ns: list[int] = []

    def send_all(self) -> None:
        """Let everyone send who is not waiting."""
        store = self._opened.store
        while self._ready:
            writer = self._ready.popleft()
            self._sent_ns[writer] = time.perf_counter_ns()
            self._opened.append(self._frames[writer])
            store.hold(store.log.wrote_offset, partial(self._acknowledged, writer))

    def _acknowledged(self, writer: int, status: PutStatus) -> None:
        if status is not PutStatus.PUT_OK:
            raise RuntimeError(f"not stored: {status.name}")
        self.waits_ns.append(time.perf_counter_ns() - self._sent_ns[writer])
        self._ready.append(writer)


def sync_flush(place: Place) -> Result:
    """Have 512 writers wait for the disk, each with one message at a time."""
    with place.root("sync_flush") as root:
        opened = OpenStore(place.properties(root, {"flushDiskType": "SYNC_FLUSH"}))
        opened.store.open_topic(TOPIC, QUEUES)
        writers = _Writers(opened)
        begun = time.monotonic()
        while time.monotonic() - begun < max(SECONDS_MIN, SECONDS * place.scale):
            writers.send_all()
            opened.breathe(0.01)
        seconds = time.monotonic() - begun
        acknowledged, syncs = len(writers.waits_ns), opened.store.flush.syncs
        opened.close()
    waits = sorted(writers.waits_ns)
    per_sync = round(acknowledged / max(syncs, 1), 1)
    return {
        "writers": WRITERS,
        "seconds": round(seconds, 3),
        "acknowledged": acknowledged,
        "syncs": syncs,
        "acknowledged_per_second": round(acknowledged / seconds),
        "acknowledged_per_sync": per_sync,
        "median_wait_ms": round(percentile(waits, 0.5) / 1e6, 3),
        "p99_wait_ms": round(percentile(waits, 0.99) / 1e6, 3),
        "bar_acknowledged_per_sync": BAR,
        "reached": per_sync > BAR,
    }
