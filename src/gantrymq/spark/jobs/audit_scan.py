"""What an audit's task does with its slice: walk, sum up, and compare with the consume queues."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.kernel import UNIT_BYTES
from gantrymq.kernel.values import SCHEDULE_TOPIC
from gantrymq.model.names import is_path_safe
from gantrymq.spark.jobs.log_scan import edge_row
from gantrymq.spark.jobs.slice_walk import SliceWalk, auditing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gantrymq.kernel import AuditRun
    from gantrymq.spark.jobs.log_slices import LogSlice

DIFFERENCES_MAX: Final = 20
"""Differences of one queue that one task names."""
OPEN_FILES_MAX: Final = 64
_PLACE: Final = struct.Struct(">qi8x")


class QueueSum(msgspec.Struct, rename="camel"):
    """What a slice has of one queue."""

    topic: str
    queue_id: int
    messages: int = 0
    size: int = 0
    intervals: list[list[int]] = msgspec.field(default_factory=list)
    """[first queue offset, how many], joined where they touch, in log order."""
    differing: int = 0
    """Messages whose queue entry is another one."""
    lacking: int = 0
    """Messages behind the end of the queue's files."""
    is_known: bool = False
    """The queue has files."""
    differences: list[str] = msgspec.field(default_factory=list)


class SliceSum(msgspec.Struct, rename="camel"):
    """What a slice holds."""

    records: int = 0
    size: int = 0
    queued: int = 0
    keys: int = 0
    queues: list[QueueSum] = msgspec.field(default_factory=list)


@dataclass(frozen=True)
class AuditTask:
    """The function that a task runs; plain values, so that it can be sent to one."""

    root: str
    queue_file_bytes: int
    delays_ms: tuple[int, ...]
    compares: bool
    exact: bool
    """Tags codes are compared too: the queues have no extension."""
    knows_delays: bool
    """Those of delayed messages too: the configuration says how long a level is."""

    def __call__(self, piece: LogSlice) -> Iterator[tuple[object, ...]]:
        """Yield the sums of a slice, then its edge."""
        walk = SliceWalk(piece, auditing(self.delays_ms))
        found = SliceSum()
        sums: dict[tuple[bytes, int], QueueSum] = {}
        queues = QueueUnits(Path(self.root), self.queue_file_bytes)
        try:
            for part in walk.parts():
                found.records += part.records
                found.keys += part.keys
                for run in part.runs:
                    one = sums.get((run.topic, run.queue_id))
                    if one is None:
                        name = run.topic.decode(errors="replace")
                        one = sums[run.topic, run.queue_id] = QueueSum(name, run.queue_id)
                    _add(one, run)
                    if self.compares:
                        is_exact = self.exact and (self.knows_delays or run.topic != SCHEDULE_TOPIC)
                        _compare(one, run, queues, exact=is_exact)
        finally:
            queues.close()
        found.queues = list(sums.values())
        found.queued = sum(one.messages for one in found.queues)
        found.size = max(walk.edge.end - walk.edge.begin, 0)
        yield "sum", piece.number, msgspec.json.encode(found)
        yield edge_row(walk.edge, 3)


def _add(one: QueueSum, run: AuditRun) -> None:
    count = len(run.units) // UNIT_BYTES
    one.messages += count
    one.size += run.record_bytes
    join_interval(one.intervals, run.first_queue_offset, count)


def join_interval(intervals: list[list[int]], first: int, count: int) -> None:
    """Add an interval behind others, joined with the last one if they touch."""
    if intervals and intervals[-1][0] + intervals[-1][1] == first:
        intervals[-1][1] += count
    else:
        intervals.append([first, count])


def _compare(one: QueueSum, run: AuditRun, queues: QueueUnits, *, exact: bool) -> None:
    """Compare a run with what stands in the queue's files."""
    have = queues.read(one.topic, one.queue_id, run.first_queue_offset, len(run.units))
    if have is None:
        return
    one.is_known = True
    if have == run.units:
        return
    one.lacking += (len(run.units) - len(have)) // UNIT_BYTES
    for at in range(0, len(have), UNIT_BYTES):
        ours, theirs = run.units[at : at + UNIT_BYTES], have[at : at + UNIT_BYTES]
        if ours == theirs or (not exact and ours[:12] == theirs[:12]):
            continue
        if not any(theirs):
            one.lacking += 1  # never written, as behind the end of a queue
            continue
        one.differing += 1
        if len(one.differences) < DIFFERENCES_MAX:
            offset = run.first_queue_offset + at // UNIT_BYTES
            said, is_at = _PLACE.unpack(theirs), _PLACE.unpack(ours)
            one.differences.append(
                f"{one.topic}/{one.queue_id} offset {offset}: the queue says {said[1]} bytes at "
                f"{said[0]}, the log has {is_at[1]} bytes at {is_at[0]}"
            )


class QueueUnits:
    """Reads units of consume queues by queue offset, straight from the files."""

    def __init__(self, root: Path, file_bytes: int) -> None:
        self._root = root / "consumequeue"
        self._file_bytes = file_bytes
        self._files: dict[tuple[str, int, int], int | None] = {}
        self._known: dict[tuple[str, int], tuple[int, ...] | None] = {}

    def read(self, topic: str, queue_id: int, first: int, size: int) -> bytes | None:
        """Return units from an offset on: fewer at the queue's end; None without such a queue.

        Units before the first file have expired; they count as if the queue were not there.
        """
        starts = self._starts(topic, queue_id)
        position = first * UNIT_BYTES
        if starts is None or position < starts[0]:
            return None
        parts, end = [], position + size
        while position < end:
            start = position - position % self._file_bytes
            file = self._open(topic, queue_id, start) if start in starts else None
            if file is None:
                break
            count = min(end, start + self._file_bytes) - position
            part = os.pread(file, count, position - start)
            parts.append(part)
            position += len(part)
            if len(part) < count:
                break
        whole = b"".join(parts)
        return whole[: len(whole) - len(whole) % UNIT_BYTES]

    def _starts(self, topic: str, queue_id: int) -> tuple[int, ...] | None:
        key = topic, queue_id
        if key not in self._known:
            folder = self._root / topic / str(queue_id)
            names: Sequence[str] = ()
            if is_path_safe(topic) and folder.is_dir():
                names = [path.name for path in folder.iterdir() if path.name.isdecimal()]
            self._known[key] = tuple(sorted(map(int, names))) or None
        return self._known[key]

    def _open(self, topic: str, queue_id: int, start: int) -> int | None:
        key = topic, queue_id, start
        if key not in self._files:
            if len(self._files) >= OPEN_FILES_MAX:
                self.close()
            path = self._root / topic / str(queue_id) / f"{start:020d}"
            self._files[key] = os.open(path, os.O_RDONLY)
        return self._files[key]

    def close(self) -> None:
        """Give up the files."""
        for file in self._files.values():
            if file is not None:
                os.close(file)
        self._files.clear()
