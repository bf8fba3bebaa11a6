"""Opening a store that was closed: many queues, many bytes, little time and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bench.store.child import open_elsewhere, topic_name
from bench.store.place import GIB, OpenStore, Place, Result, drop_from_cache, log_files, sends

if TYPE_CHECKING:
    from pathlib import Path

LOG_BYTES: Final = 10 * GIB
LOG_BYTES_MIN: Final = 4 << 20
TOPICS: Final = 1000
TOPICS_MIN: Final = 10
QUEUES: Final = 8
MESSAGES_PER_QUEUE: Final = 20
SECONDS_BAR: Final = 2.0
MEMORY_MIB_BAR: Final = 200


def opening(place: Place) -> Result:
    """Open a store of 10 GiB and 1,000 topics with 8 queues each, cached and not."""
    topics = place.amount(TOPICS, TOPICS_MIN)
    with place.root("opening") as root:
        messages = _fill(place, root, topics)
        drop_from_cache([path for path in root.rglob("*") if path.is_file()])
        cold = _opened(place, root, topics)
        warm = _opened(place, root, topics)
        size = sum(path.stat().st_size for path in log_files(root))
    seconds, memory = warm["open_seconds"], warm["anonymous_mib"]
    return {
        "topics": topics,
        "queues": topics * QUEUES,
        "messages": messages,
        "log_bytes": size,
        "cold": cold,
        "warm": warm,
        "bar_seconds": SECONDS_BAR,
        "bar_private_mib": MEMORY_MIB_BAR,
        "reached": isinstance(seconds, float)
        and isinstance(memory, float)
        and seconds < SECONDS_BAR
        and memory < MEMORY_MIB_BAR,
    }


def _fill(place: Place, root: Path, topics: int) -> int:
    """Write so many topics, every queue with a few messages, through the store."""
    queues = topics * QUEUES
    log_bytes = place.amount(LOG_BYTES, LOG_BYTES_MIN)
    body = bytes(max(1, log_bytes // (queues * MESSAGES_PER_QUEUE) - 256))
    opened = OpenStore(place.properties(root))
    messages = 0
    for number in range(topics):
        opened.store.open_topic(topic_name(number), QUEUES)
    for _ in range(MESSAGES_PER_QUEUE):
        for number in range(topics):
            messages += opened.append(sends(QUEUES, body, topic=topic_name(number)))
            opened.breathe()
    opened.close()
    return messages


def _opened(place: Place, root: Path, topics: int) -> dict[str, object]:
    """Open the store and make it a cleanly closed one again: who opened it did not close it."""
    written = log_files(root)
    said = open_elsewhere(place.scale, root, topics, QUEUES)
    if not said["clean"]:
        raise RuntimeError(f"{root} was not closed cleanly")
    (root / "abort").unlink()
    for path in log_files(root):
        if path not in written:  # made ahead
            path.unlink()
    return said
