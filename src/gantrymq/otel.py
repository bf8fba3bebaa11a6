"""OpenTelemetry: a message carries the trace that it was sent in, and its handling belongs to it.

    async with TracingProducer("127.0.0.1:9876", "orders") as producer:
        await producer.send("Orders", b"one")

    consumer.subscribe("Orders", handler=traced(handle, group="billing"))

    async for message in consumer:
        with consuming(message, group="billing"):
            ...

The context travels in message properties (`traceparent`, `tracestate`, `baggage`), so that any
client of any language can read it. Span and attribute names are OpenTelemetry's for messaging.

Needs `opentelemetry-api` (`pip install gantrymq[otel]`). Without an SDK set up by the application,
spans cost next to nothing and a context that came along is passed on all the same.
"""

from __future__ import annotations

import functools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec
from opentelemetry import propagate, trace
from opentelemetry.trace import Link, SpanKind, StatusCode

from gantrymq.client.consuming.handling import Later, is_async
from gantrymq.client.producer import Producer
from gantrymq.client.received import ReceivedMessage
from gantrymq.model.message import Message
from gantrymq.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer, TracerProvider

    from gantrymq.client.consuming.handling import Handler
    from gantrymq.client.results import SendResult, TransactionResult
    from gantrymq.client.transactions import Execute

__all__ = ["TracingProducer", "consuming", "extract", "inject", "traced"]

LINKS_MAX: Final = 128
"""Messages of a batch that its span links to; an SDK keeps no more by itself."""


def inject(message: Message) -> Message:
    """Return the message with the current trace context in its properties."""
    return msgspec.structs.replace(message, properties=_carrying(message.properties))


def extract(message: ReceivedMessage) -> Context:
    """Return the trace context that a message was sent in."""
    return propagate.extract(message.properties)


def _carrying(properties: Mapping[str, str] | None) -> dict[str, str]:
    carrier = dict(properties or {})
    propagate.inject(carrier)
    return {name: value for name, value in carrier.items() if value}


def _tracer(provider: TracerProvider | None) -> Tracer:
    return trace.get_tracer("gantrymq", VERSION, provider)


def _attributes(operation: str, topic: str) -> dict[str, str | int]:
    return {
        "messaging.system": "rocketmq",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": topic,
    }


# -- sending ------------------------------------------------------------------------------------


class TracingProducer(Producer):
    """A producer with a span for every send; its trace goes along with the message."""

    def __init__(
        self,
        namesrv: str,
        *arguments: Any,  # noqa: ANN401 - those of Producer
        tracer_provider: TracerProvider | None = None,
        **options: Any,  # noqa: ANN401 - those of Producer
    ) -> None:
        """Make a producer; the arguments are those of `Producer`, and whose spans to make."""
        super().__init__(namesrv, *arguments, **options)
        self._otel_tracer = _tracer(tracer_provider)

    async def send(
        self,
        message: Message | str,
        body: bytes | None = None,
        *,
        properties: Mapping[str, str] | None = None,
        **others: Any,  # noqa: ANN401
    ) -> SendResult:
        """Send a message; see `Producer.send`."""
        with self._otel_span(message, others) as span:
            given, extra = _prepared(message, properties)
            result = await super().send(given, body, properties=extra, **others)
            _note(span, result)
            return result

    async def send_oneway(
        self,
        message: Message | str,
        body: bytes | None = None,
        *,
        properties: Mapping[str, str] | None = None,
        **others: Any,  # noqa: ANN401
    ) -> None:
        """Send a message that nobody answers; see `Producer.send_oneway`."""
        with self._otel_span(message, others):
            given, extra = _prepared(message, properties)
            await super().send_oneway(given, body, properties=extra, **others)

    async def send_batch(
        self,
        messages: Iterable[Message],
        **others: Any,  # noqa: ANN401
    ) -> list[SendResult]:
        """Send messages together, with one span; see `Producer.send_batch`."""
        given = list(messages)
        with self._otel_span(given[0] if given else "", {}) as span:
            span.set_attribute("messaging.batch.message_count", len(given))
            return await super().send_batch([inject(one) for one in given], **others)

    async def send_in_transaction(
        self,
        message: Message | str,
        execute: Execute,
        body: bytes | None = None,
        *,
        properties: Mapping[str, str] | None = None,
        **others: Any,  # noqa: ANN401
    ) -> TransactionResult:
        """Send a message in a transaction; see `Producer.send_in_transaction`."""
        with self._otel_span(message, others) as span:
            given, extra = _prepared(message, properties)
            result = await super().send_in_transaction(
                given, execute, body, properties=extra, **others
            )
            _note(span, result.send)
            return result

    async def request(
        self,
        message: Message | str,
        body: bytes | None = None,
        *,
        properties: Mapping[str, str] | None = None,
        **others: Any,  # noqa: ANN401
    ) -> ReceivedMessage:
        """Send a message and return the reply; see `Producer.request`."""
        with self._otel_span(message, others):
            given, extra = _prepared(message, properties)
            return await super().request(given, body, properties=extra, **others)

    @contextmanager
    def _otel_span(self, message: Message | str, others: Mapping[str, Any]) -> Iterator[Span]:
        topic = message.topic if isinstance(message, Message) else str(message)
        tags = message.tags if isinstance(message, Message) else others.get("tags")
        attributes = _attributes("send", topic)
        if tags:
            attributes["messaging.rocketmq.message.tag"] = str(tags)
        with self._otel_tracer.start_as_current_span(
            f"send {topic}", kind=SpanKind.PRODUCER, attributes=attributes
        ) as span:
            yield span


def _prepared(
    message: Message | str, properties: Mapping[str, str] | None
) -> tuple[Message | str, Mapping[str, str] | None]:
    """Return message and properties of a send, one of them with the trace context."""
    if isinstance(message, Message):
        return inject(message), properties
    return message, _carrying(properties)


def _note(span: Span, result: SendResult) -> None:
    span.set_attribute("messaging.message.id", result.message_id)
    span.set_attribute("messaging.destination.partition.id", str(result.queue.queue_id))


# -- receiving ----------------------------------------------------------------------------------


@contextmanager
def consuming(
    message: ReceivedMessage | Sequence[ReceivedMessage],
    group: str = "",
    tracer_provider: TracerProvider | None = None,
) -> Iterator[Span]:
    """Do what is inside as the handling of a message: a span that continues the sender's trace.

    For a list of messages the span links to the traces of all of them. An exception that leaves
    the block is recorded; `Later` is, and counts as no failure.
    """
    batch = None if isinstance(message, ReceivedMessage) else list(message)
    first = message if isinstance(message, ReceivedMessage) else message[0]
    attributes = _attributes("process", first.topic)
    if group:
        attributes["messaging.consumer.group.name"] = group
    context: Context | None = None
    links: list[Link] = []
    if batch is None:
        context = extract(first)
        attributes["messaging.message.id"] = first.message_id
        attributes["messaging.rocketmq.message.delivery_attempt"] = first.reconsume_times + 1
        if first.tags:
            attributes["messaging.rocketmq.message.tag"] = first.tags
    else:
        attributes["messaging.batch.message_count"] = len(batch)
        links = _links(batch)
    with _tracer(tracer_provider).start_as_current_span(
        f"process {first.topic}",
        context=context,
        kind=SpanKind.CONSUMER,
        attributes=attributes,
        links=links,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield span
        except Exception as error:
            span.record_exception(error)
            if not isinstance(error, Later):
                span.set_status(StatusCode.ERROR, f"{type(error).__name__}: {error}")
            raise


def _links(batch: Sequence[ReceivedMessage]) -> list[Link]:
    contexts = (trace.get_current_span(extract(one)).get_span_context() for one in batch)
    return [Link(one) for one in contexts if one.is_valid][:LINKS_MAX]


def traced(
    handler: Handler, group: str = "", tracer_provider: TracerProvider | None = None
) -> Handler:
    """Return a handler whose calls are spans that continue the traces of their messages."""
    if is_async(handler):

        @functools.wraps(handler)
        async def run_async(argument: Any) -> Any:  # noqa: ANN401 - a message, or a list
            with consuming(argument, group, tracer_provider):
                return await handler(argument)

        return run_async

    @functools.wraps(handler)
    def run(argument: Any) -> Any:  # noqa: ANN401 - as above
        with consuming(argument, group, tracer_provider):
            return handler(argument)

    return run
