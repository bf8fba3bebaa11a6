"""Questions about messages: by key, by log offset, by time.

They are asked in two ways. `StoreReading` has the methods of `Questions` and waits for the disk if
it must: for tools, and where somebody has just read the same place. A broker asks through
`ColdQuestions.begin`: a question reads here and there (an entry of the index, a unit of a queue,
the head of a record), and each of these places is looked at first (`presence.py`). If one is not in
memory, a worker brings it there, and then the question is asked again from its beginning. The few
dozen places of a search by halves are thus brought one by one, and producers go on meanwhile.

**Bounds.** QUESTIONS_MAX of them wait for the worker; one more fails with `StoreOverloaded`. After
STEPS_MAX places a question is answered with the owner waiting: no question has so many, unless the
system throws pages out as fast as they are brought. A chain of the index may be long (a key that a
million messages share): it is followed a few thousand entries in a turn, and does not begin anew.

Owned by the task that owns the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

from gantrymq.store.errors import StoreOverloaded
from gantrymq.store.get import units_of
from gantrymq.store.presence import Absent, Looking, Waiting
from gantrymq.store.query import FoundByKey, MessageQuery
from gantrymq.store.search import Boundary, TimeSearch

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from gantrymq.kernel import QueueUnit
    from gantrymq.store.commit_log import CommitLog
    from gantrymq.store.consume_queue_ext import ExtUnit
    from gantrymq.store.files import Files
    from gantrymq.store.index import Index
    from gantrymq.store.presence import Presence, Walk
    from gantrymq.store.queue_table import QueueTable
    from gantrymq.store.worker import Worker

QUESTIONS_MAX: Final = 256
STEPS_MAX: Final = 512
T = TypeVar("T")


class Questions:
    """What can be asked. A queue that does not exist is an empty one."""

    def __init__(
        self,
        log: CommitLog,
        queues: QueueTable,
        index: Index | None,
        dispatched: Callable[[], int],
        presence: Presence | None = None,
    ) -> None:
        presence = Waiting() if presence is None else presence
        self._queues = queues
        self._presence = presence
        self._query = MessageQuery(log, index, dispatched, presence)
        self._search = TimeSearch(log, dispatched, presence)

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

    def units(self, topic: str, queue_id: int, offset: int, count_max: int) -> bytes:
        """Return the units of a queue from an offset on; see `ConsumeQueue.read`."""
        queue = self._queues.find(topic, queue_id)
        return b"" if queue is None else self._presence.units(queue, offset, count_max)

    def unit(self, topic: str, queue_id: int, offset: int) -> QueueUnit | None:
        """Return the unit of an offset; None if out of range."""
        return next(units_of(self.units(topic, queue_id, offset, 1)), None)

    def extension(self, topic: str, queue_id: int, address: int) -> ExtUnit | None:
        """Return what the extension of a queue has at an address; None without one."""
        queue = self._queues.find(topic, queue_id)
        extension = None if queue is None else self._queues.extension(queue)
        return None if extension is None else self._presence.extension(extension, address)


class _Asked(Generic[T]):
    """A question on its way."""

    __slots__ = ("brought", "done", "failed", "question", "walks")

    def __init__(
        self,
        question: Callable[[Questions], T],
        done: Callable[[T], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self.question = question
        self.done = done
        self.failed = failed
        self.brought: set[Hashable] = set()
        self.walks: dict[Hashable, Walk] = {}


class ColdQuestions:
    """Answers questions without waiting for the disk; see the head of this file."""

    def __init__(
        self,
        make: Callable[[Presence], Questions],
        files: Files,
        worker: Worker,
    ) -> None:
        self._make = make
        self._files = files
        self._worker = worker
        self._waiting: dict[object, Callable[[Exception], None]] = {}
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """Return how many questions wait for the worker."""
        return len(self._waiting)

    def begin(
        self,
        question: Callable[[Questions], T],
        done: Callable[[T], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Call `done` with the answer, or `failed`: now, or from the worker's report.

        The question may be asked several times, so it must only ask. A record in its answer is a
        slice of the mapped log: take it while `done` runs.
        """
        self._try(_Asked(question, done, failed))

    def _try(self, asked: _Asked[T]) -> None:
        presence: Presence = Looking(self._files, asked.brought, asked.walks)
        if len(asked.brought) >= STEPS_MAX:
            presence = Waiting()
        try:
            answer = asked.question(self._make(presence))
        except Absent as absent:
            self._bring(asked, absent)
        except Exception as error:  # noqa: BLE001 - whoever asked is told, whatever it is
            asked.failed(error)
        else:
            asked.done(answer)

    def _bring(self, asked: _Asked[T], absent: Absent) -> None:
        if self._is_closed or len(self._waiting) >= QUESTIONS_MAX:
            why = "it is closed" if self._is_closed else f"{QUESTIONS_MAX} questions wait already"
            asked.failed(StoreOverloaded(f"the store reads nothing from the disk now: {why}"))
            return
        self._waiting[asked] = asked.failed
        asked.brought.add(absent.place)
        self._worker.submit(
            absent.bring,
            lambda _: self._brought(asked, None),
            lambda error: self._brought(asked, error),
        )

    def _brought(self, asked: _Asked[T], error: Exception | None) -> None:
        if self._waiting.pop(asked, None) is None:
            return  # `close` was first
        if error is None or isinstance(error, FileNotFoundError):
            self._try(asked)  # a file that is gone is no longer asked for
        else:
            asked.failed(error)

    def close(self) -> None:
        """Tell everybody who waits that there is no answer; the worker has ended."""
        self._is_closed = True
        waiting, self._waiting = self._waiting, {}
        for failed in waiting.values():
            failed(StoreOverloaded("the store was closed meanwhile"))
