"""Two brokers in a route, of which one is gone, slow, or in another machine room.

Both names are of the one broker that there is: a name server of the test's own says so. What is
stored, locked and committed is the real broker's business all the same.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from gantrymq import Producer, PushConsumer, SendStatus
from gantrymq.client.consuming import strategies
from gantrymq.model.names import retry_topic
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.model.route import BrokerData, QueueData, TopicRoute
from gantrymq.model.topic import Perm
from support.consuming import until
from support.faulty_proxy import Proxy
from support.scripted import ScriptedCluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from gantrymq import ReceivedMessage
    from gantrymq.client.consuming.strategies import Strategy
    from support.targets import Target
    from support.transport import Run

NOBODY = "127.0.0.1:1"
QUEUES = 4


@asynccontextmanager
async def name_server(brokers: Mapping[str, str], *topics: str) -> AsyncIterator[str]:
    """Run a name server that says of each topic that all these brokers have it."""
    async with ScriptedCluster(brokers=0) as cluster:
        for topic in topics:
            cluster.routes[topic] = TopicRoute(
                queues=tuple(
                    QueueData(name, QUEUES, QUEUES, Perm.READ | Perm.WRITE) for name in brokers
                ),
                brokers=tuple(
                    BrokerData("DefaultCluster", name, {0: address})
                    for name, address in brokers.items()
                ),
            )
        yield cluster.namesrv


def test_a_send_is_tried_again_with_another_broker(target: Target, run: Run) -> None:
    topic = target.create_topic(target.name("several"), QUEUES)

    async def main() -> None:
        brokers = {"gone": NOBODY, "here": target.broker}
        async with name_server(brokers, topic) as namesrv, Producer(namesrv) as producer:
            sent = [await producer.send(topic, b"%d" % number) for number in range(6)]
        assert {result.status for result in sent} == {SendStatus.SEND_OK}
        assert {result.queue.broker_name for result in sent} == {"here"}
        found = await target.wait_for_messages(topic, 6)
        assert sorted(record.body for record in found) == [b"%d" % number for number in range(6)]

    run(main())


def test_a_slow_broker_is_left_alone(target: Target, run: Run) -> None:
    topic = target.create_topic(target.name("several"), QUEUES)

    async def main() -> None:
        proxy = Proxy(target.broker)
        await proxy.start()
        brokers = {"quick": target.broker, "slow": proxy.address}
        async with (
            name_server(brokers, topic) as namesrv,
            Producer(namesrv, avoid_slow_brokers=True) as producer,
        ):
            names = [(await producer.send(topic, b"x")).queue.broker_name for _ in range(8)]
            assert {"quick", "slow"} == set(names)
            proxy.delay_s = 0.6  # 550 ms are too many, and cost it half a minute
            names = [(await producer.send(topic, b"x")).queue.broker_name for _ in range(12)]
            assert names.count("slow") == 1
            assert names[names.index("slow") + 1 :].count("quick") >= 7
        await proxy.close()
        assert len(await target.wait_for_messages(topic, 20)) == 20

    run(main())


def test_queues_are_shared_by_machine_room_by_configuration_and_in_a_circle(
    target: Target, run: Run
) -> None:
    topic = target.create_topic(target.name("several"), QUEUES)
    east = {MessageQueue(topic, "east@a", QueueId(number)) for number in range(QUEUES)}
    west = {MessageQueue(topic, "west@a", QueueId(number)) for number in range(QUEUES)}
    some = {MessageQueue(topic, "west@a", QueueId(1)), MessageQueue(topic, "west@a", QueueId(3))}
    bodies = {b"%d" % number for number in range(8)}

    async def share(strategy: Strategy) -> list[set[MessageQueue]]:
        """Return what two members have, each with a handler that gets what is theirs."""
        group = target.name("several_group")
        seen: list[set[bytes]] = [set(), set()]
        members: list[PushConsumer] = []
        brokers = {"east@a": target.broker, "west@a": target.broker}
        async with name_server(brokers, topic, retry_topic(group)) as namesrv:
            for number, name in enumerate(("one", "two")):
                member = PushConsumer(
                    namesrv, group, start="first", instance=name, strategy=strategy, rebalance_s=1.0
                )

                async def handle(message: ReceivedMessage, number: int = number) -> None:
                    seen[number].add(message.body)

                member.subscribe(topic, handler=handle)
                members.append(member)

            def owned(member: PushConsumer) -> set[MessageQueue]:
                return {queue for queue in member.assignment if queue.topic == topic}

            async with members[0], members[1]:
                parts = [owned(member) for member in members]
                for _ in range(500):
                    await asyncio.sleep(0.02)
                    before, parts = parts, [owned(member) for member in members]
                    if before == parts and all(parts):
                        break
                wanted = {
                    message.body
                    for message in await target.wait_for_messages(topic, 8)
                    if any(queue.queue_id == message.queue_id for part in parts for queue in part)
                }
                await until(lambda: seen[0] | seen[1] == wanted)
                return [owned(member) for member in members]

    async def main() -> None:
        async with Producer(target.namesrv) as producer:
            for number, body in enumerate(sorted(bodies)):
                queue = (await producer.queues(topic))[number % QUEUES]
                await producer.send(topic, body, queue=queue)
        one, two = await share(strategies.machine_room(["east", "north"]))
        assert (one | two, one & two) == (east, set())
        one, two = await share(strategies.configured(some))
        assert one == two == some
        one, two = await share(strategies.circle)
        assert (one | two, one & two) == (east | west, set())
        assert {queue.queue_id % 2 for queue in one} == {0}

    run(main())
