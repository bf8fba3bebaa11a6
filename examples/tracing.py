"""One trace from producer to consumer: `pip install gantrymq[otel] opentelemetry-sdk`."""

import asyncio
import sys

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gantrymq import PushConsumer, ReceivedMessage
from gantrymq.otel import TracingProducer, traced

spans = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)


async def main(namesrv: str) -> None:
    """Send a message in a trace, and handle it in the same."""
    done = asyncio.Event()

    async def handle(_message: ReceivedMessage) -> None:
        done.set()

    async with TracingProducer(namesrv) as producer:
        with trace.get_tracer("shop").start_as_current_span("place an order"):
            await producer.send("Traced", b"one")
        consumer = PushConsumer(namesrv, "billing", start="first")
        consumer.subscribe("Traced", handler=traced(handle, group="billing"))
        async with consumer:
            await done.wait()
    finished = spans.get_finished_spans()
    print(*sorted(span.name for span in finished), sep="\n")
    print(len({span.context.trace_id for span in finished if span.context}), "trace")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9876"))
