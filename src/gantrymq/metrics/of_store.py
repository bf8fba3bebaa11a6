"""The store of a broker, and what waits in it: offsets, gate, disk, held requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.broker.questions import ask
from gantrymq.errors import GantryError
from gantrymq.metrics.of_topics import LOCAL_DISK
from gantrymq.model.names import HALF_TOPIC, TIMER_TOPIC
from gantrymq.store.durations import BOUNDS_S
from gantrymq.store.questions import Questions
from gantrymq.store.status import PutStatus

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from gantrymq.broker.broker import Broker
    from gantrymq.clock import Clock
    from gantrymq.metrics.sheet import Page
    from gantrymq.metrics.turns import Turns
    from gantrymq.store.durations import Durations

    UsedBytes = Callable[[Path], Awaitable[int]]

_GATE: Final = (
    PutStatus.PUT_OK,
    PutStatus.FLUSH_DISK_TIMEOUT,
    PutStatus.FLUSH_SLAVE_TIMEOUT,
    PutStatus.SLAVE_NOT_AVAILABLE,
    PutStatus.UNKNOWN_ERROR,
)
_IDLE_PROCESSORS: Final = (
    "async_put", "ack", "client_manager", "heartbeat", "lite_pull", "consumer_manager", "admin",
    "reply",
)  # fmt: skip
"""Queues of Apache's that there are not here: nobody ever waits in them."""


def put_durations(page: Page, name: str, times: Durations) -> None:
    """Write a histogram of durations."""
    page.spread(name, BOUNDS_S, times.below(), times.total_s)


class StoreSource:
    """Writes what is known of the store."""

    def __init__(self, broker: Broker, clock: Clock, used_bytes: UsedBytes) -> None:
        """Ask `used_bytes` about the disk of a directory."""
        self._broker = broker
        self._clock = clock
        self._used_bytes = used_bytes

    async def fill(self, page: Page, turns: Turns) -> None:
        """Write everything about the store."""
        self._offsets(page)
        self._gate(page)
        self._waiting(page)
        self._counts(page)
        await turns.next()
        await self._disk(page)
        await self._queues(page)

    def _offsets(self, page: Page) -> None:
        store = self._broker.store
        log = store.log
        behind = max(0, log.committed_offset - store.dispatched_offset)
        unflushed = max(0, log.wrote_offset - store.flush.flushed_offset)
        page.put("rocketmq_storage_dispatch_behind_bytes", behind, *LOCAL_DISK)
        page.put("gantrymq_dispatch_lag_bytes", behind)
        page.put("rocketmq_storage_flush_behind_bytes", unflushed, *LOCAL_DISK)
        for point, offset in (
            ("min", log.min_offset),
            ("end", log.wrote_offset),
            ("committed", log.committed_offset),
            ("flushed", store.flush.flushed_offset),
            ("dispatched", store.dispatched_offset),
            ("replicated", store.gate.replicated_offset),
        ):
            page.put("gantrymq_log_offset", offset, point)
        page.put("gantrymq_store_writable", store.writability.reason is None)
        use = store.cleaner.disk_use
        if use is not None and not use.is_unknown:
            page.put("gantrymq_disk_used_ratio", use.log, "log")
            page.put("gantrymq_disk_used_ratio", use.queues, "queues")

    def _gate(self, page: Page) -> None:
        store = self._broker.store
        statistics = store.statistics
        put_durations(page, "gantrymq_append_seconds", statistics.appends)
        put_durations(page, "gantrymq_flush_seconds", store.flush.times)
        put_durations(page, "gantrymq_gate_wait_seconds", statistics.gate_waits)
        for status in _GATE:
            count = statistics.gate_outcomes.get(status, 0)
            page.put("gantrymq_gate_outcomes_total", count, status.name)
        for side, count in zip(("disk", "replica"), store.gate.waiting, strict=True):
            page.put("gantrymq_gate_waiting", count, side)

    def _waiting(self, page: Page) -> None:
        broker = self._broker
        reads, pops = broker.store.reads, broker.timed.pops.parts
        page.put("gantrymq_held_pulls", len(broker.held))
        page.put("gantrymq_held_pops", len(pops.polling) + len(pops.notices))
        page.put("gantrymq_waiting_sends", broker.service.waiting_sends)
        page.put("gantrymq_cold_reads_waiting", reads.cold.waiting)
        page.put("gantrymq_cold_questions_waiting", reads.questions.waiting)
        page.put("gantrymq_cold_read_bytes_total", reads.cold.lanes.read_bytes)
        for cause, refusals in reads.cold.lanes.refusals.items():
            page.put("gantrymq_cold_read_refusals_total", refusals, cause)
        for processor, count in (
            ("send", broker.service.waiting_sends),
            ("pull", reads.cold.waiting),
            ("query_message", reads.questions.waiting),
            ("transaction", broker.transactions.waiting),
            *((name, 0) for name in _IDLE_PROCESSORS),
        ):
            page.put("rocketmq_processor_watermark", count, processor)

    def _counts(self, page: Page) -> None:
        broker = self._broker
        statistics, counting = broker.store.statistics, broker.counting
        for cause, count in statistics.busy.items():
            page.put("gantrymq_busy_refusals_total", count, cause)
        limiting = broker.limiting
        page.put("gantrymq_throttled_requests", len(limiting.throttled))
        for cause, count in limiting.throttled.totals.items():
            page.put("gantrymq_throttled_requests_total", count, cause)
        page.put("gantrymq_taken_share", broker.service.taken_share)
        page.put("gantrymq_connections_refused_total", limiting.connections_refused, "user")
        page.put("gantrymq_puts_failed_total", statistics.puts_failed)
        page.put("gantrymq_pulls_total", statistics.gets_found, "found")
        page.put("gantrymq_pulls_total", statistics.gets_missed, "missed")
        page.put("gantrymq_forwarded_requests_total", counting.forwarded())
        page.put("gantrymq_offsets_beyond_end_total", broker.tables.guard.beyond_total)
        mismatches = len(broker.tables.clients.mismatches())
        page.put("gantrymq_subscription_mismatch_groups", mismatches)
        page.put("rocketmq_broker_permission", broker.settings.now.shown_permission)
        page.put("rocketmq_topic_number", len(broker.tables.topics.all()))
        page.put("rocketmq_consumer_group_number", len(broker.tables.groups.all()))
        page.put("rocketmq_half_messages", self._halves())

    def _halves(self) -> int:
        """Return how many half messages nobody has decided about."""
        ledger = self._broker.transactions.ledger
        end = self._broker.store.reads.max_offset(HALF_TOPIC, 0)
        return max(0, end - ledger.base - ledger.done_count)

    # -- what is asked of the disk ----------------------------------------------------------------

    async def _disk(self, page: Page) -> None:
        root = self._broker.store_settings.paths.root
        try:
            page.put("rocketmq_storage_size", await self._used_bytes(root), *LOCAL_DISK)
            earliest = await ask(self._broker.store, Questions.earliest_timestamp)
        except (GantryError, OSError):
            return  # a disk that does not answer has no size; the log says so
        if earliest is not None:
            age_ms = max(0, self._clock.now_ms() - earliest)
            page.put("rocketmq_storage_message_reserve_time", age_ms, *LOCAL_DISK)

    async def _queues(self, page: Page) -> None:
        """Write how far the queues are that the broker reads itself."""
        timed = self._broker.timed
        lag, age_ms = await self._behind(TIMER_TOPIC, 0, timed.timers.read_offset)
        page.put("rocketmq_timer_enqueue_lag", lag, *LOCAL_DISK)
        page.put("rocketmq_timer_enqueue_latency", age_ms, *LOCAL_DISK)
        page.put("rocketmq_timer_dequeue_latency", timed.timers.late_s * 1000, *LOCAL_DISK)
        for topic, queue_id, offset in timed.pops.revival.progress():
            lag, age_ms = await self._behind(topic, queue_id, offset)
            page.put("rocketmq_pop_revive_lag", lag, str(queue_id))
            page.put("rocketmq_pop_revive_latency", age_ms, str(queue_id))

    async def _behind(self, topic: str, queue_id: int, offset: int) -> tuple[int, int]:
        """Return how many messages of a queue were not read, and the age of the first."""
        store = self._broker.store
        lag = store.reads.max_offset(topic, queue_id) - offset
        if lag <= 0 or self._broker.is_slave:
            return 0, 0
        try:
            stored = await ask(store, lambda reads: reads.stored_at(topic, queue_id, offset))
        except (GantryError, OSError):
            stored = None
        return lag, 0 if stored is None else max(0, self._clock.now_ms() - stored)
