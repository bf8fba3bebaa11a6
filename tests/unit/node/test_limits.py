"""Limits of a whole broker over real sockets: connections, and a quota that a client feels."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from gantrymq.client.producer import Producer
from gantrymq.testing.broker import TestBroker
from gantrymq.wire.bodies.settings import SETTINGS
from gantrymq.wire.response_errors import SystemBusy
from support.remoting import RemotingClient

if TYPE_CHECKING:
    from support.transport import Run

UPDATE_CONFIG = 25


async def changed(broker: TestBroker, **changes: str) -> None:
    """Change settings as mqadmin does."""

    def change() -> int:
        with RemotingClient("127.0.0.1", broker.node.port) as client:
            return client.ask(UPDATE_CONFIG, None, SETTINGS.encode(changes)).code

    assert await asyncio.to_thread(change) == 0


async def outcome(producer: Producer) -> str:
    """Return why a send was refused; nothing if it was not."""
    try:
        await producer.send("Orders", b"x")
    except SystemBusy as error:
        return error.remark
    return ""


async def is_closed(port: int) -> bool:
    """Tell whether a new connection is closed at once."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        return await asyncio.wait_for(reader.read(1), 0.3) == b""
    except TimeoutError:
        return False
    finally:
        writer.close()


def test_the_bound_of_an_address_holds_within_a_second(run: Run) -> None:
    async def main() -> None:
        async with TestBroker() as broker:
            assert not await is_closed(broker.node.port)
            await changed(broker, maxConnectionsPerAddress="1")
            kept = await asyncio.open_connection("127.0.0.1", broker.node.port)
            begun = time.monotonic()
            while not await is_closed(broker.node.port):
                assert time.monotonic() - begun < 5
            kept[1].close()

    run(main())


def test_a_producer_over_a_quota_is_told_and_comes_through_later(run: Run) -> None:
    async def main() -> None:
        async with TestBroker() as broker, Producer(broker.namesrv, "P", retries=0) as producer:
            await producer.send("Orders", b"first")
            await changed(broker, quotaTopicSendRequests="2")
            sends = [await outcome(producer) for _ in range(4)]
            assert sends[:2] == ["", ""]
            refused = [one for one in sends if one]
            assert refused, "four at once are more than two"
            assert refused[0].startswith("[QUOTA_TOPIC]the topic Orders has used up its quota of 2")
            await changed(broker, quotaTopicSendRequests="0")
            await producer.send("Orders", b"last")
            stored = sorted(message.body for message in broker.messages("Orders"))
            assert stored == [b"first", b"last", *([b"x"] * sends.count(""))], "none was lost"

    run(main())


def test_an_overloaded_broker_refuses_over_the_wire(run: Run) -> None:
    async def main() -> None:
        settings = {"brokerFastFailureEnable": "true"}
        async with (
            TestBroker(settings=settings) as broker,
            Producer(broker.namesrv, "P", retries=0) as producer,
        ):
            await producer.send("Orders", b"first")
            broker.node.broker.service.press(0.0)
            with pytest.raises(SystemBusy, match="OVERLOAD"):
                await producer.send("Orders", b"second")
            broker.node.broker.service.press(1.0)
            await producer.send("Orders", b"third")
            stored = sorted(message.body for message in broker.messages("Orders"))
            assert stored == [b"first", b"third"]

    run(main())
