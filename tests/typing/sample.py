"""A program that uses the public names with their types. It is checked, never run."""

from __future__ import annotations

from datetime import UTC, datetime

from gantrymq import (
    Message,
    MessageQueue,
    Producer,
    PullConsumer,
    PullResult,
    PushConsumer,
    ReceivedMessage,
    SendResult,
    SendStatus,
    TransactionResult,
    TransactionState,
    blocking,
    sql,
)
from gantrymq.testing import TestBroker, ThreadedBroker


def check(message: ReceivedMessage) -> TransactionState:
    """Say how a transaction ended."""
    return TransactionState.COMMIT if message.keys else TransactionState.ROLLBACK


async def execute(message: Message) -> TransactionState:
    """Do the application's own part."""
    return TransactionState.COMMIT if message.body else TransactionState.UNKNOWN


async def send(namesrv: str) -> list[str]:
    """Use every way to send."""
    async with Producer(namesrv, group="sample", check=check) as producer:
        result: SendResult = await producer.send("T", b"body", tags="a", keys=["k"])
        status: SendStatus = result.status
        queue: MessageQueue = result.queue
        await producer.send_oneway(Message(topic="T", body=b"x", properties={"a": "1"}))
        await producer.send("T", b"later", deliver_at=datetime.now(UTC))
        await producer.send("T", b"there", queue=queue)
        batch: list[SendResult] = await producer.send_batch([Message(topic="T", body=b"x")])
        done: TransactionResult = await producer.send_in_transaction("T", execute, b"half")
        answer: ReceivedMessage = await producer.request("T", b"?", timeout_s=1)
        return [
            status.name,
            done.state.name,
            str(answer.message_id),
            *(one.offset_id for one in batch),
        ]


async def receive(namesrv: str) -> bytes:
    """Use every way to receive."""

    async def handle(message: ReceivedMessage) -> None:
        print(message.topic, message.tags)  # noqa: T201

    consumer = PushConsumer(namesrv, "group", start="first", orderly=True)
    consumer.subscribe("T", "a || b", handle)
    async with consumer:
        pass
    async with PushConsumer(namesrv, group="group") as looping:
        looping.subscribe("T", sql("price > 10"))
        async for message in looping:
            return message.body
    async with PullConsumer(namesrv, "audit") as pulling:
        for queue in await pulling.queues("T"):
            pulled: PullResult = await pulling.pull(queue, await pulling.min_offset(queue))
            return b"".join(one.body for one in pulled.messages)
    return b""


def without_a_loop(namesrv: str) -> list[bytes]:
    """Do the same with methods that wait."""
    with blocking.Producer(namesrv, group="sample") as producer:
        result: SendResult = producer.send("T", b"body")
        assert result.is_ok
    with blocking.PullConsumer(namesrv, "audit") as pulling:
        queues: tuple[MessageQueue, ...] = pulling.queues("T")
        offsets: list[int] = [pulling.max_offset(queue) for queue in queues]
        assert offsets
    with blocking.PushConsumer(namesrv, "group") as consumer:
        consumer.subscribe("T")
        return [message.body for message in consumer]


async def in_a_test() -> list[ReceivedMessage]:
    """Use the broker for tests."""
    with ThreadedBroker() as threaded:
        threaded.refuse(times=1)
    async with TestBroker() as broker:
        await broker.jump(3.0)
        return broker.messages("T")
