"""A node with an HTTP port beside it: metrics, and whether it is well.

The port listens before the node starts and until it has stopped, so that whoever asks in between is
told "not ready", and why. While a store is recovered the loop has no time for anybody: such a
question is answered when that is over.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from typing import TYPE_CHECKING, NamedTuple

from gantrymq.clock import SystemClock
from gantrymq.metrics.endpoint import Endpoint
from gantrymq.metrics.health import Check, broker_checks
from gantrymq.metrics.parts import BrokerParts, FailoverParts, NamesrvParts
from gantrymq.metrics.sources import BrokerSource, NamesrvSource
from gantrymq.node.failover_node import FailoverNode
from gantrymq.node.machine import host_name
from gantrymq.store.files import OsFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from gantrymq.metrics.sources import Source
    from gantrymq.node.all_in_one import AllInOne
    from gantrymq.node.broker_node import BrokerNode
    from gantrymq.node.lifecycle import Node
    from gantrymq.node.namesrv_node import NamesrvNode

log = logging.getLogger(__name__)


class Listening(NamedTuple):
    """Where the port is."""

    address: str
    port: int
    may_move: bool = False
    """Whether another port does if this one is taken: nobody chose it."""


class Observed:
    """A node, and what is told of it over HTTP."""

    def __init__(
        self,
        node: Node,
        sources: Sequence[Source],
        checks: Callable[[], Iterable[Check]],
        listening: Listening,
    ) -> None:
        self._node = node
        self._brokers = [source for source in sources if isinstance(source, BrokerSource)]
        self._checks = checks
        self._listening = listening
        self._state = "it is starting"
        self.endpoint = Endpoint(sources, self._all_checks)

    @property
    def url(self) -> str:
        """Return where Prometheus finds the metrics."""
        return f"http://{self.endpoint.address}/metrics"

    def _all_checks(self) -> Iterable[Check]:
        if self._state:
            return [Check("process", ok=False, detail=self._state)]
        return self._checks()

    async def start(self) -> object:
        """Listen, then start the node.

        Raises:
            OSError: the address cannot be bound, or as the node.
        """
        await self._listen()
        started = await self._node.start()
        for source in self._brokers:
            source.watch()
        self._state = ""
        return started

    async def _listen(self) -> None:
        address, port, may_move = self._listening
        try:
            await self.endpoint.start(address, port)
        except OSError as error:
            if not may_move or error.errno != errno.EADDRINUSE:
                raise
            log.info("metrics are at another port: %d is taken", port)
            await self.endpoint.start(address, 0)

    async def stop(self) -> bool:
        """Stop the node, then the port."""
        self._state = "it is stopping"
        try:
            return await self._node.stop()
        finally:
            await self.endpoint.stop()


def broker_parts(node: BrokerNode | FailoverNode | None) -> BrokerParts | None:
    """Return what there is of a broker now; None before it runs, or while it is reopened."""
    failover = None
    if isinstance(node, FailoverNode):
        failover = FailoverParts(node.failover, node.epoch, node.in_sync)
        node = node.inner
    if node is None or not node.is_started or not node.broker.store.writability.is_open:
        return None
    return BrokerParts(
        node.broker,
        node.replication,
        node.connection_table,
        node.name_servers,
        node.known_to,
        failover,
    )


def _broker_source(parts: Callable[[], BrokerParts | None], series_max: int) -> BrokerSource:
    return BrokerSource(parts, SystemClock(), _used_bytes, series_max)


async def _used_bytes(path: Path) -> int:
    """Ask the system on a thread: a disk may take its time."""
    usage = await asyncio.to_thread(OsFiles().usage, path)
    return usage.used


def _namesrv_source(node: NamesrvNode) -> NamesrvSource:
    return NamesrvSource(
        lambda: NamesrvParts(node.name_server, node.connection_table),
        lambda: f"{host_name()}:{node.port}",
    )


def observed_broker(
    node: BrokerNode | FailoverNode, listening: Listening, series_max: int
) -> Observed:
    """Return a broker that tells of itself."""

    def parts() -> BrokerParts | None:
        return broker_parts(node)

    source = _broker_source(parts, series_max)
    return Observed(node, [source], lambda: broker_checks(parts()), listening)


def observed_namesrv(node: NamesrvNode, listening: Listening) -> Observed:
    """Return a name server that tells of itself: it is ready when it listens."""
    return Observed(node, [_namesrv_source(node)], lambda: _namesrv_checks(node), listening)


def _namesrv_checks(node: NamesrvNode) -> list[Check]:
    brokers = sum(len(group.members) for group in node.name_server.table.groups.values())
    return [Check("name_server", ok=True, detail=f"{brokers} brokers are registered")]


def observed_server(node: AllInOne, listening: Listening, series_max: int) -> Observed:
    """Return a name server and a broker that tell of themselves."""

    def parts() -> BrokerParts | None:
        return broker_parts(node.started_broker)

    def checks() -> list[Check]:
        return [*_namesrv_checks(node.namesrv), *broker_checks(parts())]

    sources: list[Source] = [_namesrv_source(node.namesrv), _broker_source(parts, series_max)]
    return Observed(node, sources, checks, listening)
