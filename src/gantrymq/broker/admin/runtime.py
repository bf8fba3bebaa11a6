"""What a broker is doing: the figures behind `brokerStatus`, single counts, its slaves.

The names are Apache's, of 4.9.7 and of 5.5.0. Where one is about a thread pool that there is not
here, the queue is empty and nobody waits: sends that wait for the disk are the one real queue.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from gantrymq.broker.admin.parts import body_answer
from gantrymq.broker.answers import answer
from gantrymq.broker.questions import then
from gantrymq.model.names import SCHEDULE_TOPIC
from gantrymq.store.disk import UNKNOWN, measure
from gantrymq.store.questions import Questions
from gantrymq.wire.bodies.replication import (
    COLD_READ_CONTROL,
    HA_STATUS,
    ColdReadControl,
    HaClient,
    HaStatus,
)
from gantrymq.wire.bodies.route import KV_TABLE, KvTable
from gantrymq.wire.bodies.stats import BROKER_STATS
from gantrymq.wire.codes import SPOKEN_VERSION, RequestCode
from gantrymq.wire.headers.query import ViewBrokerStatsRequest
from gantrymq.wire.response_errors import SystemFailure

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.broker.admin.parts import AdminParts
    from gantrymq.store.files import Files
    from gantrymq.store.settings import StoreSettings
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Handler, Peer, Pending

_ENDLESS_BUFFERS: Final = 2**31 - 1
"""What Apache says of a pool that is not used."""
_CAPACITIES: Final = {
    "pull": 100_000,
    "litePull": 100_000,
    "query": 20_000,
    "ack": 100_000,
}
"""Apache's defaults for queues that there are not here."""
_UNITS: Final = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_STEP: Final = 1024


class RuntimeRequests:
    """Answers what this broker is doing."""

    def __init__(
        self,
        parts: AdminParts,
        files: Files,
        store_settings: Callable[[], StoreSettings],
        waiting_sends: Callable[[], int],
    ) -> None:
        self._parts = parts
        self._files = files
        self._store_settings = store_settings
        self._waiting_sends = waiting_sends

    @property
    def handlers(self) -> dict[int, Handler]:
        """Return what is handled here."""
        return {
            RequestCode.GET_BROKER_RUNTIME_INFO: self.runtime,
            RequestCode.VIEW_BROKER_STATS_DATA: self.one_count,
            RequestCode.GET_BROKER_HA_STATUS: self.replicas,
            RequestCode.GET_COLD_DATA_FLOW_CTR_INFO: self.cold_reads,
        }

    def runtime(self, request: Command, _peer: Peer) -> Pending:
        """Answer all figures as texts by name.

        The first message of the log, whose time is one of them, is the coldest of all.
        """
        return then(
            self._parts.store,
            Questions.earliest_timestamp,
            partial(self._figures, request),
            lambda _error: None,
        )

    def _figures(self, request: Command, earliest: int | None) -> Answer:
        self._parts.counting.collect()
        table = {
            **self._parts.counting.store.runtime(),
            **self._of_store(earliest),
            **self._of_disks(),
            **self._of_queues(),
            **self._of_delays(),
            **self._of_clients(),
            "brokerVersion": str(int(SPOKEN_VERSION)),
            "brokerVersionDesc": SPOKEN_VERSION.name,
            "brokerActive": "true",
            "startAcceptSendRequestTimeStamp": str(self._parts.settings.now.accepts_sends_from_ms),
        }
        return body_answer(request, KV_TABLE.encode(KvTable(table=table)))

    def _of_store(self, earliest: int | None) -> dict[str, str]:
        store = self._parts.store
        log, pool = store.log, store.pool
        figures = {
            "commitLogMinOffset": str(log.min_offset),
            "commitLogMaxOffset": str(log.wrote_offset),
            "dispatchBehindBytes": str(max(0, log.committed_offset - store.dispatched_offset)),
            "pageCacheLockTimeMills": "0",
            "earliestMessageTimeStamp": str(-1 if earliest is None else earliest),
            "remainTransientStoreBufferNumbs": str(_ENDLESS_BUFFERS if pool is None else pool.free),
            "remainHowManyDataToFlush": readable(log.wrote_offset - store.flush.flushed_offset),
        }
        if pool is not None:
            figures["remainHowManyDataToCommit"] = readable(log.wrote_offset - log.committed_offset)
        return figures

    def _of_disks(self) -> dict[str, str]:
        paths = self._store_settings().paths
        use = measure(self._files, paths.commit_log, paths.consume_queue)
        figures = {f"commitLogDiskRatio_{path}": str(used) for path, used in use.logs.items()}
        figures["commitLogDiskRatio"] = str(use.log)
        figures["consumeQueueDiskRatio"] = str(use.queues)
        if use.log != UNKNOWN:
            disk = self._files.usage(paths.root)
            figures["commitLogDirCapacity"] = (
                f"Total : {readable(disk.used + disk.available)}, "
                f"Free : {readable(disk.available)}."
            )
        return figures

    def _of_queues(self) -> dict[str, str]:
        settings = self._parts.settings.now
        figures = {
            "sendThreadPoolQueueSize": str(self._waiting_sends()),
            "sendThreadPoolQueueCapacity": str(settings.waiting_sends_max),
            "sendThreadPoolQueueHeadWaitTimeMills": "0",
            "EndTransactionQueueSize": "0",
            "EndTransactionThreadPoolQueueCapacity": "100000",
            "timerReadBehind": "0",
            "timerOffsetBehind": "0",
            "timerCongestNum": "0",
            "timerEnqueueTps": "0.0",
            "timerDequeueTps": "0.0",
        }
        for name, capacity in _CAPACITIES.items():
            figures[f"{name}ThreadPoolQueueSize"] = "0"
            figures[f"{name}ThreadPoolQueueCapacity"] = str(capacity)
            figures[f"{name}ThreadPoolQueueHeadWaitTimeMills"] = "0"
        return figures

    def _of_delays(self) -> dict[str, str]:
        reads = self._parts.store.reads
        return {
            f"scheduleMessageOffset_{level}": (
                f"{offset},{reads.max_offset(SCHEDULE_TOPIC, level - 1)}"
            )
            for level, offset in self._parts.tables.delays.all().items()
        }

    def _of_clients(self) -> dict[str, str]:
        """Return what Apache does not count: what is wrong with clients, or was."""
        counting = self._parts.counting
        return {
            "subscriptionMismatchGroups": str(len(self._parts.tables.clients.mismatches())),
            "subscriptionMismatchTotal": str(counting.mismatches),
            "requestsRefusedForAgeTotal": str(counting.old_requests),
            "requestsForwardedTotal": str(counting.forwarded()),
            "offsetsBeyondEndTotal": str(self._parts.tables.guard.beyond_total),
            "readersStoppedBeyondEnd": str(len(self._parts.tables.guard.stopped)),
        }

    def one_count(self, request: Command, _peer: Peer) -> Answer:
        """Answer one count over the last minute, hour and day."""
        self._parts.counting.collect()
        header = ViewBrokerStatsRequest.decode(request.fields)
        found = self._parts.counting.broker.view(header.stats_name, header.stats_key)
        if found is None:
            raise SystemFailure(f"The stats <{header.stats_name}> <{header.stats_key}> not exist")
        return answer(request, body=BROKER_STATS.encode(found))

    def replicas(self, request: Command, _peer: Peer) -> Answer:
        """Answer which slaves copy this broker, and how far they are."""
        is_slave = self._parts.is_slave()
        status = HaStatus(
            master=not is_slave,
            master_commit_log_max_offset=0 if is_slave else self._parts.store.log.wrote_offset,
            in_sync_slave_nums=0,
            ha_client_runtime_info=HaClient(),
        )
        return answer(request, body=HA_STATUS.encode(status))

    def cold_reads(self, request: Command, _peer: Peer) -> Answer:
        """Answer that no group is limited in reading what is old: no read of it is in the way."""
        return answer(request, body=COLD_READ_CONTROL.encode(ColdReadControl()))


def readable(count: int) -> str:
    """Return a number of bytes as Apache writes it: `942 B`, `65.1 GiB`."""
    if count < _STEP:
        return f"{count} B"
    size = float(count)
    for unit in _UNITS:
        size /= _STEP
        if size < _STEP or unit == _UNITS[-1]:
            break
    return f"{size:.1f} {unit}"
