"""Pulls that are known: a consumer that reads on where it stopped, and nothing has changed since.

A pull passes a dozen checks (`pull.py`), and the next one of the same queue's reader passes them
again with the same result, unless a topic, a group, a subscription or a setting has changed. So the
outcome is remembered as a way of the kernel's lane, and where the way leads to: units of the queue,
and a part of the log that is in memory. The lane finds it again by the bytes of the request, and
the answer is the same call: the records copied behind their header.

What was remembered is forgotten when anything changes that it was made of, and when nobody has
pulled for a while: a way holds a file of the log that may be deleted. Whatever is unusual (nothing
to read, a reset, cold data, SQL92) goes the ordinary way.

Owned by the event loop's task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, cast

from gantrymq.broker.offset_guard import Reader
from gantrymq.errors import GantryError
from gantrymq.kernel import kernel
from gantrymq.wire.codes import SPOKEN_VERSION
from gantrymq.wire.peer import RawReply
from gantrymq.wire.sysflag import PullFlag

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.broker.pull import PullCounts, Pulling
    from gantrymq.broker.settings import BrokerSettings, LiveSettings
    from gantrymq.broker.tables import Tables
    from gantrymq.clock import Clock
    from gantrymq.kernel.interface import Buffer
    from gantrymq.kernel.values import Frame, KnownPull, PullRequest
    from gantrymq.model.offsets import DataVersion
    from gantrymq.store.message_store import MessageStore
    from gantrymq.wire.peer import Peer

WAYS_MAX: Final = 65536
"""Pulls that are remembered: a group's queues count one by one. Then all are learnt anew."""
SMALL_BYTES: Final = 65536
"""An answer with less is not held back from a peer that reads slowly."""
_MASTER: Final = 0
_COMMITS: Final = int(PullFlag.COMMIT_OFFSET)
_SUBSCRIBES: Final = int(PullFlag.SUBSCRIPTION)


class _Reader(NamedTuple):
    """Who pulls, as the way has it noted."""

    group: str
    topic: str
    queue_id: int
    messages_max: int
    commits: bool


class _Basis(NamedTuple):
    """What the checks looked at, and the file that a way may hold."""

    settings: BrokerSettings
    topics: DataVersion
    groups: DataVersion
    subscription_changes: int
    log_begin: int


class KnownPulls:
    """Remembers pulls, and answers those that are known."""

    def __init__(
        self,
        store: MessageStore,
        pulling: Pulling,
        tables: Tables,
        counts: PullCounts,
        settings: LiveSettings,
        clock: Clock,
        *,
        is_slave: Callable[[], bool],
    ) -> None:
        self._log = store.log
        self._reads = store.reads
        self._pulling = pulling
        self._topics = tables.topics
        self._groups = tables.groups
        self._clients = tables.clients
        self._offsets = tables.offsets
        self._counts = counts
        self._settings = settings
        self._monotonic = clock.monotonic
        self._is_slave = is_slave
        self._lane = kernel.PullLane(WAYS_MAX)
        self._basis = self._now()
        self._is_idle = True

    def learn(self, buffer: Buffer, frame: Frame, request: PullRequest) -> None:
        """Remember a pull that was let in, if those like it can be answered by their tags alone."""
        try:
            group, selection = self._pulling.admit(request)
        except GantryError:
            return
        reader = Reader(request.consumer_group, request.topic, request.queue_id)
        if not self._pulling.guard.lets_pass(reader):
            return
        if self._pulling.quotas.limits_reads(group, self._topics.find(request.topic)):
            return
        brings_own = request.sys_flag & _SUBSCRIBES
        if selection.hashes is None or not (brings_own or group.broadcast_enabled):
            return
        self._forget_if_changed()
        way = self._reads.new_way(
            selection.hashes,
            max(request.max_messages, 1),
            SPOKEN_VERSION,
            group.broker_id if self._settings.now.slave_read else _MASTER,
            _Reader(
                request.consumer_group,
                request.topic,
                request.queue_id,
                request.max_messages,
                bool(request.sys_flag & _COMMITS),
            ),
        )
        self._lane.remember(buffer, frame, way)

    def take(self, buffer: Buffer, start: int, end: int, peer: Peer) -> tuple[int, RawReply] | None:
        """Answer the pull at the front of a range, if it is known; return where it ends, too.

        None means that nothing was done.
        """
        self._forget_if_changed()
        if self._offsets.awaits_reset or self._pulling.guard.is_stopping:
            return None
        pull = self._lane.take(buffer, start, end, self._monotonic())
        if pull is not None and not pull.answer:
            pull = self._pointed(pull, buffer, start, end)
        if pull is None:
            return None
        reader = cast("_Reader", pull.way.note)
        group, topic, queue_id, _, commits = reader
        if commits and not self._is_slave():
            try:
                self._offsets.commit(group, topic, queue_id, pull.commit_offset, who=peer.address)
            except GantryError:
                return None
        self._counts.pulled(group, topic, queue_id, pull.messages, pull.record_bytes)
        if pull.record_bytes < SMALL_BYTES:
            return pull.end, RawReply((pull.answer,))
        return pull.end, RawReply((memoryview(pull.answer),))

    def tick(self) -> None:
        """Hold no files for those who have stopped pulling; called every second or so."""
        if self._is_idle and len(self._lane):
            self._lane.forget()
        self._is_idle = True

    def _pointed(self, pull: KnownPull, buffer: Buffer, start: int, end: int) -> KnownPull | None:
        """Point the way of a pull to where it wants to read on, and take it again."""
        reader = cast("_Reader", pull.way.note)
        if not self._reads.point(
            pull.way, reader.topic, reader.queue_id, pull.queue_offset, reader.messages_max
        ):
            return None
        again = self._lane.take(buffer, start, end, self._monotonic())
        return again if again is not None and again.answer else None

    def _forget_if_changed(self) -> None:
        self._is_idle = False
        basis = self._basis
        if (
            basis.topics is not self._topics.data_version
            or basis.groups is not self._groups.data_version
            or basis.settings is not self._settings.now
            or basis.subscription_changes != self._clients.subscription_changes
            or basis.log_begin != self._log.min_offset
        ):
            self._lane.forget()
            self._basis = self._now()

    def _now(self) -> _Basis:
        return _Basis(
            self._settings.now,
            self._topics.data_version,
            self._groups.data_version,
            self._clients.subscription_changes,
            self._log.min_offset,
        )
