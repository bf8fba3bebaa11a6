"""What operators see of a running consumer and do to it, through the broker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from gantrymq.client.consuming.handling import Later
from gantrymq.client.pull_consumer import PullConsumer
from gantrymq.client.push_consumer import PushConsumer
from gantrymq.wire.bodies.connections import CONSUMER_CONNECTIONS
from gantrymq.wire.bodies.offsets import CONSUMER_STATUS
from gantrymq.wire.bodies.running import (
    CONSUMER_RUNNING_INFO,
    DIRECT_CONSUMPTION,
    ConsumeResult,
)
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.client import (
    ConsumeMessageDirectlyRequest,
    ConsumerRunningInfoRequest,
)
from gantrymq.wire.headers.offset import ConsumerStatusRequest, ResetOffsetRequest
from gantrymq.wire.headers.targets import ConsumerGroupRequest
from support.consuming import numbered, send, until

if TYPE_CHECKING:
    from gantrymq.client.received import ReceivedMessage
    from gantrymq.wire.command import Command
    from gantrymq.wire.fields import Header
    from support.targets import Target
    from support.transport import Run


async def ask(target: Target, code: RequestCode, header: Header) -> Command:
    """Ask the broker as an operator's tool does."""

    def blocking() -> Command:
        with target.client() as client:
            return client.want(code, header)

    return await asyncio.to_thread(blocking)


def test_what_an_operator_sees(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("seen"), 2), target.name("seen_group")
    send(target, topic, numbered(20), queues=2)
    seen: list[bytes] = []

    async def handler(message: ReceivedMessage) -> None:
        seen.append(message.body)
        if message.body == b"m3" and len(seen) > 20:
            raise ValueError("not again")

    async def main() -> None:
        consumer = PushConsumer(target.namesrv, group, start="first")
        consumer.subscribe(topic, "*", handler)
        async with consumer:
            await until(lambda: len(seen) == 20)
            answer = await ask(
                target,
                RequestCode.GET_CONSUMER_CONNECTION_LIST,
                ConsumerGroupRequest(consumer_group=group),
            )
            told = CONSUMER_CONNECTIONS.decode(answer.body)
            assert [one.client_id for one in told.connection_set] == [consumer.client_id]
            assert set(told.subscription_table) == {topic, f"%RETRY%{group}"}

            header: Header = ConsumerRunningInfoRequest(
                consumer_group=group, client_id=consumer.client_id, jstack_enable=True
            )
            answer = await ask(target, RequestCode.GET_CONSUMER_RUNNING_INFO, header)
            info = CONSUMER_RUNNING_INFO.decode(answer.body)
            mine = {queue: one for queue, one in info.mq_table.items() if queue.topic == topic}
            assert [one.commit_offset for one in mine.values()] == [10, 10]
            assert info.properties["PROP_CONSUMEORDERLY"] == "false"
            assert info.status_table[topic].consume_failed_msgs == 0
            assert "gantrymq pull" in (info.jstack or "")

            header = ConsumerStatusRequest(topic=topic, group=group, client_addr="")
            answer = await ask(target, RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, header)
            status = CONSUMER_STATUS.decode(answer.body).consumer_table[consumer.client_id]
            assert sorted(status.values()) == [10, 10]

    run(main())


def test_one_message_past_the_queue(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("seen"), 1), target.name("seen_group")
    send(target, topic, [b"ok"], queue=0)
    send(target, topic, [b"bad"], queue=0)
    messages: list[ReceivedMessage] = []

    def handler(message: ReceivedMessage) -> None:
        messages.append(message)
        if message.body == b"bad" and len(messages) > 2:
            raise ValueError("not again")

    async def main() -> None:
        consumer = PushConsumer(target.namesrv, group, start="first")
        consumer.subscribe(topic, "*", handler)
        async with consumer:
            await until(lambda: len(messages) == 2)
            outcomes = []
            for message in sorted(messages, key=lambda one: one.offset):
                header = ConsumeMessageDirectlyRequest(
                    consumer_group=group,
                    client_id=consumer.client_id,
                    msg_id=message.offset_id,
                    topic=topic,
                    broker_name=message.broker_name,
                )
                answer = await ask(target, RequestCode.CONSUME_MESSAGE_DIRECTLY, header)
                outcomes.append(DIRECT_CONSUMPTION.decode(answer.body))
            assert [one.consume_result for one in outcomes] == [
                ConsumeResult.CR_SUCCESS,
                ConsumeResult.CR_THROW_EXCEPTION,
            ]
            assert outcomes[1].remark == "ValueError: not again"

    run(main())
    assert [message.body for message in messages[2:]] == [b"ok", b"bad"]


def test_offsets_are_set_back_while_it_runs(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("seen"), 1), target.name("seen_group")
    send(target, topic, numbered(10), queue=0)
    seen: list[bytes] = []

    async def handler(message: ReceivedMessage) -> None:
        seen.append(message.body)

    async def main() -> None:
        consumer = PushConsumer(target.namesrv, group, start="first")
        consumer.subscribe(topic, "*", handler)
        async with consumer:
            await until(lambda: len(seen) == 10)
            await consumer.commit()
            header = ResetOffsetRequest(
                topic=topic, group=group, timestamp=1, is_force=True, queue_id=-1, offset=-1
            )
            await ask(target, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
            # 5.x says so with the answer to a pull: one that is held is answered by a message.
            await asyncio.to_thread(send, target, topic, [b"wakes"], queue=0)
            await until(lambda: len(seen) >= 20)

    run(main())
    assert seen.count(b"m0") == 2
    assert seen.count(b"m9") == 2


def test_traces_of_what_was_done_with_a_message(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("seen"), 1), target.name("seen_group")
    unique = f"{target.kind.encode().hex()[:16]:0<32}".upper()
    send(target, topic, [b"m"], queue=0, properties={"UNIQ_KEY": unique, "KEYS": "k"})
    seen: list[bytes] = []

    async def handler(message: ReceivedMessage) -> None:
        seen.append(message.body)

    async def main() -> list[str]:
        consumer = PushConsumer(target.namesrv, group, start="first", trace=True)
        consumer.subscribe(topic, "*", handler)
        async with consumer:
            await until(lambda: seen)
        async with PullConsumer(target.namesrv, group) as reader:
            (queue, *_others) = await reader.queues("RMQ_SYS_TRACE_TOPIC")
            await reader.assign(queue)
            async for message in reader:
                if unique in message.keys:
                    return message.body.decode().split("\x02")
        return []

    before, after, _end = (record.split("\x01") for record in run(main()))
    assert (before[0], before[3], before[5:]) == ("SubBefore", group, [unique, "0", "k"])
    assert (after[0], after[1], after[2]) == ("SubAfter", before[4], unique)
    assert (after[4:7], after[8]) == (["true", "k", "0"], group)


def test_names_inside_a_namespace(target: Target, run: Run) -> None:
    name, group = target.name("seen"), target.name("seen_group")
    target.create_topic(f"INST%{name}", 1)
    send(target, f"INST%{name}", [b"m"], queue=0)
    seen: list[tuple[str, int]] = []

    async def handler(message: ReceivedMessage) -> None:
        seen.append((message.topic, message.attempt))
        if message.attempt == 1:
            raise Later(1)

    async def main() -> None:
        consumer = PushConsumer(target.namesrv, group, start="first", namespace="INST")
        consumer.subscribe(name, "*", handler)
        async with consumer:
            await until(lambda: len(seen) == 2, 90)
        async with PullConsumer(target.namesrv, group, namespace="INST") as reader:
            (queue,) = await reader.queues(name)
            assert await reader.committed(queue) == 1
            assert (await reader.pull(queue, 0)).messages[0].topic == name

    run(main())
    assert seen == [(name, 1), (name, 2)]
