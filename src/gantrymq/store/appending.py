"""The way into the log: may anything be stored now, is the message one, where does it go.

The checks are RocketMQ's, in its order: open, not a slave, writable, the page cache not busy; then
the message itself; then room for it. What becomes of it afterwards (forced, dispatched, answered)
is the store's business.

Owned by one task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

from gantrymq.errors import InvalidValue
from gantrymq.kernel import LaneStop, SendTurn
from gantrymq.store.allocation import FileNotMade
from gantrymq.store.errors import StoreBusy, StoreNotWritable
from gantrymq.store.put import MessageCheck, NewMessage, Stored, as_record, as_stored, check_all
from gantrymq.store.status import PutStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.kernel import SendRun
    from gantrymq.kernel.interface import Buffer
    from gantrymq.store.commit_log import CommitLog
    from gantrymq.store.page_cache import PageCacheWatch
    from gantrymq.store.put import Writability
    from gantrymq.store.put_timing import PutTiming
    from gantrymq.store.queue_offsets import QueueOffsets
    from gantrymq.store.settings import StoreSettings


class PutRules(NamedTuple):
    """What is asked of a message, and what it gets."""

    body_bytes_max: int
    delay_levels: int
    store_host: bytes

    @classmethod
    def of(cls, settings: StoreSettings, store_host: bytes) -> Self:
        """Return the rules that settings say."""
        return cls(settings.put.body_bytes_max, len(settings.schedule.delays_ms), store_host)


class Appender:
    """Brings messages into the log, or says why not."""

    def __init__(
        self,
        log: CommitLog,
        offsets: QueueOffsets,
        writability: Writability,
        page_cache: PageCacheWatch,
        timing: PutTiming,
        rules: PutRules,
    ) -> None:
        self._log = log
        self._offsets = offsets
        self._writability = writability
        self._page_cache = page_cache
        self._timing = timing
        self._rules = rules
        self.check = MessageCheck(rules.body_bytes_max)

    def limit_bodies(self, body_bytes_max: int) -> None:
        """Take other sizes of bodies from now on."""
        self.check.body_bytes_max = body_bytes_max
        self._log.limit_bodies(body_bytes_max)

    def append_sends(self, buffer: Buffer, start: int, end: int, born_host: bytes) -> SendRun:
        """Store the ordinary sends at the front of a receive buffer; see `MessageStore`."""
        reason = self._writability.reason
        if reason is not None:
            raise StoreNotWritable(reason)
        if self._page_cache.is_busy:
            raise StoreBusy("the page cache is busy; send to another broker, or later")
        watch = self._page_cache
        watch.begin()
        try:
            run = self._log.append_sends(buffer, start, end, born_host)
        finally:
            took = watch.end()
        if run.requests:
            self._timing.appended(run.requests, watch.began, took)
        return run

    def append_turn(self, buffer: Buffer, parts: Sequence[tuple[int, int, bytes]]) -> SendTurn:
        """Store the ordinary sends of several connections; see `MessageStore`."""
        watch = self._page_cache
        if self._writability.reason is not None or watch.is_busy:
            return SendTurn([], 0, 0, 0, LaneStop.POLICY)
        watch.begin()
        try:
            turn = self._log.append_turn(buffer, parts)
        finally:
            took = watch.end()
        if turn.requests:
            self._timing.appended(turn.requests, watch.began, took)
        return turn

    def append_replica(self, log_offset: int, data: Buffer) -> None:
        """Store bytes of a master's log; see `MessageStore`."""
        reason = self._writability.replica_reason
        if reason is not None:
            raise StoreNotWritable(reason)
        self._log.append_raw(log_offset, data)

    def put(self, messages: Sequence[NewMessage]) -> Stored:
        """Store messages of one topic and queue, one behind the other; all of them or none."""
        watch = self._page_cache
        if self._writability.reason is not None:
            stored, took = Stored(PutStatus.SERVICE_NOT_AVAILABLE), 0.0
        elif watch.is_busy:
            stored, took = Stored(PutStatus.OS_PAGE_CACHE_BUSY), 0.0
        else:
            kept = as_stored(messages, self._rules.delay_levels)
            watch.begin()
            try:
                stored = self._append(kept)
            finally:
                took = watch.end()
        self._timing.put(stored, watch.began, took)
        return stored

    def _append(self, kept: Sequence[NewMessage]) -> Stored:
        first, counted = kept[0], kept[0].is_counted
        try:
            offset = self._offsets.next_offset(first.topic, first.queue_id) if counted else 0
            records = [
                as_record(message, offset + index * counted, self._rules.store_host)
                for index, message in enumerate(kept)
            ]
            status = check_all(self.check, records)
            if status is not PutStatus.PUT_OK:
                return Stored(status)
            appended = self._log.append(records)
        except (InvalidValue, UnicodeEncodeError):
            return Stored(PutStatus.MESSAGE_ILLEGAL)
        except FileNotMade:
            return Stored(PutStatus.CREATE_MAPPED_FILE_FAILED)
        if counted:
            self._offsets.take(first.topic, first.queue_id, len(records))
        return Stored(
            PutStatus.PUT_OK,
            first.topic,
            first.queue_id,
            offset,
            appended.log_offsets,
            appended.end,
            appended.store_timestamp,
        )
