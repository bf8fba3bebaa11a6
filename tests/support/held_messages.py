"""Messages in hand, and the little of a client that handlers need: for tests without a broker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from gantrymq.client.consuming.process_queue import Held, HoldLimits, ProcessQueue
from gantrymq.client.consuming.statistics import TopicCounters
from gantrymq.client.consuming.subscribed import Subscribed
from gantrymq.client.consuming.subscription import subscription_of
from gantrymq.client.namespace import Namespace
from gantrymq.client.received import ReceivedMessage
from gantrymq.kernel.values import Record
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.testing.clock import VirtualClock
from gantrymq.wire.properties import encode_properties
from gantrymq.wire.record import MessageRecord

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from gantrymq.client.consuming.handling import Run
    from gantrymq.client.core import ClientCore

TOPIC = "T"
QUEUE = MessageQueue(TOPIC, "b", QueueId(0))
HOST = bytes([127, 0, 0, 1, 0, 0, 42, 159])


class FakeCore:
    """A core that runs tasks and has a clock that stands still."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.namespace = Namespace("")
        self.closer: asyncio.Task[Any] | None = None
        self.tasks: list[asyncio.Task[Any]] = []

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run something in the background."""
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self.tasks.append(task)
        return task

    async def end(self) -> None:
        """End what still runs."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    @property
    def as_core(self) -> ClientCore:
        """Return itself under the name of the real thing."""
        return cast("ClientCore", self)


class GivenBack:
    """Takes failed messages and remembers them."""

    def __init__(self) -> None:
        self.failed_ones: list[tuple[bytes, int]] = []
        self.takes = True

    async def failed(self, held: Held, delay_level: int) -> None:
        """Take a message that a handler did not."""
        self.failed_ones.append((held.message.body, delay_level))
        held.queue.settle(held)

    async def send_back(self, held: Held, delay_level: int) -> bool:
        """Take a message for the dead letters."""
        self.failed_ones.append((held.message.body, delay_level))
        return self.takes


def raw_record(body: bytes, offset: int, topic: str = TOPIC, **properties: str) -> Record:
    """Return a record as a broker stores it."""
    return Record(
        queue_id=0, flag=0, queue_offset=offset, log_offset=1000 + offset, sys_flag=0,
        born_timestamp=1, born_host=HOST, store_timestamp=2, store_host=HOST, reconsume_times=0,
        prepared_offset=0, body=body, topic=topic.encode(),
        properties=encode_properties(properties),
    )  # fmt: skip


def subscribed_to(run: Run | None, expression: str = "*") -> Subscribed:
    """Return a subscription to the topic."""
    return Subscribed(TOPIC, subscription_of(TOPIC, expression, 1), run, TopicCounters())


def process_queue(subscribed: Subscribed, queue: MessageQueue = QUEUE) -> ProcessQueue:
    """Return a queue that is read from its beginning."""
    return ProcessQueue(queue, 0, HoldLimits(), subscribed)


def hold(queue: ProcessQueue, *bodies: bytes) -> list[Held]:
    """Take messages in hand, behind those that are there."""
    first = queue.position
    arrived = []
    for offset, body in enumerate(bodies, first):
        message = ReceivedMessage(MessageRecord(raw_record(body, offset)), "b", TOPIC)
        arrived.append(Held(queue, message, offset, len(body)))
    queue.position = first + len(bodies)
    queue.hold(arrived)
    return arrived


async def turns(count: int = 20) -> None:
    """Let everything that can run do so."""
    for _ in range(count):
        await asyncio.sleep(0)
