"""The short way of a pull: messages that are hot and chosen by tag alone, in one kernel call.

Most pulls are of this kind: a consumer that keeps up, or one that reads a backlog which is still in
the page cache. For them the kernel walks the units and copies the records behind one another; a
copy of a batch of small messages is cheaper than a slice for each. Whatever is unusual (nothing
found, cold data, the edge of a file, an extension, a filter that looks into messages) gives None,
and the caller goes the long way (`cold_read.py`), which decides about statuses and offsets.

Two things are remembered between pulls, for consumers read on where they stopped:

- chunks of units that lie in queue files, which cost three system calls each otherwise;
- the last window of the log that was found in the page cache, for RESIDENT_S: a page may be gone by
  then, and reading it waits for the disk once.

Owned by the task that owns the log.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from gantrymq.kernel import UNIT_BYTES, kernel
from gantrymq.store.cold_read import TAIL_BYTES
from gantrymq.store.get import Found
from gantrymq.store.status import GetStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.clock import Clock
    from gantrymq.store.commit_log import CommitLog
    from gantrymq.store.consume_queue import ConsumeQueue
    from gantrymq.store.get import TransferLimits
    from gantrymq.store.mapped_file import MappedFile

CHUNK_UNITS: Final = 1024
CHUNKS_MAX: Final = 512
"""Chunks of units that are remembered: 10 MiB."""
WINDOW_BYTES: Final = 1 << 20
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
        if first + CHUNK_UNITS > queue.max_offset or first < queue.min_offset:
            return queue.read_now(offset, units_max) or b"", 0
        # A queue that was begun anew has other units at the same offsets.
        key = queue, queue.restarts, number
        chunk = self._chunks.get(key)
        if chunk is None:
            chunk = queue.read_now(first, CHUNK_UNITS)
            if chunk is None or len(chunk) < CHUNK_UNITS * UNIT_BYTES:
                return queue.read_now(offset, units_max) or b"", 0
            self._chunks[key] = chunk
            if len(self._chunks) > CHUNKS_MAX:
                self._chunks.popitem(last=False)
        else:
            self._chunks.move_to_end(key)
        return chunk, (offset - first) * UNIT_BYTES


class PackedReads:
    """Reads batches in one kernel call where that is possible."""

    def __init__(self, log: CommitLog, limits: TransferLimits, clock: Clock) -> None:
        self._log = log
        self._limits = limits
        self._clock = clock
        self._chunks = UnitChunks()
        self._from = self._until = 0
        self._known_until = 0.0

    def read(
        self, queue: ConsumeQueue | None, offset: int, count_max: int, hashes: Sequence[int]
    ) -> Found | None:
        """Return messages from an offset on whose tag is among `hashes` (all, without any).

        None means that somebody else must look.
        """
        if queue is None or count_max < 1 or not queue.min_offset <= offset < queue.max_offset:
            return None
        units, start = self._chunks.units(queue, offset, count_max)
        first = int.from_bytes(units[start : start + _LOG_OFFSET_BYTES], signed=True)
        file = self._log.file_at(first) if len(units) - start >= UNIT_BYTES else None
        log_end = None if file is None else self._readable_until(file, first)
        if file is None or log_end is None:
            return None
        limits = self._limits
        found = kernel.gather_records(
            units,
            start,
            len(units),
            file.region.buffer,
            0,
            log_end,
            file.start,
            hashes,
            min(count_max, limits.memory_count),
            limits.memory_bytes,
        )
        if not found.messages:
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

    def _readable_until(self, file: MappedFile, log_offset: int) -> int | None:
        """Return up to which position a file is in memory from an offset on; None if it is not."""
        committed = self._log.committed_offset
        behind = committed - log_offset
        if behind <= TAIL_BYTES:
            return file.committed
        if behind > self._limits.hot_bytes > 0:
            return None
        now = self._clock.monotonic()
        if not self._from <= log_offset < self._until or now > self._known_until:
            position = log_offset - file.start
            stop = min(position + WINDOW_BYTES, file.committed)
            self._from = log_offset
            self._until = file.start + file.region.resident_end(position, stop)
            self._known_until = now + RESIDENT_S
        until = self._until - file.start
        return until if until > log_offset - file.start else None
