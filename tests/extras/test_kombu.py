"""The kombu transport: what kombu promises of a broker, and Celery with a worker."""

from __future__ import annotations

import socket
import ssl
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kombu import Connection, Consumer, Exchange, Producer, Queue

import gantrymq.kombu
from gantrymq import blocking
from gantrymq.client.errors import NoRoute
from gantrymq.errors import InvalidValue
from gantrymq.kombu.names import topic_of
from gantrymq.kombu.tls import context_of
from gantrymq.model.names import check_topic
from gantrymq.testing import ThreadedBroker

if TYPE_CHECKING:
    from collections.abc import Iterator

WAIT_S = 60


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    with ThreadedBroker() as running:
        yield running


def connect(broker: ThreadedBroker, **options: object) -> Connection:
    return Connection(
        f"gantrymq://{broker.namesrv}//", transport_options={"route_s": 0.2, **options}
    )


class Received:
    """Messages that a consumer was given."""

    def __init__(self) -> None:
        self.bodies: list[Any] = []
        self.messages: list[Any] = []

    def take(self, body: object, message: object) -> None:
        self.bodies.append(body)
        self.messages.append(message)


def drain(connection: Connection, received: Received, count: int) -> None:
    deadline = time.monotonic() + WAIT_S
    while len(received.bodies) < count:
        assert time.monotonic() < deadline, received.bodies
        try:
            connection.drain_events(timeout=0.2)
        except socket.timeout:  # noqa: UP041 - kombu's word for it
            continue


def test_the_scheme_is_known() -> None:
    assert Connection("gantrymq://localhost//").get_transport_cls() is gantrymq.kombu.Transport


def test_publish_and_consume(broker: ThreadedBroker) -> None:
    exchange = Exchange("media", "direct")
    video, image = (Queue(name, exchange, routing_key=name) for name in ("video", "image"))
    received = Received()
    with connect(broker) as connection:
        producer = Producer(connection)
        for number in range(5):
            producer.publish(
                {"number": number},
                exchange=exchange,
                routing_key="video",
                declare=[video, image],
                headers={"a": "b"},
            )
        with Consumer(connection, [video], callbacks=[received.take]):
            drain(connection, received, 5)
            for message in received.messages:
                assert message.headers["a"] == "b"
                message.ack()
    assert sorted(body["number"] for body in received.bodies) == list(range(5))
    assert len(broker.messages("video")) == 5
    assert broker.messages("image") == []


def test_what_was_acknowledged_does_not_come_again(broker: ThreadedBroker) -> None:
    received, again = Received(), Received()
    with connect(broker) as connection:
        with connection.SimpleQueue("orders") as queue:
            for number in range(4):
                queue.put(number)
        with Consumer(connection, [Queue("orders")], callbacks=[received.take]):
            drain(connection, received, 4)
            for body, message in zip(received.bodies, received.messages, strict=True):
                if body % 2 == 0:
                    message.ack()
    with (
        connect(broker) as connection,
        Consumer(connection, [Queue("orders")], callbacks=[again.take]),
    ):
        broker.jump(2)
        while len(again.bodies) < 2:
            drain(connection, again, len(again.bodies) + 1)
            broker.jump(2)
    assert sorted(again.bodies) == [1, 3]
    assert all(message.headers.get("redelivered") for message in again.messages)


def test_requeue_and_reject(broker: ThreadedBroker) -> None:
    received = Received()
    with connect(broker) as connection:
        with connection.SimpleQueue("orders") as queue:
            queue.put("keep")
        with Consumer(connection, [Queue("orders")], callbacks=[received.take]):
            drain(connection, received, 1)
            received.messages[0].requeue()
            while not broker.messages("SCHEDULE_TOPIC_XXXX"):
                time.sleep(0.005)
            broker.jump(1.1)
            drain(connection, received, 2)
            received.messages[1].reject()
    assert received.bodies == ["keep", "keep"]
    with connect(broker) as connection, connection.SimpleQueue("orders") as queue:
        broker.jump(10)
        with pytest.raises(queue.Empty):
            queue.get(timeout=1)


FOREIGN = {"no JSON": b"\xff{", "no envelope": b"[1]", "half an envelope": b'{"body": "x"}'}


@pytest.mark.parametrize("body", FOREIGN.values(), ids=FOREIGN)
def test_a_message_of_somebody_else_is_a_dead_letter(broker: ThreadedBroker, body: bytes) -> None:
    """It neither ends the worker that gets it, nor comes again and again."""
    received = Received()
    broker.create_topic("orders", queues=1)
    with blocking.Producer(broker.namesrv) as other:
        other.send("orders", body)
    with connect(broker) as connection:
        with connection.SimpleQueue("orders") as queue:
            queue.put("ours")
        with Consumer(connection, [Queue("orders")], callbacks=[received.take]):
            drain(connection, received, 1)
            received.messages[0].ack()
            deadline = time.monotonic() + WAIT_S
            while not broker.messages("%DLQ%kombu-orders"):
                assert time.monotonic() < deadline
                time.sleep(0.005)
    assert received.bodies == ["ours"]
    assert [message.body for message in broker.messages("%DLQ%kombu-orders")] == [body]


def test_a_queue_that_could_not_be_read_is_read_later(broker: ThreadedBroker) -> None:
    with connect(broker) as connection:
        channel = connection.channel()
        broker.stop_namesrv()
        broker.drop_connections()
        with pytest.raises(NoRoute):
            channel.basic_get("orders")
        broker.start_namesrv()
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                connection.SimpleQueue("orders").put("one")
                break
            except NoRoute:
                assert time.monotonic() < deadline
        message = None
        while message is None:
            assert time.monotonic() < deadline
            message = channel.basic_get("orders", no_ack=True)
        assert message.decode() == "one"


def test_prefetch_is_kept(broker: ThreadedBroker) -> None:
    received = Received()
    with connect(broker) as connection:
        with connection.SimpleQueue("orders") as queue:
            for number in range(6):
                queue.put(number)
        consumer = Consumer(
            connection, [Queue("orders")], callbacks=[received.take], prefetch_count=2
        )
        with consumer:
            drain(connection, received, 2)
            with pytest.raises(TimeoutError):
                connection.drain_events(timeout=0.3)
            received.messages[0].ack()
            drain(connection, received, 3)
            for message in received.messages[1:]:
                message.ack()


def test_get_size_and_purge(broker: ThreadedBroker) -> None:
    with connect(broker) as connection, connection.channel() as channel:
        assert channel.queue_declare("orders").message_count == 0
        for number in range(7):
            Producer(channel).publish(number, routing_key="orders")
        assert channel.queue_declare("orders").message_count == 7
        message = channel.basic_get("orders", no_ack=True)
        assert message is not None
        assert channel.queue_purge("orders") == 6
        assert channel.queue_declare("orders").message_count == 0
        Producer(channel).publish("after", routing_key="orders")
        found = channel.basic_get("orders")
        assert found is not None
        assert found.payload == "after"
        found.ack()


def test_no_server_is_a_connection_error() -> None:
    connection = Connection("gantrymq://127.0.0.1:1//")
    with pytest.raises(NoRoute) as caught:
        connection.connect()
    assert isinstance(caught.value, connection.connection_errors)


CERTIFICATE = str(Path(__file__).parents[1] / "unit" / "transport" / "localhost.pem")
KEY = CERTIFICATE.replace(".pem", ".key.pem")


def test_tls_as_celery_has_it() -> None:
    own = ssl.create_default_context()
    assert context_of(own) is own
    assert context_of(None) is context_of(False) is None
    default = context_of(True)
    assert default is not None
    assert (default.verify_mode, default.check_hostname) == (ssl.CERT_REQUIRED, True)
    both = context_of({"ca_certs": CERTIFICATE, "certfile": CERTIFICATE, "keyfile": KEY})
    assert both is not None
    assert len(both.get_ca_certs()) == 1
    trusting = context_of({"cert_reqs": ssl.CERT_NONE})
    assert trusting is not None
    assert (trusting.verify_mode, trusting.check_hostname) == (ssl.CERT_NONE, False)
    for wrong in ({"ca_cert": "x"}, "yes"):
        with pytest.raises(InvalidValue, match="ca_certs"):
            context_of(wrong)


@pytest.mark.parametrize("queue", ["celery", "a.b@c", "x" * 300, "ü"])
def test_every_queue_has_a_legal_topic(queue: str) -> None:
    assert check_topic(topic_of(queue))
    assert topic_of("celery") == "celery"
    assert topic_of("a.b") != topic_of("a_b")


def test_celery_with_a_worker(broker: ThreadedBroker) -> None:
    from celery import Celery  # noqa: PLC0415

    from support.celery_worker import worker  # noqa: PLC0415

    app = Celery("shop", broker=f"gantrymq://{broker.namesrv}//", backend="cache+memory://")
    app.conf.broker_transport_options = {"route_s": 0.2}
    app.conf.worker_hijack_root_logger = False
    attempts: list[int] = []

    @app.task
    def add(one: int, two: int) -> int:
        return one + two

    @app.task(bind=True, acks_late=True, max_retries=1)
    def flaky(self: Any) -> str:  # noqa: ANN401
        attempts.append(self.request.retries)
        if self.request.retries == 0:
            raise self.retry(countdown=0)
        return "at last"

    with worker(app):
        results = [add.delay(number, 1) for number in range(10)]
        assert [result.get(timeout=WAIT_S) for result in results] == list(range(1, 11))
        assert flaky.delay().get(timeout=WAIT_S) == "at last"
    assert attempts == [0, 1]
    assert len(broker.messages("celery")) == 12
