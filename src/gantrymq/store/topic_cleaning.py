"""Topics that are deleted, and topics that are kept shorter than the files of the log.

**Deleted**: the queues of the topic are forgotten at once, and whoever still holds one finds it
empty. Their files go behind a flush that may be under way. The messages stay in the log for as long
as its files, and nobody is led to them. A message that comes for the topic before the files are
gone makes its queue anew; that queue is written to behind the removal. If the removal fails, it is
tried again later, or when the topic comes again. If the topic is already back when that shows, the
store stops: old and new units are in the same files.

**Kept shorter**: queues of such a topic are served from the first message that is young enough. Of
that nothing is written down; it is found again at a start, from the messages' own times. While a
broker serves, these are asked for as other cold data is (`questions.py`): nobody waits for them.

Owned by one task.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from gantrymq.store.queue_files import remove_all
from gantrymq.store.retention import TopicRetention
from gantrymq.store.search import Boundary
from gantrymq.store.stepping import Pause

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from gantrymq.clock import Clock
    from gantrymq.store.allocation import LogFiles
    from gantrymq.store.commit_log import CommitLog
    from gantrymq.store.consume_queue import ConsumeQueue
    from gantrymq.store.files import Files
    from gantrymq.store.flush import LogFlush
    from gantrymq.store.index import Index
    from gantrymq.store.put import Writability
    from gantrymq.store.questions import Questions
    from gantrymq.store.queue_saving import QueueSaver
    from gantrymq.store.queue_table import QueueTable
    from gantrymq.store.reading import StoreReading
    from gantrymq.store.stepping import Procedure
    from gantrymq.store.worker import Worker

QUEUES_AT_ONCE: Final = 8
"""Queues that are looked at before the owner comes to its other work."""
ANSWER_POLL_S: Final = 0.05
ANSWER_POLLS: Final = 200
"""How often one looks for what the disk says of a queue, before it is left to the next run."""


@dataclass(frozen=True, slots=True)
class CleanedParts:
    """What is cleaned, and what knows whether it may be."""

    files: Files
    clock: Clock
    log: CommitLog
    log_files: LogFiles
    flush: LogFlush
    queues: QueueTable
    index: Index | None
    reads: StoreReading
    writability: Writability
    dispatched: Callable[[], int]
    saver: Callable[[], QueueSaver | None]
    """None while the store is not open, or its disk has failed."""
    save: Callable[[], object]
    """Begins a thorough save, unless one is under way."""
    failed: Callable[[str], None]
    """It is over: nothing can be relied on."""


class TopicCleaner:
    """Deletes topics, and hides what is too old for them."""

    def __init__(
        self, parts: CleanedParts, worker: Worker, trouble: Callable[[Exception], None]
    ) -> None:
        """Remove on `worker`, the one that writes queues out; tell `trouble` what fails."""
        self._parts = parts
        self._worker = worker
        self._trouble = trouble
        self._hours: Callable[[], Mapping[str, int]] = dict
        self._removals: dict[_Removal, None] = {}

    # -- kept shorter ----------------------------------------------------------------------------

    def keep(self, hours: Callable[[], Mapping[str, int]]) -> None:
        """Serve messages of some topics for so many hours; of all others, as long as their files.

        `hours` is asked now, and again at every look. What a topic no longer serves is not served
        again before the store is opened anew. Waits for the disk, for nobody is served yet.

        Raises:
            InvalidValue: less than an hour.
        """
        self._hours = hours
        for queue, horizon_ms in self._retained():
            offset = _first_kept(queue, horizon_ms, self._parts.reads)
            if offset is not None:
                queue.hide_before(offset)

    def _retained(self) -> list[tuple[ConsumeQueue, int]]:
        """Return the queues of such topics, each with the time before which nothing is served."""
        retention, now_ms = TopicRetention(self._hours()), self._parts.clock.now_ms()
        return [
            (queue, horizon_ms)
            for topic, horizon_ms in retention.horizons_ms(now_ms).items()
            for queue in self._parts.queues.queues(topic)
        ]

    def hide_expired(self) -> Procedure:
        """Serve the queues of those topics from later on, as time has passed."""
        for number, (queue, horizon_ms) in enumerate(self._retained(), 1):
            yield from self._hide(queue, horizon_ms)
            if number % QUEUES_AT_ONCE == 0:
                yield Pause(0.0)

    def _hide(self, queue: ConsumeQueue, horizon_ms: int) -> Procedure:
        answers: list[int | None] = []
        self._parts.reads.questions.begin(
            partial(_first_kept, queue, horizon_ms),
            answers.append,
            lambda _error: answers.append(None),  # the next run asks again
        )
        for _ in range(ANSWER_POLLS):
            if answers:
                break
            yield Pause(ANSWER_POLL_S)
        for offset in answers:
            if offset is not None:
                queue.hide_before(offset)

    # -- deleted ---------------------------------------------------------------------------------

    def delete(self, topic: str) -> None:
        """Forget the queues of a topic and remove their files; its messages stay in the log.

        Raises:
            InvalidValue: the topic cannot be the name of a directory.
        """
        self._remove(topic, self._parts.queues.delete_topic(topic))

    def retry(self) -> None:
        """Try again to remove what could not be removed."""
        for topic, paths in self._parts.queues.take_left_over().items():
            self._remove(topic, paths)

    def finish(self) -> None:
        """See that deleted topics are gone before queues are saved; the worker must have ended.

        Raises:
            OSError: the disk refuses to remove one.
        """
        for removal in list(self._removals):
            if not removal.is_done:
                removal.run()
            self._done(removal)

    def _remove(self, topic: str, paths: list[Path]) -> None:
        removal = _Removal(topic, paths, self._parts.files)
        self._removals[removal] = None
        self._worker.submit(
            removal.run,
            lambda _: self._done(removal),
            lambda error: self._failed(removal, error),
        )

    def _done(self, removal: _Removal) -> None:
        if removal in self._removals:
            del self._removals[removal]
            self._parts.queues.topic_removed(removal.topic)

    def _failed(self, removal: _Removal, error: Exception) -> None:
        if removal not in self._removals:
            return  # `finish` was first
        del self._removals[removal]
        self._trouble(error)
        if self._parts.queues.queues(removal.topic):
            self._parts.failed(f"removing the former queues of {removal.topic} failed: {error}")
        self._parts.queues.removal_failed(removal.topic, removal.paths)


class _Removal:
    """One job: all files of a deleted topic, and how it went."""

    def __init__(self, topic: str, paths: list[Path], files: Files) -> None:
        self.topic = topic
        self.paths = paths
        self.is_done = False
        self._files = files

    def run(self) -> None:
        """Remove them; runs on the worker."""
        remove_all(self._files, self.paths)
        self.is_done = True


def _first_kept(queue: ConsumeQueue, horizon_ms: int, store: Questions) -> int | None:
    """Return the first offset of a queue that is young enough; None if it is its first one."""
    place = queue.topic, queue.queue_id
    first_ms = store.stored_at(*place, queue.min_offset)
    if first_ms is not None and first_ms >= horizon_ms:
        return None
    return store.offset_at(*place, horizon_ms, Boundary.LOWER)
