"""A SYNC_MASTER and its slave as processes, and a consumer that reads on when the master dies."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from gantrymq.client.producer import Producer
from gantrymq.client.push_consumer import PushConsumer
from gantrymq.errors import GantryError
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.topic import CreateTopicRequest
from support.failover_group import Broker, start_name_server
from support.transport import until

if TYPE_CHECKING:
    from contextlib import ExitStack
    from pathlib import Path

    from gantrymq.client.received import ReceivedMessage

SLAVE = {"brokerRole": "SLAVE", "brokerId": "1"}


class Pair:
    """A name server, a SYNC_MASTER and its slave."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.names = start_name_server(stack, folder)
        common = {"namesrvAddr": self.names}
        self.master = Broker(folder, "master", {**common, "brokerRole": "SYNC_MASTER"})
        stack.callback(self.master.stop)
        self.slave = Broker(folder, "slave", {**common, **SLAVE})
        stack.callback(self.slave.stop)


async def until_sends_are_safe(producer: Producer) -> None:
    """Wait for the servers to start and to find each other."""
    is_safe = False
    while not is_safe:
        await asyncio.sleep(0.1)
        with suppress(GantryError):
            is_safe = (await producer.send("Warm-up", b"is a slave there?")).is_ok


async def send(producer: Producer, first: int, last: int) -> None:
    """Send messages with these numbers; a slave has each of them."""
    for begin in range(first, last, 50):
        numbers = range(begin, min(begin + 50, last))
        sent = await asyncio.gather(*(producer.send("Kept", b"%d" % number) for number in numbers))
        assert all(one.is_ok for one in sent)


class Reader:
    """A consumer that notes what it gets."""

    def __init__(self) -> None:
        self.got: list[int] = []
        self.may_read = asyncio.Event()

    async def take(self, message: ReceivedMessage) -> None:
        await self.may_read.wait()
        self.got.append(int(message.body))

    async def has(self, last: int) -> None:
        await until(lambda: len(set(self.got)) >= last)


def make_topic(brokers: list[Broker]) -> None:
    """Have the topic on every broker, whichever takes the first send."""
    header = CreateTopicRequest(
        topic="Kept", default_topic="TBW102", read_queue_nums=4, write_queue_nums=4, perm=6,
        topic_filter_type="SINGLE_TAG", topic_sys_flag=0, order=False,
    )  # fmt: skip
    for broker in brokers:
        made = False
        while not made:
            with suppress(OSError, GantryError), broker.client() as client:
                client.want(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
                made = True


AFTER = 500
"""Messages that are sent when the master is back."""


async def read_through_death(pair: Pair, messages: int) -> Reader:
    """Kill the master with nearly everything unread, start it again; return what was read."""
    reader = Reader()
    async with Producer(pair.names, group="p", timeout_s=10) as producer:
        await until_sends_are_safe(producer)
        await send(producer, 0, messages)
        consumer = PushConsumer(
            pair.names, group="readers", start="first", workers=64, hold_messages=100
        )
        consumer.subscribe("Kept", handler=reader.take)
        async with consumer:
            await asyncio.sleep(1)
            pair.master.kill()  # with nearly everything still to be read
            reader.may_read.set()
            await reader.has(messages)
            pair.master.start()
            await until_sends_are_safe(producer)
            await send(producer, messages, messages + AFTER)
            await reader.has(messages + AFTER)
    return reader
