"""Everything at once, by a seed: sends and starts that are cancelled, connections that are cut.

Whatever happened, afterwards nothing that was acknowledged is missing, no task runs on, no place
among the sends in flight stays taken and no queue stays locked.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import pytest

from gantrymq import GantryError, Message, Producer, PushConsumer, TransactionState
from gantrymq.testing import TestBroker
from unit.client.test_life import own_tasks

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from gantrymq import ReceivedMessage
    from support.transport import Run

SENDS = 150
CONSUMERS = 8
LARGE = bytes(200_000)
"""Is compressed in a thread."""


async def commit(_message: object) -> TransactionState:
    """Say that it went well."""
    return TransactionState.COMMIT


class Saboteur:
    """Spoils what it is shown, by a random generator."""

    def __init__(self, seed: int, broker: TestBroker) -> None:
        self.random = random.Random(seed)
        self.broker = broker

    def spoil(self) -> None:
        """Do something to the broker, or nothing."""
        chance = self.random.random()
        if chance < 0.02:
            self.broker.drop_connections()
        elif chance < 0.04:
            self.broker.lose_answers(times=1)
        elif chance < 0.06:
            self.broker.refuse(times=2)

    async def pause(self, most_s: float) -> None:
        """Let some time pass."""
        await asyncio.sleep(self.random.random() * most_s)

    async def cut_short(self, work: Coroutine[Any, Any, None], chance: float) -> None:
        """Run something, and cancel it with some chance; errors are what sabotage is for."""
        task = asyncio.ensure_future(work)
        if self.random.random() < chance:
            await self.pause(0.02)
            task.cancel()
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
        if isinstance(outcome, BaseException):
            assert isinstance(outcome, GantryError | asyncio.CancelledError), outcome


async def send_all(saboteur: Saboteur, producer: Producer) -> set[bytes]:
    """Send in every way, all at once; return the bodies that were acknowledged."""
    acknowledged: set[bytes] = set()

    async def send(number: int) -> None:
        body = b"%d" % number
        way = number % 5
        if way == 0:
            await producer.send("T", LARGE + body)
        elif way == 1:
            await producer.send_batch([Message(topic="T", body=body) for _ in range(5)])
        elif way == 2:
            await producer.send_in_transaction("T", commit, body)
            return  # the broker may have to ask first
        elif way == 3:
            await producer.send("T", body, key=f"{number % 3}")
        else:
            await producer.send("T", body)
        acknowledged.add(body)

    async def send_one(number: int) -> None:
        saboteur.spoil()
        await saboteur.cut_short(send(number), 0.4)

    await asyncio.gather(*map(send_one, range(SENDS)))
    return acknowledged


async def begin_and_end(saboteur: Saboteur, number: int) -> None:
    """Start a consumer that is cancelled, closed or cut off meanwhile; move its queues; close."""
    broker, chance = saboteur.broker, saboteur.random

    async def handle(_message: ReceivedMessage) -> None:
        await saboteur.pause(0.05)

    consumer = PushConsumer(
        broker.namesrv, "g", start="first", orderly=number % 2 == 0, pop=number % 4 == 1,
        close_timeout_s=0.3,
    )  # fmt: skip
    consumer.subscribe("T", handler=handle)
    starting = asyncio.ensure_future(saboteur.cut_short(consumer.start(), 0.3))
    await saboteur.pause(0.02)
    way = chance.randrange(3)
    if way == 0:
        await consumer.close()
    elif way == 1:
        broker.drop_connections()
    await starting
    member = consumer._member
    for queue in list(member.readers) if member is not None else ():
        moving = asyncio.ensure_future(saboteur.cut_short(member.move(queue, 1), 0.2))  # type: ignore[union-attr]
        if chance.random() < 0.5:
            member.give_back([queue])  # type: ignore[union-attr]
        if chance.random() < 0.5:
            await moving
    await saboteur.cut_short(consumer.close(), 0.5)
    async with asyncio.timeout(20):
        await consumer.close()


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_is_lost_and_nothing_is_left(seed: int, run: Run) -> None:
    async def main() -> None:
        async with TestBroker() as broker:
            await broker.create_topic("T")
            saboteur = Saboteur(seed, broker)
            producer = Producer(broker.namesrv, "g", check=commit, in_flight_max=20, timeout_s=2)
            async with producer:
                async with asyncio.timeout(90):
                    acknowledged = await send_all(saboteur, producer)
                broker.heal()
                assert producer.in_flight == 0
            assert own_tasks() == []
            stored = {message.body.removeprefix(LARGE) for message in broker.messages("T")}
            assert len(acknowledged) > SENDS / 10
            assert acknowledged <= stored
            for number in range(CONSUMERS):
                await begin_and_end(saboteur, number)
                await asyncio.sleep(0.01)
                assert own_tasks() == []
            assert not broker.node.broker.tables.locks.is_any_locked("g")

    run(main())
