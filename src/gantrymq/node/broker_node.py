"""A broker as a part of a process: its threads, its listeners, its clock, its name servers."""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.broker.admin.configuration import restored
from gantrymq.broker.broker import Broker
from gantrymq.broker.surroundings import Loop, Surroundings
from gantrymq.clock import SystemClock
from gantrymq.cluster.replication import Replication
from gantrymq.cluster.replication_tls import ReplicationTls
from gantrymq.model.message import Host
from gantrymq.model.topic import Perm
from gantrymq.node.access import opened_access
from gantrymq.node.exposure import (
    refuse_exposed,
    refuse_unreachable,
    refuse_unreachable_name,
)
from gantrymq.node.free_ports import HA_PORT_STEP, VIP_PORT_STEP, FreePorts
from gantrymq.node.machine import bound_address, host_name, memory_bytes, own_address, resolved
from gantrymq.node.registrar import BrokerAddress, Registrar, Rules
from gantrymq.node.topic_routes import TopicRoutes
from gantrymq.store.files import OsFiles
from gantrymq.store.promotion import promote
from gantrymq.store.worker import ThreadWorker, Workers
from gantrymq.transport.command_service import CommandService
from gantrymq.transport.requester import Connections
from gantrymq.transport.server import Server
from gantrymq.transport.settings import TransportSettings
from gantrymq.wire.bodies.encoded_topics import EncodedTopics
from gantrymq.wire.hosts import encode_host

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gantrymq.broker.hooks import SendHook
    from gantrymq.broker.settings import BrokerSettings
    from gantrymq.clock import Clock
    from gantrymq.node.access import NodeAccess
    from gantrymq.store.recovery import RecoveryReport
    from gantrymq.store.settings import StoreSettings
    from gantrymq.transport.table import ConnectionTable
    from gantrymq.transport.tls import ClientTls, ServerTls
    from gantrymq.wire.bodies.topic import TopicTable
    from gantrymq.wire.peer import Peer, Service

log = logging.getLogger(__name__)

DRAIN_S: Final = 3.0
"""How long answers may take to get out at a stop."""
TICK_S_MAX: Final = 1.0
"""The clock is looked at so often at least: it may be set."""


def completed(settings: BrokerSettings) -> BrokerSettings:
    """Return the settings with what the machine knows in place of what is not said."""
    bind = settings.bind_address
    address = settings.address or bound_address(bind) or own_address(bind)
    return replace(
        settings,
        name=settings.name or host_name(),
        address=address,
        ha_address=settings.ha_address or address,
    )


def replication_tls(settings: BrokerSettings) -> ReplicationTls | None:
    """Return the certificates of the replication port, if there are any."""
    if not settings.ha_cert_path:
        return None
    return ReplicationTls(settings.ha_cert_path, settings.ha_key_path, settings.ha_trust_path)


class BrokerNode:
    """One broker in this process."""

    def __init__(
        self,
        settings: BrokerSettings,
        store_settings: StoreSettings,
        *,
        tls: ServerTls | None = None,
        client_tls: ClientTls | None = None,
        clock: Clock | None = None,
        hooks: Sequence[SendHook] = (),
        front: Callable[[Service], Service] | None = None,
        server: Server | None = None,
        access: NodeAccess | None = None,
    ) -> None:
        """Make a broker; `hooks` see every send (`broker/hooks.py`).

        `tls` is for those who connect to it, `client_tls` for its connections to name servers.
        `front` makes what stands between listener and broker: the faults of a test, or what passes
        requests on. A `server` that listens already, for that front, is taken over. `access` is
        what the process has of access control already; the settings say whether there is any.
        """
        self.settings = completed(settings)
        self._hooks = tuple(hooks)
        self._front = front
        self._access = access
        self._store_settings = store_settings
        self._tls = tls
        self._client_tls = client_tls
        self._clock = clock or SystemClock()
        self._server = server
        self._registrar: Registrar | None = None
        self._connections: Connections | None = None
        self._timer: asyncio.Handle | None = None
        self._replication: Replication | None = None
        self._limited_topics = EncodedTopics()
        self._broker: Broker | None = None
        self._limits_of: BrokerSettings | None = None
        self.port = self.settings.port

    @property
    def broker(self) -> Broker:
        """Return the broker.

        Raises:
            RuntimeError: it has not been started.
        """
        if self._broker is None:
            raise RuntimeError("the broker has not been started")
        return self._broker

    @property
    def is_started(self) -> bool:
        """Tell whether there is a broker that can be asked."""
        return self._broker is not None and self._replication is not None

    @property
    def address(self) -> str:
        """Return `host:port` that clients are told."""
        return f"{self.settings.address}:{self.port}"

    @property
    def name_servers(self) -> tuple[str, ...]:
        """Return the name servers that this broker registers with."""
        return tuple(one.strip() for one in self.settings.name_servers.split(";") if one.strip())

    @property
    def connection_table(self) -> ConnectionTable | None:
        """Return the connections of its listeners, while there are listeners."""
        return None if self._server is None or not self._server.bound else self._server.table

    @property
    def replication(self) -> Replication:
        """Return what copies this broker's log, or another's to it.

        Raises:
            RuntimeError: it has not been started.
        """
        if self._replication is None:
            raise RuntimeError("the broker has not been started")
        return self._replication

    @property
    def known_to(self) -> frozenset[str]:
        """Return the name servers that know this broker."""
        return frozenset() if self._registrar is None else frozenset(self._registrar.known_to)

    # -- start ----------------------------------------------------------------------------------

    async def start(self, progress: Callable[[int], None] | None = None) -> RecoveryReport:
        """Recover the store, listen, and register with the name servers.

        Raises:
            StoreLocked, StoreDamaged: as `Broker.open`.
            InvalidSettings: others would reach it, or would be told to, where they must not.
            InvalidValue: brokerIP1 is no address and no name of one, or settings that were changed
                over the wire cannot be used any more, or the account files cannot.
            OSError: an address cannot be bound, or the disk refuses.
        """
        refuse_exposed(self.settings)
        refuse_unreachable(self.settings)
        access = self._access = self._access or opened_access(
            self.settings, self._store_settings, self._clock
        )
        if self.port == 0:
            # Message ids hold the port, so it is chosen before anything is stored.
            self.port = FreePorts(self.settings.bind_address).find((HA_PORT_STEP,))
        address = await resolved(self.settings.address)
        refuse_unreachable_name(self.settings, address)
        host = encode_host(Host(address, self.port))
        around = self._surroundings()
        self.settings, self._store_settings = restored(
            around.files, self.settings, self._store_settings
        )
        self._connections = Connections(
            CommandService(closed=self._line_closed),
            self._client_tls,
            clock=self._clock,
            sign=None if access is None else access.sign,
        )
        broker = Broker(
            self.settings,
            self._store_settings,
            host,
            around,
            routes_changed=self._routes_changed,
            wake=self._wake,
            route=TopicRoutes(self._connections, self.name_servers, self._clock).queues,
        )
        report = broker.open(progress)
        log.info("%s", report)
        for hook in self._hooks:
            broker.add_send_hook(hook)
        self._broker = broker
        self._replication = Replication(
            broker, around.files, around.workers.cold_read, self._clock, self._connections
        )
        if access is not None:
            access.protect(broker, self.address, self._clock.monotonic())
            self._replication.admits = access.access.admits
        self._replication.tls = replication_tls(self.settings)
        try:
            await self._listen(broker)
            await self._replication.start(self.settings.bind_address, self.port + HA_PORT_STEP)
        except BaseException:
            self._broker = None
            if self._server is not None:
                await self._server.stop(0.0)
            broker.close()
            raise
        self._tick()
        self._register(self._connections)
        return report

    def _surroundings(self) -> Surroundings:
        loop = asyncio.get_running_loop()

        def post(call: Callable[[], None]) -> object:
            return loop.call_soon_threadsafe(call)

        def worker(name: str) -> ThreadWorker:
            return ThreadWorker(f"gantrymq-{name}", post)

        return Surroundings(
            OsFiles(),
            self._clock,
            Workers.made(worker),
            worker("config"),
            Loop(loop.call_soon, loop.create_future),
            memory_bytes(),
            os.getpid(),
        )

    async def _listen(self, broker: Broker) -> None:
        if self._server is not None and self._front is not None:
            self._front(broker.service)
            self._server.tell_pressure(broker.service.press)
            return
        bind, port = self.settings.bind_address, self.port
        addresses = [(bind, port)]
        if self.settings.port + VIP_PORT_STEP > 0:
            addresses.append((bind, port + VIP_PORT_STEP))
        server = Server(
            broker.service if self._front is None else self._front(broker.service),
            addresses,
            settings=TransportSettings(
                idle_s=self.settings.idle_s,
                backlog=self.settings.backlog,
                connections_max=self.settings.connections_max,
                address_connections_max=self.settings.address_connections,
            ),
            tls=self._tls,
            clock=self._clock,
        )
        await server.start()
        server.tell_pressure(broker.service.press)
        self._server = server
        self.port = int(server.bound[0].rpartition(":")[2])

    @property
    def replication_address(self) -> str:
        """Return `host:port` that slaves copy from."""
        return f"{self.settings.ha_address}:{self.port + HA_PORT_STEP}"

    def _identity(self) -> BrokerAddress:
        settings = self.settings
        return BrokerAddress(
            settings.cluster,
            settings.name,
            settings.broker_id,
            self.address,
            self.replication_address,
        )

    def _register(self, connections: Connections) -> None:
        settings = self.settings
        self._registrar = Registrar(
            self._identity(),
            self.name_servers,
            connections,
            self._topic_table,
            interval_s=settings.register_interval_ms / 1000,
            rules=self._register_rules,
            ordered=self.broker.tables.topics.set_order,
            master=self._master_known,
            encoded=self._encoded_topics,
        )
        self._registrar.start()

    def _master_known(self, address: str | None, ha_address: str | None) -> None:
        if self._replication is not None and not self.settings.etcd:
            self._replication.master_known(address, ha_address)

    def _register_rules(self) -> Rules:
        settings = self.broker.settings.now
        return Rules(
            settings.register_timeout_ms / 1000,
            settings.register_compressed,
            settings.register_always,
        )

    @property
    def _may_everything(self) -> bool:
        both = Perm.READ | Perm.WRITE
        return self._allowed & both == both

    @property
    def _allowed(self) -> Perm:
        """Return what name servers may say of this broker's topics."""
        return Perm(self.broker.settings.now.shown_permission)

    def _encoded_topics(self) -> EncodedTopics:
        """Return what remembers the topics that name servers are told now."""
        return self.broker.tables.topics.encoded if self._may_everything else self._limited_topics

    def _topic_table(self) -> TopicTable:
        """Return the topics as name servers are told: none may do more than the broker may."""
        table = self.broker.tables.topics.table()
        if self._may_everything:
            return table
        allowed = self._allowed | Perm.INHERIT
        topics = {
            name: msgspec.structs.replace(topic, perm=topic.perm & allowed)
            for name, topic in table.topic_config_table.items()
        }
        return msgspec.structs.replace(table, topic_config_table=topics)

    async def wait_registered(self, timeout_s: float = 3.0) -> bool:
        """Wait until every name server knows this broker; tell whether they do."""
        if self._registrar is None:
            return False
        return await self._registrar.wait_known(timeout_s)

    def promote(self, store_settings: StoreSettings, end: int) -> None:
        """Become the master of the group, with a log that ends at `end`. Blocks for a moment.

        Raises:
            StoreNotWritable: the log does not end there, or cannot be written.
            StoreDamaged, OSError: as `Broker.became_master`.
        """
        promote(self.broker.store, store_settings, end)
        self._store_settings = store_settings
        self.broker.became_master(store_settings)
        self.settings = replace(self.settings, broker_id=0)
        self.broker.settings.now = replace(self.broker.settings.now, broker_id=0)
        if self._registrar is not None:
            self._registrar.identify(self._identity())

    # -- while it runs --------------------------------------------------------------------------

    def _routes_changed(self) -> None:
        if self._registrar is not None:
            self._registrar.changed()

    def look_at_clock(self) -> None:
        """Do soon what is due by now: a test has moved the clock."""
        self._wake()

    def _wake(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_soon(self._tick)

    def _tick(self) -> None:
        now = self._clock.monotonic()
        self._timer = None
        due = self.broker.tick(now)
        self._limit_connections(self.broker.settings.now)
        wait = TICK_S_MAX if due is None else min(max(due - now, 0.0), TICK_S_MAX)
        self._timer = asyncio.get_running_loop().call_later(wait, self._tick)

    def _limit_connections(self, settings: BrokerSettings) -> None:
        """Let the listener know of settings that were changed, at the latest after a second."""
        server = self._server
        if settings is not self._limits_of and server is not None and server.bound:
            self._limits_of = settings
            server.limit_connections(settings.connections_max, settings.address_connections)

    # -- stop -----------------------------------------------------------------------------------

    def release_listener(self) -> Server | None:
        """Let the listener go on when this broker stops; whoever takes it has it."""
        server, self._server = self._server, None
        return server

    def _line_closed(self, _peer: Peer) -> None:
        if self._registrar is not None:
            self._registrar.line_closed()

    async def stop(self) -> bool:
        """Leave the name servers, let answers out, close the store; True if all went well."""
        if self._registrar is not None:
            await self._registrar.stop()
        if self._replication is not None:
            await self._replication.stop()
        if self._connections is not None:
            await self._connections.close()
        if self._broker is not None:
            self._broker.held.release_all()
        if self._server is not None:
            await self._server.stop(DRAIN_S)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return self._broker is None or self._broker.close()
