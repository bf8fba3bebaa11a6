"""`async for message in consumer`: what is acknowledged when."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from gantrymq.client.errors import ClientError
from gantrymq.client.push_consumer import PushConsumer
from support.consuming import committed, numbered, send

if TYPE_CHECKING:
    from support.targets import Target
    from support.transport import Run


@pytest.mark.parametrize("orderly", [False, True])
def test_the_next_step_acknowledges(target: Target, run: Run, *, orderly: bool) -> None:
    topic, group = target.create_topic(target.name("loop"), 1), target.name("loop_group")
    send(target, topic, numbered(50), queue=0)
    seen: list[bytes] = []

    async def main() -> None:
        async with PushConsumer(target.namesrv, group, start="first", orderly=orderly) as consumer:
            consumer.subscribe(topic)
            async for message in consumer:
                seen.append(message.body)
                if len(seen) == 50:
                    break
            await consumer.commit()
            assert await asyncio.to_thread(committed, target, group, topic, 0) == 49

    run(main())
    assert seen == numbered(50)
    # The block ended well, so the last one is done with, too.
    assert committed(target, group, topic, 0) == 50


def test_an_exception_leaves_the_last_message_undone(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("loop"), 1), target.name("loop_group")
    send(target, topic, numbered(3), queue=0)

    async def main() -> None:
        async with PushConsumer(target.namesrv, group, start="first") as consumer:
            consumer.subscribe(topic)
            async for message in consumer:
                if message.body == b"m1":
                    raise ValueError("m1")

    with pytest.raises(ValueError, match="m1"):
        run(main())
    assert committed(target, group, topic, 0) == 1


def test_a_second_loop_gets_the_last_message_of_the_first_again(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("loop"), 1), target.name("loop_group")
    send(target, topic, numbered(3), queue=0)
    seen: list[bytes] = []

    async def main() -> None:
        async with PushConsumer(target.namesrv, group, start="first") as consumer:
            consumer.subscribe(topic)
            first = aiter(consumer)
            seen.append((await anext(first)).body)
            seen.append((await anext(first)).body)
            async for message in consumer:
                seen.append(message.body)
                if message.body == b"m2":
                    break
            with pytest.raises(ClientError, match="another loop"):
                await anext(first)

    run(main())
    assert seen == [b"m0", b"m1", b"m1", b"m2"]
    assert committed(target, group, topic, 0) == 3


def test_closing_ends_the_loop(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("loop"), 1), target.name("loop_group")

    async def main() -> int:
        consumer = PushConsumer(target.namesrv, group)
        consumer.subscribe(topic)
        await consumer.start()

        async def close() -> None:
            await asyncio.sleep(0.2)
            await consumer.close()

        closing = asyncio.create_task(close())
        count = len([message async for message in consumer])
        await closing
        return count

    assert run(main()) == 0
