"""A master that dies and comes back, or is replaced by hand: consumers and producers go on."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from gantrymq.client.producer import Producer
from gantrymq.client.push_consumer import PushConsumer
from gantrymq.node.cluster_listing import list_brokers
from support.failover_group import Broker, start_name_server
from support.master_death import (
    AFTER,
    SLAVE,
    Pair,
    Reader,
    make_topic,
    read_through_death,
    send,
    until_sends_are_safe,
)
from support.routes import wait_for_route

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MESSAGES = 10_000
TEST_S_MAX = 90


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with ExitStack() as stack:
        yield Pair(stack, tmp_path)


def test_a_consumer_reads_on_from_the_slave_and_then_from_the_master(pair: Pair) -> None:
    """`make chaos-failover WHAT=consumer` does it with 100,000 messages."""
    reading = read_through_death(pair, MESSAGES)
    reader = asyncio.run(asyncio.wait_for(reading, TEST_S_MAX))
    assert set(reader.got) == set(range(MESSAGES + AFTER))


def test_a_slave_is_made_master_by_hand(pair: Pair) -> None:
    async def main() -> None:
        async with Producer(pair.names, group="p", timeout_s=10) as producer:
            await until_sends_are_safe(producer)
            await send(producer, 0, 500)
        pair.master.kill()
        pair.slave.stop()
        pair.slave.settings |= {"brokerRole": "SYNC_MASTER", "brokerId": "0"}
        pair.slave.start()
        pair.master.settings |= SLAVE
        pair.master.start()
        reader = Reader()
        reader.may_read.set()
        async with Producer(pair.names, group="p", timeout_s=10, retries=20) as producer:
            await until_sends_are_safe(producer)
            await send(producer, 500, 600)
            consumer = PushConsumer(pair.names, group="readers", start="first")
            consumer.subscribe("Kept", handler=reader.take)
            async with consumer:
                await reader.has(600)
        assert set(reader.got) == set(range(600))

    asyncio.run(asyncio.wait_for(main(), TEST_S_MAX))


def test_one_of_two_masters_dies_and_no_send_fails(tmp_path: Path) -> None:
    async def main(names: str, brokers: list[Broker]) -> None:
        reader = Reader()
        reader.may_read.set()
        async with Producer(names, group="p", timeout_s=10, retries=5) as producer:
            await asyncio.to_thread(make_topic, brokers)
            await asyncio.to_thread(wait_for_route, names, "Kept", ("a", "b"))
            for number in range(2000):
                if number == 700:
                    brokers[0].kill()
                sent = await producer.send("Kept", b"%d" % number)
                assert number < 700 or sent.queue.broker_name == "b"
            brokers[0].start()
            for _ in range(300):
                if len(await list_brokers(names)) == len(brokers):
                    break
                await asyncio.sleep(0.1)
            consumer = PushConsumer(names, group="readers", start="first")
            consumer.subscribe("Kept", handler=reader.take)
            async with consumer:
                await reader.has(2000)
        assert set(reader.got) == set(range(2000)), "what waited on the dead one is delivered too"

    with ExitStack() as stack:
        names = start_name_server(stack, tmp_path)
        brokers = []
        for name in ("a", "b"):
            brokers.append(Broker(tmp_path, name, {"namesrvAddr": names, "brokerName": name}))
            stack.callback(brokers[-1].stop)
        asyncio.run(asyncio.wait_for(main(names, brokers), TEST_S_MAX))
