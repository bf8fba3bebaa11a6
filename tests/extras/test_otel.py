"""Traces cross from producer to consumer in the properties of a message."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from gantrymq import (
    Later,
    Message,
    NoRoute,
    Producer,
    PushConsumer,
    ReceivedMessage,
    TransactionState,
)
from gantrymq.otel import TracingProducer, consuming, extract, inject, traced
from gantrymq.testing import TestBroker

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from opentelemetry.sdk.trace import ReadableSpan


def run(main: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(main, 30)

    asyncio.run(bounded())


class Traces:
    """Spans that have ended."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self.provider.get_tracer("test")

    def one(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self._exporter.get_finished_spans() if span.name == name]
        return found


@pytest.fixture
def traces() -> Traces:
    return Traces()


def attribute(span: ReadableSpan, name: str) -> object:
    assert span.attributes is not None
    return span.attributes[f"messaging.{name}"]


def is_child(span: ReadableSpan, parent: ReadableSpan) -> bool:
    assert span.context is not None
    assert parent.context is not None
    return (
        span.parent is not None
        and span.parent.span_id == parent.context.span_id
        and span.context.trace_id == parent.context.trace_id
    )


@pytest.mark.parametrize("as_message", [True, False], ids=["Message", "arguments"])
def test_one_trace_from_order_to_handler(traces: Traces, as_message: bool) -> None:
    async def main() -> None:
        handled = asyncio.Event()

        async def handle(message: ReceivedMessage) -> None:
            with traces.tracer.start_as_current_span("write the bill"):
                assert message.properties["customer"] == "7"
            handled.set()

        async with TestBroker() as broker:
            await broker.create_topic("Orders")
            consumer = PushConsumer(broker.namesrv, "billing", start="first")
            consumer.subscribe("Orders", handler=traced(handle, "billing", traces.provider))
            async with (
                consumer,
                TracingProducer(broker.namesrv, tracer_provider=traces.provider) as producer,
            ):
                with traces.tracer.start_as_current_span("order"):
                    if as_message:
                        properties = {"customer": "7"}
                        await producer.send(
                            Message(topic="Orders", body=b"x", tags="new", properties=properties)
                        )
                    else:
                        await producer.send(
                            "Orders", b"x", tags="new", properties={"customer": "7"}
                        )
                await handled.wait()
            (stored,) = broker.messages("Orders")
        send, process = traces.one("send Orders"), traces.one("process Orders")
        assert is_child(send, traces.one("order"))
        assert is_child(process, send)
        assert is_child(traces.one("write the bill"), process)
        assert (send.kind, process.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
        assert attribute(send, "message.id") == stored.message_id
        assert attribute(process, "message.id") == stored.message_id
        assert attribute(process, "consumer.group.name") == "billing"
        assert attribute(process, "rocketmq.message.tag") == "new"
        assert send.context is not None
        assert f"{send.context.trace_id:032x}" in stored.properties["traceparent"]

    run(main())


def test_every_way_to_send_carries_the_trace(traces: Traces) -> None:
    async def main() -> None:
        async with (
            TestBroker() as broker,
            TracingProducer(
                broker.namesrv,
                "g",
                check=lambda _message: TransactionState.COMMIT,
                tracer_provider=traces.provider,
            ) as producer,
        ):
            await producer.send_oneway("Oneway", b"x")
            await producer.send_batch([Message(topic="Batch", body=b"x") for _ in range(3)])
            await producer.send_in_transaction(
                "Half", lambda _message: TransactionState.COMMIT, b"x"
            )
            # Nobody waits for these two: a oneway send, and the commit of a transaction.
            while not (broker.messages("Oneway") and broker.messages("Half")):  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            for topic, count in (("Oneway", 1), ("Batch", 3), ("Half", 1)):
                stored = broker.messages(topic)
                assert len(stored) == count
                span = traces.one(f"send {topic}")
                assert span.context is not None
                carried = {message.properties["traceparent"].split("-")[1] for message in stored}
                assert carried == {f"{span.context.trace_id:032x}"}
            assert attribute(traces.one("send Batch"), "batch.message_count") == 3

    run(main())


def test_request_and_reply_are_one_trace(traces: Traces) -> None:
    async def main() -> None:
        async with TestBroker() as broker:
            await broker.create_topic("Questions", queues=1)
            provider = traces.provider
            async with TracingProducer(broker.namesrv, tracer_provider=provider) as producer:

                async def answer(message: ReceivedMessage) -> None:
                    await producer.reply(message, b"42")

                consumer = PushConsumer(broker.namesrv, "answers", start="first")
                consumer.subscribe("Questions", handler=traced(answer, "answers", provider))
                async with consumer:
                    reply = await producer.request("Questions", b"?", timeout_s=10)
                assert reply.body == b"42"
        assert is_child(traces.one("process Questions"), traces.one("send Questions"))

    run(main())


def test_failures_are_seen(traces: Traces) -> None:
    async def main() -> None:
        async with TestBroker(settings={"autoCreateTopicEnable": "false"}) as broker:
            provider = traces.provider
            async with TracingProducer(broker.namesrv, tracer_provider=provider) as producer:
                with pytest.raises(NoRoute):
                    await producer.send("Unknown", b"x")
        span = traces.one("send Unknown")
        assert span.status.status_code is StatusCode.ERROR
        assert [event.name for event in span.events] == ["exception"]

    run(main())


async def sent(count: int, traces: Traces) -> list[ReceivedMessage]:
    """Return messages that were sent in a trace each."""
    async with TestBroker() as broker, Producer(broker.namesrv) as producer:
        for number in range(count):
            with traces.tracer.start_as_current_span(f"order {number}"):
                await producer.send(inject(Message(topic="Orders", body=b"x")))
        return broker.messages("Orders")


def test_a_batch_links_to_all_its_traces(traces: Traces) -> None:
    async def main() -> None:
        messages = await sent(3, traces)
        with consuming(messages, "g", traces.provider):
            pass
        span = traces.one("process Orders")
        linked = {link.context.span_id for link in span.links}
        contexts = [traces.one(f"order {number}").context for number in range(3)]
        assert linked == {context.span_id for context in contexts if context is not None}
        assert attribute(span, "batch.message_count") == 3

    run(main())


@pytest.mark.parametrize(
    ("error", "status"), [(Later(), StatusCode.UNSET), (KeyError("x"), StatusCode.ERROR)]
)
def test_a_plain_handler_that_fails(traces: Traces, error: Exception, status: StatusCode) -> None:
    def handle(_message: ReceivedMessage) -> None:
        raise error

    (message,) = asyncio.run(sent(1, traces))
    with pytest.raises(type(error)):
        traced(handle, "g", traces.provider)(message)
    span = traces.one("process Orders")
    assert span.status.status_code is status
    assert len(span.events) == 1


def test_a_message_without_a_trace_begins_one(traces: Traces) -> None:
    async def main() -> None:
        async with TestBroker() as broker, Producer(broker.namesrv) as producer:
            await producer.send("Orders", b"x")
            (message,) = broker.messages("Orders")
        assert not extract(message)
        with consuming(message, tracer_provider=traces.provider):
            pass
        assert traces.one("process Orders").parent is None

    run(main())
