"""Reading a queue: from an offset, as many messages as fit, those that a filter lets through.

The rules (which status, which next offset, when a batch is full, what counts as cold) are those of
DefaultMessageStore.getMessage, so that every client sees what it expects. `QueueReader.read` reads
at once, slices of the mapped log: nothing is copied, but a page that is not in memory is waited
for. `cold_read.py` reads the same way without ever waiting: it puts another `LogView` in the log's
place.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from gantrymq.kernel import PRE_BLANK_SIZE, UNIT_BYTES, QueueUnit
from gantrymq.store.status import GetStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gantrymq.store.consume_queue import ConsumeQueue
    from gantrymq.store.read_check import ReadCheck
    from gantrymq.store.settings import TransferSettings

_UNIT: Final = struct.Struct(">qiq")
SCAN_BYTES_MIN: Final = 16000
"""Bytes of units that one read looks at, at least."""
SCAN_BYTES_MAX: Final = 80000
"""And at most, whatever a client asks for; it goes on from the next offset."""

EVERYTHING: Final = 1 << 62
"""More than any log has."""


class TransferLimits(NamedTuple):
    """How much one read returns: of messages in memory, and of those that must come from disk."""

    memory_bytes: int = 262144
    memory_count: int = 32
    disk_bytes: int = 65536
    disk_count: int = 8
    hot_bytes: int = EVERYTHING
    """How far behind the log's end a message still counts as in memory; with 0 none does."""


def limits_of(settings: TransferSettings, memory_bytes: int) -> TransferLimits:
    """Return the limits that the settings mean on a machine with so much RAM; 0 is unknown."""
    return TransferLimits(
        settings.memory_bytes_max,
        settings.memory_messages_max,
        settings.disk_bytes_max,
        settings.disk_messages_max,
        memory_bytes * settings.memory_percent // 100 if memory_bytes else EVERYTHING,
    )


class Filter(Protocol):
    """Decides which messages of a queue a reader gets.

    It may be asked on a thread, while its owner does other things: it must not change by itself,
    nor be changed while a read is under way.
    """

    def by_unit(self, unit: QueueUnit) -> bool:
        """Look at a queue entry; True when only the message itself can tell."""
        ...

    def by_record(self, record: memoryview) -> bool:
        """Look at the message."""
        ...


class Found(NamedTuple):
    """What a read returns."""

    status: GetStatus
    next_offset: int
    min_offset: int
    max_offset: int
    records: list[memoryview]
    record_bytes: int = 0
    from_slave: bool = False
    """The reader is so far behind that it should read from a slave."""
    behind_bytes: int = 0
    trouble: str = ""
    """Why nothing was read although there may be something; the reader should come again."""
    wait_s: float = 0.0
    """After how long, where that is known: the reader has used up what it may read of the disk."""
    packed: int = 0
    """Messages that lie behind one another in a single element of `records`; 0: one in each."""

    @property
    def messages(self) -> int:
        """Return how many messages were found."""
        return self.packed or len(self.records)


class LogView(Protocol):
    """The log as one read sees it."""

    @property
    def file_bytes(self) -> int:
        """Return the length of a file."""
        ...

    @property
    def committed_offset(self) -> int:
        """Return the log offset up to which there is anything to read."""
        ...

    def read(self, log_offset: int, count: int) -> memoryview | None:
        """Return bytes of the log; None if they are not there.

        Raises:
            NotNow: reading on must be done elsewhere.
            EnoughRead: this read has looked at as much as one may.
        """
        ...


class NotNow(Exception):
    """The message must be waited for, or too many were looked at: go on at `next_offset`."""

    next_offset: int = 0


class EnoughRead(Exception):
    """A read ends here, with what it has."""


class Question(NamedTuple):
    """What a reader asks, and the queue's answer to it: the units from `offset` on."""

    units: bytes
    offset: int
    count_max: int
    choose: Filter | None
    min_offset: int
    max_offset: int
    queue: ConsumeQueue
    check: ReadCheck | None = None
    checked_below: int = 0
    """Messages before this log offset are looked at before they are given out."""

    def is_good(self, unit: QueueUnit, queue_offset: int, record: memoryview) -> bool:
        """Tell whether a message may be given out."""
        if self.check is None or unit.log_offset >= self.checked_below:
            return True
        return self.check.is_good(self.queue, queue_offset, unit, record)


class QueueReader:
    """Reads messages out of the log by way of a queue; owned by the task that owns the log."""

    def __init__(
        self,
        log: LogView,
        limits: TransferLimits,
        *,
        corrects: bool = True,
        check: ReadCheck | None = None,
    ) -> None:
        """Without `corrects` a reader outside of a queue is not sent anywhere else.

        That is a slave's way: its queues may be behind those of the master, whose offsets count.
        """
        self._log = log
        self.limits = limits
        self.corrects = corrects
        self._check = check

    def read(
        self, queue: ConsumeQueue | None, offset: int, count_max: int, choose: Filter | None
    ) -> Found:
        """Return messages from `offset` on, waiting for those that are not in memory."""
        asked = self.ask(queue, offset, count_max, choose)
        return asked if isinstance(asked, Found) else collect(self._log, self.limits, asked)

    def ask(
        self,
        queue: ConsumeQueue | None,
        offset: int,
        count_max: int,
        choose: Filter | None,
        *,
        waits: bool = True,
    ) -> Found | Question:
        """Return what there is to look at, or the answer if there is nothing.

        Raises:
            NotNow: the queue's units are not in memory, and this is not to wait for them.
        """
        if queue is None:
            # An empty queue to whoever asks: Apache makes one when it looks for it.
            return self._corrected(Found(GetStatus.NO_MESSAGE_IN_QUEUE, 0, 0, 0, []), offset)
        least, most = queue.min_offset, queue.max_offset
        outside = _outside(offset, least, most)
        if outside is not None:
            return self._corrected(outside, offset)
        count = units_scanned(count_max)
        units = queue.read(offset, count) if waits else queue.read_now(offset, count)
        if units is None:
            raise NotNow
        if not units:
            behind = queue.next_file_offset(offset)
            return self._corrected(
                Found(GetStatus.OFFSET_FOUND_NULL, behind, least, most, []), offset
            )
        check = self._check
        below = 0 if check is None else check.trusted_from
        return Question(units, offset, count_max, choose, least, most, queue, check, below)

    def is_hot(self, unit: QueueUnit | None) -> bool:
        """Tell whether the message of a unit counts as in memory; one that is not there does."""
        if unit is None or unit.size == PRE_BLANK_SIZE:
            return True
        return self._log.committed_offset - unit.log_offset <= self.limits.hot_bytes

    def _corrected(self, found: Found, offset: int) -> Found:
        return found if self.corrects else found._replace(next_offset=offset)


def collect(log: LogView, limits: TransferLimits, asked: Question) -> Found:
    """Go over the units and return the messages that fit.

    Raises:
        NotNow: the first message that would be returned cannot be read here.
    """
    batch = _Batch(log, limits, asked.count_max)
    choose = asked.choose
    status = GetStatus.NO_MESSAGE_IN_QUEUE
    scanned = 0
    for unit in units_of(asked.units):
        if unit.size == PRE_BLANK_SIZE:
            scanned += 1
            continue
        if batch.is_full_for(unit):
            break
        if batch.is_gone(unit):
            scanned += 1
            continue
        if choose is not None and not choose.by_unit(unit):
            scanned += 1
            status = status if batch.records else GetStatus.NO_MATCHED_MESSAGE
            continue
        try:
            record = batch.find(unit)
        except NotNow as turn:
            if batch.records:
                break  # what is here is not kept waiting
            turn.next_offset = asked.offset + scanned
            raise
        except EnoughRead:
            break
        if record is not None and not asked.is_good(unit, asked.offset + scanned, record):
            record = None
        scanned += 1
        if record is None:
            status = status if batch.records else GetStatus.MESSAGE_WAS_REMOVING
        elif choose is not None and not choose.by_record(record):
            status = status if batch.records else GetStatus.NO_MATCHED_MESSAGE
        else:
            batch.add(record)
            status = GetStatus.FOUND
    behind = log.committed_offset - batch.last_log_offset
    return Found(
        status,
        asked.offset + scanned,
        asked.min_offset,
        asked.max_offset,
        batch.records,
        batch.record_bytes,
        batch.last_log_offset > 0 and behind > limits.hot_bytes,
        behind,
    )


def units_scanned(count_max: int) -> int:
    """Return how many units one read looks at."""
    return min(max(SCAN_BYTES_MIN, count_max * UNIT_BYTES), SCAN_BYTES_MAX) // UNIT_BYTES


def _outside(offset: int, least: int, most: int) -> Found | None:
    """Return the answer to an offset that no message of the queue has, or None."""
    if most == 0:
        return Found(GetStatus.NO_MESSAGE_IN_QUEUE, 0, least, most, [])
    if offset < least:
        return Found(GetStatus.OFFSET_TOO_SMALL, least, least, most, [])
    if offset == most:
        return Found(GetStatus.OFFSET_OVERFLOW_ONE, offset, least, most, [])
    if offset > most:
        return Found(GetStatus.OFFSET_OVERFLOW_BADLY, most, least, most, [])
    return None


class _Batch:
    """The messages collected for one read."""

    __slots__ = (
        "_committed",
        "_count_max",
        "_gone_below",
        "_limits",
        "_log",
        "last_log_offset",
        "record_bytes",
        "records",
    )

    def __init__(self, log: LogView, limits: TransferLimits, count_max: int) -> None:
        self.records: list[memoryview] = []
        self.record_bytes = 0
        self.last_log_offset = 0
        self._log = log
        self._committed = log.committed_offset
        self._limits = limits
        self._count_max = count_max
        self._gone_below = 0

    def is_full_for(self, unit: QueueUnit) -> bool:
        """Tell whether this message must wait for the next read; the first one never must."""
        if not self.records:
            return False
        count = len(self.records)
        if count >= self._count_max:
            return True
        limits = self._limits
        if self._committed - unit.log_offset > limits.hot_bytes:
            bytes_max, counted = limits.disk_bytes, limits.disk_count
        else:
            bytes_max, counted = limits.memory_bytes, limits.memory_count
        return self.record_bytes + unit.size > bytes_max or count >= counted

    def is_gone(self, unit: QueueUnit) -> bool:
        """Tell whether a file that is no longer there held this message."""
        self.last_log_offset = unit.log_offset
        return unit.log_offset < self._gone_below

    def find(self, unit: QueueUnit) -> memoryview | None:
        """Return the message that an entry points to."""
        record = self._log.read(unit.log_offset, unit.size)
        if record is None:
            bytes_a_file = self._log.file_bytes
            self._gone_below = unit.log_offset - unit.log_offset % bytes_a_file + bytes_a_file
        return record

    def add(self, record: memoryview) -> None:
        """Take a message."""
        self.records.append(record)
        self.record_bytes += len(record)


def units_of(raw: bytes) -> Iterator[QueueUnit]:
    """Go over the units of consume queue bytes, pre-blank ones included."""
    return map(QueueUnit._make, _UNIT.iter_unpack(raw[: len(raw) - len(raw) % UNIT_BYTES]))
