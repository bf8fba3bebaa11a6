"""The topics that a producer sends to: a lane for each, kept up to date with its route.

Owned by the event loop's thread.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from gantrymq.client.errors import NoRoute, NoRouteCause
from gantrymq.client.lanes import FrameKind, Lane
from gantrymq.errors import InvalidValue
from gantrymq.wire.peer import PeerLate

if TYPE_CHECKING:
    from gantrymq.client.core import ClientCore
    from gantrymq.client.faults import Faults
    from gantrymq.client.lanes import Target
    from gantrymq.model.queue import MessageQueue
    from gantrymq.transport.client_connection import ClientConnection

LANES_MAX: Final = 10_000
"""Topics that a producer keeps frames for."""


class LaneTable:
    """The lanes of one producer. Times are the loop's."""

    def __init__(self, core: ClientCore, group: str, faults: Faults | None) -> None:
        self._core = core
        self._kind = FrameKind(group, core.settings)
        self._faults = faults
        self.by_topic: dict[str, Lane] = {}
        """By full name; one whose version is not that of the routes may be out of date."""

    def known(self, topic: str) -> Lane | None:
        """Return the lane of a topic, by its full name, if it is there and up to date."""
        lane = self.by_topic.get(topic)
        if lane is not None and lane.version == self._core.routes.version:
            return lane
        return None

    async def get(self, topic: str, deadline: float) -> Lane:
        """Return the lane of a topic, by its full name.

        Raises:
            NoRoute: there is nobody to send to, or nobody said so in time.
        """
        known = self.known(topic)
        if known is not None:
            return known
        try:
            async with asyncio.timeout_at(deadline):
                return await self._make(topic)
        except TimeoutError:
            asked = self._core.name_servers.current
            raise NoRoute(
                topic,
                NoRouteCause.NO_NAME_SERVER,
                f"the name server {asked} did not answer within the time of the send: look whether"
                " it is there, or raise timeout_s",
            ) from None

    async def _make(self, topic: str) -> Lane:
        routes = self._core.routes
        route = await routes.get(topic, template=True)
        lane = self.by_topic.get(topic)
        if lane is None or lane.route is not route:
            if not route.write_queues:
                route = await routes.get(topic, template=True, refresh=True)
            lane = Lane(route, routes.version, self._kind, self._faults)
            if len(self.by_topic) >= LANES_MAX:
                self.by_topic.clear()
            self.by_topic[topic] = lane
        lane.version = routes.version
        return lane

    async def target(self, queue: MessageQueue, deadline: float) -> Target:
        """Return the target of one queue.

        Raises:
            NoRoute: there is nobody to send to.
            InvalidValue: the topic has no such queue to write to.
        """
        lane = await self.get(queue.topic, deadline)
        found = lane.target(queue)
        if found is None:
            known = ", ".join(str(target.queue) for target in lane.targets[:8])
            raise InvalidValue(f"{queue} is no queue to send to: there are {known}")
        return found

    async def be_known(self, topic: str, deadline: float) -> None:
        """Make sure that the brokers of a topic know this producer, and can ask it something.

        Raises:
            NoRoute: there are none.
            PeerLate: they did not answer in time.
        """
        lane = await self.get(topic, deadline)
        try:
            async with asyncio.timeout_at(deadline):
                await self._core.heartbeats.ensure(
                    {target.broker.address for target in lane.targets}
                )
        except TimeoutError:
            raise PeerLate(f"the brokers of {topic} took no heartbeat in time") from None

    async def connection(self, target: Target) -> ClientConnection:
        """Return an open connection to a target that may be written to."""
        broker = target.broker
        connection = broker.connection
        if connection is None or not connection.is_open:
            connection = await self._core.connections.connection(broker.address)
            broker.connection = connection
        if connection.is_congested:
            await connection.writable()
        return connection
