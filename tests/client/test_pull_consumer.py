"""Pull consumers: any queue, any offset; single messages; a loop with offsets of one's own."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from gantrymq.client.consuming.subscription import sql
from gantrymq.client.errors import InvalidValue, NoRoute, NoRouteCause, ResponseError
from gantrymq.client.pull_consumer import PullConsumer, PullStatus
from gantrymq.model.queue import MessageQueue, QueueId
from support.consuming import committed, numbered, send

if TYPE_CHECKING:
    from support.targets import Target
    from support.transport import Run


def test_pulls_end_in_four_ways(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("pull"), 2), target.name("pull_group")
    send(target, topic, numbered(40), queue=1, properties={"TAGS": "a"})

    async def main() -> None:
        async with PullConsumer(target.namesrv, group) as consumer:
            empty, queue = await consumer.queues(topic)
            assert (await consumer.min_offset(queue), await consumer.max_offset(queue)) == (0, 40)
            found = await consumer.pull(queue, 5, count=10)
            assert found.status is PullStatus.FOUND
            assert [message.body for message in found.messages] == numbered(40)[5:15]
            assert (found.next_offset, found.min_offset, found.max_offset) == (15, 0, 40)
            assert found.messages[0].queue == queue
            end = await consumer.pull(queue, 40)
            assert (end.status, end.messages, end.next_offset) == (PullStatus.NOT_FOUND, (), 40)
            moved = await consumer.pull(queue, 99)
            assert (moved.status, moved.next_offset) == (PullStatus.OFFSET_MOVED, 40)
            other = await consumer.pull(queue, 0, expression="b")
            assert (other.status, other.next_offset) == (PullStatus.NO_MATCH, 40)
            assert (await consumer.pull(empty, 0)).status is PullStatus.NOT_FOUND

    run(main())


def test_a_pull_may_wait_for_a_message(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("pull"), 1), target.name("pull_group")

    async def main() -> None:
        async with PullConsumer(target.namesrv, group) as consumer:
            (queue,) = await consumer.queues(topic)
            begun = time.monotonic()
            nothing = await consumer.pull(queue, 0, wait_s=0.5)
            assert nothing.status is PullStatus.NOT_FOUND
            assert time.monotonic() - begun > 0.4
            waiting = asyncio.create_task(consumer.pull(queue, 0, wait_s=20))
            await asyncio.sleep(0.1)
            await asyncio.to_thread(send, target, topic, [b"at last"], queue=0)
            found = await waiting
            assert [message.body for message in found.messages] == [b"at last"]

    run(main())


def test_offsets_are_the_callers(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("pull"), 1), target.name("pull_group")
    send(target, topic, numbered(4), queue=0)
    time.sleep(1.1)  # store times are the broker's own
    moment = datetime.now(UTC)
    time.sleep(0.1)
    send(target, topic, numbered(2, "new"), queue=0)

    async def main() -> None:
        async with PullConsumer(target.namesrv, group) as consumer:
            (queue,) = await consumer.queues(topic)
            await consumer.pull(queue, 0)
            await consumer.commit(queue, 3)
            assert await consumer.committed(queue) == 3
            # 4.9 gives the nearest message, later ones the first that is not older.
            assert await consumer.offset_at(queue, moment) in {3, 4}
            with pytest.raises(InvalidValue, match="offset from 0"):
                await consumer.commit(queue, -1)

    run(main())
    assert committed(target, group, topic, 0) == 3


def test_single_messages(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("pull"), 1), target.name("pull_group")
    unique = "7F000001" + "0" * 24
    send(target, topic, [b"x"], queue=0, properties={"KEYS": "k1 k2", "UNIQ_KEY": unique})
    send(target, topic, [b"y"], queue=0, properties={"KEYS": "k2"})

    async def main() -> None:
        async with PullConsumer(target.namesrv, group) as consumer:
            (queue,) = await consumer.queues(topic)
            first = (await consumer.pull(queue, 0)).messages[0]
            assert (await consumer.view(first.offset_id)).body == b"x"
            for _ in range(200):  # Apache builds its index a moment later
                found = await consumer.query(topic, "k2")
                if len(found) == 2:
                    break
                await asyncio.sleep(0.05)
            assert [message.body for message in found] == [b"x", b"y"]
            assert [message.body for message in await consumer.query(topic, "k1")] == [b"x"]
            assert await consumer.query(topic, "k3") == []
            by_id = await consumer.find(topic, unique)
            assert by_id is not None
            assert by_id.body == b"x"
            assert await consumer.find(topic, "F" * 32) is None

    run(main())


def test_a_loop_over_assigned_queues(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("pull"), 2), target.name("pull_group")
    for price in range(100):
        send(target, topic, [b"%d" % price], queue=price % 2, properties={"price": str(price)})

    async def main() -> None:
        async with PullConsumer(target.namesrv, group) as consumer:
            even, odd = await consumer.queues(topic)
            await consumer.assign(even)
            await consumer.assign(odd, expression=sql("price > 50"))
            seen: list[int] = []
            async for message in consumer:
                seen.append(int(message.body))
                if len(seen) == 75:
                    break
            assert [price for price in seen if price % 2 == 0] == list(range(0, 100, 2))
            assert [price for price in seen if price % 2] == list(range(51, 100, 2))
            # The last message was returned and not acknowledged.
            assert sorted([consumer.position(even), consumer.position(odd)]) == [49, 50]
            consumer.unassign(odd)
            consumer.seek(even, 48)
            async for message in consumer:
                if message.queue == even and message.offset == 49:
                    break
            await consumer.commit()
            assert await consumer.committed(even) == 49
            assert consumer.assignment == (even,)

    run(main())


def test_errors_say_what_is_wrong(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("pull"), 1), target.name("pull_group")

    async def main() -> None:
        async with PullConsumer(target.namesrv, group) as consumer:
            with pytest.raises(NoRoute) as unknown:
                await consumer.queues("nobody_knows_it")
            assert unknown.value.cause is NoRouteCause.UNKNOWN_TOPIC
            (queue,) = await consumer.queues(topic)
            with pytest.raises(ResponseError):
                await consumer.pull(MessageQueue(topic, queue.broker_name, QueueId(7)), 0)
            with pytest.raises(InvalidValue, match="names no tag"):
                await consumer.pull(queue, 0, expression="||")
            with pytest.raises(InvalidValue, match="count is 0"):
                await consumer.pull(queue, 0, count=0)
            with pytest.raises(InvalidValue, match="assign"):
                consumer.seek(queue, 0)

    run(main())
