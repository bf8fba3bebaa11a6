"""What stands on the client: Celery and kombu, FastStream, OpenTelemetry, on every kind of broker.

`tests/extras` has each of them in full; here is the short way through, where brokers could differ:
groups and offsets, messages that are given back, requests and replies, properties.
"""

from __future__ import annotations

import asyncio
import socket
import time
from typing import TYPE_CHECKING, Any

from celery import Celery
from faststream import Context
from kombu import Connection, Consumer, Queue
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import gantrymq.kombu  # noqa: F401 - makes its scheme known
from gantrymq import PushConsumer, ReceivedMessage
from gantrymq.faststream import GantryBroker, GantryMessage
from gantrymq.otel import TracingProducer, traced
from support.celery_worker import worker

if TYPE_CHECKING:
    from support.targets import Target
    from support.transport import Run

WAIT_S = 90


def test_kombu_gives_back_and_acknowledges(target: Target) -> None:
    name = target.create_topic(target.name("kombu_orders"), queues=2)
    taken: list[Any] = []
    times: dict[int, int] = {}

    def take(body: int, message: Any) -> None:  # noqa: ANN401 - kombu's
        times[body] = times.get(body, 0) + 1
        if body == 0 and times[body] == 1:
            message.requeue()
        else:
            taken.append(body)
            message.ack()

    with Connection(f"gantrymq://{target.namesrv}//") as connection:
        with connection.SimpleQueue(name) as queue:
            for number in range(4):
                queue.put(number)
        with Consumer(connection, [Queue(name)], callbacks=[take]):
            deadline = time.monotonic() + WAIT_S
            while len(taken) < 4 and time.monotonic() < deadline:
                try:
                    connection.drain_events(timeout=0.2)
                except socket.timeout:  # noqa: UP041 - kombu's word for it
                    continue
    assert sorted(taken) == [0, 1, 2, 3]
    assert times == {0: 2, 1: 1, 2: 1, 3: 1}


def test_a_celery_worker_does_its_tasks(target: Target) -> None:
    name = target.create_topic(target.name("celery_tasks"), queues=2)
    # Tasks of an app are known to all others of the process unless it is told to keep them.
    app = Celery(
        name,
        set_as_current=False,
        broker=f"gantrymq://{target.namesrv}//",
        backend="cache+memory://",
    )
    app.conf.task_default_queue = name
    app.conf.worker_hijack_root_logger = False

    @app.task(shared=False)  # type: ignore[untyped-decorator]
    def add(one: int, two: int) -> int:
        return one + two

    with worker(app):
        results = [add.delay(number, 1) for number in range(5)]
        assert [result.get(timeout=WAIT_S) for result in results] == [1, 2, 3, 4, 5]
    assert len(target.messages(name, queues=2)) == 5


def test_faststream_handles_and_answers(target: Target, run: Run) -> None:
    orders = target.create_topic(target.name("fs_orders"), queues=1)
    bills = target.create_topic(target.name("fs_bills"), queues=1)
    sums = target.create_topic(target.name("fs_sums"), queues=1)

    async def main() -> None:
        broker = GantryBroker(target.namesrv, group=target.name("fs_shop"), logger=None)
        seen: asyncio.Queue[tuple[int, str, str]] = asyncio.Queue()

        @broker.subscriber(orders, start="first")
        @broker.publisher(bills, tags="new", headers={"kind": "bill"})
        async def bill(order: int) -> int:
            return order * 100

        @broker.subscriber(bills, "new", start="first")
        async def paid(bill: int, message: GantryMessage = Context("message")) -> None:  # noqa: B008
            await seen.put((bill, message.headers["kind"], message.correlation_id))

        @broker.subscriber(sums, start="first")
        async def add(numbers: list[int]) -> int:
            return sum(numbers)

        async with broker:
            await broker.start()
            await broker.publish(7, orders, correlation_id="c-7")
            assert await seen.get() == (700, "bill", "c-7")
            reply = await broker.request([1, 2, 3], sums, timeout=WAIT_S)
            assert await reply.decode() == 6

    run(main())


def test_a_trace_goes_through_the_broker(target: Target, run: Run) -> None:
    topic = target.create_topic(target.name("otel_orders"), queues=1)
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    async def main() -> None:
        handled = asyncio.Event()

        async def handle(message: ReceivedMessage) -> None:
            assert message.properties["traceparent"].startswith("00-")
            handled.set()

        group = target.name("otel_billing")
        consumer = PushConsumer(target.namesrv, group, start="first")
        consumer.subscribe(topic, handler=traced(handle, group, provider))
        async with (
            consumer,
            TracingProducer(target.namesrv, tracer_provider=provider) as producer,
        ):
            await producer.send(topic, b"x")
            await handled.wait()

    run(main())
    spans = {span.name: span for span in exporter.get_finished_spans()}
    send, process = spans[f"send {topic}"], spans[f"process {topic}"]
    assert send.context is not None
    assert process.parent is not None
    assert process.parent.span_id == send.context.span_id
