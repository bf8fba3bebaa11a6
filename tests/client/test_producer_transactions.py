"""Transactions: committed, rolled back, and those that the broker has to ask about."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from gantrymq.client.producer import Producer
from gantrymq.client.results import TransactionState
from gantrymq.errors import InvalidValue
from gantrymq.model.message import Message

if TYPE_CHECKING:
    from gantrymq.client.received import ReceivedMessage
    from support.targets import Target
    from support.transport import Run

ASKED_S_MAX = 40
"""Brokers look once a second here; Apache's begin a while after their start."""


def never(message: ReceivedMessage) -> TransactionState:
    """Answer a question that is not to be asked."""
    raise AssertionError(f"asked about {message}")


def test_what_is_committed_appears_and_the_rest_does_not(target: Target, run: Run) -> None:
    topic = target.create_topic(target.name("trans"), 1)
    seen: list[Message] = []

    async def commit(message: Message) -> TransactionState:
        seen.append(message)
        assert await asyncio.to_thread(target.messages, topic, 1) == []
        return TransactionState.COMMIT

    def roll_back(message: Message) -> TransactionState:
        seen.append(message)
        return TransactionState.ROLLBACK

    async def main() -> None:
        group = target.name("trans_group")
        async with Producer(target.namesrv, group, check=never) as producer:
            result = await producer.send_in_transaction(topic, commit, b"yes", tags="t", keys="k")
            assert result.state is TransactionState.COMMIT
            assert result.send.is_ok
            (stored,) = await target.wait_for_messages(topic, 1, 1)
            assert (stored.body, stored.tags, stored.keys) == (b"yes", "t", ("k",))
            assert stored.unique_key == result.send.message_id
            message = Message(topic=topic, body=b"no")
            back = await producer.send_in_transaction(message, roll_back)
            assert back.state is TransactionState.ROLLBACK
            await producer.send(topic, b"after")
            found = await target.wait_for_messages(topic, 2, 1)
            assert [each.body for each in found] == [b"yes", b"after"]
        assert [message.body for message in seen] == [b"yes", b"no"]

    run(main())


def test_the_broker_asks_how_it_ended(target: Target, run: Run) -> None:
    topic = target.create_topic(target.name("asked"), 1)
    asked: asyncio.Queue[tuple[str, bytes, str | None]] = asyncio.Queue()

    async def check(message: ReceivedMessage) -> TransactionState:
        asked.put_nowait((message.topic, message.body, message.tags))
        return TransactionState.COMMIT if message.body == b"open" else TransactionState.ROLLBACK

    async def open_end(_message: Message) -> TransactionState:
        return TransactionState.UNKNOWN

    async def broken(_message: Message) -> TransactionState:
        raise ZeroDivisionError("on purpose")

    async def main() -> None:
        async with Producer(target.namesrv, target.name("asked_group"), check=check) as producer:
            await producer.send_in_transaction(topic, open_end, b"open", tags="red")
            with pytest.raises(ZeroDivisionError):
                await producer.send_in_transaction(topic, broken, b"broken", tags="blue")
            found = await target.wait_for_messages(topic, 1, 1, ASKED_S_MAX)
            questions = {(topic, b"open", "red"), (topic, b"broken", "blue")}
            while questions:
                questions.discard(await asked.get())
        assert [each.body for each in found] == [b"open"]
        assert [each.body for each in target.messages(topic, 1)] == [b"open"]

    run(main())


def test_a_producer_that_was_started_again_is_asked(target: Target, run: Run) -> None:
    """It has sent nothing yet: the broker knows it by its heartbeats alone."""
    topic = target.create_topic(target.name("asked_later"), 1)

    async def die(_message: Message) -> TransactionState:
        raise ZeroDivisionError("on purpose")

    async def main() -> None:
        group = target.name("asked_later_group")
        async with Producer(
            target.namesrv, group, check=lambda _message: TransactionState.UNKNOWN
        ) as first:
            with pytest.raises(ZeroDivisionError):
                await first.send_in_transaction(topic, die, b"open")
        async with Producer(target.namesrv, group, check=lambda _message: TransactionState.COMMIT):
            (found,) = await target.wait_for_messages(topic, 1, 1, ASKED_S_MAX)
        assert found.body == b"open"

    run(main())


def test_a_producer_that_nobody_could_ask(target: Target, run: Run) -> None:
    async def main() -> None:
        async with Producer(target.namesrv) as producer:
            with pytest.raises(InvalidValue, match="no check= function"):
                await producer.send_in_transaction(
                    "T", lambda _message: TransactionState.COMMIT, b"x"
                )

    run(main())
