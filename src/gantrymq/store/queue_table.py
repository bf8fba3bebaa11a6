"""All consume queues of a store, by topic and queue id, with their extensions if there are any.

    ROOT/consumequeue/TOPIC/QUEUE_ID/...        20-byte units
    ROOT/consumequeue_ext/TOPIC/QUEUE_ID/...    only with enableConsumeQueueExt

A queue comes into being when somebody asks for it, as in Apache RocketMQ; its directory comes with
its first unit. Queues that changed are remembered, so that a flush need not ask 40,000 of them.

Owned by the task that owns the log.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import InvalidValue
from gantrymq.model.names import check_path_safe, is_path_safe
from gantrymq.store.consume_queue import ConsumeQueue
from gantrymq.store.consume_queue_ext import ConsumeQueueExt
from gantrymq.store.queue_expiry import ExpiredFiles
from gantrymq.store.queue_extending import ExtendedQueue, Extending
from gantrymq.store.queue_files import remove_all, sync_out, write_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from gantrymq.kernel import FileWrite
    from gantrymq.kernel.tails import QueueTail
    from gantrymq.store.consume_queue_ext import ExtUnit
    from gantrymq.store.files import Files
    from gantrymq.store.queue_expiry import QueueBegin, QueueSearch
    from gantrymq.store.queue_extending import ReadLog
    from gantrymq.store.queue_files import Sync

QUEUES_DIRECTORY: Final = "consumequeue"
EXT_DIRECTORY: Final = "consumequeue_ext"
_QUEUE_ID: Final = re.compile(r"0|-?[1-9]\d{0,9}")


class QueueFlush(NamedTuple):
    """What a flush has to do, as plain values, and how far each queue is when it is done."""

    writes: list[FileWrite]
    syncs: list[Sync]
    queues: list[tuple[ConsumeQueue, int]]
    extensions: list[tuple[ConsumeQueueExt, int]]
    thorough: bool

    def perform(self, files: Files) -> None:
        """Write, and force if the flush is thorough; runs on a thread."""
        write_out(files, self.writes)
        sync_out(files, self.syncs)


class QueueTable:
    """The consume queues of a store."""

    def __init__(
        self,
        root: Path,
        file_bytes: int,
        files: Files,
        ext_file_bytes: int | None = None,
        read_log: ReadLog = lambda _offset, _size: None,
    ) -> None:
        self._root = root
        self._file_bytes = file_bytes
        self._files = files
        self._ext_file_bytes = ext_file_bytes
        self.extending = Extending(read_log)
        self._topics: dict[str, dict[int, ConsumeQueue]] = {}
        self._by_bytes: dict[tuple[bytes, int], ConsumeQueue] = {}
        """The same by what stands in records, as far as dispatch has asked for it."""
        self.tails: dict[tuple[bytes, int], QueueTail] = {}
        """Where dispatch adds to queues; none where units lead to an extension."""
        self._extensions: dict[ConsumeQueue, ConsumeQueueExt] = {}
        self._changed: dict[ConsumeQueue, None] = {}
        """Those with something to write out; who has waited longest comes first."""
        self._unsynced: set[ConsumeQueue] = set()
        self._flushing = False
        self._expiring: set[ConsumeQueue] = set()
        self._leaving: Counter[str] = Counter()
        self._left_over: dict[str, list[Path]] = {}
        self._is_served = False

    # -- which there are -------------------------------------------------------------------------

    def __iter__(self) -> Iterator[ConsumeQueue]:
        """Go over all queues; none may be added meanwhile."""
        for queues in self._topics.values():
            yield from queues.values()

    def __len__(self) -> int:
        """Return the number of queues."""
        return sum(len(queues) for queues in self._topics.values())

    def topics(self) -> list[str]:
        """Return the topics that have queues."""
        return list(self._topics)

    def queues(self, topic: str) -> list[ConsumeQueue]:
        """Return the queues of a topic by queue id."""
        return [queue for _id, queue in sorted(self._topics.get(topic, {}).items())]

    def ends(self) -> dict[tuple[str, int], int]:
        """Return by topic and queue where every queue ends."""
        return {
            (topic, queue_id): queue.max_offset
            for topic, queues in self._topics.items()
            for queue_id, queue in queues.items()
        }

    def find(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """Return a queue if it is there."""
        return self._topics.get(topic, {}).get(queue_id)

    def queue(self, topic: str, queue_id: int) -> ConsumeQueue:
        """Return a queue; it is made, in memory only, if it is not there.

        Raises:
            InvalidValue: the topic cannot be the name of a directory.
        """
        try:
            return self._topics[topic][queue_id]
        except KeyError:
            return self._add(check_path_safe(topic), queue_id)

    def queue_of(self, topic: bytes, queue_id: int) -> ConsumeQueue | None:
        """Return the queue of a record; None if its topic can be no directory.

        Nobody can ask for messages of such a topic.
        """
        queue = self._by_bytes.get((topic, queue_id))
        if queue is None:
            name = topic.decode(errors="replace")
            if not is_path_safe(name):
                return None
            queue = self._by_bytes[topic, queue_id] = self.queue(name, queue_id)
            if self._ext_file_bytes is None:
                self.tails[topic, queue_id] = queue.tail
        return queue

    def extension(self, queue: ConsumeQueue) -> ConsumeQueueExt | None:
        """Return the extension of a queue, or None without enableConsumeQueueExt."""
        return self._extensions.get(queue)

    def read_extension(self, topic: str, queue_id: int) -> Callable[[int], ExtUnit | None] | None:
        """Return what reads the extension of a queue; None without enableConsumeQueueExt.

        It may be asked on any thread. On another one it finds nothing, for the owner may be
        writing: the message itself is looked at instead.
        """
        if self._ext_file_bytes is None:
            return None
        owner = threading.get_ident()

        def read(address: int) -> ExtUnit | None:
            queue = self.find(topic, queue_id) if threading.get_ident() == owner else None
            extension = None if queue is None else self.extension(queue)
            return None if extension is None else extension.read(address)

        return read

    def next_offsets(self, topic: str, count: int) -> list[int]:
        """Return the next queue offsets of the queues 0 to `count` - 1 of a topic."""
        found = (self.find(topic, queue_id) for queue_id in range(count))
        return [0 if queue is None else queue.max_offset for queue in found]

    @property
    def log_end_max(self) -> int:
        """Return the log offset behind the last message that any queue has; 0 without one."""
        return max((queue.log_end for queue in self), default=0)

    @property
    def log_end_min(self) -> int:
        """Return the lowest `log_end` of the queues that have messages; 0 without one."""
        return min((queue.log_end for queue in self if queue.log_end), default=0)

    def _add(self, topic: str, queue_id: int) -> ConsumeQueue:
        if topic in self._left_over:
            self._remove_left_over(topic)
        queue = self._new_queue(topic, queue_id)
        self._topics.setdefault(topic, {})[queue_id] = queue
        if self._is_served or topic in self._leaving:
            self._hold(queue, held=True)
        return queue

    def _new_queue(self, topic: str, queue_id: int) -> ConsumeQueue:
        place, files = f"{topic}/{queue_id}", self._files
        directory = f"{self._root}/{QUEUES_DIRECTORY}/{place}"
        file_bytes, note = self._file_bytes, self._changed.setdefault
        if self._ext_file_bytes is None:
            return ConsumeQueue(topic, queue_id, directory, file_bytes, files, note)
        extension = ConsumeQueueExt(self._root / EXT_DIRECTORY / place, self._ext_file_bytes, files)
        queue = ExtendedQueue(
            topic, queue_id, directory, file_bytes, files, note, extension, self.extending
        )
        self._extensions[queue] = extension
        return queue

    def serve(self) -> None:
        """Leave all writing to the thread from now on: somebody saves the queues by the clock.

        Before that, in recovery and in tools, a queue that holds much writes it out by itself.
        """
        self._is_served = True
        for queue in self:
            self._hold(queue, held=True)

    # -- recovery --------------------------------------------------------------------------------

    def load(self, *, after_crash: bool = False) -> None:
        """Find the queues on the disk; names that are no topic or no queue id are left alone.

        After a crash files that a power cut left incomplete are removed, with those behind them.

        Raises:
            StoreDamaged: a queue has files that cannot be its own.
        """
        directory = f"{self._root}/{QUEUES_DIRECTORY}"
        for topic, size in self._files.listing(directory):
            if size >= 0 or not is_path_safe(topic):
                continue
            for name, length in self._files.listing(f"{directory}/{topic}"):
                if length < 0 and _QUEUE_ID.fullmatch(name):
                    queue = self._add(topic, int(name))
                    queue.load(after_crash=after_crash)
                    if extension := self._extensions.get(queue):
                        extension.load(after_crash=after_crash)

    def recover(self) -> bool:
        """Find the end of every queue; tell whether one is damaged. See `ConsumeQueue.recover`."""
        is_damaged = False
        for queue in self:
            is_damaged |= queue.recover()
            if extension := self._extensions.get(queue):
                extension.recover(queue.ext_address)
        return is_damaged

    def truncate_to(self, log_offset: int, *, wipes_later: bool = False) -> None:
        """Cut off all units of messages at or behind a log offset; see `QueueFiles.cut`."""
        for queue in self:
            queue.truncate_to(log_offset, wipes_later=wipes_later)
            if extension := self._extensions.get(queue):
                extension.truncate_behind(queue.ext_address)

    def correct_min_offsets(self, log_min_offset: int) -> None:
        """Move the min offset of every queue to the first message that the log still has."""
        for queue in self:
            queue.correct_min_offset(log_min_offset)

    # -- retention -------------------------------------------------------------------------------

    def behind_log(
        self, log_min_offset: int, some: Iterable[ConsumeQueue] | None = None
    ) -> list[ConsumeQueue]:
        """Return the queues whose min offset is too low, or that have files to be removed still.

        Of all of them, unless `some` are given: of many it takes its time.
        """
        return [
            queue
            for queue in (self if some is None else some)
            if not queue.knows_min(log_min_offset)
            or queue.has_expired_files
            or queue in self._expiring
        ]

    def search(self, queue: ConsumeQueue, log_min_offset: int) -> QueueSearch:
        """Return what a thread needs to find where a queue begins; see `queue_expiry.py`."""
        extension = self._extensions.get(queue)
        ext_end = 0 if extension is None else extension.written_address
        return queue.search(log_min_offset, ext_end)

    def expire(
        self, queue: ConsumeQueue, search: QueueSearch, found: QueueBegin
    ) -> ExpiredFiles | None:
        """Move the min offset of a queue; return the files that are to be removed, if any.

        `drop` must follow when they are gone. Until then the queue is among those of `behind_log`.
        """
        if self.find(queue.topic, queue.queue_id) is not queue:
            return None
        if not queue.begin_at(search, found):
            return None
        keep, paths = queue.files_before_min()
        ext_keep = 0
        if extension := self._extensions.get(queue):
            ext_keep, ext_paths = extension.files_before(found.ext_address)
            paths += ext_paths
        if not paths:
            self._expiring.discard(queue)
            return None
        self._expiring.add(queue)
        return ExpiredFiles(queue, paths, keep, ext_keep, search.files.restarts)

    def drop(self, expired: ExpiredFiles) -> None:
        """Forget files that have been removed."""
        self._expiring.discard(expired.queue)
        if expired.queue.restarts == expired.restarts:
            expired.queue.drop_files(expired.keep)
            if extension := self._extensions.get(expired.queue):
                extension.drop_files(expired.ext_keep)

    # -- deleting topics -------------------------------------------------------------------------

    def delete_topic(self, topic: str) -> list[Path]:
        """Forget a topic; return all that must be removed to be rid of it, in order.

        The thread that flushes must remove it, behind a flush that may be under way, and
        `topic_removed` must follow. A message that comes for the topic meanwhile makes its queue
        anew; what that has to write goes behind the removal.
        """
        paths: list[Path] = []
        self._by_bytes.clear()
        self.tails.clear()
        for queue in self._topics.pop(topic, {}).values():
            paths += queue.delete()
            queue.forget()
            if extension := self._extensions.pop(queue, None):
                paths += extension.delete()
                extension.forget()
            self._changed.pop(queue, None)
            for known in (self._unsynced, self._expiring):
                known.discard(queue)
        for directory in (QUEUES_DIRECTORY, EXT_DIRECTORY):
            path = self._root / directory / check_path_safe(topic)
            if any(one.parent == path for one in paths) or self._files.is_directory(path):
                paths.append(path)
        self._leaving[topic] += 1
        return paths

    def topic_removed(self, topic: str) -> None:
        """Note that what `delete_topic` returned is gone."""
        self._leaving[topic] -= 1
        if self._leaving[topic] <= 0:
            del self._leaving[topic]
            for queue in self.queues(topic):
                self._hold(queue, held=self._is_served)

    def removal_failed(self, topic: str, paths: list[Path]) -> None:
        """Note that what `delete_topic` returned is still there, or some of it."""
        self._left_over[topic] = self._left_over.get(topic, []) + paths
        self.topic_removed(topic)

    def take_left_over(self) -> dict[str, list[Path]]:
        """Return what failed to be removed, topic by topic, for another attempt.

        `topic_removed` or `removal_failed` must follow for each.
        """
        taken, self._left_over = self._left_over, {}
        self._leaving.update(taken.keys())
        return taken

    def _remove_left_over(self, topic: str) -> None:
        """Make room for a topic that comes again: its new files would be mixed with the old."""
        remove_all(self._files, self._left_over[topic])
        del self._left_over[topic]

    def _hold(self, queue: ConsumeQueue, *, held: bool) -> None:
        queue.hold(held=held)
        if extension := self._extensions.get(queue):
            extension.hold(held=held)

    # -- flush -----------------------------------------------------------------------------------

    def waiting_bytes(self) -> int:
        """Return how much of all queues is in memory only."""
        waiting = self._unsynced | self._changed.keys()
        extensions = (self._extensions[queue] for queue in waiting if queue in self._extensions)
        return sum(one.waiting_bytes for one in waiting) + sum(
            one.waiting_bytes for one in extensions
        )

    def take_all(self) -> list[ConsumeQueue]:
        """Return the queues that a thorough flush has to take; they must go to `begin_flush`.

        Or to `give_back`, if it does not come to that.
        """
        self._unsynced |= self._changed.keys()
        self._changed.clear()
        return list(self._unsynced)

    @property
    def changed(self) -> int:
        """How many queues hold something that no flush has taken."""
        return len(self._changed)

    def take_due(self, most: int | None = None, least_pages: int = 0) -> list[ConsumeQueue]:
        """Return the queues that an ordinary flush has to take, as `take_all` does for a thorough.

        It looks at `most` of them, those that have waited longest, and leaves those of which fewer
        than `least_pages` have begun for another time.
        """
        due = []
        for queue in list(islice(self._changed, most)):
            del self._changed[queue]
            if self._is_worth_saving(queue, least_pages):
                due.append(queue)
            else:
                self._changed[queue] = None  # behind all others: they are looked at first
        self._unsynced.update(due)
        return due

    def _is_worth_saving(self, queue: ConsumeQueue, least_pages: int) -> bool:
        extension = self._extensions.get(queue)
        return queue.has_begun(least_pages) or (
            extension is not None and extension.has_begun(least_pages)
        )

    def give_back(self, queues: Iterable[ConsumeQueue]) -> None:
        """Have queues flushed another time; those that were deleted meanwhile are forgotten."""
        self._changed.update((queue, None) for queue in queues if self._is_known(queue))

    def _is_known(self, queue: ConsumeQueue) -> bool:
        return self.find(queue.topic, queue.queue_id) is queue

    def begin_flush(
        self, *, thorough: bool, queues: Iterable[ConsumeQueue] | None = None
    ) -> QueueFlush:
        """Return what a thread has to do so that the files hold all units; `end_flush` must follow.

        A thorough flush forces them as well, with all that was written since the last one. It takes
        some `queues` of `take_due`, or all that are due.
        """
        if self._flushing:
            raise InvalidValue("consume queues are flushed one flush at a time")
        self._flushing = True
        flush = QueueFlush([], [], [], [], thorough)
        due = queues
        if due is None:
            due = self.take_all() if thorough else self.take_due()
        for queue in due:
            if not self._is_known(queue):
                continue
            extension = self._extensions.get(queue)
            if extension is not None:
                # First, so that no unit on the disk has an address where nothing is yet.
                flush.extensions.append((extension, extension.max_address))
                flush.writes.extend(extension.pending_writes())
                flush.syncs.extend(extension.pending_syncs() if thorough else ())
            queue.is_being_saved = True
            flush.queues.append((queue, queue.max_offset))
            flush.writes.extend(queue.pending_writes())
            flush.syncs.extend(queue.pending_syncs() if thorough else ())
        return flush

    def end_flush(self, flush: QueueFlush, *, failed: bool = False) -> None:
        """Note that a flush is done, or that nothing of it can be relied on."""
        self._flushing = False
        for extension, address in flush.extensions:
            extension.wrote_out(extension.written_address if failed else address)
            if flush.thorough and not failed:
                extension.synced(address)
        for queue, offset in flush.queues:
            queue.is_being_saved = False
            queue.wrote_out(queue.written_offset if failed else offset)
            if flush.thorough and not failed:
                queue.synced(offset)
            if self._is_known(queue):
                self._note(queue)

    def _note(self, queue: ConsumeQueue) -> None:
        """Remember a queue as long as it needs another flush."""
        extension = self._extensions.get(queue)
        parts = (queue,) if extension is None else (queue, extension)
        if any(part.is_pending for part in parts):
            self._changed.setdefault(queue)
        if any(part.is_unsynced for part in parts):
            self._unsynced.add(queue)
        else:
            self._unsynced.discard(queue)
