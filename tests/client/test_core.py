"""Routes, heartbeats and goodbyes, as name servers and brokers see them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from gantrymq.client.core import ClientCore
from gantrymq.client.errors import NoRoute, NoRouteCause
from gantrymq.client.settings import ClientSettings
from gantrymq.wire.bodies.connections import PRODUCER_CONNECTIONS
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.client import ProducerGroupRequest

if TYPE_CHECKING:
    from support.targets import Target
    from support.transport import Run


def members(target: Target, group: str) -> list[str]:
    """Return the client ids of a producer group."""
    with target.client() as client:
        answer = client.ask(
            RequestCode.GET_PRODUCER_CONNECTION_LIST, ProducerGroupRequest(producer_group=group)
        )
    if answer.code != 0:
        return []
    return [one.client_id for one in PRODUCER_CONNECTIONS.decode(answer.body).connection_set]


def test_a_client_is_a_member_until_it_says_goodbye(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("core"), 3), target.name("core_group")

    async def main() -> None:
        core = ClientCore(ClientSettings(name_servers=(target.namesrv,)))
        await core.start()
        route = await core.routes.get(topic)
        assert [queue.queue_id for queue in route.write_queues] == [0, 1, 2]
        assert [queue.queue_id for queue in route.read_queues] == [0, 1, 2]
        core.heartbeats.producer(group)
        await core.heartbeats.now()
        assert await asyncio.to_thread(members, target, group) == [core.client_id]
        await core.close()
        assert await asyncio.to_thread(members, target, group) == []

    run(main())


def test_a_topic_that_nobody_knows(target: Target, run: Run) -> None:
    async def main() -> None:
        core = ClientCore(ClientSettings(name_servers=(target.namesrv,)))
        await core.start()
        with pytest.raises(NoRoute, match="does not know it") as caught:
            await core.routes.get("nobody_knows_it")
        assert caught.value.cause is NoRouteCause.UNKNOWN_TOPIC
        route = await core.routes.get("nobody_knows_it", template=True)
        assert route.is_template
        assert len(route.write_queues) == 4
        await core.close()

    run(main())
