"""Push consumers in order: one message of a queue at a time, under the broker's lock."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING

from gantrymq.client.consuming.handling import ConsumeStatus, Later
from gantrymq.client.push_consumer import PushConsumer
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.wire.bodies.lock import LOCK_ANSWER, LOCK_REQUEST, LockRequest
from gantrymq.wire.codes import RequestCode
from support.consuming import committed, numbered, send, until

if TYPE_CHECKING:
    from gantrymq.client.received import ReceivedMessage
    from support.targets import Target
    from support.transport import Run


def free_queues(target: Target, group: str, queues: list[MessageQueue]) -> set[MessageQueue]:
    """Return the queues that another member of a group can lock; it gives them back."""
    asked = LockRequest(consumer_group=group, client_id="somebody@else", mq_set=tuple(queues))
    with target.client() as client:
        answer = client.want(RequestCode.LOCK_BATCH_MQ, body=LOCK_REQUEST.encode(asked))
        client.want(RequestCode.UNLOCK_BATCH_MQ, body=LOCK_REQUEST.encode(asked))
    return set(LOCK_ANSWER.decode(answer.body).lock_ok_mq_set)


def test_order_is_kept_and_queues_are_locked(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("order"), 3), target.name("order_group")
    send(target, topic, numbered(90), queues=3)
    seen: dict[int, list[bytes]] = defaultdict(list)
    at_work: dict[int, int] = defaultdict(int)
    free: list[set[MessageQueue]] = []

    async def handler(message: ReceivedMessage) -> None:
        at_work[message.queue_id] += 1
        assert at_work[message.queue_id] == 1
        await asyncio.sleep(0.001)
        seen[message.queue_id].append(message.body)
        at_work[message.queue_id] -= 1

    async def main() -> None:
        consumer = PushConsumer(target.namesrv, group, start="first", orderly=True)
        consumer.subscribe(topic, "*", handler)
        async with consumer:
            await until(lambda: sum(map(len, seen.values())) == 90)
            queues = [queue for queue in consumer.assignment if queue.topic == topic]
            free.append(await asyncio.to_thread(free_queues, target, group, queues))
        free.append(await asyncio.to_thread(free_queues, target, group, queues))
        assert len(queues) == 3

    run(main())
    for queue in range(3):
        assert seen[queue] == numbered(90)[queue::3]
        assert committed(target, group, topic, queue) == 30
    assert free[0] == set()
    assert len(free[1]) == 3


def test_a_failed_message_is_tried_again_before_those_behind_it(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("order"), 1), target.name("order_group")
    send(target, topic, numbered(4), queue=0)
    seen: list[tuple[bytes, int]] = []

    async def handler(message: ReceivedMessage) -> ConsumeStatus:
        seen.append((message.body, message.attempt))
        if message.body == b"m1" and message.attempt < 3:
            return ConsumeStatus.LATER
        return ConsumeStatus.SUCCESS

    async def main() -> None:
        consumer = PushConsumer(target.namesrv, group, start="first", orderly=True)
        consumer.subscribe(topic, "*", handler)
        async with consumer:
            await until(lambda: len(seen) == 6)

    run(main())
    assert seen == [(b"m0", 1), (b"m1", 1), (b"m1", 2), (b"m1", 3), (b"m2", 1), (b"m3", 1)]
    assert committed(target, group, topic, 0) == 4


def test_a_message_may_be_given_up(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("order"), 1), target.name("order_group")
    send(target, topic, numbered(3), queue=0)
    seen: list[bytes] = []
    dead: list[bytes] = []

    async def handler(message: ReceivedMessage) -> None:
        seen.append(message.body)
        if message.body == b"m1":
            raise Later(-1)

    async def read_dead(message: ReceivedMessage) -> None:
        dead.append(message.body)

    async def main() -> None:
        consumer = PushConsumer(target.namesrv, group, start="first", orderly=True)
        consumer.subscribe(topic, "*", handler)
        async with consumer:
            await until(lambda: len(seen) == 3)
            await asyncio.to_thread(target.wait_for_route, f"%DLQ%{group}")
        reader = PushConsumer(target.namesrv, target.name("dlq_group"), start="first")
        reader.subscribe(f"%DLQ%{group}", "*", read_dead)
        async with reader:
            await until(lambda: dead)

    run(main())
    assert seen == numbered(3)
    assert dead == [b"m1"]


def test_order_is_kept_while_a_queue_changes_hands(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("order"), 4), target.name("order_group")
    send(target, topic, numbered(400))
    seen: dict[int, list[int]] = defaultdict(list)
    at_work: dict[int, str] = {}

    def member(name: str) -> PushConsumer:
        async def handler(message: ReceivedMessage) -> None:
            assert at_work.setdefault(message.queue_id, name) == name, "two members at one queue"
            await asyncio.sleep(0.004)
            seen[message.queue_id].append(message.offset)
            del at_work[message.queue_id]

        made = PushConsumer(
            target.namesrv, group, start="first", orderly=True, instance=name, rebalance_s=1.0
        )
        made.subscribe(topic, "*", handler)
        return made

    async def main() -> None:
        async with member("one") as one:
            await until(lambda: sum(map(len, seen.values())) > 40)
            async with member("two") as two:
                await until(lambda: len([q for q in two.assignment if q.topic == topic]) == 2)
                await until(lambda: len([q for q in one.assignment if q.topic == topic]) == 2)
                await until(lambda: sum(map(len, seen.values())) >= 400)

    run(main())
    # Nothing was handled twice here: a queue is given up with its offset committed.
    assert dict(seen) == {queue: list(range(100)) for queue in range(4)}
    assert QueueId(0) in seen
