"""FastStream's subscribers and publishers on a broker."""

from __future__ import annotations

import asyncio
import logging
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from faststream import BaseMiddleware, Context, FastStream
from faststream.exceptions import FeatureNotSupportedException
from faststream.middlewares import AckPolicy
from pydantic import BaseModel

from gantrymq import sql
from gantrymq.faststream import GantryBroker, GantryMessage, GantryResponse
from gantrymq.faststream.release import RELEASE, check_release
from gantrymq.testing import TestBroker

if TYPE_CHECKING:
    from collections.abc import Coroutine

ROOT = Path(__file__).parents[2]


class Order(BaseModel):
    """What is ordered."""

    number: int
    price: float


class Bill(BaseModel):
    """What is to be paid."""

    order: int
    total: float


def run(main: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(main, 30)

    asyncio.run(bounded())


def make(server: TestBroker, **options: Any) -> GantryBroker:  # noqa: ANN401
    return GantryBroker(server.namesrv, group="shop", logger=None, **options)


def test_from_order_to_bill() -> None:
    async def main() -> None:
        async with TestBroker() as server:
            for topic in ("Orders", "Bills"):
                await server.create_topic(topic, queues=1)
            broker = make(server)
            seen: asyncio.Queue[tuple[Bill, str, str]] = asyncio.Queue()

            @broker.subscriber("Orders", start="first")
            @broker.publisher("Bills", tags="new", headers={"kind": "bill"})
            async def bill(order: Order) -> Bill:
                return Bill(order=order.number, total=order.price * 1.19)

            @broker.subscriber("Bills", "new", start="first")
            async def paid(bill: Bill, message: GantryMessage = Context("message")) -> None:  # noqa: B008
                await seen.put((bill, message.headers["kind"], message.correlation_id))

            async with broker:
                await broker.start()
                await broker.publish(Order(number=7, price=100), "Orders", correlation_id="c-7")
                found, kind, correlation = await seen.get()
            assert (found.order, round(found.total, 2), kind) == (7, 119.0, "bill")
            assert correlation == "c-7"
            (stored,) = server.messages("Orders")
            assert stored.properties["content-type"] == "application/json"

    run(main())


def test_a_failing_handler_gets_the_message_again() -> None:
    async def main() -> None:
        async with TestBroker() as server:
            await server.create_topic("Orders", queues=1)
            broker = make(server)
            attempts: list[int] = []
            done = asyncio.Event()

            @broker.subscriber("Orders", start="first")
            async def handle(body: str, message: GantryMessage = Context("message")) -> None:  # noqa: B008
                attempts.append(message.raw_message.received.reconsume_times)
                if len(attempts) == 1:
                    raise ValueError(body)
                done.set()

            async with broker:
                await broker.start()
                await broker.publish("one", "Orders")
                while not server.messages("SCHEDULE_TOPIC_XXXX"):  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
                await server.jump(11)
                await done.wait()
            assert attempts == [0, 1]

    run(main())


@pytest.mark.parametrize("policy", [AckPolicy.REJECT_ON_ERROR, AckPolicy.ACK])
def test_policies(policy: AckPolicy) -> None:
    async def main() -> None:
        async with TestBroker() as server:
            await server.create_topic("Orders", queues=1)
            broker = make(server, ack_policy=policy)
            bodies: list[str] = []
            second = asyncio.Event()

            @broker.subscriber("Orders", start="first", workers=1)
            async def handle(body: str) -> None:
                bodies.append(body)
                if body == "second":
                    second.set()
                raise ValueError(body)

            async with broker:
                await broker.start()
                await broker.publish("first", "Orders")
                await broker.publish("second", "Orders")
                await second.wait()
            dead = [message.body for message in server.messages("%DLQ%shop-Orders")]
            if policy is AckPolicy.REJECT_ON_ERROR:
                assert dead == [b"first", b"second"]
            else:
                assert dead == []
            assert server.messages("SCHEDULE_TOPIC_XXXX") == []
            assert bodies == ["first", "second"]

    run(main())


def test_request_and_reply() -> None:
    async def main() -> None:
        async with TestBroker() as server:
            await server.create_topic("Sums", queues=1)
            broker = make(server)

            @broker.subscriber("Sums", start="first")
            async def add(numbers: list[int]) -> int:
                return sum(numbers)

            async with broker:
                await broker.start()
                reply = await broker.request([1, 2, 3], "Sums", timeout=10)
                assert await reply.decode() == 6

    run(main())


def test_sql_delay_and_response() -> None:
    async def main() -> None:
        async with TestBroker() as server:
            for topic in ("Orders", "Later"):
                await server.create_topic(topic, queues=1)
            broker = make(server)
            seen = asyncio.Event()
            bodies: list[str] = []

            @broker.subscriber("Orders", sql("price > 10"), start="first")
            @broker.publisher("Later")
            async def handle(body: str) -> GantryResponse:
                bodies.append(body)
                seen.set()
                return GantryResponse(body, delay_level=3, tags="slow", keys=("k",))

            async with broker:
                await broker.start()
                await broker.publish("cheap", "Orders", headers={"price": "5"})
                await broker.publish("dear", "Orders", headers={"price": "50"})
                await seen.wait()
                assert bodies == ["dear"]
                while not server.messages("SCHEDULE_TOPIC_XXXX"):  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
                assert server.messages("Later") == []
                await server.jump(11)
                while not server.messages("Later"):  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
            (stored,) = server.messages("Later")
            assert (stored.body, stored.tags, stored.keys) == (b"dear", "slow", ("k",))

    run(main())


def test_middlewares_see_both_sides() -> None:
    calls: list[str] = []

    class Watch(BaseMiddleware):
        async def consume_scope(self, call_next: Any, msg: Any) -> Any:  # noqa: ANN401
            calls.append("consume")
            return await call_next(msg)

        async def publish_scope(self, call_next: Any, cmd: Any) -> Any:  # noqa: ANN401
            calls.append("publish")
            return await call_next(cmd)

    async def main() -> None:
        async with TestBroker() as server:
            await server.create_topic("Orders", queues=1)
            broker = make(server, middlewares=(Watch,))
            seen = asyncio.Event()

            @broker.subscriber("Orders", start="first")
            async def handle(_body: str) -> None:
                seen.set()

            async with broker:
                await broker.start()
                await broker.publish("one", "Orders")
                await seen.wait()

    run(main())
    assert calls == ["publish", "consume"]


def test_an_application_runs_and_describes_itself() -> None:
    async def main() -> None:
        async with TestBroker() as server:
            await server.create_topic("Orders", queues=1)
            broker = make(server)
            app = FastStream(broker, logger=None)
            numbers: list[int] = []

            @broker.subscriber("Orders", start="first")
            async def handle(order: Order) -> None:
                numbers.append(order.number)
                app.exit()

            @app.after_startup
            async def send() -> None:
                assert await broker.ping()
                await broker.publish(Order(number=1, price=2), "Orders")

            await app.run(log_level=logging.CRITICAL)
            assert numbers == [1]
            assert not await broker.ping()
            schema = app.schema.to_specification().to_jsonable()
            assert "Orders:Handle" in schema["channels"]

    run(main())


def test_what_is_not_there_says_so() -> None:
    async def main() -> None:
        async with TestBroker() as server, make(server) as broker:
            subscriber = broker.subscriber("Orders")
            with pytest.raises(FeatureNotSupportedException, match="PullConsumer"):
                await subscriber.get_one()
            with pytest.raises(FeatureNotSupportedException):
                await broker.publish_batch("one", queue="Orders")

    run(main())


def test_another_release_is_refused_with_what_to_install() -> None:
    check_release(f"{RELEASE}.99")
    for installed in ("0.6.7", "0.70.0", "1.7.0", None):
        with pytest.raises(ImportError, match=r"pip install 'gantrymq\[faststream\]'"):
            check_release(installed)


def test_the_extra_asks_for_that_release() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (asked,) = project["optional-dependencies"]["faststream"]
    assert asked == f"faststream>={RELEASE},<0.8"
