"""A queue that is moved, given back and taken up while something else happens to it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from gantrymq import MessageQueue, Producer, PullConsumer, PushConsumer, ReceivedMessage
from gantrymq.client.consuming.start_position import StartPosition
from gantrymq.testing import TestBroker
from gantrymq.wire.codes import RequestCode
from support.consuming import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from gantrymq.client.consuming.member import Member
    from support.transport import Run

COUNT = 6


class Slow:
    """A handler that is at work until it is let go."""

    def __init__(self) -> None:
        self.begun: list[bytes] = []
        self.ended = 0
        self.go_on = asyncio.Event()

    async def __call__(self, message: ReceivedMessage) -> None:
        self.begun.append(message.body)
        await self.go_on.wait()
        self.ended += 1


@asynccontextmanager
async def member_at_work(
    broker: TestBroker, handler: Slow, *, orderly: bool = True
) -> AsyncIterator[tuple[Member, MessageQueue]]:
    """Begin a consumer of one queue with messages, whose handler has the first of them."""
    await broker.create_topic("T", queues=1)
    async with Producer(broker.namesrv) as producer:
        for number in range(COUNT):
            await producer.send("T", b"%d" % number)
        (queue,) = await producer.queues("T")
    consumer = PushConsumer(
        broker.namesrv, "g", start="first", orderly=orderly, workers=1, persist_s=60
    )
    consumer.subscribe("T", handler=handler)
    async with consumer:
        await until(lambda: handler.begun)
        assert consumer._member is not None
        yield consumer._member, queue


async def committed(broker: TestBroker, queue: MessageQueue) -> int | None:
    async with PullConsumer(broker.namesrv, "g") as reader:
        return await reader.committed(queue)


@pytest.mark.parametrize("orderly", [True, False])
def test_of_two_resets_at_once_the_last_counts(run: Run, *, orderly: bool) -> None:
    async def main() -> None:
        async with TestBroker() as broker:
            slow = Slow()
            async with member_at_work(broker, slow, orderly=orderly) as (member, queue):
                first = asyncio.ensure_future(member.move(queue, 1))
                await asyncio.sleep(0)
                second = asyncio.ensure_future(member.move(queue, 4))
                await asyncio.sleep(0.02)
                slow.go_on.set()
                await asyncio.gather(first, second)
                await until(lambda: slow.begun[-1] == b"5")
            assert slow.begun == [b"0", b"4", b"5"]
            assert await committed(broker, queue) == COUNT

    run(main())


@pytest.mark.parametrize("reset_first", [True, False])
def test_a_reset_of_a_queue_that_is_given_back_is_for_its_next_owner(
    run: Run, *, reset_first: bool
) -> None:
    async def main() -> None:
        async with TestBroker() as broker:
            slow = Slow()
            async with member_at_work(broker, slow) as (member, queue):
                moving = None
                if reset_first:
                    moving = asyncio.ensure_future(member.move(queue, 4))
                    await asyncio.sleep(0.02)
                member.give_back([queue])
                if moving is None:
                    await member.move(queue, 4)
                await asyncio.sleep(0.05)
                # The lock is kept while the handler is at work, whoever else waits for it.
                locks = broker.node.broker.tables.locks
                assert slow.ended == 0
                assert not locks.lock("g", "another", [queue])
                slow.go_on.set()
                await until(lambda: not member._leaving)
                assert await committed(broker, queue) == 4
                assert slow.begun == [b"0"]
                assert locks.lock("g", "another", [queue])

    run(main())


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_consumer_that_is_closed_as_it_takes_up_a_queue_gives_the_lock_back(
    run: Run, monkeypatch: pytest.MonkeyPatch, *, goes_on: bool
) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def slow_for_one(
        _start: StartPosition, queue: MessageQueue, _store: object, _calls: object
    ) -> int:
        if queue.queue_id == 1:
            asked.set()
            await go_on.wait()
        return 0

    async def main() -> None:
        async with TestBroker() as broker:
            await broker.create_topic("T", queues=2)
            consumer = PushConsumer(broker.namesrv, "g", start="first", orderly=True)
            consumer.subscribe("T", handler=Slow())
            monkeypatch.setattr(StartPosition, "offset", slow_for_one)
            starting = asyncio.ensure_future(consumer.start())
            await asked.wait()
            closing = asyncio.ensure_future(consumer.close())
            if goes_on:
                go_on.set()
            await closing
            starting.cancel()
            locks = broker.node.broker.tables.locks
            await until(lambda: not locks.is_any_locked("g"), 5)

    run(main())


def test_a_start_that_was_cancelled_gives_locks_back(run: Run) -> None:
    async def main() -> None:
        async with TestBroker() as broker:
            await broker.create_topic("T", queues=1)
            broker.delay_answers(0.1, requests=[RequestCode.LOCK_BATCH_MQ])
            consumer = PushConsumer(broker.namesrv, "g", start="first", orderly=True)
            consumer.subscribe("T", handler=Slow())
            starting = asyncio.ensure_future(consumer.start())
            await until(lambda: broker.faults.happened)
            starting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await starting
            assert not broker.node.broker.tables.locks.is_any_locked("g")

    run(main())
