"""Requests and replies, both ends of them ours; the consumer of the request is a plain pull."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from gantrymq.client.producer import Producer
from gantrymq.client.push_consumer import PushConsumer
from gantrymq.client.received import ReceivedMessage
from gantrymq.errors import InvalidValue
from gantrymq.wire.peer import PeerLate
from gantrymq.wire.response_errors import SystemFailure

if TYPE_CHECKING:
    from support.targets import Target
    from support.transport import Run


def test_a_request_gets_its_reply(target: Target, run: Run) -> None:
    topic = target.create_topic(target.name("request"), 1)

    async def main() -> None:
        asker = Producer(target.namesrv, target.name("asker"))
        replier = Producer(target.namesrv, target.name("replier"))
        async with asker, replier:
            asking = [
                asyncio.ensure_future(asker.request(topic, b"%d" % number, tags="t", timeout_s=20))
                for number in range(3)
            ]
            for record in await target.wait_for_messages(topic, 3, 1):
                message = ReceivedMessage(record, "broker-a")
                assert message.reply_to == asker.client_id
                sent = await replier.reply(message, message.body * 2, properties={"p": "1"})
                assert sent.is_ok
            replies = await asyncio.gather(*asking)
            assert [reply.body for reply in replies] == [b"00", b"11", b"22"]
            assert {reply.properties["p"] for reply in replies} == {"1"}

    run(main())


def test_a_request_inside_a_namespace(target: Target, run: Run) -> None:
    topic = target.name("request")
    target.create_topic(f"ns%{topic}", 1)

    async def main() -> None:
        asker = Producer(target.namesrv, target.name("asker"), namespace="ns")
        replier = Producer(target.namesrv, target.name("replier"), namespace="ns")

        async def answer(message: ReceivedMessage) -> None:
            assert message.topic == topic
            await replier.reply(message, message.body * 2)

        consumer = PushConsumer(
            target.namesrv, target.name("answers"), start="first", namespace="ns"
        )
        consumer.subscribe(topic, handler=answer)
        async with asker, replier, consumer:
            assert (await asker.request(topic, b"1", timeout_s=60)).body == b"11"

    run(main())


def test_a_request_that_nobody_answers(target: Target, run: Run) -> None:
    topic = target.create_topic(target.name("silence"), 1)

    async def main() -> None:
        async with Producer(target.namesrv, target.name("asker")) as asker:
            with pytest.raises(PeerLate, match=r"no reply within 0.3 s"):
                await asker.request(topic, b"anybody?", timeout_s=0.3)
            (record,) = await target.wait_for_messages(topic, 1, 1)
        async with Producer(target.namesrv, target.name("replier"), retries=0) as replier:
            with pytest.raises(SystemFailure):
                await replier.reply(ReceivedMessage(record, "broker-a"), b"too late")
            await replier.send(topic, b"no request")
            _first, plain = await target.wait_for_messages(topic, 2, 1)
            with pytest.raises(InvalidValue, match="nobody waits for a reply"):
                await replier.reply(ReceivedMessage(plain, "broker-a"), b"x")

    run(main())
