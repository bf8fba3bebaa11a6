"""Reading a backlog that no cache holds, as consumers do: all queues at once, from their begin.

Who reads slower than others write never comes to the end of a backlog: the bar is the pace at which
`tail` and `cold_reader` append. Beside it the same files are read from their first byte to their
last, which is the most that the disk can give.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Final

from bench.store.cold_reader import BYTES_PER_SECOND
from bench.store.place import (
    GIB,
    QUEUES,
    TOPIC,
    OpenStore,
    buffers_of,
    disk_bytes_read,
    drop_from_cache,
    log_files,
    read_through,
)

from gantrymq.store.status import GetStatus

if TYPE_CHECKING:
    from pathlib import Path

    from bench.store.place import Place, Result

    from gantrymq.store.get import Found

LOG_BYTES: Final = GIB
LOG_BYTES_MIN: Final = 4 << 20
PER_BUFFER: Final = 32
BUFFERS: Final = 64
BODY: Final = b"x" * 1024
A_PULL: Final = 32
BAR: Final = BYTES_PER_SECOND / 1e6
"""Megabytes a second."""


def backlog(place: Place) -> Result:
    """Read 1 GiB of messages of 1 KiB in 8 queues, cold."""
    with place.root("backlog") as root:
        opened = OpenStore(place.properties(root))
        opened.store.open_topic(TOPIC, QUEUES)
        messages = opened.fill(
            place.amount(LOG_BYTES, LOG_BYTES_MIN), buffers_of(BUFFERS, PER_BUFFER, BODY)
        )
        opened.close()
        disk = _sequential(root)
        opened = OpenStore(place.properties(root))
        try:
            drop_from_cache([path for path in root.rglob("*") if path.is_file()])
            begun, from_disk = time.perf_counter(), disk_bytes_read()
            taken, taken_bytes = _consumed(opened)
            seconds = time.perf_counter() - begun
            from_disk = disk_bytes_read() - from_disk
        finally:
            opened.close()
    if taken != messages:
        raise RuntimeError(f"{messages} messages were stored, {taken} read")
    rate = taken_bytes / seconds / 1e6
    return {
        "messages": messages,
        "bytes": taken_bytes,
        "disk_bytes_read": from_disk,
        "seconds": round(seconds, 3),
        "mb_per_second": round(rate, 1),
        "disk_mb_per_second": round(disk, 1),
        "bar_mb_per_second": round(BAR, 1),
        "reached": rate >= BAR,
    }


def _sequential(root: Path) -> float:
    """Return the megabytes a second of reading the log from its beginning to its end, cold."""
    drop_from_cache(log_files(root))
    begun = time.perf_counter()
    return read_through(root / "commitlog") / (time.perf_counter() - begun) / 1e6


def _consumed(opened: OpenStore) -> tuple[int, int]:
    """Pull from every queue until each is at its end; return how many messages, and bytes."""
    messages = size = 0
    open_queues = set(range(QUEUES))
    ready = [(queue_id, 0) for queue_id in open_queues]

    def took(queue_id: int, found: Found) -> None:
        nonlocal messages, size
        messages += len(found.records)
        size += sum(map(len, found.records))
        if found.status is GetStatus.FOUND or found.next_offset < found.max_offset:
            ready.append((queue_id, found.next_offset))
        else:
            open_queues.discard(queue_id)

    while open_queues:
        turn, ready[:] = list(ready), []
        for queue_id, offset in turn:
            opened.store.begin_get(TOPIC, queue_id, offset, A_PULL, None, partial(took, queue_id))
        opened.breathe(0.0 if ready else 1.0)
    return messages, size
