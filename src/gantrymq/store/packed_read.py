"""The short way of a pull: messages that are hot and chosen by tag alone, in one kernel call.

Most pulls are of this kind: a consumer that keeps up, or one that reads a backlog which is still in
the page cache. For them the kernel walks the units and copies the records behind one another; a
copy of a batch of small messages is cheaper than a slice for each. Whatever is unusual (nothing
found, cold data, the edge of a file, an extension, a filter that looks into messages) gives None,
and the caller goes the long way (`cold_read.py`), which decides about statuses and offsets.

Two things are remembered between pulls, for consumers read on where they stopped:

- chunks of units that lie in queue files, which cost three system calls each otherwise;
- windows of the log that were found in the page cache, for RESIDENT_S: a page may be gone by then,
  and reading it waits for the disk once.

What an earlier process wrote is checked in passing (`read_check.py`), and the kernel's own ways do
not lead there.

Owned by the task that owns the log.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.kernel import UNIT_BYTES, kernel
from gantrymq.store.cold_read import TAIL_BYTES
from gantrymq.store.files import RESIDENT_BYTES_MAX
from gantrymq.store.get import Found
from gantrymq.store.status import GetStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.clock import Clock
    from gantrymq.kernel.lanes import PullWay
    from gantrymq.store.commit_log import CommitLog
    from gantrymq.store.consume_queue import ConsumeQueue
    from gantrymq.store.get import TransferLimits
    from gantrymq.store.mapped_file import MappedFile
    from gantrymq.store.read_check import ReadCheck

CHUNK_UNITS: Final = 2048
CHUNKS_MAX: Final = 256
"""Chunks of units that are remembered: 10 MiB."""
WINDOW_BYTES: Final = RESIDENT_BYTES_MAX // 2
WINDOWS_MAX: Final = 64
RESIDENT_S: Final = 0.05
_LOG_OFFSET_BYTES: Final = 8


class UnitChunks:
    """Units of queues in chunks, those used last; a unit that was built never changes."""

    def __init__(self) -> None:
        self._chunks: OrderedDict[tuple[ConsumeQueue, int, int], bytes] = OrderedDict()

    def units(self, queue: ConsumeQueue, offset: int, units_max: int) -> tuple[bytes, int]:
        """Return a buffer with units, and the position in it of the one at an offset.

        None of them if they are not in memory.
        """
        number = offset // CHUNK_UNITS
        first = number * CHUNK_UNITS
        # A queue that was begun anew has other units at the same offsets.
        key = queue, queue.restarts, number
        chunk = self._chunks.get(key)
        if chunk is None:
            if first + CHUNK_UNITS > queue.max_offset or first < queue.min_offset:
                return queue.read_now(offset, units_max) or b"", 0
            chunk = queue.read_now(first, CHUNK_UNITS)
            if chunk is None or len(chunk) < CHUNK_UNITS * UNIT_BYTES:
                return queue.read_now(offset, units_max) or b"", 0
            self._chunks[key] = chunk
            if len(self._chunks) > CHUNKS_MAX:
                self._chunks.popitem(last=False)
        else:
            self._chunks.move_to_end(key)
        return chunk, (offset - first) * UNIT_BYTES


class _Place(NamedTuple):
    """Where a batch lies: units from `start` on, and the file of the log that they point into."""

    units: bytes
    start: int
    file: MappedFile
    log_end: int
    """Position in the file up to which it is in memory."""
    log_offset: int
    """Of the first message."""


class PackedReads:
    """Reads batches in one kernel call where that is possible."""

    def __init__(
        self, log: CommitLog, limits: TransferLimits, clock: Clock, check: ReadCheck
    ) -> None:
        self._log = log
        self._check = check
        self._limits = limits
        self._monotonic = clock.monotonic
        self._chunks = UnitChunks()
        self._windows: dict[int, tuple[int, int, float]] = {}
        """By number: from where to where the log is in memory, and until when that is believed."""

    def read(
        self, queue: ConsumeQueue | None, offset: int, count_max: int, hashes: Sequence[int]
    ) -> Found | None:
        """Return messages from an offset on whose tag is among `hashes` (all, without any).

        None means that somebody else must look.
        """
        place = self._place(queue, offset, count_max)
        if queue is None or place is None:
            return None
        units, start, file, log_end = place[:4]
        limits = self._limits
        found = kernel.gather_records(
            units, start, len(units), file.region.buffer, 0, log_end, file.start, hashes,
            min(count_max, limits.memory_count), limits.memory_bytes,
        )  # fmt: skip
        if not found.messages:
            return None
        if place.log_offset < self._check.trusted_from:
            first = offset - start // UNIT_BYTES
            if not self._check.are_good(queue, units, first, found.records, found.messages):
                return None
        return Found(
            GetStatus.FOUND,
            offset + (found.end - start) // UNIT_BYTES,
            queue.min_offset,
            queue.max_offset,
            [memoryview(found.records)],
            len(found.records),
            behind_bytes=self._log.committed_offset - found.last_log_offset,
            packed=found.messages,
        )

    def new_way(
        self,
        hashes: Sequence[int],
        count_max: int,
        version: int,
        suggested: int,
        note: object,
    ) -> PullWay:
        """Return a way for pulls that are alike, with the limits of one read."""
        limits = self._limits
        return kernel.PullWay(
            hashes, min(count_max, limits.memory_count), limits.memory_bytes, version, suggested,
            note,
        )  # fmt: skip

    def point(self, way: PullWay, queue: ConsumeQueue | None, offset: int, count_max: int) -> bool:
        """Show a way of the kernel's where to read on from an offset; False if somebody must look.

        That holds for RESIDENT_S, and so does what it says of the queue's ends.
        """
        place = self._place(queue, offset, count_max)
        if queue is None or place is None or place.log_offset < self._check.trusted_from:
            return False
        first = offset - place.start // UNIT_BYTES
        way.point(
            place.units, first, place.file.region.buffer, place.log_end, place.file.start,
            queue.min_offset, queue.max_offset, self._monotonic() + RESIDENT_S,
        )  # fmt: skip
        return True

    def _place(self, queue: ConsumeQueue | None, offset: int, count_max: int) -> _Place | None:
        if queue is None or count_max < 1 or not queue.min_offset <= offset < queue.max_offset:
            return None
        units, start = self._chunks.units(queue, offset, count_max)
        if len(units) - start < UNIT_BYTES:
            return None
        first = int.from_bytes(units[start : start + _LOG_OFFSET_BYTES], signed=True)
        file = self._log.file_at(first)
        log_end = None if file is None else self._readable_until(file, first)
        if file is None or log_end is None:
            return None
        return _Place(units, start, file, log_end, first)

    def _readable_until(self, file: MappedFile, log_offset: int) -> int | None:
        """Return up to which position a file is in memory from an offset on; None if it is not."""
        behind = self._log.committed_offset - log_offset
        if behind > self._limits.hot_bytes:
            return None
        if behind <= TAIL_BYTES:
            return file.committed
        now = self._monotonic()
        number = log_offset // WINDOW_BYTES
        window = self._windows.get(number)
        if window is None or now > window[2] or not window[0] <= log_offset < window[1]:
            window = self._look(file, number, log_offset, now)
        until = window[1]
        return until - file.start if until > log_offset else None

    def _look(
        self, file: MappedFile, number: int, log_offset: int, now: float
    ) -> tuple[int, int, float]:
        """Ask which part of a window, and of the one behind it, is in memory.

        From its beginning on, if that is: readers of several queues are here at the same time.
        """
        stop = min((number + 2) * WINDOW_BYTES - file.start, file.committed)
        begin = max(number * WINDOW_BYTES - file.start, 0)
        until = file.region.resident_end(begin, stop)
        position = log_offset - file.start
        if until <= position:
            begin, until = position, file.region.resident_end(position, stop)
        window = file.start + begin, file.start + until, now + RESIDENT_S
        if len(self._windows) >= WINDOWS_MAX:
            self._windows.clear()
        self._windows[number] = window
        return window
