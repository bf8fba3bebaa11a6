"""Pop: the broker hands out messages one by one. 4.9 has none, and is pulled from instead."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from gantrymq.client.consuming.handling import Later
from gantrymq.client.push_consumer import PushConsumer
from gantrymq.wire.bodies.assignment import (
    REQUEST_MODE_SETTING,
    RequestMode,
    RequestModeSetting,
)
from gantrymq.wire.codes import RequestCode
from support.consuming import committed, numbered, send, until

if TYPE_CHECKING:
    import pytest

    from gantrymq.client.received import ReceivedMessage
    from support.targets import Target
    from support.transport import Run


def test_every_message_once_and_none_comes_again(target: Target, run: Run) -> None:
    """Not even the one whose handler takes longer than a message is kept from others."""
    topic, group = target.create_topic(target.name("pop")), target.name("pop_group")
    send(target, topic, numbered(300), properties={"TAGS": "a"})
    send(target, topic, numbered(8, "other"), properties={"TAGS": "b"})
    handled: Counter[bytes] = Counter()

    slow = asyncio.Event()

    async def handler(message: ReceivedMessage) -> None:
        assert message.topic == topic
        handled[message.body] += 1
        if message.body == b"m7" and not target.is_v4:
            await asyncio.sleep(2.5)
            slow.set()

    async def main() -> None:
        consumer = PushConsumer(target.namesrv, group, start="first", pop=True, pop_invisible_s=1.0)
        consumer.subscribe(topic, "a", handler)
        async with consumer:
            await until(lambda: len(handled) == 300 and (slow.is_set() or target.is_v4))
            # What was not acknowledged would be handed out again by now.
            await asyncio.sleep(2.5)

    run(main())
    assert handled == Counter(numbered(300))


def test_a_failed_message_comes_again(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("pop"), 1), target.name("pop_group")
    send(target, topic, numbered(3), queue=0)
    attempts: list[tuple[bytes, int]] = []

    async def handler(message: ReceivedMessage) -> None:
        attempts.append((message.body, message.attempt))
        if message.body == b"m1" and message.attempt == 1:
            raise Later(1)

    async def main() -> None:
        consumer = PushConsumer(target.namesrv, group, start="first", pop=True)
        consumer.subscribe(topic, "*", handler)
        async with consumer:
            await until(lambda: len(attempts) == 4, 90)

    run(main())
    assert attempts == [(b"m0", 1), (b"m1", 1), (b"m2", 1), (b"m1", 2)]


def test_a_message_may_be_given_up(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("pop"), 1), target.name("pop_group")
    send(target, topic, [b"bad"], queue=0)
    attempts: list[int] = []
    dead: list[bytes] = []

    async def handler(message: ReceivedMessage) -> None:
        attempts.append(message.attempt)
        raise Later

    async def read_dead(message: ReceivedMessage) -> None:
        dead.append(message.body)

    async def main() -> None:
        consumer = PushConsumer(
            target.namesrv, group, start="first", pop=True, reconsume_max=0, pop_invisible_s=1.0
        )
        consumer.subscribe(topic, "*", handler)
        async with consumer:
            await until(lambda: attempts)
            await asyncio.to_thread(target.wait_for_route, f"%DLQ%{group}")
            await asyncio.sleep(1.5)
        reader = PushConsumer(target.namesrv, target.name("dlq_group"), start="first")
        reader.subscribe(f"%DLQ%{group}", "*", read_dead)
        async with reader:
            await until(lambda: dead)

    run(main())
    assert (attempts, dead) == ([1], [b"bad"])


def test_a_group_that_the_broker_sets_to_pop_shares_every_queue(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("pop"), 2), target.name("pop_group")
    handled: dict[str, Counter[bytes]] = {"one": Counter(), "two": Counter()}
    if target.is_v4:
        return  # no such setting there

    def member(name: str) -> PushConsumer:
        async def handler(message: ReceivedMessage) -> None:
            await asyncio.sleep(0.002)
            handled[name][message.body] += 1

        made = PushConsumer(
            target.namesrv, group, start="first", pop=True, instance=name, rebalance_s=1.0
        )
        made.subscribe(topic, "*", handler)
        return made

    def set_mode() -> None:
        setting = RequestModeSetting(
            topic=topic, consumer_group=group, mode=RequestMode.POP, pop_share_queue_num=0
        )
        with target.client() as client:
            body = REQUEST_MODE_SETTING.encode(setting)
            client.want(RequestCode.SET_MESSAGE_REQUEST_MODE, body=body)

    async def main() -> None:
        async with member("one"):
            await asyncio.to_thread(set_mode)
            async with member("two"):
                await asyncio.sleep(1.5)
                await asyncio.to_thread(send, target, topic, numbered(400), queues=2)
                await until(lambda: (handled["one"] + handled["two"]).total() >= 400)

    run(main())
    assert handled["one"] + handled["two"] == Counter(numbered(400))
    assert min(handled["one"].total(), handled["two"].total()) > 0


def test_a_broker_without_pop_is_pulled_from(
    target: Target, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    topic, group = target.create_topic(target.name("pop"), 1), target.name("pop_group")
    send(target, topic, numbered(3), queue=0)
    seen: list[bytes] = []

    async def handler(message: ReceivedMessage) -> None:
        seen.append(message.body)

    async def main() -> None:
        consumer = PushConsumer(target.namesrv, group, start="first", pop=True)
        consumer.subscribe(topic, "*", handler)
        async with consumer:
            await until(lambda: len(seen) == 3)

    run(main())
    assert seen == numbered(3)
    assert ("know no pop" in caplog.text) == target.is_v4
    if target.is_v4:
        assert committed(target, group, topic, 0) == 3
