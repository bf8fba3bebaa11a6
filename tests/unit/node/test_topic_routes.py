"""Queues of a topic on all brokers: asked of name servers in turn, and kept for a while."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from gantrymq.model.route import QueueData, TopicRoute
from gantrymq.model.topic import Perm
from gantrymq.node.topic_routes import KEPT_S, TopicRoutes
from gantrymq.testing.clock import VirtualClock
from gantrymq.wire.bodies.route import TOPIC_ROUTE
from gantrymq.wire.command import Command
from gantrymq.wire.peer import PeerLate

if TYPE_CHECKING:
    from gantrymq.transport.requester import Connections

ROUTE = TopicRoute(
    queues=(
        QueueData("a", 2, 2, Perm.READ | Perm.WRITE),
        QueueData("b", 1, 4, Perm.READ),
        QueueData("c", 3, 3, Perm.WRITE),
    )
)


class NameServers:
    """Answer, or do not."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.dead: set[str] = set()
        self.code = 0

    async def ask(self, address: str, _request: Command, _timeout_s: float) -> Command:
        self.asked.append(address)
        if address in self.dead:
            raise PeerLate("silent")
        body = TOPIC_ROUTE.encode(ROUTE) if self.code == 0 else b""
        return Command(code=self.code, opaque=1, flag=1, body=body)


def queues(routes: TopicRoutes) -> list[tuple[str, int]] | None:
    found = asyncio.run(routes.queues("T"))
    return None if found is None else [(one.broker_name, one.queue_id) for one in found]


def test_queues_that_may_be_read_are_kept_for_a_while() -> None:
    servers, clock = NameServers(), VirtualClock()
    routes = TopicRoutes(cast("Connections", servers), ("n1", "n2"), clock)
    assert queues(routes) == [("a", 0), ("a", 1), ("b", 0)]
    assert queues(routes) == [("a", 0), ("a", 1), ("b", 0)]
    assert servers.asked == ["n1"]
    clock.jump(KEPT_S)
    queues(routes)
    assert servers.asked == ["n1", "n1"]


def test_the_next_name_server_is_asked_and_the_old_answer_is_better_than_none() -> None:
    servers, clock = NameServers(), VirtualClock()
    routes = TopicRoutes(cast("Connections", servers), ("n1", "n2"), clock)
    servers.dead = {"n1", "n2"}
    assert queues(routes) is None
    servers.dead = {"n1"}
    assert queues(routes) == [("a", 0), ("a", 1), ("b", 0)]
    assert servers.asked == ["n1", "n2", "n1", "n2"]
    servers.dead = {"n1", "n2"}
    clock.jump(KEPT_S)
    assert queues(routes) == [("a", 0), ("a", 1), ("b", 0)]


def test_an_unknown_topic_has_none() -> None:
    servers = NameServers()
    servers.code = 17
    routes = TopicRoutes(cast("Connections", servers), ("n1",), VirtualClock())
    assert queues(routes) is None
