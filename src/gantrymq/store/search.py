"""Which offset of a queue belongs to a moment: the start of a consumer that begins "an hour ago".

Units are in log order and store timestamps never go back along the log, so this is a search by
halves over the timestamps of the records that the units point to.

    NEARER   4.9: an exact match, whichever of several the search meets; else the nearer of the two
             neighbours, the earlier if both are as near
    LOWER    5.x: the first message not stored before the moment; behind the last one if there is
             none
    UPPER    5.x: the last message not stored after the moment; the first of all if there is none

4.9 looks into one file only, and so does NEARER, for the sake of the same answers. 4.9 chooses the
file by its modification time: the first one modified at or after the moment, else the last. That
time is not the time of a file's messages (a mapped file is written back when the system likes, and
a restored backup is as young as the restore), so that Apache 4.9.7 may answer the start of a later
file although there is an exact match, or the end of the first file to any question. Here, as in
5.x, the file is chosen by the timestamp of its last message.

Units that point to nothing (pre-blank ones) and to messages that the log no longer has are passed
over. Messages at or behind the limit, which in a broker is what has been dispatched, are not there.
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import TYPE_CHECKING, Final

from gantrymq.kernel import PRE_BLANK_SIZE
from gantrymq.store.get import units_of
from gantrymq.store.presence import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.kernel import QueueUnit
    from gantrymq.store.commit_log import CommitLog
    from gantrymq.store.consume_queue import ConsumeQueue
    from gantrymq.store.presence import Presence

_LONG: Final = struct.Struct(">q")
_SYS_FLAG: Final = struct.Struct(">i")
_SYS_FLAG_AT: Final = 36
_STORE_TIME_AT: Final = 56
_BORN_HOST_V6: Final = 0x10
_V6_EXTRA_BYTES: Final = 12
_HEAD_BYTES: Final = _STORE_TIME_AT + _V6_EXTRA_BYTES + _LONG.size
_BEFORE_ALL: Final = -(2**63)
_CHUNK_UNITS: Final = 64


class Boundary(Enum):
    """Which message to take where none has the very timestamp."""

    NEARER = "nearer"
    LOWER = "lower"
    UPPER = "upper"


def store_timestamp(record: memoryview) -> int:
    """Return the store timestamp of a record's bytes."""
    (sys_flag,) = _SYS_FLAG.unpack_from(record, _SYS_FLAG_AT)
    at = _STORE_TIME_AT + (_V6_EXTRA_BYTES if sys_flag & _BORN_HOST_V6 else 0)
    (timestamp,) = _LONG.unpack_from(record, at)
    return int(timestamp)


class TimeSearch:
    """Finds offsets by time; owned by the task that owns the log."""

    def __init__(
        self,
        log: CommitLog,
        limit: Callable[[], int] | None = None,
        presence: Presence | None = None,
    ) -> None:
        """Show the log up to what `limit` says each time; without it, all that is committed."""
        self._presence = Waiting() if presence is None else presence
        self._log = log
        self._limit = limit

    def max_offset(self, queue: ConsumeQueue) -> int:
        """Return the offset behind the last message that may be shown."""
        limit = None if self._limit is None else self._limit()
        if limit is None or queue.log_end <= limit:
            return queue.max_offset
        low, stop = queue.min_offset, queue.max_offset
        while low < stop:
            middle = (low + stop) // 2
            unit = self._unit(queue, self._first_unit(queue, middle, stop))
            if unit is None or unit.log_offset + unit.size > limit:
                stop = middle
            else:
                low = middle + 1
        return low

    def stored_at(self, queue: ConsumeQueue, offset: int) -> int | None:
        """Return when the message of an offset was stored; None if there is no message."""
        unit = self._unit(queue, offset)
        if unit is None or unit.size == PRE_BLANK_SIZE:
            return None
        if self._limit is not None and unit.log_offset + unit.size > self._limit():
            return None
        file = self._log.file_at(unit.log_offset)
        if file is not None:
            head_bytes = min(unit.size, _HEAD_BYTES)
            self._presence.need(file.region, unit.log_offset - file.start, head_bytes)
        record = self._log.read(unit.log_offset, unit.size)
        return None if record is None else store_timestamp(record)

    def earliest(self, queue: ConsumeQueue) -> int | None:
        """Return when the first message of a queue was stored; None without one."""
        return self.stored_at(queue, self._first_not_before(queue, _BEFORE_ALL))

    def offset_at(
        self, queue: ConsumeQueue, timestamp_ms: int, boundary: Boundary = Boundary.NEARER
    ) -> int:
        """Return the offset that belongs to a moment; the next one in an empty queue."""
        most = self.max_offset(queue)
        if queue.min_offset >= most:
            return most
        if boundary is Boundary.LOWER:
            return self._first_not_before(queue, timestamp_ms)
        if boundary is Boundary.UPPER:
            behind = self._first_not_before(queue, timestamp_ms + 1)
            return max(behind - 1, self._first_not_before(queue, _BEFORE_ALL))
        return self._nearer(queue, *self._file_of(queue, timestamp_ms), timestamp_ms)

    def _first_not_before(self, queue: ConsumeQueue, timestamp_ms: int) -> int:
        """Return the first offset with a message stored at a moment or later, or the max offset."""
        low, most = queue.min_offset, self.max_offset(queue)
        stop = most
        while low < stop:
            middle = (low + stop) // 2
            found = self._first_unit(queue, middle, stop)
            if found < stop and self._is_before(queue, found, timestamp_ms):
                low = found + 1
            else:
                stop = middle
        return self._first_unit(queue, low, most)

    def _is_before(self, queue: ConsumeQueue, offset: int, timestamp_ms: int) -> bool:
        """Tell whether a message was stored before a moment; one that is gone was."""
        stored = self.stored_at(queue, offset)
        return stored is None or stored < timestamp_ms

    def _file_of(self, queue: ConsumeQueue, timestamp_ms: int) -> tuple[int, int]:
        """Return (first, behind the last) offset of the file to search."""
        units, most = queue.next_file_offset(0), self.max_offset(queue)
        first, last = queue.min_offset // units, (most - 1) // units
        while first < last:
            middle = (first + last) // 2
            if self._is_before(queue, (middle + 1) * units - 1, timestamp_ms):
                first = middle + 1
            else:
                last = middle
        low = max(first * units, queue.min_offset)
        return low, min((first + 1) * units, most)

    def _nearer(self, queue: ConsumeQueue, low: int, stop: int, timestamp_ms: int) -> int:
        """Search as ConsumeQueue.getOffsetInQueueByTime does, in the same steps."""
        high, answer = stop - 1, low
        left: tuple[int, int] | None = None
        right: tuple[int, int] | None = None
        while low <= high:
            middle = (low + high) // 2
            found = self._first_unit(queue, middle, high + 1)
            stored = self.stored_at(queue, found)
            if found > high:
                high = middle - 1
            elif stored is None:
                low = found + 1
            elif stored == timestamp_ms:
                return found
            elif stored > timestamp_ms:
                high, right = middle - 1, (found, stored)
            else:
                low, left = found + 1, (found, stored)
        if left is None:
            return answer if right is None else right[0]
        if right is None or timestamp_ms - left[1] <= right[1] - timestamp_ms:
            return left[0]
        return right[0]

    def _unit(self, queue: ConsumeQueue, offset: int) -> QueueUnit | None:
        raw = self._presence.units(queue, offset, 1)
        return next(units_of(raw)) if raw else None

    def _first_unit(self, queue: ConsumeQueue, offset: int, stop: int) -> int:
        """Return the first offset of a range that has a unit of a message, or `stop`."""
        while offset < stop:
            units = self._presence.units(queue, offset, min(_CHUNK_UNITS, stop - offset))
            if not units:
                break
            for unit in units_of(units):
                if unit.size != PRE_BLANK_SIZE:
                    return offset
                offset += 1
        return stop
