"""A store of many gibibytes with many queues, made of holes: nothing of it is written or read."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TOPICS, QUEUES = 1000, 8
QUEUE_BYTES = 300_000 * 20
BLANK_MAGIC = 0xCBD43194


def sparse(path: Path, size: int, *parts: tuple[int, bytes]) -> None:
    """Write a file of zeros, as a hole, with some bytes in it."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.ftruncate(handle, size)
        for position, data in parts:
            os.pwrite(handle, data, position)
    finally:
        os.close(handle)


def grow(root: Path, record: bytes, files: int, file_bytes: int) -> None:
    """Make files of a record, each with one message and a blank record up to its end.

    It is the first of queue 0 of T; all other queues have one unit, which leads to the first file.
    """
    units = b""
    for number in range(files):
        start = number * file_bytes
        body = bytearray(record)
        struct.pack_into(">qq", body, 20, number, start)
        blank = struct.pack(">iI", file_bytes - len(body), BLANK_MAGIC)
        end = [(len(body), blank)] if number < files - 1 else []
        path = root / "commitlog" / f"{start:020d}"
        path.unlink(missing_ok=True)
        sparse(path, file_bytes, (0, bytes(body)), *end)
        units += struct.pack(">qiq", start, len(body), 0)
    for topic in ("T", *(f"Topic{number:04d}" for number in range(TOPICS))):
        for queue_id in range(QUEUES):
            directory = root / "consumequeue" / topic / str(queue_id)
            directory.mkdir(parents=True, exist_ok=True)
            own = units if (topic, queue_id) == ("T", 0) else units[:20]
            sparse(directory / f"{0:020d}", QUEUE_BYTES, (0, own))
