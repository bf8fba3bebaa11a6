"""The queues of a topic on all brokers, as name servers know them, asked again when they are old.

A member that lets its broker share out queues asks one broker for the queues of all of them. Name
servers are asked in turn; what they said is kept for a while, and longer if none of them answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import GantryError
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.model.topic import Perm
from gantrymq.wire.bodies.route import TOPIC_ROUTE
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.headers.namesrv import GetRouteInfoRequest

if TYPE_CHECKING:
    from gantrymq.clock import Clock
    from gantrymq.transport.requester import Connections

KEPT_S: Final = 10.0
"""How long an answer counts as new."""
ASK_TIMEOUT_S: Final = 3.0
TOPICS_MAX: Final = 10_000
"""Topics whose queues are kept; then all are asked for anew."""


class _Known(NamedTuple):
    queues: list[MessageQueue] | None
    """None where no name server knows the topic."""
    asked_at: float


class TopicRoutes:
    """Asks for routes; owned by the event loop's thread."""

    def __init__(
        self, connections: Connections, name_servers: tuple[str, ...], clock: Clock
    ) -> None:
        self._connections = connections
        self._name_servers = name_servers
        self._clock = clock
        self._known: dict[str, _Known] = {}

    async def queues(self, topic: str) -> list[MessageQueue] | None:
        """Return the queues of a topic that may be read; None if no name server knows any."""
        known = self._known.get(topic)
        if known is not None and self._clock.monotonic() - known.asked_at < KEPT_S:
            return known.queues
        header = GetRouteInfoRequest(topic=topic)
        request = Command.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, 0, header.encode())
        for address in self._name_servers:
            try:
                reply = await self._connections.ask(address, request, ASK_TIMEOUT_S)
                queues = _queues(topic, reply)
            except GantryError:
                continue
            if len(self._known) >= TOPICS_MAX:
                self._known.clear()
            self._known[topic] = _Known(queues, self._clock.monotonic())
            return queues
        return None if known is None else known.queues


def _queues(topic: str, reply: Command) -> list[MessageQueue] | None:
    if reply.code != ResponseCode.SUCCESS:
        return None
    return [
        MessageQueue(topic, data.broker_name, QueueId(queue_id))
        for data in TOPIC_ROUTE.decode(reply.body).queues
        if data.perm & Perm.READ
        for queue_id in range(data.read_queues)
    ]
