"""Sends of every kind, and what brokers have stored of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from gantrymq.client.errors import ClientClosed, NoRoute, NoRouteCause
from gantrymq.client.producer import Producer
from gantrymq.client.received import ReceivedMessage
from gantrymq.client.results import SendStatus
from gantrymq.client.selection import queue_number
from gantrymq.errors import InvalidValue
from gantrymq.model.message import Message
from gantrymq.wire.record import decode_record
from gantrymq.wire.response_errors import NoPermission

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.model.queue import MessageQueue
    from support.targets import Target
    from support.transport import Run


def test_a_message_with_everything(target: Target, run: Run) -> None:
    topic = target.create_topic(target.name("send"), 3)
    sent = Message(
        topic=topic,
        body=b"body",
        tags="red",
        keys=("k1", "k2"),
        properties={"colour": "Grün", "n": "1"},
        flag=77,
    )

    async def main() -> None:
        async with Producer(target.namesrv, target.name("group")) as producer:
            result = await producer.send(sent)
            assert result.status is SendStatus.SEND_OK
            assert result.is_ok
            (stored,) = await target.wait_for_messages(topic, 1, 3)
            assert stored.topic == topic
            assert stored.body == b"body"
            assert (stored.tags, stored.keys, stored.raw.flag) == ("red", ("k1", "k2"), 77)
            assert stored.properties["colour"] == "Grün"
            assert stored.unique_key == result.message_id
            assert stored.offset_id == result.offset_id
            assert (stored.queue_id, stored.queue_offset) == (
                result.queue.queue_id,
                result.offset,
            )
            assert result.queue.topic == topic

    run(main())


def test_a_topic_that_the_first_send_makes(target: Target, run: Run) -> None:
    topic = target.name("auto")

    async def main() -> None:
        async with Producer(target.namesrv) as producer:
            first = await producer.send(topic, b"one", tags="t", keys="key")
            second = await producer.send(topic, b"two")
            assert first.queue != second.queue
        target.wait_for_route(topic)
        found = await target.wait_for_messages(topic, 2)
        assert {each.body for each in found} == {b"one", b"two"}
        assert {each.keys for each in found} == {("key",), ()}

    run(main())


def test_queues_take_turns(target: Target, run: Run) -> None:
    topic = target.create_topic(target.name("turns"), 4)

    async def main() -> None:
        async with Producer(target.namesrv) as producer:
            results = [await producer.send(topic, b"x") for _ in range(8)]
            queues = [result.queue.queue_id for result in results]
            assert sorted(queues[:4]) == [0, 1, 2, 3]
            assert queues[:4] == queues[4:]
            assert [queue.queue_id for queue in await producer.queues(topic)] == [0, 1, 2, 3]

    run(main())


def test_a_queue_by_wish(target: Target, run: Run) -> None:
    topic = target.create_topic(target.name("wish"), 4)

    def third(queues: Sequence[MessageQueue], message: Message, argument: object) -> MessageQueue:
        assert (message.body, argument) == (b"s", "argument")
        return queues[2]

    async def main() -> None:
        async with Producer(target.namesrv) as producer:
            queues = await producer.queues(topic)
            for queue in queues:
                assert (await producer.send(topic, b"q", queue=queue)).queue == queue
            for key in ("a", "order-4711", "ключ"):
                expected = queues[queue_number(key, 4)]
                assert (await producer.send(topic, b"k", key=key)).queue == expected
                message = Message(topic=topic, body=b"m", sharding_key=key)
                assert (await producer.send(message)).queue == expected
            stored = await target.wait_for_messages(topic, 10)
            keyed = [each for each in stored if each.body in {b"k", b"m"}]
            assert len(keyed) == 6
            assert {ReceivedMessage(each, "").sharding_key for each in keyed} == {
                "a", "order-4711", "ключ",
            }  # fmt: skip
            chosen = await producer.send(topic, b"s", selector=third, argument="argument")
            assert chosen.queue == queues[2]
            with pytest.raises(InvalidValue, match="exclude each other"):
                await producer.send(topic, b"x", key="a", queue=queues[0])

    run(main())


def test_oneway_sends_arrive(target: Target, run: Run) -> None:
    topic = target.create_topic(target.name("oneway"), 2)

    async def main() -> None:
        async with Producer(target.namesrv) as producer:
            for number in range(20):
                await producer.send_oneway(topic, b"%d" % number, tags="t")
        found = await target.wait_for_messages(topic, 20, 2)
        assert {int(each.body) for each in found} == set(range(20))

    run(main())


def test_many_sends_at_once(target: Target, run: Run) -> None:
    topic = target.create_topic(target.name("many"), 4)

    async def main() -> None:
        async with Producer(target.namesrv, in_flight_max=64) as producer:
            results = await asyncio.gather(
                *(producer.send(topic, b"%d" % number) for number in range(500))
            )
            assert producer.in_flight == 0
        assert len({result.message_id for result in results}) == 500
        places = {(result.queue, result.offset) for result in results}
        assert len(places) == 500
        stored = await target.wait_for_messages(topic, 500)
        by_id = {each.unique_key: each for each in stored}
        for number, result in enumerate(results):
            assert by_id[result.message_id].body == b"%d" % number

    run(main())


@pytest.mark.parametrize("kind", ["zlib", "lz4", "zstd"])
def test_large_bodies_are_compressed(target: Target, run: Run, kind: str) -> None:
    topic = target.create_topic(target.name("packed"), 1)
    body = b"all work and no play makes Jack a dull boy. " * 10_000

    async def main() -> None:
        async with Producer(target.namesrv, compression=kind) as producer:
            await producer.send(topic, body)
            await producer.send(topic, b"short")
        large, short = await target.wait_for_messages(topic, 2, 1)
        assert len(large.body) < len(body) / 10
        assert large.plain_body() == body
        assert short.body == b"short"

    run(main())


def test_a_batch_is_split_by_size(target: Target, run: Run) -> None:
    topic = target.create_topic(target.name("batch"), 1)
    messages = [
        Message(topic=topic, body=b"%05d" % number * 40, tags=f"t{number}", keys=(f"k{number}",))
        for number in range(100)
    ]

    async def main() -> None:
        async with Producer(target.namesrv, message_bytes_max=10_000) as producer:
            results = await producer.send_batch(messages)
            assert 2 <= len(results) <= 6
            ids = [each for result in results for each in result.message_id.split(",")]
            assert all(result.is_ok for result in results)
            stored = await target.wait_for_messages(topic, 100, 1)
            assert [each.unique_key for each in stored] == ids
            assert [each.body for each in stored] == [message.body for message in messages]
            assert [each.tags for each in stored] == [f"t{number}" for number in range(100)]
            assert results[1].offset == len(results[0].message_id.split(","))

    run(main())


def test_a_delay_level(target: Target, run: Run) -> None:
    topic = target.create_topic(target.name("delay"), 1)

    async def main() -> None:
        async with Producer(target.namesrv) as producer:
            await producer.send(topic, b"later", delay_level=1)
        assert await asyncio.to_thread(target.messages, topic, 1) == []
        (found,) = await target.wait_for_messages(topic, 1, 1)
        assert found.body == b"later"
        assert found.raw.store_timestamp - found.raw.born_timestamp >= 900

    run(main())


def test_a_namespace_is_in_every_name(target: Target, run: Run) -> None:
    bare = target.name("spaced")
    target.create_topic(f"ns1%{bare}", 1)

    async def main() -> None:
        async with Producer(target.namesrv, namespace="ns1") as producer:
            result = await producer.send(bare, b"inside", tags="t")
            assert result.queue.topic == f"ns1%{bare}"
            again = await producer.send(bare, b"again", queue=result.queue)
            assert again.queue == result.queue
            queues = await producer.queues(bare)
            assert queues == [result.queue]
        found = await target.wait_for_messages(f"ns1%{bare}", 2, 1)
        assert [each.body for each in found] == [b"inside", b"again"]
        assert found[0].properties["INSTANCE_ID"] == "ns1"

    run(main())


def test_a_message_is_found_by_its_ids_and_keys(target: Target, run: Run) -> None:
    topic = target.create_topic(target.name("found"), 2)

    def look(key: str, *, unique: bool) -> list[bytes]:
        with target.client() as client:
            raw = client.query(topic, key, unique=unique)
        return [decode_record(each, 0, len(each))[0].body for each in raw]

    async def main() -> None:
        async with Producer(target.namesrv) as producer:
            result = await producer.send(topic, b"here", keys=["needle"])
        await target.wait_for_messages(topic, 1, 2)
        for key, unique in (("needle", False), (result.message_id, True)):
            for _ in range(200):
                found = await asyncio.to_thread(look, key, unique=unique)
                if found:
                    break
                await asyncio.sleep(0.02)
            assert found == [b"here"]

    run(main())


def test_a_topic_that_may_not_be_written(target: Target, run: Run) -> None:
    topic = target.create_topic(target.name("readonly"), 1, perm=4)

    async def main() -> None:
        async with Producer(target.namesrv) as producer:
            with pytest.raises(NoRoute, match="no broker lets it be written") as caught:
                await producer.send(topic, b"x")
            assert caught.value.cause is NoRouteCause.NOT_WRITABLE
            assert not caught.value.retriable
            with pytest.raises(NoPermission) as refused:
                await producer.send("SCHEDULE_TOPIC_XXXX", b"x")
            assert refused.value.retriable
            assert any("tried 3 of 3 times" in note for note in refused.value.__notes__)

    run(main())


def test_sends_after_the_end(target: Target, run: Run) -> None:
    topic = target.create_topic(target.name("end"), 1)

    async def main() -> None:
        producer = Producer(target.namesrv)
        await producer.start()
        under_way = [asyncio.ensure_future(producer.send(topic, b"x")) for _ in range(50)]
        await asyncio.sleep(0)
        await producer.close()
        assert all(result.is_ok for result in await asyncio.gather(*under_way))
        with pytest.raises(ClientClosed, match="make a new one"):
            await producer.send(topic, b"x")
        await producer.close()
        assert len(await target.wait_for_messages(topic, 50, 1)) == 50

    run(main())
