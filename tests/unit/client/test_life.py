"""The beginning and the end of clients: cancelled, twice, amid work, on another loop."""

from __future__ import annotations

import asyncio
import gc
import time
import warnings
from typing import TYPE_CHECKING

import pytest

from gantrymq import (
    ClientClosed,
    ClientError,
    GantryError,
    InvalidValue,
    NoRoute,
    NotStarted,
    PeerGone,
    Producer,
    PullConsumer,
    PushConsumer,
    ReceivedMessage,
)
from gantrymq.client import name_servers
from gantrymq.client.heartbeats import Heartbeats
from gantrymq.testing import TestBroker, ThreadedBroker
from gantrymq.wire.codes import RequestCode
from support.consuming import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.transport import Run

Client = Producer | PushConsumer | PullConsumer
KINDS: dict[str, Callable[[str], Client]] = {
    "producer": lambda namesrv: Producer(namesrv, timeout_s=0.3),
    "push": lambda namesrv: PushConsumer(namesrv, "g"),
    "pull": lambda namesrv: PullConsumer(namesrv, "g"),
}
NOBODY = "127.0.0.1:1"


def own_tasks() -> list[str]:
    return [name for task in asyncio.all_tasks() if "gantrymq" in (name := task.get_name())]


@pytest.fixture
def slow_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a start wait for a moment, as it does while a name is looked up."""

    async def local_address(_name_servers: object, _timeout_s: float) -> str:
        await asyncio.sleep(0.02)
        return "127.0.0.1"

    monkeypatch.setattr("gantrymq.client.core.local_address", local_address)


class SilentServer:
    """Accepts connections and says nothing."""

    async def __aenter__(self) -> str:
        self._open: list[asyncio.StreamWriter] = []
        self._server = await asyncio.start_server(
            lambda _reader, writer: self._open.append(writer), "127.0.0.1", 0
        )
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aexit__(self, *_problem: object) -> None:
        self._server.close()
        for writer in self._open:
            writer.close()


@pytest.mark.usefixtures("slow_lookup")
@pytest.mark.parametrize("kind", KINDS)
def test_a_start_that_was_cancelled_can_be_made_again(kind: str, run: Run) -> None:
    async def main() -> None:
        async with TestBroker() as broker:
            client = KINDS[kind](broker.namesrv)
            begun = asyncio.ensure_future(client.start())
            await asyncio.sleep(0)
            with pytest.raises(NotStarted):
                assert client._core.client_id
            begun.cancel()
            with pytest.raises(asyncio.CancelledError):
                await begun
            await client.start()
            await client.close()
        assert own_tasks() == []

    run(main())


@pytest.mark.usefixtures("slow_lookup")
@pytest.mark.parametrize("kind", KINDS)
def test_closing_while_it_starts(kind: str, run: Run) -> None:
    async def main() -> None:
        client = KINDS[kind](NOBODY)
        begun = asyncio.ensure_future(client.start())
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises(ClientClosed):
            await begun
        assert own_tasks() == []

    run(main())


@pytest.mark.parametrize("pop", [False, True])
def test_a_consumer_that_is_closed_as_it_joins_its_group_leaves_nothing(
    run: Run, *, pop: bool
) -> None:
    async def main() -> None:
        async with TestBroker() as broker:
            await broker.create_topic("T", queues=1)
            broker.delay_answers(0.1, requests=[RequestCode.HEART_BEAT])
            consumer = PushConsumer(broker.namesrv, "g", start="first", pop=pop)
            consumer.subscribe("T", handler=lambda _message: None)
            begun = asyncio.ensure_future(consumer.start())
            await until(lambda: broker.faults.happened)
            await consumer.close()
            with pytest.raises(ClientClosed):
                await begun
            assert own_tasks() == []

    run(main())


@pytest.mark.parametrize("kind", KINDS)
def test_a_start_that_cannot_be_leaves_nothing(kind: str, run: Run) -> None:
    async def main() -> None:
        client = KINDS[kind](NOBODY)
        object.__setattr__(client._core.settings, "instance", "a\x00b")
        with pytest.raises(InvalidValue, match="client id"):
            await client.start()
        await client.close()
        await client.close()

    run(main())


def test_a_name_server_that_no_dns_can_know(run: Run) -> None:
    async def main() -> None:
        async with Producer("a..b:9876") as producer:
            with pytest.raises(NoRoute, match=r"a\.\.b:9876"):
                await producer.send("T", b"x")

    run(main())


@pytest.mark.parametrize("orderly", [False, True])
def test_a_close_that_was_cancelled_goes_on(run: Run, *, orderly: bool) -> None:
    async def main() -> None:
        async with TestBroker() as broker:
            await broker.create_topic("T", queues=1)
            at_work = asyncio.Event()

            async def handle(_message: ReceivedMessage) -> None:
                at_work.set()
                await asyncio.sleep(60)

            consumer = PushConsumer(
                broker.namesrv, "g", start="first", orderly=orderly, close_timeout_s=0.2
            )
            consumer.subscribe("T", handler=handle)
            await consumer.start()
            async with Producer(broker.namesrv) as producer:
                await producer.send("T", b"x")
            await at_work.wait()
            closing = asyncio.ensure_future(consumer.close())
            await asyncio.sleep(0.05)
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
            await consumer.close()  # waits for the end that goes on
            assert own_tasks() == []

    run(main())


@pytest.mark.parametrize("orderly", [False, True])
def test_a_handler_may_close_its_consumer(run: Run, *, orderly: bool) -> None:
    async def main() -> None:
        async with TestBroker() as broker:
            await broker.create_topic("T", queues=1)
            consumer = PushConsumer(broker.namesrv, "g", start="first", orderly=orderly)
            ended = asyncio.Event()

            async def handle(_message: ReceivedMessage) -> None:
                await consumer.close()
                ended.set()

            consumer.subscribe("T", handler=handle)
            await consumer.start()
            began = time.monotonic()
            async with Producer(broker.namesrv) as producer:
                await producer.send("T", b"x")
            await ended.wait()
            await asyncio.sleep(0)
            assert time.monotonic() - began < consumer.options.close_timeout_s / 2
            assert own_tasks() == []

    run(main())


def test_a_send_that_waits_for_its_route_is_told_of_the_end(run: Run) -> None:
    async def main() -> None:
        async with SilentServer() as address:
            producer = Producer(address, timeout_s=0.1)
            await producer.start()
            send = asyncio.ensure_future(producer.send("T", b"x", timeout_s=20))
            await asyncio.sleep(0.02)
            await producer.close()
            with pytest.raises(PeerGone):
                await send

    run(main())


def test_the_time_of_a_send_counts_for_its_route(run: Run) -> None:
    async def main() -> None:
        async with SilentServer() as address, Producer(address, timeout_s=0.1) as producer:
            calls: list[Callable[[], object]] = [
                lambda: producer.send("T", b"x"),
                lambda: producer.send("T", b"x", key="k"),
                lambda: producer.send_oneway("T", b"x"),
                lambda: producer.request("T", b"x", timeout_s=0.1),
                lambda: producer.queues("T"),
            ]
            for call in calls:
                began = time.monotonic()
                with pytest.raises(NoRoute, match=address):
                    await call()  # type: ignore[misc]
                assert time.monotonic() - began < 1

    run(main())


def test_a_name_server_that_says_nothing_leaves_time_for_the_next(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(name_servers, "FIRST_S", 0.1)

    async def main() -> None:
        async with (
            SilentServer() as silent,
            TestBroker() as broker,
            Producer(f"{silent};{broker.namesrv}", timeout_s=2) as producer,
        ):
            await broker.create_topic("T")
            producer._core.name_servers._at = 0
            assert (await producer.send("T", b"x")).is_ok
            assert producer._core.name_servers.current == broker.namesrv

    run(main())


def test_a_goodbye_that_fails_leaves_nothing_open(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def say_goodbye(_heartbeats: Heartbeats) -> None:
        raise ZeroDivisionError("on purpose")

    async def main() -> None:
        async with TestBroker() as broker:
            await broker.create_topic("T")
            producer = Producer(broker.namesrv)
            await producer.start()
            await producer.send("T", b"x")
            monkeypatch.setattr(Heartbeats, "say_goodbye", say_goodbye)
            with pytest.raises(ZeroDivisionError):
                await producer.close()
            assert own_tasks() == []
            with pytest.raises(ClientClosed):
                await producer.send("T", b"x")
            assert not producer._core.connections.table.connections

    run(main())


def test_a_consumer_that_was_closed_takes_no_subscription(run: Run) -> None:
    async def main() -> None:
        async with TestBroker() as broker:
            consumer = PushConsumer(broker.namesrv, "g")
            consumer.subscribe("T")
            async with consumer:
                consumer.subscribe("U")
            with pytest.raises(ClientClosed):
                consumer.subscribe("V")

    run(main())


def test_another_loop_is_refused_and_a_dead_one_can_be_closed() -> None:
    with ThreadedBroker() as broker:
        broker.create_topic("T", 4)
        use_on_three_loops(broker.namesrv)
        with warnings.catch_warnings():
            # Their sockets went with the loop that nobody closed them on.
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


def use_on_three_loops(namesrv: str) -> None:
    producer, consumer = Producer(namesrv), PushConsumer(namesrv, "g")

    async def begin() -> None:
        await producer.start()
        await consumer.start()
        await producer.send("T", b"x")

    async def go_on() -> None:
        for call in (lambda: producer.send("T", b"x"), consumer.commit):
            with pytest.raises(ClientError, match="another event loop"):
                await call()

    async def end() -> None:
        for client in (producer, consumer):
            await client.close()
            await client.close()
        with pytest.raises(ClientClosed):
            await producer.send("T", b"x")

    with asyncio.Runner() as first:
        first.run(begin())
        with asyncio.Runner() as second:
            second.run(go_on())
            with pytest.raises(GantryError, match="another event loop"):
                second.run(producer.close())
    asyncio.run(end())
