"""Arguments that cannot be are refused by name, before anything is sent or started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gantrymq import (
    InvalidValue,
    Later,
    Message,
    MessageQueue,
    NotStarted,
    Producer,
    PullConsumer,
    PushConsumer,
    TransactionState,
    sql,
)
from gantrymq.client.settings import ClientSettings
from gantrymq.testing import TestBroker

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.transport import Run

HERE = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"topic": 5}, "topic is 5"),
        ({"topic": None}, "topic is None"),
        ({"body": "text"}, "body is 'text'"),
        ({"body": None}, "body is None"),
        ({"keys": None}, "keys is None"),
        ({"keys": (1,)}, "key 1"),
        ({"properties": None}, "properties is None"),
        ({"properties": {"a": 1}}, "property 'a'"),
        ({"properties": {"a": None}}, "property 'a'"),
        ({"properties": [("a", "b")]}, "properties is"),
        ({"tags": 5}, "tags is 5"),
        ({"sharding_key": 5}, "sharding_key is 5"),
        ({"flag": "x"}, "flag is 'x'"),
        ({"flag": 1.5}, "flag is 1.5"),
        ({"delay_level": "3"}, "delay level is '3'"),
        ({"delay_level": True}, "delay level is True"),
        ({"deliver_at_ms": "soon"}, "deliver_at_ms is 'soon'"),
        ({"delay_level": 3, "deliver_at_ms": 5}, "exclude each other"),
    ],
)
def test_messages(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidValue, match=problem):
        Message(**{"topic": "T", "body": b"x", **given})


def test_one_key_is_a_key_and_not_its_characters() -> None:
    assert Message(topic="T", body=b"x", keys="4711").keys == ("4711",)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"group": None}, "group is None"),
        ({"group": 5}, "group is 5"),
        ({"check": 5}, "check is 5"),
        ({"namespace": 5}, "topic is 5"),
        ({"namespace": "a%b"}, "namespace is 'a%b'"),
        ({"instance": 5}, "instance is 5"),
        ({"trace_topic": 5}, "topic is 5"),
        ({"access_key": 5, "secret_key": "s"}, "access_key is 5"),
        ({"settings": {}}, "settings is {}"),
        (
            {
                "settings": ClientSettings(name_servers=(HERE,)),
                "access_key": "a",
                "secret_key": "s",
            },
            "credentials beside settings=",
        ),
        ({"timeout_s": float("nan")}, "timeout_s is nan"),
    ],
)
def test_producers(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidValue, match=problem):
        Producer(HERE, **given)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"heartbeat_s": "3"}, "heartbeat_s is '3'"),
        ({"consume_timeout_s": "x"}, "consume_timeout_s is 'x'"),
        ({"consume_timeout_s": float("nan")}, "consume_timeout_s is nan"),
        ({"close_timeout_s": None}, "close_timeout_s is None"),
        ({"pop_invisible_s": "x"}, "pop_invisible_s is 'x'"),
        ({"hold_messages": "x"}, "hold_messages is 'x'"),
        ({"offsets_directory": 5}, "offsets_directory is 5"),
        ({"workers": True}, "workers is True"),
    ],
)
def test_push_consumers(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidValue, match=problem):
        PushConsumer(HERE, "g", **given)


def test_pull_consumers_and_subscriptions() -> None:
    wrong: Any = None
    for batch in (0, "x"):
        with pytest.raises(InvalidValue, match="pull_batch"):
            PullConsumer(HERE, "g", pull_batch=batch)  # type: ignore[arg-type]
    consumer = PushConsumer(HERE, "g")
    with pytest.raises(InvalidValue, match="topic is None"):
        consumer.subscribe(wrong)
    with pytest.raises(InvalidValue, match="expression is None"):
        consumer.subscribe("T", wrong)
    with pytest.raises(InvalidValue, match="SQL92 expression is None"):
        sql(wrong)
    with pytest.raises(InvalidValue, match="delay_level is 'not yet'"):
        Later("not yet")  # type: ignore[arg-type]
    with pytest.raises(NotStarted):
        assert consumer.client_id


def sends(producer: Producer) -> list[tuple[Callable[[], Any], str]]:
    """Return calls that cannot be, with what is to be said about each."""
    wrong: Any = "wrong"
    other = MessageQueue("Other", "broker-a", 0)  # type: ignore[arg-type]
    message = Message(topic="T", body=b"x")
    handle = "djEgVCBiIDEgaw=="
    return [
        (lambda: producer.send("T", b"x", timeout_s=0), "timeout_s is 0"),
        (lambda: producer.send("T", b"x", timeout_s=-1), "timeout_s is -1"),
        (lambda: producer.send("T", b"x", timeout_s=wrong), "timeout_s is 'wrong'"),
        (lambda: producer.send("T", b"x", timeout_s=float("inf")), "timeout_s is inf"),
        (lambda: producer.send("T", b"x", queue=wrong), "queue is 'wrong'"),
        (lambda: producer.send("T", b"x", queue=other), "no queue of topic 'T'"),
        (lambda: producer.send("T", b"x", selector=wrong), "selector is 'wrong'"),
        (lambda: producer.send("T", b"x", key=5), "key is 5"),  # type: ignore[arg-type]
        (lambda: producer.send("T", b"x", keys=5), "keys is 5"),  # type: ignore[arg-type]
        (lambda: producer.send("T", b"x", properties=wrong), "properties is 'wrong'"),
        (lambda: producer.send("T", b"x", delay_level=wrong), "delay level is 'wrong'"),
        (lambda: producer.send("T", b"x", delay_level=3, deliver_at=5), "exclude each other"),
        (lambda: producer.send_oneway("T", b"x", timeout_s=0), "timeout_s is 0"),
        (lambda: producer.send_batch(None), "messages is None"),  # type: ignore[arg-type]
        (lambda: producer.send_batch(message), "messages is"),  # type: ignore[arg-type]
        (lambda: producer.send_batch([message], queue=wrong), "queue is 'wrong'"),
        (lambda: producer.send_batch([message], queue=other), "no queue of topic 'T'"),
        (lambda: producer.send_batch([message], timeout_s=0), "timeout_s is 0"),
        (lambda: producer.send_in_transaction("T", wrong, b"x"), "execute is 'wrong'"),
        (lambda: producer.request("T", b"x", timeout_s=0), "timeout_s is 0"),
        (lambda: producer.request("T", b"x", timeout_s=wrong), "timeout_s is 'wrong'"),
        (lambda: producer.reply(wrong, b"x"), "request is 'wrong'"),
        (lambda: producer.recall("T", 5), "recall handle 5"),  # type: ignore[arg-type]
        (lambda: producer.recall("T", handle, timeout_s=0), "timeout_s is 0"),
        (lambda: producer.queues(wrong + " topic"), "illegal characters"),
    ]


def test_sends_that_cannot_be_send_nothing(run: Run) -> None:
    async def main() -> None:
        async with TestBroker() as broker:
            await broker.create_topic("T")
            await broker.create_topic("Other")
            async with Producer(
                broker.namesrv, check=lambda _message: TransactionState.COMMIT
            ) as producer:
                for call, problem in sends(producer):
                    with pytest.raises(InvalidValue, match=problem):
                        await call()
            assert broker.messages("T") == broker.messages("Other") == []

    run(main())


def test_pulls_that_cannot_be(run: Run) -> None:
    async def main() -> None:
        wrong: Any = "wrong"
        async with TestBroker() as broker:
            await broker.create_topic("T")
            async with PullConsumer(broker.namesrv, "g") as consumer:
                queue = (await consumer.queues("T"))[0]
                calls: list[tuple[Callable[[], Any], str]] = [
                    (lambda: consumer.pull(wrong, 0), "queue is 'wrong'"),
                    (lambda: consumer.pull(queue, wrong), "offset is 'wrong'"),
                    (lambda: consumer.pull(queue, 0, count=wrong), "count is 'wrong'"),
                    (lambda: consumer.pull(queue, 0, wait_s=wrong), "wait_s is 'wrong'"),
                    (lambda: consumer.pull(queue, 0, expression=5), "expression is 5"),  # type: ignore[arg-type]
                    (lambda: consumer.min_offset(wrong), "queue is 'wrong'"),
                    (lambda: consumer.offset_at(queue, wrong), "time is 'wrong'"),
                    (lambda: consumer.commit(queue, wrong), "offset is 'wrong'"),
                    (lambda: consumer.view(5), "offset_id is 5"),  # type: ignore[arg-type]
                    (lambda: consumer.find("T", None), "message_id is None"),  # type: ignore[arg-type]
                    (lambda: consumer.query("T", None), "key is None"),  # type: ignore[arg-type]
                    (lambda: consumer.assign(wrong), "queue is 'wrong'"),
                    (lambda: consumer.queues(5), "topic is 5"),  # type: ignore[arg-type]
                ]
                for call, problem in calls:
                    with pytest.raises(InvalidValue, match=problem):
                        await call()

    run(main())


def test_settings_have_types() -> None:
    with pytest.raises(InvalidValue, match="route_s is '30'"):
        ClientSettings(name_servers=(HERE,), route_s="30")  # type: ignore[arg-type]
