"""The clients for programs without an event loop: same names, same arguments, methods that wait.

    with Producer("127.0.0.1:9876", "orders") as producer:
        producer.send("Orders", b"one more")

    with PushConsumer("127.0.0.1:9876", "billing") as consumer:
        consumer.subscribe("Orders")
        for message in consumer:
            ...

Each object has an asyncio client on a thread of its own (`loop_thread`), so heartbeats go on while
your code computes or waits. Objects may be used from several threads, not across a fork.
"""

from gantrymq.blocking.base import Messages
from gantrymq.blocking.producer import Producer
from gantrymq.blocking.pull_consumer import PullConsumer
from gantrymq.blocking.push_consumer import PushConsumer

__all__ = ["Messages", "Producer", "PullConsumer", "PushConsumer"]
