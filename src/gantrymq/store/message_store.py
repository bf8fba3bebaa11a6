"""The message store: joins log, dispatch, flush, gate, queues and index, and owns start and stop.

One task calls everything here. What it promises: a message whose put was let out with PUT_OK is
where the settings say it must be (in the page cache, on the disk, on a slave), once and for good.
Nothing is readable before it is as safe as that.

What becomes of an append, by `flushDiskType` and whether the transient store pool is used:

    ASYNC_FLUSH          dispatched at once; forced by the timers
    ASYNC_FLUSH, pool    committed by pages and by the timers, then dispatched; forced later
    SYNC_FLUSH           (committed,) forced, dispatched, and let out through the gate
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.store.allocation import LogFiles
from gantrymq.store.appending import Appender, PutRules
from gantrymq.store.checkpoint import load_checkpoint
from gantrymq.store.cleaning import CleanedParts, StoreCleaner
from gantrymq.store.commit_log import CommitLog
from gantrymq.store.dispatch import Dispatcher
from gantrymq.store.failed_disk import leave_mark
from gantrymq.store.flush import LogFlush
from gantrymq.store.gate import DurabilityGate
from gantrymq.store.get import Filter, Found, limits_of
from gantrymq.store.holding import Holding, waits, waits_for_disk
from gantrymq.store.identity import Identity, send_lane
from gantrymq.store.index import Index
from gantrymq.store.live_dispatch import LiveDispatch
from gantrymq.store.log_directories import log_directories
from gantrymq.store.opening import StoreParts, make_directories, open_parts
from gantrymq.store.page_cache import PageCacheWatch
from gantrymq.store.process_lock import ProcessLock, mark_stopped
from gantrymq.store.put import NewMessage, Stored, Writability
from gantrymq.store.put_timing import PutTiming
from gantrymq.store.queue_backlog import QueueBacklog
from gantrymq.store.queue_offsets import QueueOffsets
from gantrymq.store.queue_saving import QueueSaver, SavedParts, Trouble
from gantrymq.store.queue_table import QueueTable
from gantrymq.store.read_check import ReadCheck
from gantrymq.store.reading import StoreReading, reading_of
from gantrymq.store.replicas import NoReplicas, Replicas
from gantrymq.store.settings import BrokerRole
from gantrymq.store.statistics import StoreStatistics
from gantrymq.store.status import PutStatus
from gantrymq.store.tail_pages import TailPages
from gantrymq.store.tail_room import TailRoom
from gantrymq.store.transient_pool import pool_of
from gantrymq.store.worker import Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gantrymq.clock import Clock
    from gantrymq.kernel import QueueRun, SendRun, SendTurn
    from gantrymq.kernel.interface import Buffer
    from gantrymq.store.files import Files
    from gantrymq.store.recovery import RecoveryReport
    from gantrymq.store.settings import StoreSettings

__all__ = ["Identity", "MessageStore", "Stored", "Workers"]


class MessageStore:
    """A broker's store; see the head of this file."""

    def __init__(
        self,
        settings: StoreSettings,
        identity: Identity,
        *,
        files: Files,
        clock: Clock,
        workers: Workers,
        arrived: Callable[[Sequence[QueueRun]], None] = lambda _runs: None,
        memory_bytes: int = 0,
        soon: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        """Join the parts; `memory_bytes` is the machine's RAM, which decides what counts as hot.

        With `soon` (`loop.call_soon`) what one turn of the event loop appends is dispatched at its
        end; see `live_dispatch.py`.

        A SYNC_MASTER needs `replicas` set before it takes messages, or none of them has a slave.
        """
        self._settings = settings
        self._files = files
        self._clock = clock
        self._workers = workers
        self._root: Path = settings.paths.root
        self._lock: ProcessLock | None = None
        self._saver: QueueSaver | None = None
        self._is_sync = waits_for_disk(settings)
        self.replicas: Replicas = NoReplicas()
        self.writability = Writability()
        self.writability.is_slave = settings.replication.role is BrokerRole.SLAVE
        self._tail_room = TailRoom(files, self.writability, workers.allocation)
        self.page_cache = PageCacheWatch(clock, settings.put.busy_ms)
        self.gate = DurabilityGate(
            settings.flush.sync_timeout_ms / 1000, settings.replication.slave_timeout_ms / 1000
        )
        self.statistics = StoreStatistics(clock)
        timing = PutTiming(self.statistics, clock, waits=waits(settings))
        self.holding = Holding(settings, self.gate, clock, timing, lambda: self.replicas)
        lane = send_lane(identity, settings.put.body_bytes_max)
        sizes = settings.files
        self.pool = pool_of(settings)
        self.log_files = LogFiles(
            log_directories(settings.paths), sizes.commit_log_bytes, files, workers.allocation,
            warm_step=settings.warm_up.step_bytes, forced_often=self._is_sync,
            pool=self.pool,
            pages=TailPages(workers.tail_pages, clock),
            soon=soon,
        )  # fmt: skip
        self.log = CommitLog(self.log_files, lane, clock)
        self.queues = QueueTable(
            self._root, sizes.consume_queue_bytes, files, sizes.ext_bytes, self.log.read
        )
        index = settings.index
        self.index = (
            Index(self._root, index.slots, index.entries, files, clock, index.hits_max)
            if index.enabled
            else None
        )
        self._dispatcher = Dispatcher(
            self.log, self.queues, self.index, settings.schedule.delays_ms, arrived
        )
        self.backlog = QueueBacklog(
            self.queues, self.writability, lambda: self.flush_queues(thorough=False)
        )
        self._dispatch = LiveDispatch(
            self._dispatcher, self.log, self.writability, self.backlog, self._disk_failed, soon,
            lambda: self.replicas.shown_until(),  # noqa: PLW0108  (others come later)
        )  # fmt: skip
        self.flush = LogFlush(
            self.log, workers.log_flush, self._flushed, self._disk_failed, self._spoiled, clock
        )
        self.offsets = QueueOffsets(lane, self.queues)
        self._appender = self._make_appender(identity, timing)
        self.check = self._appender.check
        self.read_check = ReadCheck()
        self.reads = self._make_reads(memory_bytes)
        self.cleaner = StoreCleaner(settings, self._cleaned_parts(), workers.queue_flush)

    def _make_appender(self, identity: Identity, timing: PutTiming) -> Appender:
        rules = PutRules.of(self._settings, identity.store_host)
        return Appender(self.log, self.offsets, self.writability, self.page_cache, timing, rules)

    def _make_reads(self, memory_bytes: int) -> StoreReading:
        transfer = self._settings.transfer
        return reading_of(
            self.log,
            self.queues,
            self.index,
            lambda: self._dispatcher.offset,
            self._files,
            self._workers.cold_read,
            limits_of(transfer, memory_bytes),
            self._clock,
            self.statistics.get_took,
            self.read_check,
            corrects=not self.writability.is_slave or transfer.checks_offset_in_slave,
        )

    def _cleaned_parts(self) -> CleanedParts:
        return CleanedParts(
            files=self._files,
            clock=self._clock,
            log=self.log,
            log_files=self.log_files,
            flush=self.flush,
            queues=self.queues,
            index=self.index,
            reads=self.reads,
            writability=self.writability,
            dispatched=lambda: self._dispatcher.offset,
            saver=lambda: self._saver if self.gate.failure is None else None,
            save=lambda: self.flush_queues(thorough=True),
            failed=self._disk_failed,
        )

    # -- start and stop -------------------------------------------------------------------------

    def open(
        self,
        pid: int,
        progress: Callable[[int], None] | None = None,
        *,
        is_reader: bool = False,
    ) -> RecoveryReport:
        """Take the lock, recover, and take writes from now on.

        Who only reads has no use for a log file made ahead.

        Raises:
            StoreLocked: another process has the store open.
            StoreDamaged: the files are not what the settings say.
            OSError: the disk refuses.
        """
        paths = self._settings.paths
        places = *log_directories(paths).writable, paths.consume_queue, paths.index, paths.config
        make_directories(self._files, [self._root, *places])
        self._lock = ProcessLock(self._files, self._root)
        try:
            parts = self._parts(pid)
            report = open_parts(parts, progress)
        except BaseException:
            self._lock.release()
            raise
        self._saver = QueueSaver(
            SavedParts(self._files, self.queues, self.index, self._dispatcher, parts.checkpoint),
            self._workers.queue_flush,
            Trouble(self._spoiled, self._disk_failed, self._note_space),
        )
        self.queues.serve()
        # What was not forced by the start, or before it, is forced by the timers.
        is_forced = report.clean or self._is_sync
        self.flush.recovered(self.log.wrote_offset if is_forced else report.log_end.began_at)
        self._saver.saved_offset = min(self._dispatcher.offset, self.flush.flushed_offset)
        self.gate.flushed(self.flush.flushed_offset)
        self.read_check.trusted_from = self.log.wrote_offset
        self.writability.is_open = True
        if not is_reader:
            self.log_files.go_on_with(self.log.files[-1:])
            self._tail_room.want(*(file.region.path for file in self.log.files[-1:]))
            if self.index is not None:
                self._tail_room.want(*(file.path for file in self.index.files[-1:]))
                self.index.serve(self._workers.index_allocation)
            self.log.prepare()
        return report

    def _parts(self, pid: int) -> StoreParts:
        settings = self._settings
        return StoreParts(
            self._files, self._clock, self._root, log_directories(settings.paths), self.log,
            self.queues, self.index, load_checkpoint(self._files, self._root / "checkpoint"),
            self._dispatcher, settings.schedule.delays_ms, settings.recovery.checks_crc,
            settings.index.is_safe, pid, self._is_sync,
        )  # fmt: skip

    def close(self) -> bool:
        """Bring everything to the disk and let the lock go; True if the stop was a clean one.

        Whoever still waits at the gate is let out first, as it went. What the disk refuses is left
        to the recovery of the next start.
        """
        saver, self._saver = self._saver, None
        if saver is None:
            return False
        self._dispatch.is_closed = True
        self.writability.is_open = False
        self.cleaner.stop()
        self.reads.close()
        clean = False
        try:
            try:
                clean = self._finish(saver)
            finally:  # whatever becomes of it, no file made ahead is left behind
                self._leave_off()
            if clean:
                mark_stopped(self._files, self._root)
        except OSError as error:
            self._disk_failed(f"closing: {error}")
            clean = False
        finally:
            self._release()
        return clean

    def _finish(self, saver: QueueSaver) -> bool:
        """Force and save everything, unless the disk has failed; tell whether all of it is safe."""
        self.log.commit()
        self._workers.log_flush.close()
        self.flush.finish()
        if self.gate.failure is None:
            self._dispatch.run(self.log.committed_offset)
        self.gate.expire(float("inf"))
        self._workers.queue_flush.close()
        saver.finish()
        self.cleaner.topics.finish()
        return (
            self.gate.failure is None
            and self._dispatcher.offset == self.log.committed_offset
            and saver.save_all()
        )

    def _leave_off(self) -> None:
        self.log_files.close()
        if self.index is not None:
            self.index.leave_off()
        self._workers.allocation.close()
        self._workers.index_allocation.close()
        self._workers.tail_pages.close()

    def _release(self) -> None:
        if self.index is not None:
            self.index.close()
        for file in self.log.files:
            file.close()
        if self._lock is not None:
            self._lock.release()

    # -- topics ---------------------------------------------------------------------------------

    def open_topic(self, topic: str, queues: int) -> None:
        """Take ordinary sends for a topic with so many write queues."""
        self.offsets.open_topic(topic, queues)

    def close_topic(self, topic: str) -> None:
        """Take ordinary sends for a topic no longer."""
        self.offsets.close_topic(topic)

    def delete_topic(self, topic: str) -> None:
        """Remove the queues of a topic; see `topic_cleaning.py`."""
        self.offsets.forget_topic(topic)
        self.cleaner.topics.delete(topic)

    # -- put ------------------------------------------------------------------------------------

    def append_sends(self, buffer: Buffer, start: int, end: int, born_host: bytes) -> SendRun:
        """Store the ordinary sends at the front of a receive buffer; see `CommitLog.append_sends`.

        Their replies must pass the gate: `hold` with the log's end.

        Raises:
            StoreNotWritable: nothing can be stored now.
            StoreBusy: the page cache is busy.
            FileNotMade: the next log file could not be made.
        """
        run = self._appender.append_sends(buffer, start, end, born_host)
        if run.requests:
            self._appended()
        return run

    def append_turn(self, buffer: Buffer, parts: Sequence[tuple[int, int, bytes]]) -> SendTurn:
        """Store the ordinary sends of several connections, (start, end, born host) of each.

        What it leaves is for `append_sends`, which also says why. Replies must pass the gate.
        """
        turn = self._appender.append_turn(buffer, parts)
        if turn.requests:
            self._appended()
            if not self._is_sync:
                # The turn is over: what is acknowledged now can be read by the next to ask.
                self._dispatch.run(self.log.committed_offset)
        return turn

    def put(self, messages: Sequence[NewMessage]) -> Stored:
        """Store messages of one topic and queue, one behind the other; all of them or none.

        The reply must pass the gate: `hold` with `Stored.end`.

        Raises:
            InvalidValue: no message, or several that go to different queues.
        """
        stored = self._appender.put(messages)
        if stored.status is PutStatus.PUT_OK:
            self._appended()
        return stored

    def append_replica(self, log_offset: int, data: Buffer) -> None:
        """Store bytes of the master's log on a slave, where the master has them.

        They may end in the middle of a record; what is whole becomes readable, at once or when it
        is forced, as the slave's own `flushDiskType` says. No bytes are a heartbeat: an empty log
        begins there.

        Raises:
            StoreNotWritable: not a slave, not open, or its disk has failed.
            InvalidValue: not where the log ends, or across the end of a file; nothing was stored.
            FileNotMade: the next log file could not be made.
        """
        self._appender.append_replica(log_offset, data)
        self._appended()

    def hold(self, end: int, let_out: Callable[[PutStatus], None], *, waits: bool = True) -> None:
        """Call `let_out` when the log is safe up to `end`, as the settings ask for it.

        Without `waits` (WAIT=false) it is called at once; the log is forced all the same. A
        SYNC_MASTER also waits for a slave (`gate.replicated`) if `replicas` has one to wait for.
        """
        self.holding.hold(end, let_out, waits=waits)

    @property
    def waits_for_nothing(self) -> bool:
        """Tell whether `hold` lets everybody out at once, all being well."""
        return self.holding.waits_for_nothing

    def _appended(self) -> None:
        """See to what was appended: SYNC_FLUSH forces it first, otherwise it is readable now."""
        if self._is_sync:
            self.log.commit()
            self.flush.want(self.log.committed_offset)
            return
        self.log.commit(self._settings.pool.commit_least_pages)
        self._dispatch.appended()
        self.replicas.moved()
        if not self._settings.flush.is_timed:
            self.flush_log(self._settings.flush.least_pages)

    def _flushed(self, offset: int, stamp_ms: int) -> None:
        """The log is on the disk up to `offset`: dispatch it, then let its replies out."""
        if self._is_sync:
            self._dispatch.run(offset)
        if self._saver is not None:
            self._saver.log_forced(stamp_ms)
        self.gate.flushed(offset)
        if self._is_sync:
            self.replicas.moved()

    def _spoiled(self, reason: str) -> None:
        """A force has failed; called on the worker that saw it."""
        leave_mark(self._files, self._root, reason)

    def _disk_failed(self, reason: str) -> None:
        """Stop taking writes for good: what the disk has is no longer known."""
        self.writability.forbid("disk", reason)
        self.gate.shut(reason)

    def _note_space(self, reason: str | None) -> None:
        """Stop taking writes while the consume queues find no room, and go on when they do.

        Each time they are saved, what has waited for that is dispatched.
        """
        if reason is None:
            self.writability.allow("queues")
            self.retry_dispatch()
            self._dispatch.saved()
        else:
            self.writability.forbid("queues", reason)

    # -- get ------------------------------------------------------------------------------------

    def get(
        self, topic: str, queue_id: int, offset: int, count_max: int, choose: Filter | None = None
    ) -> Found:
        """Return messages of a queue from an offset on; may wait for the disk."""
        return self.reads.get(topic, queue_id, offset, count_max, choose)

    def begin_get(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        count_max: int,
        choose: Filter | None,
        done: Callable[[Found], None],
    ) -> None:
        """Call `done` with messages of a queue, now or later; see `StoreReading.begin_get`."""
        self.reads.begin_get(topic, queue_id, offset, count_max, choose, done)

    @property
    def dispatched_offset(self) -> int:
        """Return how far the log has been dispatched: nothing behind it may be shown to anybody."""
        return self._dispatcher.offset

    def change_settings(self, settings: StoreSettings) -> None:
        """Go on with other live settings, as `changed_settings` has made them."""
        self._settings = settings
        self.cleaner.settings = settings
        self.page_cache.slow_ms = settings.put.busy_ms
        self.gate.change_timeouts(settings.flush, settings.replication)
        self._appender.limit_bodies(settings.put.body_bytes_max)

    # -- what timers ask for; see `timers.py` ----------------------------------------------------

    def commit(self, least_pages: int) -> bool:
        """Commit what lies in a transient buffer, if so many pages have begun; tell if it was."""
        committed = self.log.commit(least_pages)
        if committed and not self._is_sync:
            self._dispatch.run(self.log.committed_offset)
            self.replicas.moved()
        return committed

    def flush_log(self, least_pages: int) -> None:
        """Force the log on a worker, if so many pages have begun since."""
        self.flush.want_pages(least_pages)

    def flush_queues(self, *, thorough: bool, least_pages: int = 0) -> bool:
        """Write out queues of which so many pages have begun, on a worker.

        With `thorough` force them and the checkpoint as well. Tells whether it was begun: one at a
        time, and none after the disk has failed.
        """
        if self._saver is None or self.gate.failure is not None:
            return False
        return self._saver.begin(thorough=thorough, least_pages=least_pages)

    def retry_dispatch(self) -> None:
        """Dispatch what a full disk has held up."""
        self._tail_room.retry()
        self._dispatch.run(
            self.flush.flushed_offset if self._is_sync else self.log.committed_offset
        )
