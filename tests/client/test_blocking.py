"""The blocking twins, as a program without an event loop uses them."""

from __future__ import annotations

import threading
from itertools import islice
from typing import TYPE_CHECKING

from gantrymq import Message, TransactionState, blocking
from gantrymq.client.pull_consumer import PullStatus

if TYPE_CHECKING:
    from gantrymq import ReceivedMessage
    from support.targets import Target

WAIT_S = 60


def commit(_message: object) -> TransactionState:
    """Say that it went well."""
    return TransactionState.COMMIT


def test_a_program_without_an_event_loop(target: Target) -> None:
    topic = target.create_topic(target.name("twins"), 1)
    with blocking.Producer(target.namesrv, target.name("twins"), check=commit) as producer:
        assert producer.send(topic, b"one", tags="a").is_ok
        producer.send_batch([Message(topic=topic, body=body) for body in (b"two", b"three")])
        done = producer.send_in_transaction(topic, commit, b"four")
        assert done.state is TransactionState.COMMIT
        (queue,) = producer.queues(topic)

    group = target.name("twins_group")
    with blocking.PushConsumer(target.namesrv, group, start="first") as loop:
        loop.subscribe(topic)
        bodies = [message.body for message in islice(loop, 4)]
    assert bodies == [b"one", b"two", b"three", b"four"]

    with blocking.PullConsumer(target.namesrv, group) as puller:
        assert puller.committed(queue) == 4
        pulled = puller.pull(queue, 1, count=2)
        assert (pulled.status, pulled.next_offset) == (PullStatus.FOUND, 3)


def test_a_plain_handler_replies(target: Target) -> None:
    topic = target.create_topic(target.name("twins"), 1)
    threads: set[str] = set()
    with blocking.Producer(target.namesrv, target.name("twins")) as producer:

        def answer(message: ReceivedMessage) -> None:
            threads.add(threading.current_thread().name)
            producer.reply(message, message.body.upper())

        consumer = blocking.PushConsumer(target.namesrv, target.name("twins_group"), start="first")
        consumer.subscribe(topic, handler=answer)
        with consumer:
            reply = producer.request(topic, b"hello", timeout_s=WAIT_S)
    assert reply.body == b"HELLO"
    assert threads
    assert threading.current_thread().name not in threads
