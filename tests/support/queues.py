"""Runs and units for the tests of consume queues, made by hand."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from gantrymq.broker.filter.choice import TagChoice
from gantrymq.kernel import PRE_BLANK_SIZE, QueueRun, QueueUnit, kernel

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.store.consume_queue import ConsumeQueue
    from gantrymq.store.queue_table import QueueTable

UNIT = struct.Struct(">qiq")
BLANK = UNIT.pack(0, PRE_BLANK_SIZE, 0)
MESSAGE_BYTES = 100


def unit(log_offset: int, tags_code: int = 0, size: int = MESSAGE_BYTES) -> bytes:
    """Return one unit."""
    return UNIT.pack(log_offset, size, tags_code)


def run(first: int, *log_offsets: int, topic: bytes = b"T", queue_id: int = 0) -> QueueRun:
    """Return the run of messages of 100 bytes at these log offsets, from a queue offset on."""
    units = b"".join(unit(log_offset) for log_offset in log_offsets)
    return QueueRun(topic, queue_id, first, units, log_offsets[-1] + MESSAGE_BYTES, 1)


def log_offsets(queue: ConsumeQueue) -> list[int | None]:
    """Return the log offsets of a queue from its min offset on, None for pre-blank units."""
    raw = queue.read(queue.min_offset, 10**6)
    units = [QueueUnit(*parts) for parts in UNIT.iter_unpack(raw)]
    return [None if each.size == PRE_BLANK_SIZE else each.log_offset for each in units]


def drop_table_files_before(table: QueueTable, log_min_offset: int) -> list[Path]:
    """Let all queues follow, as a cleaner does; return the files."""
    paths: list[Path] = []
    for queue in table.behind_log(log_min_offset):
        search = table.search(queue, log_min_offset)
        if expired := table.expire(queue, search, search.find()):
            table.drop(expired)
            paths += expired.paths
    return paths


def tag_filter(*tags: str) -> TagChoice:
    """Return what lets messages through that have one of some tags."""
    return TagChoice(frozenset(kernel.string_hash(tag.encode()) for tag in tags), None)


def drop_files_before(queue: ConsumeQueue, log_min_offset: int) -> list[Path]:
    """Let a queue follow a log that begins later; return the files that it has forgotten."""
    queue.correct_min_offset(log_min_offset)
    keep, paths = queue.files_before_min()
    queue.drop_files(keep)
    return paths
