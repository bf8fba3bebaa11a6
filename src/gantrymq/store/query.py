"""Finding messages by key, by unique key and by id.

The index answers a key with log offsets, newest first, at most as many as the settings allow. They
are read in the order of the log, each of them once. An offset may lead nowhere, for entries outlive
what they point to; it is left out. (DefaultMessageStore.queryMessage then asks up to three times,
with an earlier end if the first message could be read; but then it has been found, and otherwise
the question is the same, so that one round gives its answers.) Two keys may have one hash, and the
message of another key is then among the answers: clients compare, as they do with Apache's broker.
Of more than fit into an answer the newest are returned; Apache sends a frame that no client takes.

Bytes are returned as they lie in the log, and only if there is a record at that very offset: an id
comes from outside, and could name any byte. Nothing at or behind the limit is returned, which in a
broker is what has been dispatched: with SYNC_FLUSH the log has messages that a power cut may still
take back, and nobody shall have seen them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.kernel import Stop, kernel
from gantrymq.limits import FRAME_BYTES_MAX
from gantrymq.store.presence import Waiting
from gantrymq.store.search import store_timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gantrymq.store.commit_log import CommitLog
    from gantrymq.store.index import Index
    from gantrymq.store.presence import Presence

_SIZE_BYTES: Final = 4
ANSWER_BYTES_MAX: Final = FRAME_BYTES_MAX - (1 << 16)
"""What fits into a frame behind its header: a client closes the connection over a longer one."""


class FoundByKey(NamedTuple):
    """What a query by key returns."""

    records: list[memoryview]
    """Oldest first."""
    index_timestamp: int
    """Store time of the newest message in the index; 0 where nothing was found."""
    index_log_offset: int
    """Its log offset."""


class MessageQuery:
    """Looks messages up; owned by the task that owns the log."""

    def __init__(
        self,
        log: CommitLog,
        index: Index | None,
        limit: Callable[[], int] | None = None,
        presence: Presence | None = None,
    ) -> None:
        """Show the log up to what `limit` says each time; without it, all that is committed."""
        self._presence = Waiting() if presence is None else presence
        self._log = log
        self._index = index
        self._limit = limit

    def by_key(
        self, topic: str, key: str, count_max: int, begin_ms: int, end_ms: int
    ) -> FoundByKey:
        """Return the newest messages of a topic with a key, stored within a range of time."""
        if self._index is None:
            return FoundByKey([], 0, 0)
        found = self._index.query(topic, key, count_max, begin_ms, end_ms, self._presence)
        if not found.log_offsets:
            return FoundByKey([], 0, 0)
        records = self._newest(found.log_offsets)
        last = found.last_log_offset
        if self._limit is not None:
            # Keys may be in the index that a full disk keeps from being dispatched altogether.
            last = min(last, self._limit())
        return FoundByKey(records, found.last_timestamp, last)

    def _newest(self, log_offsets: Iterable[int]) -> list[memoryview]:
        """Return the records at some offsets, oldest first: no more than an answer can carry."""
        records: list[memoryview] = []
        left = ANSWER_BYTES_MAX
        for log_offset in sorted(set(log_offsets), reverse=True):
            record = self.by_log_offset(log_offset)
            if record is None:
                continue
            left -= len(record)
            if left < 0 and records:
                break
            records.append(record)
        return records[::-1]

    def by_log_offset(self, log_offset: int) -> memoryview | None:
        """Return the record at a log offset, or None if there is none that is whole."""
        file = self._log.file_at(log_offset) if log_offset >= 0 else None
        if file is None:
            return None
        position, end = log_offset - file.start, file.committed
        if self._limit is not None:
            end = min(end, self._limit() - file.start)
        if position >= end:
            return None
        self._presence.need(file.region, position, min(_SIZE_BYTES, end - position))
        size = int.from_bytes(file.region.buffer[position : position + _SIZE_BYTES])
        self._presence.need(file.region, position, min(size, end - position))
        found = kernel.scan_records(file.region.buffer, position, end, file.start, True, 1)
        if found.records == 0 or found.stop not in {Stop.LIMIT, Stop.END}:
            return None
        return file.read(position, found.end - position)

    def earliest_timestamp(self) -> int | None:
        """Return when the first message of the log was stored; None without one.

        Apache 4.9.7 answers -1 where log files are smaller than the largest message.
        """
        record = self.by_log_offset(self._log.min_offset)
        return None if record is None else store_timestamp(record)
