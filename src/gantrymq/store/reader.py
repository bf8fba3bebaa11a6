"""A store, read and left as it is: for tools, for tests, and for Spark.

    with StoreReader.open(Path("/data/store")) as store:
        for queue in store.queues():
            for record in store.messages(queue.topic, queue.queue_id):
                ...

The directory may belong to a running broker, to one that was stopped, or to one that crashed; to
gantrymq or to Apache RocketMQ 4.9 or 5.x. What is served is what a broker would serve after its
recovery, for it is a broker's own recovery that runs here, over files whose changes stay in memory
(`shadow_files.py`). No lock is taken and no byte is written.

**A store that is being written to** is seen as it was when it was opened; of what came later
nothing is. A broker may meanwhile delete old files: those that are mapped stay readable, a queue
file that is gone raises StoreDamaged or OSError, and opening the store again helps.

Owned by one task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Self

from gantrymq.clock import SystemClock
from gantrymq.kernel import PRE_BLANK_SIZE, kernel
from gantrymq.store.get import units_of
from gantrymq.store.log_walk import Span
from gantrymq.store.message_store import Identity, MessageStore, Workers
from gantrymq.store.shadow_files import ShadowFiles
from gantrymq.store.shape import settings_of
from gantrymq.store.worker import InlineWorker
from gantrymq.wire.record import MessageRecord, decode_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import TracebackType

    from gantrymq.clock import Clock
    from gantrymq.store.commit_log import CommitLog
    from gantrymq.store.index import Index
    from gantrymq.store.queue_table import QueueTable
    from gantrymq.store.recovery import RecoveryReport
    from gantrymq.store.settings import StoreSettings

__all__ = ["QueueRange", "Span", "StoreReader"]

UNITS_MAX: Final = 16384
"""Queue entries that are held at once."""
_NOBODY: Final = Identity(store_host=bytes(8))


class QueueRange(NamedTuple):
    """A queue and the offsets that it has: messages from `min_offset` to before `max_offset`."""

    topic: str
    queue_id: int
    min_offset: int
    max_offset: int


class StoreReader:
    """A store as a broker would find it; see the head of this file."""

    def __init__(self, settings: StoreSettings, *, clock: Clock | None = None) -> None:
        inline = InlineWorker()
        self.settings = settings
        self.files: Final = ShadowFiles()
        self._store = MessageStore(
            settings,
            _NOBODY,
            files=self.files,
            clock=clock or SystemClock(),
            workers=Workers.made(lambda _name: inline),
        )
        self._report: RecoveryReport | None = None

    @classmethod
    def open(
        cls,
        directory: Path,
        configuration: Path | None = None,
        *,
        progress: Callable[[int], None] | None = None,
    ) -> Self:
        """Read a directory, with the settings of a `broker.conf` or those that its files show.

        `progress` is told how far the log was walked.

        Raises:
            InvalidSettings: the configuration says something that cannot be.
            StoreDamaged: there is no store, or its files are not what the settings say.
            OSError: something cannot be read.
        """
        reader = cls(settings_of(directory, ShadowFiles(), configuration))
        reader.recover(progress)
        return reader

    def recover(self, progress: Callable[[int], None] | None = None) -> RecoveryReport:
        """Find out what a broker would serve; `open` does it."""
        self._report = self._store.open(0, progress, is_reader=True)
        return self._report

    def __enter__(self) -> Self:
        """Give the reader itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Give up the mappings; slices that were handed out stay good."""
        if self.index is not None:
            self.index.close()
        for file in self.log.files:
            file.close()

    # -- what there is ---------------------------------------------------------------------------

    @property
    def report(self) -> RecoveryReport | None:
        """Return what recovery found, and would have done; None before it ran."""
        return self._report

    @property
    def log(self) -> CommitLog:
        """Return the commit log."""
        return self._store.log

    @property
    def queue_table(self) -> QueueTable:
        """Return the consume queues."""
        return self._store.queues

    @property
    def index(self) -> Index | None:
        """Return the index, or None if there is none or it cannot be read."""
        return self._store.index

    @property
    def min_log_offset(self) -> int:
        """Return where the log begins."""
        return self.log.min_offset

    @property
    def max_log_offset(self) -> int:
        """Return the log offset behind the last record that can be read."""
        return self.log.wrote_offset

    def queues(self) -> list[QueueRange]:
        """Return all queues, by topic and queue id."""
        found = [
            QueueRange(queue.topic, queue.queue_id, queue.min_offset, queue.max_offset)
            for queue in self.queue_table
        ]
        return sorted(found)

    # -- reading ---------------------------------------------------------------------------------

    def spans(self, start: int | None = None, end: int | None = None) -> Iterator[Span]:
        """Cut a range of the log, or all of it, into pieces of one file each.

        A range must begin at a record; its end is behind one, or behind the log.
        """
        low = self.min_log_offset if start is None else max(start, self.min_log_offset)
        high = self.max_log_offset if end is None else min(end, self.max_log_offset)
        for file, begin, stop in self.log.spans(low, high):
            yield Span(file.region.buffer, begin, stop, file.start)

    def records(self, start: int | None = None, end: int | None = None) -> Iterator[MessageRecord]:
        """Yield the records of a range of the log in their order, whether in a queue or not."""
        for span in self.spans(start, end):
            position = span.start
            stop = kernel.scan_records(
                span.buffer, position, span.end, span.log_base, False, span.end - position + 1
            ).end
            while position < stop:
                record, position = decode_record(span.buffer, position, stop)
                yield record

    def messages(
        self, topic: str, queue_id: int, begin: int | None = None, end: int | None = None
    ) -> Iterator[MessageRecord]:
        """Yield the messages of a queue with offsets from `begin` to before `end`.

        Offsets that no message has are passed over.
        """
        for raw in self.raw_messages(topic, queue_id, begin, end):
            yield decode_record(raw, 0, len(raw))[0]

    def raw_messages(
        self, topic: str, queue_id: int, begin: int | None = None, end: int | None = None
    ) -> Iterator[memoryview]:
        """Yield the same messages as slices of the mapped log."""
        queue = self.queue_table.find(topic, queue_id)
        if queue is None:
            return
        offset = queue.min_offset if begin is None else max(begin, queue.min_offset)
        stop = queue.max_offset if end is None else min(end, queue.max_offset)
        while offset < stop:
            units = queue.read(offset, min(UNITS_MAX, stop - offset))
            for unit in units_of(units):
                offset += 1
                if unit.size == PRE_BLANK_SIZE:
                    continue
                record = self.log.read(unit.log_offset, unit.size)
                if record is not None:
                    yield record
