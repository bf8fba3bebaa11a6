"""Consume queues that were made again, beside the log that they lead to and the store's own."""

from __future__ import annotations

import mmap
import struct
from typing import TYPE_CHECKING, Final

from gantrymq.errors import GantryError
from gantrymq.kernel import PRE_BLANK_SIZE, UNIT_BYTES
from gantrymq.spark.jobs.log_slices import Store, log_files
from gantrymq.store.queue_table import QUEUES_DIRECTORY
from gantrymq.wire.record import decode_record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gantrymq.spark.report.values import Row

SAMPLES_A_QUEUE: Final = 256
WRONG_MAX: Final = 100
_UNIT: Final = struct.Struct(">qiq")


def queue_directories(root: Path) -> Iterator[tuple[str, int, Path]]:
    """Yield topic, queue id and directory of the queues below a root."""
    base = root / QUEUES_DIRECTORY
    for topic in sorted(base.iterdir()) if base.is_dir() else ():
        for queue in sorted(topic.iterdir()) if topic.is_dir() else ():
            if queue.name.isdecimal():
                yield topic.name, int(queue.name), queue


def queue_bytes(directory: Path) -> tuple[int, bytes]:
    """Return the first position and the bytes of all files of a queue, without zeros behind."""
    paths = sorted(path for path in directory.iterdir() if path.name.isdecimal())
    if not paths:
        return 0, b""
    raw = b"".join(path.read_bytes() for path in paths)
    end = len(raw.rstrip(b"\0"))
    return int(paths[0].name), raw[: end + -end % UNIT_BYTES]


def compare_queues(store: Store, target: Path) -> list[Row]:
    """Compare what was made with the store's own queues, byte for byte up to the last unit made.

    Behind that Apache may leave units that recovery has cut off; files before the first one that
    the store still has were deleted with their messages.
    """
    rows: list[Row] = []
    for topic, queue_id, directory in queue_directories(target):
        own = store.root / QUEUES_DIRECTORY / topic / str(queue_id)
        first, made = queue_bytes(directory)
        row: Row = {"topic": topic, "queue": queue_id, "units": len(made) // UNIT_BYTES}
        if not own.is_dir():
            rows.append({**row, "state": "not in the store", "first difference": None})
            continue
        own_first, have = queue_bytes(own)
        begin = max(first, own_first)
        ours, theirs = made[begin - first :], have[begin - own_first :][: len(made)]
        same = ours == theirs[: len(ours)]
        at = None if same else begin + _difference(ours, theirs)
        state = "identical" if same else "differs"
        rows.append(
            {**row, "state": state, "first difference": None if at is None else at // UNIT_BYTES}
        )
    return rows


def _difference(ours: bytes, theirs: bytes) -> int:
    pairs = zip(ours, theirs, strict=False)
    return next(
        (at for at, (one, other) in enumerate(pairs) if one != other), min(len(ours), len(theirs))
    )


def look_up_units(store: Store, target: Path) -> tuple[int, list[str]]:
    """Look units up in the log, some of each queue; return how many and which were wrong."""
    looked, wrong = 0, list[str]()
    with LogLookup(store) as log:
        for topic, queue_id, directory in queue_directories(target):
            first, raw = queue_bytes(directory)
            count = len(raw) // UNIT_BYTES
            step = max(count // SAMPLES_A_QUEUE, 1)
            for number in {*range(0, count, step), count - 1} - {-1}:
                offset, size, _tags = _UNIT.unpack_from(raw, number * UNIT_BYTES)
                if size == PRE_BLANK_SIZE:
                    continue
                looked += 1
                expected = topic, queue_id, first // UNIT_BYTES + number
                if log.place_at(offset, size) != expected and len(wrong) < WRONG_MAX:
                    wrong.append(f"{topic}/{queue_id} offset {expected[2]} leads to {offset}")
    return looked, wrong


class LogLookup:
    """Reads single records of a log by their offset."""

    def __init__(self, store: Store) -> None:
        self._paths = log_files(store)
        self._length = store.settings.files.commit_log_bytes
        self._maps: dict[int, mmap.mmap] = {}

    def __enter__(self) -> LogLookup:
        """Give itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Give up the mappings."""
        for log in self._maps.values():
            log.close()
        self._maps.clear()

    def record(self, offset: int, size: int) -> bytes | None:
        """Return the bytes of a record, or None if the log has none there."""
        base = offset - offset % self._length
        if base not in self._paths or size <= 0:
            return None
        if base not in self._maps:
            with self._paths[base].open("rb") as file:
                self._maps[base] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        raw = self._maps[base][offset - base : offset - base + size]
        return raw if len(raw) == size else None

    def place_at(self, offset: int, size: int) -> tuple[str, int, int] | None:
        """Return topic, queue and queue offset of the record at an offset; None without one."""
        raw = self.record(offset, size)
        if raw is None:
            return None
        try:
            record, end = decode_record(raw, 0, len(raw))
        except GantryError:
            return None
        if end != size or record.log_offset != offset:
            return None
        return record.topic, record.queue_id, record.queue_offset
