"""Replication of one broker: the port for slaves, the copy of a master, the tables beside the log.

Which of them is at work follows from the role; the port is open in every role and serves nobody on
a slave. Owned by the event loop's thread; `tick` is called by the broker's schedule.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from gantrymq.broker.answers import answer
from gantrymq.cluster.master_link import LinkRules
from gantrymq.cluster.metadata_copy import MetadataCopy
from gantrymq.cluster.replica_group import ReplicaGroup
from gantrymq.cluster.replication_client import ReplicationClient
from gantrymq.cluster.replication_server import ReplicationServer, ServedParts
from gantrymq.cluster.store_sides import StoreCopiedLog, StoreSentLog
from gantrymq.wire.bodies.replication import HA_STATUS, HaClient, HaConnection, HaStatus
from gantrymq.wire.codes import RequestCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.broker.broker import Broker
    from gantrymq.clock import Clock
    from gantrymq.cluster.group_state import Member
    from gantrymq.cluster.in_sync import InSyncSet
    from gantrymq.cluster.replication_tls import ReplicationTls
    from gantrymq.store.files import Files
    from gantrymq.store.settings import ReplicationSettings
    from gantrymq.store.worker import Worker
    from gantrymq.transport.requester import Connections
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Peer

TICK_S: Final = 0.5
"""Signs of life are looked after so often."""


class Replication:
    """Joins a broker's store with the replication sockets."""

    def __init__(
        self,
        broker: Broker,
        files: Files,
        worker: Worker,
        clock: Clock,
        connections: Connections,
    ) -> None:
        """Read what is not in memory with `worker`; ask a master over `connections`."""
        self._broker = broker
        self._files = files
        self._worker = worker
        self.group = ReplicaGroup(
            lambda: self._settings.gap_bytes_max, self._replicated, self._wake
        )
        self.server = ReplicationServer(
            ServedParts(
                self.group,
                self._sent_log,
                self._rules,
                clock,
                lambda: not broker.is_slave,
                lambda: self.epoch,
                self._may_copy,
            )
        )
        self.admits: Callable[[str], bool] = lambda _peer: True
        """Who may copy the log, by `host:port`, if haAllowedAddresses does not say."""
        self.tls: ReplicationTls | None = None
        """Who may copy the log, by certificate; and whom this broker copies."""
        self.epoch: int | None = None
        """In which this broker is master, with failover."""
        self.client: ReplicationClient | None = None
        self.metadata: MetadataCopy | None = None
        self._connections = connections
        self._clock = clock

    @property
    def _settings(self) -> ReplicationSettings:
        return self._broker.store_settings.replication

    def _rules(self) -> LinkRules:
        settings = self._settings
        return LinkRules(
            settings.batch_bytes_max,
            settings.heartbeat_interval_ms / 1000,
            settings.silence_ms_max / 1000,
        )

    def _may_copy(self, peer: str) -> bool:
        networks = self._settings.allowed_peers
        if not networks:
            return self.tls is not None or self.admits(peer)
        address = ip_address(peer.rpartition(":")[0].strip("[]"))
        return any(address in one for one in networks)

    def _sent_log(self, wake: Callable[[], None]) -> StoreSentLog:
        broker = self._broker
        return StoreSentLog(broker.store, broker.store_settings, self._files, self._worker, wake)

    async def start(self, host: str, port: int) -> None:
        """Listen for slaves; a slave begins to copy as soon as it knows its master.

        Raises:
            InvalidValue: a file of TLS cannot be used.
            OSError: the address cannot be bound.
        """
        await self.server.start(host, port, self.tls)
        broker = self._broker
        if broker.is_slave:
            self.client = ReplicationClient(
                StoreCopiedLog(broker.store, broker.store_settings),
                self._rules,
                self._clock,
                self.tls,
            )
            self.client.start()
            self.metadata = MetadataCopy(
                broker.tables, broker.saver, self._connections, broker.journal
            )
            self.metadata.start()
            if self._settings.master_address:
                self.client.follow(self._settings.master_address)
                self.metadata.follow(_requests_at(self._settings.master_address))
        broker.store.replicas = self
        broker.router.add({RequestCode.GET_BROKER_HA_STATUS: self._answer_status})
        broker.schedule.add("replication", self.tick, self._clock.monotonic())

    def master_known(self, address: str | None, ha_address: str | None) -> None:
        """Note what name servers say about the master and its replication address."""
        if self.client is not None and ha_address and not self._settings.master_address:
            self.client.follow(ha_address)
        if self.metadata is not None and address:
            self.metadata.follow(address)

    def follow(self, master: Member, hello: bytes) -> None:
        """Copy a master of a group with failover, as a member that says `hello`.

        The journal says what has changed, not what there was before. So an empty broker takes the
        master's tables first: once it is in the in-sync set, it may be master any moment.
        """
        if self.client is None or self.metadata is None:
            return
        self.metadata.follow(master.address)
        if self._broker.store.log.wrote_offset > 0 or self.metadata.rounds > 0:
            self.client.follow(master.ha_address, hello)

    def stop_following(self) -> None:
        """Take nothing more from any master: what this broker has is what it has."""
        if self.client is not None:
            self.client.follow(None)

    async def lead(self, epoch: int, in_sync: InSyncSet) -> None:
        """Serve slaves as the master of an epoch, as soon as the broker is one."""
        self.epoch, self.group.in_sync = epoch, in_sync
        if self.metadata is not None:
            await self.metadata.stop()
        if self.client is not None:
            await self.client.stop()
        self.client = self.metadata = None

    def tick(self, now: float) -> float:
        """Do what is due; return when to be called again."""
        self.server.tick(now)
        if self.group.in_sync is not None:
            self._broker.store.retry_dispatch()  # fewer may have to have it than before
        if self.client is not None:
            self.client.tick(now)
        return now + TICK_S

    def _replicated(self, offset: int) -> None:
        """Slaves have the log up to `offset`: show it, then let its replies out."""
        store = self._broker.store
        if self.group.in_sync is not None:
            store.retry_dispatch()
        store.gate.replicated(offset)

    def _answer_status(self, request: Command, _peer: Peer) -> Answer:
        """Answer who copies whom, and how far they are."""
        return answer(request, body=HA_STATUS.encode(self.status()))

    def status(self) -> HaStatus:
        """Return who copies whom, and how far they are."""
        end = self._broker.store.log.wrote_offset
        if self.client is not None:
            return HaStatus(
                ha_client_runtime_info=HaClient(
                    master_addr=self.client.address,
                    max_offset=end,
                    activated=self.client.is_connected,
                )
            )
        gap = self._settings.gap_bytes_max
        slaves = tuple(
            HaConnection(
                addr=one.peer,
                slave_ack_offset=one.link.reported,
                diff=end - one.link.reported,
                in_sync=end - one.link.reported < gap,
                transfer_from_where=one.link.next_offset,
            )
            for one in self.server.connections
            if one.link.has_begun
        )
        return HaStatus(
            master=True,
            master_commit_log_max_offset=end,
            in_sync_slave_nums=sum(one.in_sync for one in slaves),
            ha_connection_info=slaves,
        )

    async def stop(self) -> None:
        """Copy and serve no more."""
        if self.metadata is not None:
            await self.metadata.stop()
        if self.client is not None:
            await self.client.stop()
        await self.server.stop()

    # -- what the store asks and tells; see `store.replicas.Replicas` -----------------------------

    def is_available(self, end: int) -> bool:
        """Tell whether a slave can be expected to have the log up to `end` soon."""
        return self.group.is_available(end)

    def shown_until(self) -> int | None:
        """Return how far messages may be shown to consumers, with failover; None: all of them."""
        return self.group.shown_until()

    def moved(self) -> None:
        """Send on what the log has now; report what has become safe."""
        if self.client is not None:
            self.client.moved()
        else:
            self.group.moved()

    def _wake(self) -> None:
        self.server.wake()


def _requests_at(ha_address: str) -> str:
    """Return where the master of a replication address takes requests: one port below."""
    host, _, port = ha_address.rpartition(":")
    return f"{host}:{int(port) - 1}" if port.isdecimal() else ha_address
