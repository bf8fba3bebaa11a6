"""The read side of the store: what a broker asks for on behalf of consumers, tools and people.

Reachable as `MessageStore.reads`. Nothing at or behind `dispatched_offset` is ever answered, so
nobody sees a message that is not yet as safe as the settings ask for.

`begin_get` never waits for the disk on the owner's thread. The rest does where data is cold: by
key, by offset and by time they are questions that people and starting consumers ask, of a record or
a few, and not what a consumer does all day.

A queue that does not exist is an empty one. Owned by the task that owns the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.store.cold_read import ColdReads
from gantrymq.store.get import Filter, Found, QueueReader, TransferLimits
from gantrymq.store.packed_read import PackedReads
from gantrymq.store.query import FoundByKey, MessageQuery
from gantrymq.store.search import Boundary, TimeSearch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gantrymq.clock import Clock
    from gantrymq.store.commit_log import CommitLog
    from gantrymq.store.files import Files
    from gantrymq.store.index import Index
    from gantrymq.store.queue_table import QueueTable
    from gantrymq.store.worker import Worker


class StoreReading:
    """Answers questions about messages; see the head of this file."""

    def __init__(
        self,
        log: CommitLog,
        queues: QueueTable,
        index: Index | None,
        dispatched: Callable[[], int],
        reader: QueueReader,
        cold: ColdReads,
        packed: PackedReads,
    ) -> None:
        self._queues = queues
        self._reader = reader
        self._query = MessageQuery(log, index, dispatched)
        self._search = TimeSearch(log, dispatched)
        self._packed = packed
        self.cold = cold

    # -- messages of a queue ----------------------------------------------------------------------

    def get(
        self, topic: str, queue_id: int, offset: int, count_max: int, choose: Filter | None = None
    ) -> Found:
        """Return messages of a queue from an offset on, waiting for the disk if it must."""
        return self._reader.read(self._queues.find(topic, queue_id), offset, count_max, choose)

    def begin_get(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        count_max: int,
        choose: Filter | None,
        done: Callable[[Found], None],
    ) -> None:
        """Call `done` once with messages of a queue from an offset on.

        At once if they are in memory, otherwise when a worker has read them, on this same thread;
        `cold_read.py` says what counts as in memory, and what happens when too many wait.
        """
        self.cold.begin(self._queues.find(topic, queue_id), offset, count_max, choose, done)

    def begin_pull(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        count_max: int,
        choose: Filter | None,
        hashes: Sequence[int] | None,
        done: Callable[[Found], None],
    ) -> None:
        """Do as `begin_get` does; messages may be packed (`Found.packed`).

        `hashes` are the tags that `choose` lets through, none if it is None itself, and None where
        tags alone do not tell.
        """
        queue = self._queues.find(topic, queue_id)
        if hashes is not None:
            found = self._packed.read(queue, offset, count_max, hashes)
            if found is not None:
                done(found)
                return
        self.cold.begin(queue, offset, count_max, choose, done)

    # -- by key and by place ----------------------------------------------------------------------

    def query_by_key(
        self, topic: str, key: str, count_max: int, begin_ms: int, end_ms: int
    ) -> FoundByKey:
        """Return the newest messages of a topic with a key, stored within a range of time."""
        return self._query.by_key(topic, key, count_max, begin_ms, end_ms)

    def record_at(self, log_offset: int) -> memoryview | None:
        """Return the record at a log offset, or None if there is none."""
        return self._query.by_log_offset(log_offset)

    def earliest_timestamp(self) -> int | None:
        """Return when the first message of the log was stored; None without one."""
        return self._query.earliest_timestamp()

    # -- offsets and times ------------------------------------------------------------------------

    def min_offset(self, topic: str, queue_id: int) -> int:
        """Return the first offset of a queue that may have a message."""
        queue = self._queues.find(topic, queue_id)
        return 0 if queue is None else queue.min_offset

    def max_offset(self, topic: str, queue_id: int) -> int:
        """Return the offset that the next message of a queue is going to be read at."""
        queue = self._queues.find(topic, queue_id)
        return 0 if queue is None else self._search.max_offset(queue)

    def offset_at(
        self,
        topic: str,
        queue_id: int,
        timestamp_ms: int,
        boundary: Boundary = Boundary.NEARER,
    ) -> int:
        """Return the offset of a queue that belongs to a moment; see `search.py`."""
        queue = self._queues.find(topic, queue_id)
        return 0 if queue is None else self._search.offset_at(queue, timestamp_ms, boundary)

    def earliest_stored(self, topic: str, queue_id: int) -> int | None:
        """Return when the first message of a queue was stored; None without one."""
        queue = self._queues.find(topic, queue_id)
        return None if queue is None else self._search.earliest(queue)

    def stored_at(self, topic: str, queue_id: int, offset: int) -> int | None:
        """Return when the message of an offset was stored; None if there is no message."""
        queue = self._queues.find(topic, queue_id)
        return None if queue is None else self._search.stored_at(queue, offset)

    def is_young(self, topic: str, queue_id: int) -> bool:
        """Tell whether a queue still has its first message, and that one is hot."""
        queue = self._queues.find(topic, queue_id)
        if queue is None or queue.max_offset == 0:
            return True
        return queue.min_offset <= 0 and self._reader.is_hot(queue, 0)

    def close(self) -> None:
        """Answer everybody who still waits."""
        self.cold.close()


def reading_of(
    log: CommitLog,
    queues: QueueTable,
    index: Index | None,
    dispatched: Callable[[], int],
    files: Files,
    worker: Worker,
    limits: TransferLimits,
    clock: Clock,
    took: Callable[[float], None],
    *,
    corrects: bool,
) -> StoreReading:
    """Join the parts of the read side; `took` is told how long reads from the disk take."""
    reader = QueueReader(log, limits, corrects=corrects)
    cold = ColdReads(log, reader, files, worker, clock, took)
    packed = PackedReads(log, limits, clock)
    return StoreReading(log, queues, index, dispatched, reader, cold, packed)
