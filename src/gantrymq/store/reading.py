"""The read side of the store: what a broker asks for on behalf of consumers, tools and people.

Reachable as `MessageStore.reads`. Nothing at or behind `dispatched_offset` is ever answered, so
nobody sees a message that is not yet as safe as the settings ask for.

`begin_get`, `begin_pull` and `questions.begin` never wait for the disk on the owner's thread. The
questions themselves do where data is cold (`questions.py`); tools may ask them like that.

A queue that does not exist is an empty one. Owned by the task that owns the store.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gantrymq.store.cold_lanes import NOBODY
from gantrymq.store.cold_read import ColdReads
from gantrymq.store.get import Filter, Found, QueueReader, TransferLimits
from gantrymq.store.packed_read import PackedReads
from gantrymq.store.questions import ColdQuestions, Questions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gantrymq.clock import Clock
    from gantrymq.kernel.lanes import PullWay
    from gantrymq.store.commit_log import CommitLog
    from gantrymq.store.files import Files
    from gantrymq.store.index import Index
    from gantrymq.store.queue_table import QueueTable
    from gantrymq.store.read_check import ReadCheck
    from gantrymq.store.worker import Worker


class StoreReading(Questions):
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
        files: Files,
        worker: Worker,
    ) -> None:
        super().__init__(log, queues, index, dispatched)
        self._reader = reader
        self._packed = packed
        self.cold = cold
        self.questions = ColdQuestions(
            partial(Questions, log, queues, index, dispatched), files, worker
        )

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
        reader: str = NOBODY,
    ) -> None:
        """Call `done` once with messages of a queue from an offset on.

        At once if they are in memory, otherwise when a worker has read them, on this same thread;
        `cold_read.py` says what counts as in memory, and what happens when too many wait. `reader`
        is the group that reads: each has its turn, and its budget (`cold_lanes.py`).
        """
        queue = self._queues.find(topic, queue_id)
        self.cold.begin(queue, offset, count_max, choose, done, reader)

    def begin_pull(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        count_max: int,
        choose: Filter | None,
        hashes: Sequence[int] | None,
        done: Callable[[Found], None],
        reader: str = NOBODY,
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
        self.cold.begin(queue, offset, count_max, choose, done, reader)

    def new_way(
        self,
        hashes: Sequence[int],
        count_max: int,
        version: int,
        suggested: int,
        note: object,
    ) -> PullWay:
        """Return a way for pulls that are alike; it leads nowhere before it is pointed."""
        return self._packed.new_way(hashes, count_max, version, suggested, note)

    def point(self, way: PullWay, topic: str, queue_id: int, offset: int, count_max: int) -> bool:
        """Show a way where to read on in a queue; see `PackedReads.point`."""
        return self._packed.point(way, self._queues.find(topic, queue_id), offset, count_max)

    def is_young(self, store: Questions, topic: str, queue_id: int) -> bool:
        """Tell whether a queue still has its first message, and that one is hot; a question."""
        queue = self._queues.find(topic, queue_id)
        if queue is None or queue.max_offset == 0:
            return True
        return queue.min_offset <= 0 and self._reader.is_hot(store.unit(topic, queue_id, 0))

    def correct_offsets(self) -> None:
        """Send readers that are outside of a queue to where it is: this is the master now."""
        self._reader.corrects = True

    def close(self) -> None:
        """Answer everybody who still waits."""
        self.cold.close()
        self.questions.close()


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
    check: ReadCheck,
    *,
    corrects: bool,
) -> StoreReading:
    """Join the parts of the read side; `took` is told how long reads from the disk take.

    What `check` does not trust is looked at before it is given out.
    """
    reader = QueueReader(log, limits, corrects=corrects, check=check)
    cold = ColdReads(log, reader, files, worker, clock, took)
    packed = PackedReads(log, limits, clock, check)
    return StoreReading(log, queues, index, dispatched, reader, cold, packed, files, worker)
