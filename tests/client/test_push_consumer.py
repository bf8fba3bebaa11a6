"""Push consumers, concurrent: what handlers get, what is committed, where reading begins."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from gantrymq.client.consuming.handling import Later
from gantrymq.client.consuming.subscription import sql
from gantrymq.client.errors import ResponseError
from gantrymq.client.push_consumer import PushConsumer
from support.consuming import committed, numbered, send, until

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.client.received import ReceivedMessage
    from support.targets import Target
    from support.transport import Run


def consumer_of(target: Target, group: str, **options: object) -> PushConsumer:
    """Return a consumer that begins with the first message."""
    given = {"start": "first", **options}
    return PushConsumer(target.namesrv, group, **given)  # type: ignore[arg-type]


class Seen:
    """A handler that remembers."""

    def __init__(self) -> None:
        self.messages: list[ReceivedMessage] = []

    async def __call__(self, message: ReceivedMessage) -> None:
        self.messages.append(message)

    @property
    def bodies(self) -> list[bytes]:
        """Return what came."""
        return [message.body for message in self.messages]


def test_every_message_once_and_offsets_committed_at_close(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("push")), target.name("push_group")
    send(target, topic, numbered(200), properties={"TAGS": "a", "KEYS": "k1 k2"})
    seen = Seen()

    async def main() -> None:
        consumer = consumer_of(target, group)
        consumer.subscribe(topic, "*", seen)
        async with consumer:
            assert len([queue for queue in consumer.assignment if queue.topic == topic]) == 4
            await until(lambda: len(seen.messages) >= 200)
            await asyncio.to_thread(send, target, topic, numbered(4, "late"))
            await until(lambda: len(seen.messages) >= 204)

    run(main())
    assert sorted(seen.bodies) == sorted(numbered(200) + numbered(4, "late"))
    first = seen.messages[0]
    assert (first.topic, first.tags, first.keys, first.attempt) == (topic, "a", ("k1", "k2"), 1)
    assert [committed(target, group, topic, queue) for queue in range(4)] == [51] * 4


def test_a_new_consumer_goes_on_where_the_last_one_stopped(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("push")), target.name("push_group")
    send(target, topic, numbered(20))
    first, second = Seen(), Seen()

    async def main(seen: Seen, count: int) -> None:
        consumer = consumer_of(target, group)
        consumer.subscribe(topic, "*", seen)
        async with consumer:
            await until(lambda: len(seen.messages) >= count)

    run(main(first, 20))
    send(target, topic, numbered(8, "new"))
    run(main(second, 8))
    assert sorted(second.bodies) == sorted(numbered(8, "new"))


def test_tags_are_chosen(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("push")), target.name("push_group")
    # AaAa and BBBB have the same hash: the broker lets both through, the client one of them.
    for tag in ("AaAa", "BBBB", "other", "wanted"):
        send(target, topic, [tag.encode()] * 4, properties={"TAGS": tag})
    send(target, topic, [b"end"] * 4, properties={"TAGS": "wanted"})
    seen = Seen()

    async def main() -> None:
        consumer = consumer_of(target, group)
        consumer.subscribe(topic, "AaAa || wanted", seen)
        async with consumer:
            await until(lambda: seen.bodies.count(b"end") == 4)

    run(main())
    assert sorted(seen.bodies) == [b"AaAa"] * 4 + [b"end"] * 4 + [b"wanted"] * 4
    # What the filter left out counts as read.
    assert [committed(target, group, topic, queue) for queue in range(4)] == [5] * 4


def test_sql92_is_the_brokers(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("push")), target.name("push_group")
    for price in range(10):
        send(target, topic, [b"%d" % price], properties={"price": str(price)}, queue=0)
    seen = Seen()

    async def main() -> None:
        consumer = consumer_of(target, group)
        consumer.subscribe(topic, sql("price BETWEEN 3 AND 5 OR price = 9"), seen)
        async with consumer:
            await until(lambda: b"9" in seen.bodies)
        wrong = consumer_of(target, target.name("push_group"))
        wrong.subscribe(topic, sql("price >>> 3"), seen)
        with pytest.raises(ResponseError):
            await wrong.start()

    run(main())
    assert sorted(seen.bodies) == [b"3", b"4", b"5", b"9"]


def test_reading_begins_at_a_time(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("push"), 1), target.name("push_group")
    send(target, topic, [b"old"] * 3, queue=0)
    time.sleep(1.1)  # store times are the broker's own
    moment = datetime.now(UTC) - timedelta(milliseconds=500)
    send(target, topic, [b"new"] * 2, queue=0)
    seen = Seen()

    async def main() -> None:
        consumer = PushConsumer(target.namesrv, group, start=moment)
        # A broker that has the first message in memory says 0 for a new group, whatever is asked.
        consumer.subscribe(topic, "*", seen)
        async with consumer:
            await until(lambda: seen.bodies.count(b"new") == 2)

    run(main())
    assert seen.bodies[-2:] == [b"new", b"new"]


def test_a_failed_message_comes_again(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("push"), 1), target.name("push_group")
    send(target, topic, numbered(3), queue=0)
    attempts: list[tuple[bytes, int, str]] = []

    async def handler(message: ReceivedMessage) -> None:
        attempts.append((message.body, message.attempt, message.topic))
        if message.body == b"m1" and message.attempt == 1:
            raise Later(1)

    async def main() -> None:
        consumer = consumer_of(target, group)
        consumer.subscribe(topic, "*", handler)
        async with consumer:
            await until(lambda: len(attempts) >= 4, 90)

    run(main())
    assert attempts[:3] == [(b"m0", 1, topic), (b"m1", 1, topic), (b"m2", 1, topic)]
    assert attempts[3:] == [(b"m1", 2, topic)]
    assert committed(target, group, topic, 0) == 3


def test_a_message_that_fails_too_often_is_a_dead_letter(
    target: Target, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    topic, group = target.create_topic(target.name("push"), 1), target.name("push_group")
    send(target, topic, [b"bad"], queue=0)
    attempts: list[int] = []

    def handler(message: ReceivedMessage) -> None:
        attempts.append(message.attempt)
        raise ValueError("never")

    dead = Seen()

    async def main() -> None:
        consumer = consumer_of(target, group, reconsume_max=0)
        consumer.subscribe(topic, "*", handler)
        async with consumer:
            await until(lambda: attempts)
            await asyncio.to_thread(target.wait_for_route, f"%DLQ%{group}")
        reader = consumer_of(target, target.name("dlq_group"))
        reader.subscribe(f"%DLQ%{group}", "*", dead)
        async with reader:
            await until(lambda: dead.messages)

    with caplog.at_level(logging.CRITICAL):
        run(main())
    assert attempts == [1]
    assert dead.bodies == [b"bad"]


def test_plain_functions_run_in_threads_and_may_block(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("push"), 1), target.name("push_group")
    send(target, topic, numbered(8), queue=0)
    together = threading.Barrier(4, timeout=20)
    names: list[str] = []

    def handler(message: ReceivedMessage) -> None:
        together.wait()  # passes only if four are called at once
        names.append(threading.current_thread().name)

    async def main() -> None:
        consumer = consumer_of(target, group, workers=4)
        consumer.subscribe(topic, "*", handler)
        async with consumer:
            await until(lambda: len(names) >= 8)

    run(main())
    assert threading.main_thread().name not in names
    assert committed(target, group, topic, 0) == 8


def test_a_handler_may_take_several_at_once(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("push"), 1), target.name("push_group")
    send(target, topic, numbered(64), queue=0)
    batches: list[list[bytes]] = []

    async def handler(messages: list[ReceivedMessage]) -> None:
        batches.append([message.body for message in messages])

    async def main() -> None:
        consumer = consumer_of(target, group, batch=16)
        consumer.subscribe(topic, "*", handler)
        async with consumer:
            await until(lambda: sum(map(len, batches)) >= 64)

    run(main())
    assert [body for batch in batches for body in batch] == numbered(64)
    assert max(map(len, batches)) == 16


def test_nothing_is_committed_past_a_message_that_is_not_done(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("push"), 1), target.name("push_group")
    send(target, topic, numbered(10), queue=0)
    done: list[bytes] = []

    async def handler(message: ReceivedMessage) -> None:
        if message.body == b"m3":
            await asyncio.sleep(60)
        done.append(message.body)

    async def main() -> None:
        consumer = consumer_of(target, group, close_timeout_s=0.1)
        consumer.subscribe(topic, "*", handler)
        async with consumer:
            await until(lambda: len(done) == 9)
            await consumer.commit()
            assert await asyncio.to_thread(committed, target, group, topic, 0) == 3

    run(main())
    assert committed(target, group, topic, 0) == 3


def test_no_more_is_pulled_than_may_be_held(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("push"), 1), target.name("push_group")
    send(target, topic, numbered(200), queue=0)
    gate = asyncio.Event()
    begun: list[bytes] = []

    async def handler(message: ReceivedMessage) -> None:
        begun.append(message.body)
        await gate.wait()

    async def main() -> None:
        consumer = consumer_of(target, group, hold_messages=40, workers=4)
        consumer.subscribe(topic, "*", handler)
        async with consumer:
            await until(lambda: len(begun) == 4)
            await asyncio.sleep(0.3)
            counters = consumer.statistics.of(topic)
            assert counters.pulled <= 40 + 32
            gate.set()
            await until(lambda: len(begun) == 200)

    run(main())


def test_pause_and_resume(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("push"), 1), target.name("push_group")
    seen = Seen()

    async def main() -> None:
        consumer = consumer_of(target, group)
        consumer.subscribe(topic, "*", seen)
        consumer.pause(topic)
        async with consumer:
            await asyncio.to_thread(send, target, topic, numbered(3), queue=0)
            await asyncio.sleep(0.3)
            assert seen.bodies == []
            consumer.resume(topic)
            await until(lambda: len(seen.messages) == 3)

    run(main())


def test_topics_come_and_go_while_it_runs(target: Target, run: Run) -> None:
    one, two = target.create_topic(target.name("push"), 1), target.create_topic(target.name("push"))
    group = target.name("push_group")
    send(target, one, [b"one"], queue=0)
    send(target, two, [b"two"], queue=0)
    first, second = Seen(), Seen()

    async def main() -> None:
        async with consumer_of(target, group) as consumer:
            consumer.subscribe(one, "*", first)
            await until(lambda: first.messages)
            consumer.subscribe(two, "*", second)
            await until(lambda: second.messages)
            consumer.unsubscribe(one)
            await until(lambda: {queue.topic for queue in consumer.assignment} >= {two})
            await until(lambda: one not in {queue.topic for queue in consumer.assignment})

    run(main())
    assert (first.bodies, second.bodies) == ([b"one"], [b"two"])


def test_a_topic_that_is_made_later_is_read_from_its_first_message(
    target: Target, run: Run
) -> None:
    topic, group = target.name("push_later"), target.name("push_group")
    seen = Seen()

    async def main() -> None:
        consumer = PushConsumer(target.namesrv, group, rebalance_s=0.5)
        consumer.subscribe(topic, "*", seen)
        async with consumer:
            await asyncio.to_thread(target.create_topic, topic, 2)
            await asyncio.to_thread(send, target, topic, numbered(4), queues=2)
            await until(lambda: len(seen.messages) == 4)

    run(main())


def test_broadcasting_members_get_everything_each(target: Target, run: Run, tmp_path: Path) -> None:
    topic, group = target.create_topic(target.name("push")), target.name("push_group")
    send(target, topic, numbered(12))
    seen = [Seen(), Seen()]

    def member(number: int) -> PushConsumer:
        made = consumer_of(
            target,
            group,
            mode="broadcasting",
            instance=f"member{number}",
            offsets_directory=tmp_path,
        )
        made.subscribe(topic, "*", seen[number])
        return made

    async def main() -> None:
        async with member(0), member(1):
            await until(lambda: all(len(one.messages) == 12 for one in seen))
        # Each goes on where it was.
        await asyncio.to_thread(send, target, topic, [b"more"])
        async with member(0):
            await until(lambda: len(seen[0].messages) == 13)

    run(main())
    assert [sorted(one.bodies[:12]) for one in seen] == [sorted(numbered(12))] * 2
    assert seen[0].bodies[12:] == [b"more"]
    assert len(list(tmp_path.glob("*/*/offsets.json"))) == 2
