"""Servers that disagree, answer nonsense or change; handlers and strategies that misbehave."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gantrymq import (
    ClientError,
    Later,
    Message,
    MessageQueue,
    NoRoute,
    NoRouteCause,
    Producer,
    PushConsumer,
    ReceivedMessage,
    blocking,
)
from gantrymq.client.consuming.popping import Popping
from gantrymq.client.consuming.strategies import Strategy
from gantrymq.model.sharing import averagely
from gantrymq.testing import TestBroker, ThreadedBroker
from gantrymq.transport.command_service import CommandService
from gantrymq.transport.server import Server
from gantrymq.wire.codes import ResponseCode
from support.consuming import until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Peer
    from support.transport import Run

ROUTE = (
    '{"queueDatas":[{"brokerName":"b","perm":6,"readQueueNums":%s,"writeQueueNums":4}],'
    '"brokerDatas":[{"brokerName":"b","cluster":"c","brokerAddrs":{"0":"%s"}}]}'
)
NONSENSE = {
    "not JSON": b"\xff{",
    "another body": b"[1, 2]",
    "an address that is none": (ROUTE % (4, "nowhere")).encode(),
    "two billion queues": (ROUTE % (2**31 - 1, "127.0.0.1:1")).encode(),
}


class FalseNameServer:
    """A name server that answers every question with the same."""

    def __init__(self, code: int, body: bytes = b"") -> None:
        self._code, self._body = code, body

    def _handle(self, request: Command, _peer: Peer) -> Command:
        return request.response(self._code, body=self._body, remark="scripted")

    async def __aenter__(self) -> str:
        self._server = await Server(CommandService(self._handle), [("127.0.0.1", 0)]).start()
        return self._server.bound[0]

    async def __aexit__(self, *_problem: object) -> None:
        await self._server.stop(0)


@pytest.mark.parametrize("body", NONSENSE.values(), ids=NONSENSE)
def test_a_route_that_is_nonsense(body: bytes, run: Run) -> None:
    async def main() -> None:
        async with FalseNameServer(ResponseCode.SUCCESS, body) as alone, Producer(alone) as first:
            with pytest.raises(NoRoute, match=alone) as caught:
                await first.send("T", b"x")
            assert caught.value.cause is NoRouteCause.REFUSED
            async with TestBroker() as broker:
                await broker.create_topic("T")
                await send_through(alone, broker)

    run(main())


@pytest.mark.parametrize("code", [ResponseCode.SYSTEM_ERROR, ResponseCode.TOPIC_NOT_EXIST])
def test_name_servers_that_disagree(code: ResponseCode, run: Run) -> None:
    async def main() -> None:
        async with FalseNameServer(code) as other, TestBroker() as broker:
            await broker.create_topic("T")
            await send_through(other, broker)

    run(main())


async def send_through(other: str, broker: TestBroker) -> None:
    """Send with two name servers, whichever of them is asked first."""
    for first in (0, 1):
        async with Producer(f"{other};{broker.namesrv}") as producer:
            producer._core.name_servers._at = first
            assert (await producer.send("T", b"x")).is_ok
            assert producer._core.name_servers.current == broker.namesrv


def test_a_topic_that_loses_queues(run: Run) -> None:
    async def main() -> None:
        async with TestBroker() as broker:
            await broker.create_topic("T", queues=16)
            async with Producer(broker.namesrv) as producer:
                await producer.send("T", b"before")
                await broker.create_topic("T", queues=2)
                for _ in range(32):
                    assert (await producer.send("T", b"after")).queue.queue_id < 2
                assert len(await producer.queues("T")) == 2

    run(main())


FAILURES: dict[str, Callable[[], BaseException]] = {
    "SystemExit": SystemExit,
    "KeyboardInterrupt": KeyboardInterrupt,
    "GeneratorExit": GeneratorExit,
    "StopIteration": StopIteration,
    "CancelledError": asyncio.CancelledError,
    "Later with a reason alone": lambda: Later("not yet"),  # type: ignore[arg-type]
}


ENDS_THE_LOOP = {"SystemExit", "KeyboardInterrupt"}
"""Raised in a coroutine these two end the event loop: asyncio has it so."""
CASES = [
    *((failure, True, False) for failure in FAILURES),
    *((failure, False, False) for failure in FAILURES if failure not in ENDS_THE_LOOP),
    ("SystemExit", True, True),
    ("GeneratorExit", False, True),
]


@pytest.mark.parametrize(("failure", "in_thread", "orderly"), CASES)
def test_whatever_a_handler_raises_it_is_called_again(
    failure: str, run: Run, *, in_thread: bool, orderly: bool
) -> None:
    async def main() -> None:
        async with TestBroker() as broker:
            await broker.create_topic("T", queues=1)
            loop, calls, done = asyncio.get_running_loop(), [0], asyncio.Event()

            def handle(_message: ReceivedMessage) -> None:
                calls[0] += 1
                if calls[0] == 1:
                    raise FAILURES[failure]()
                loop.call_soon_threadsafe(done.set)

            async def handle_here(message: ReceivedMessage) -> None:
                handle(message)

            consumer = PushConsumer(broker.namesrv, "g", start="first", orderly=orderly, workers=1)
            consumer.subscribe("T", handler=handle if in_thread else handle_here)
            async with consumer, Producer(broker.namesrv) as producer:
                await producer.send("T", b"x")
                if not orderly:
                    await producer.send("T", b"y")  # the one worker lives
                async with asyncio.timeout(10):
                    await done.wait()

    run(main())


def test_an_answer_to_a_pop_that_nobody_thought_of_is_not_the_last(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    received, fails = Popping._received, [True]

    def fail_once(*arguments: Any) -> Any:  # noqa: ANN401 - whatever it takes
        if fails.pop() if fails else False:
            raise ZeroDivisionError("on purpose")
        return received(*arguments)

    monkeypatch.setattr(Popping, "_received", fail_once)

    async def main() -> None:
        async with TestBroker() as broker:
            await broker.create_topic("T", queues=1)
            done = asyncio.Event()

            async def handle(message: ReceivedMessage) -> None:
                if message.body == b"second":
                    done.set()

            consumer = PushConsumer(broker.namesrv, "g", start="first", pop=True)
            consumer.subscribe("T", handler=handle)
            async with consumer, Producer(broker.namesrv) as producer:
                await producer.send("T", b"first")
                await until(lambda: not fails)
                await producer.send("T", b"second")
                await done.wait()

    run(main())


def test_broadcasting_without_a_home_directory(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)

    async def main() -> None:
        async with TestBroker() as broker:
            consumer = PushConsumer(broker.namesrv, "g", mode="broadcasting")
            with pytest.raises(ClientError, match="offsets_directory="):
                await consumer.start()

    run(main())


def test_a_strategy_that_fails_once_is_asked_again(run: Run) -> None:
    fails = [False]

    def share(
        client_id: str, members: Sequence[str], queues: Sequence[MessageQueue]
    ) -> list[MessageQueue]:
        if fails.pop():
            fails.append(False)
            raise ValueError("on purpose")
        fails.append(False)
        return averagely(client_id, members, queues)

    async def main() -> None:
        async with TestBroker() as broker:
            await broker.create_topic("T", queues=1)
            await broker.create_topic("U", queues=1)
            strategy = Strategy("AVG", share)
            done = asyncio.Event()

            async def handle(_message: ReceivedMessage) -> None:
                done.set()

            consumer = PushConsumer(broker.namesrv, "g", start="first", strategy=strategy)
            consumer.subscribe("T", handler=handle)
            async with consumer, Producer(broker.namesrv) as producer:
                fails[0] = True
                consumer.subscribe("U", handler=handle)
                await producer.send("U", b"x")
                async with asyncio.timeout(10):
                    await done.wait()
            assert not fails[0]

    run(main())


def test_what_a_heartbeat_says_is_made_once_for_many_topics(run: Run) -> None:
    async def main() -> None:
        async with TestBroker() as broker:
            names = [f"T{number}" for number in range(30)]
            for name in names:
                await broker.create_topic(name, queues=1)
            consumer = PushConsumer(broker.namesrv, "g", start="first")
            for name in names:
                consumer.subscribe(name, handler=lambda _message: None)
            asked = 0
            data = consumer._consumer_data

            def counted() -> Any:  # noqa: ANN401
                nonlocal asked
                asked += 1
                return data()

            consumer._consumer_data = counted  # type: ignore[method-assign]
            async with consumer:
                assert len(consumer.assignment) == 31
                assert asked == 1
                consumer.subscribe("T0", "a || b", handler=lambda _message: None)
                async with asyncio.timeout(5):
                    while asked < 2:  # noqa: ASYNC110
                        await asyncio.sleep(0.01)

    run(main())


def test_a_handler_that_exits_leaves_the_blocking_consumer_alive() -> None:
    with ThreadedBroker() as broker:
        broker.create_topic("T", 1)
        again, calls = threading.Event(), [0]

        def handle(_message: ReceivedMessage) -> None:
            calls[0] += 1
            if calls[0] == 1:
                raise SystemExit(1)
            again.set()

        consumer = blocking.PushConsumer(broker.namesrv, "g", start="first", orderly=True)
        consumer.subscribe("T", handler=handle)
        with consumer, blocking.Producer(broker.namesrv) as producer:
            producer.send(Message(topic="T", body=b"x"))
            assert again.wait(10)
