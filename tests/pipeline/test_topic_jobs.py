"""Jobs over topics of a running broker: dead letters, delays, traces, windows, twins, moving."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import confluent_kafka
import pytest
from confluent_kafka import admin

from gantrymq import Later, ReceivedMessage
from gantrymq.blocking import Producer, PullConsumer, PushConsumer
from gantrymq.testing import ThreadedBroker
from support.golden import stored_messages
from support.golden_trees import unpacked
from support.pipeline import run, run_well

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.tool("java"), pytest.mark.usefixtures("spark")]
KAFKAS = ["mock", *(["real"] if os.environ.get("GANTRYMQ_REAL_KAFKA") == "1" else [])]
"""Kafka itself is a hundred megabytes: with GANTRYMQ_REAL_KAFKA=1 it is moved from as well."""


@pytest.fixture(scope="module")
def broker() -> Iterator[ThreadedBroker]:
    with ThreadedBroker() as started:
        yield started


def fail_on_all(broker: ThreadedBroker, topic: str, first: int, count: int) -> None:
    """Send messages, and let a consumer fail on each, so that they become dead letters."""
    failed: set[bytes] = set()
    done = threading.Event()

    def handle(message: ReceivedMessage) -> None:
        failed.add(message.body)
        if len(failed) == count:
            done.set()
        raise Later

    with Producer(broker.namesrv, "p") as producer:
        for number in range(first, first + count):
            why = {"why": "no such customer"} if number % 2 else {}
            producer.send(topic, f"bill-{number}".encode(), properties=why)
    consumer = PushConsumer(broker.namesrv, "billing", start="first", reconsume_max=0)
    consumer.subscribe(topic, handler=handle)
    with consumer:
        assert done.wait(60)


def test_dead_letters_are_sent_again_once(broker: ThreadedBroker, tmp_path: Path) -> None:
    topic = broker.create_topic("Bills", 2)
    fail_on_all(broker, topic, 0, 12)
    assert len(broker.messages("%DLQ%billing")) == 12
    broker.wait_route("%DLQ%billing")
    options = {
        "name_server": broker.namesrv, "group": ["billing"], "cause_property": ["why"],
    }  # fmt: skip
    look = run_well("dlq", **options)
    assert look.figures["dead letters"] == 12
    causes = {(row["topic"], row["cause"]): row["messages"] for row in look.tables["causes"]}
    assert causes == {("Bills", "no such customer"): 6, ("Bills", "not said"): 6}
    assert "messages sent now" not in look.figures
    sending = {**options, "send": True, "state": str(tmp_path / "state"), "rate": 1e6}
    first = run_well("dlq", **sending)
    assert first.figures["messages sent now"] == 12
    assert run_well("dlq", **sending).figures["messages sent now"] == 0
    bodies = sorted(message.body for message in broker.messages(topic))
    assert bodies == sorted([f"bill-{number}".encode() for number in range(12)] * 2)


def test_delayed_messages_are_delivered_in_time(broker: ThreadedBroker) -> None:
    topic = broker.create_topic("Later", 1)
    with Producer(broker.namesrv, "p") as producer:
        for number in range(6):
            producer.send(topic, f"soon-{number}".encode(), delay_level=1 + number % 2)
        for number in range(4):
            producer.send(topic, f"late-{number}".encode(), delay_level=18)
    broker.jump(30)
    report = run_well("delay", name_server=broker.namesrv)
    figures = report.figures
    assert (figures["messages"], figures["delivered"], figures["waiting"]) == (10, 6, 4)
    assert {row["level"] for row in report.tables["levels"]} == {1, 2, 18}


def test_a_life_has_its_send_and_its_deliveries(broker: ThreadedBroker) -> None:
    topic, sent = broker.create_topic("Traced", 1), set[str]()
    with Producer(broker.namesrv, "traced-producer", trace=True) as producer:
        sent = {producer.send(topic, f"t-{n}".encode()).message_id for n in range(8)}
    taken, done = set[bytes](), threading.Event()

    def handle(message: ReceivedMessage) -> None:
        taken.add(message.body)
        if len(taken) == 8:
            done.set()

    consumer = PushConsumer(broker.namesrv, "traced-group", start="first", trace=True)
    consumer.subscribe(topic, handler=handle)
    with consumer:
        assert done.wait(60)
    report = run_well("trace", name_server=broker.namesrv)
    lives = {row["id"]: row for row in report.tables["lives"] if row["topic"] == topic}
    assert lives.keys() == sent
    assert all(row["stored"] for row in lives.values())
    assert sum(int(row["consumed"] or 0) for row in lives.values()) >= 7


def test_windows_and_what_came_late(broker: ThreadedBroker, tmp_path: Path) -> None:
    topic = broker.create_topic("Clicks", 1)
    at = 1_794_000_000_000
    times = [at + 1000 * second for second in (0, 10, 59, 61, 125, 400)]
    send_json(broker, topic, times)
    options = {
        "name_server": broker.namesrv, "topic": [topic], "out": str(tmp_path / "out"),
        "time": "$.at", "value": "$.n", "size": "1m", "lateness": "1m",
    }  # fmt: skip
    first = run_well("window", **options)
    assert first.figures["messages"] == 6
    assert first.figures["windows"] == 4
    send_json(broker, topic, [at + 5000, at + 401_000])  # one is five minutes late
    second = run_well("window", **options)
    assert second.figures["late messages"] == 1
    assert second.figures["messages"] == 7


def send_json(broker: ThreadedBroker, topic: str, times: list[int]) -> None:
    with Producer(broker.namesrv, "p") as producer:
        for number, at in enumerate(times):
            producer.send(topic, f'{{"at": {at}, "n": {number}}}'.encode())


def test_twins_are_dropped(broker: ThreadedBroker, tmp_path: Path) -> None:
    topic = broker.create_topic("Twins", 2)
    with Producer(broker.namesrv, "p") as producer:
        for number in (1, 2, 3, 2, 4, 1):
            producer.send(topic, f'{{"id": {number}}}'.encode())
    options = {
        "name_server": broker.namesrv, "topic": [topic], "out": str(tmp_path / "out"),
        "key": "$.id",
    }  # fmt: skip
    report = run_well("dedup", **options)
    assert (report.figures["kept"], report.figures["dropped"]) == (4, 2)
    with Producer(broker.namesrv, "p") as producer:
        producer.send(topic, b'{"id": 3}')
        producer.send(topic, b'{"id": 5}')
    again = run_well("dedup", **options)
    assert (again.figures["kept"], again.figures["dropped"]) == (5, 3)


def test_moving_from_an_apache_store_with_its_groups(
    broker: ThreadedBroker, tmp_path: Path
) -> None:
    label = "apache-4.9.7-clean"
    root = unpacked(label, tmp_path)
    broker.create_topic("TagTopic", 8)
    options = {
        "path": [str(root)], "topic": ["TagTopic"], "target": broker.namesrv,
        "group": ["cg_partial"], "state": str(tmp_path / "state"),
    }  # fmt: skip
    report = run_well("migrate", **options)
    expected = [one for one in stored_messages(label) if one["topic"] == "TagTopic"]
    assert report.figures["messages sent now"] == len(expected)
    assert run_well("migrate", **options).figures["messages sent now"] == 0
    assert len(broker.messages("TagTopic")) == len(expected)
    translated = {row["from"]: row for row in report.tables["groups"]}
    assert translated["TagTopic@broker-a:0"]["translated"] == 3
    with PullConsumer(broker.namesrv, "cg_partial") as consumer:
        queue = next(one for one in consumer.queues("TagTopic") if one.queue_id == 0)
        assert consumer.committed(queue) == 3


@contextmanager
def kafka_of(kind: str, topic: str, work: Path) -> Iterator[tuple[confluent_kafka.Producer, str]]:
    """Run librdkafka's own broker for tests, over a socket, or Apache's; make a topic."""
    if kind == "mock":
        mock = {"test.mock.num.brokers": 1, "bootstrap.servers": "unused"}
        kafka = confluent_kafka.Producer(mock)
        known = kafka.list_topics(topic, timeout=30)  # makes it
        yield kafka, ",".join(f"{one.host}:{one.port}" for one in known.brokers.values())
        return
    from bench.spark.kafka import broker  # noqa: PLC0415 - fetched from Maven Central

    with broker(work / "kafka") as servers:
        asking = admin.AdminClient({"bootstrap.servers": servers})
        asking.create_topics([admin.NewTopic(topic, 4, 1)])[topic].result(30)  # type: ignore[attr-defined]
        yield confluent_kafka.Producer({"bootstrap.servers": servers}), servers


@pytest.mark.parametrize("kind", KAFKAS)
def test_moving_from_kafka(
    broker: ThreadedBroker, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_TOOL_OPTIONS")  # Kafka has its own
    topic = f"FromKafka-{kind}"
    broker.create_topic(topic, 4)
    with kafka_of(kind, topic, tmp_path) as (kafka, servers):
        for number in range(40):
            kafka.produce(
                topic, f"value-{number}".encode() if number else None,
                key=f"k{number}".encode(), partition=number % 4, headers=[("colour", b"red")],
            )  # fmt: skip
        assert kafka.flush(30) == 0
        consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": "readers"})
        place = confluent_kafka.TopicPartition(topic, 1, 4)
        consumer.commit(offsets=[place], asynchronous=False)
        consumer.close()
        report = run_well(
            "migrate", kafka=servers, topic=[topic], target=broker.namesrv,
            group=["readers"], state=str(tmp_path / "state"),
        )  # fmt: skip
    assert report.figures["messages sent now"] == 40
    moved = broker.messages(topic)
    assert sorted(message.body for message in moved if not has_no_value(message)) == sorted(
        f"value-{number}".encode() for number in range(1, 40)
    )
    (null,) = filter(has_no_value, moved)
    assert null.keys == ("k0",)
    assert {message.properties["colour"] for message in moved} == {"red"}
    (row,) = [one for one in report.tables["groups"] if str(one["from"]).endswith(":1")]
    assert row["translated"] == 4


def has_no_value(message: ReceivedMessage) -> bool:
    return message.properties.get("KAFKA_NULL") == "true"


def test_a_message_for_nobody_is_an_error(broker: ThreadedBroker, tmp_path: Path) -> None:
    report = run(
        "migrate", name_server=broker.namesrv, topic=["NotThere"], target=broker.namesrv,
        state=str(tmp_path),
    )  # fmt: skip
    assert report.state == "failed"
    assert "NotThere" in report.problems[0]
