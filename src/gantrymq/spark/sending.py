"""Rows on their way to brokers: batches for each queue, one of a queue under way at a time.

Rows of one queue stay in their order, and every answer has come before a task says that it is done.
A row goes where it says (`queueId`, `brokerName`), or where its sharding key says, or else with the
rows around it: at_least_once gives each batch another queue, the other levels give a partition one
queue for good, since what was sent is looked for there after a failure.
"""

from __future__ import annotations

import asyncio
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.client.batches import batches_of
from gantrymq.client.errors import PeerGone, PeerLate
from gantrymq.client.outgoing import check_body
from gantrymq.client.preparing import Preparing
from gantrymq.client.selection import queue_number
from gantrymq.client.sending import Sending
from gantrymq.errors import GantryError, InvalidValue
from gantrymq.limits import BODY_BYTES_MAX
from gantrymq.model.message import Message
from gantrymq.wire.response_errors import ResponseError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gantrymq.client.outgoing import Outgoing
    from gantrymq.client.results import SendResult
    from gantrymq.model.queue import MessageQueue
    from gantrymq.spark.link import Link
    from gantrymq.spark.options import SinkOptions
    from gantrymq.spark.places import Place
    from gantrymq.spark.rows import Row

ROWS_MAX: Final = 2000
"""Messages of a batch."""
QUEUES_MAX: Final = 16
"""Batches that are under way, of as many queues."""
GROUP: Final = "gantrymq-spark-sink"
ERROR_NAME: Final = "SPARK_ERROR"
ORIGIN_NAME: Final = "SPARK_TOPIC"
SIZE_NAME: Final = "SPARK_BODY_BYTES"
ERROR_CHARACTERS_MAX: Final = 500
BATCHED_BYTES_MAX: Final = BODY_BYTES_MAX - (64 << 10)
"""Larger bodies are sent alone: with its properties one would be too large for a batch."""
DEAD_BYTES_MAX: Final = 1 << 20


class NotSafe(GantryError):
    """A broker has stored a message, but not as safely as it should."""

    retriable = True


class Numbered(NamedTuple):
    """A message and its number in its partition."""

    number: int
    message: Message


class Waiting:
    """What is to be sent to one queue."""

    __slots__ = ("rows", "size", "task")

    def __init__(self) -> None:
        self.rows: list[Numbered] = []
        self.size = 0
        self.task: asyncio.Task[None] | None = None


class Sender:
    """Sends the rows of one task at least once. Its coroutines run on the link's loop."""

    keeps_queue = False
    """Whether a partition has one queue."""

    def __init__(self, link: Link, options: SinkOptions, place: Place) -> None:
        self.link = link
        self.options = options
        self.place = place
        self.begins: dict[MessageQueue, int] = {}
        """An offset of each queue before which no message of this task lies, where that is kept."""
        self.sent = 0
        self._numbered = 0
        self._waiting: dict[MessageQueue, Waiting] = {}
        self._queues: dict[str, list[MessageQueue]] = {}
        self._turns: dict[str, int] = {}
        self._gate = asyncio.Semaphore(QUEUES_MAX)
        self._ready = Preparing(
            link.core.namespace, bytes_max=BODY_BYTES_MAX, compress_from=1, compression=None
        )
        self._sending: Sending | None = None

    @property
    def sending(self) -> Sending:
        """Return what sends; made on the loop."""
        if self._sending is None:
            group = self.link.full_name(self.options.connection.group or GROUP)
            self._sending = Sending(
                self.link.core,
                group,
                in_flight_max=1024,
                retries=0,
                retry_not_stored=False,
                faults=None,
            )
        return self._sending

    def _deadline(self) -> float:
        return self.sending.deadline(self.link.options.timeout_s)

    # -- rows ------------------------------------------------------------------------------------

    async def add(self, rows: Iterable[Row]) -> None:
        """Take rows, in their order; returns when there is room for more.

        Raises:
            GantryError: one cannot be sent.
        """
        for row in rows:
            number, self._numbered = self._numbered, self._numbered + 1
            queue = await self._queue_of(row)
            waiting = self._waiting.setdefault(queue, Waiting())
            waiting.rows.append(Numbered(number, row.message))
            waiting.size += len(row.message.body) + 256
            if waiting.size >= self.options.batch_bytes or len(waiting.rows) >= ROWS_MAX:
                await self._begin(queue, waiting)
                self._turns[row.message.topic] = self._turns.get(row.message.topic, 0) + 1

    async def finish(self) -> None:
        """Return when every row is stored.

        Raises:
            GantryError: one is not.
        """
        for queue, waiting in self._waiting.items():
            if waiting.rows:
                await self._begin(queue, waiting)
        for waiting in self._waiting.values():
            if waiting.task is not None:
                await waiting.task

    async def _begin(self, queue: MessageQueue, waiting: Waiting) -> None:
        """Send what waits for a queue, once what went before is stored."""
        if waiting.task is not None:
            await waiting.task
        rows, waiting.rows, waiting.size = waiting.rows, [], 0
        await self._gate.acquire()
        waiting.task = asyncio.get_running_loop().create_task(self._send(queue, rows))

    async def _send(self, queue: MessageQueue, rows: list[Numbered]) -> None:
        try:
            await self.store(queue, rows)
        finally:
            self._gate.release()

    # -- queues ----------------------------------------------------------------------------------

    async def queues(self, topic: str) -> list[MessageQueue]:
        """Return the queues of a topic that can be written, always in the same order.

        Raises:
            NoRoute: there are none.
        """
        found = self._queues.get(topic)
        if found is None:
            full = self._ready.full_name(topic)
            lane = await self.link.patiently(
                full, lambda: self.sending.lanes.get(full, self._deadline())
            )
            found = self._queues[topic] = sorted(target.queue for target in lane.targets)
        return found

    async def _queue_of(self, row: Row) -> MessageQueue:
        queues = await self.queues(row.message.topic)
        if row.queue_id is not None or row.broker is not None:
            return self._asked_for(row, queues)
        if row.message.sharding_key is not None:
            return queues[queue_number(row.message.sharding_key, len(queues))]
        turn = 0 if self.keeps_queue else self._turns.get(row.message.topic, 0)
        return queues[(self.place.partition + turn) % len(queues)]

    def _asked_for(self, row: Row, queues: list[MessageQueue]) -> MessageQueue:
        fitting = [
            queue
            for queue in queues
            if row.queue_id in {None, queue.queue_id} and row.broker in {None, queue.broker_name}
        ]
        if not fitting:
            raise InvalidValue(
                f"a row wants queue {row.queue_id} of broker {row.broker} for topic "
                f"{row.message.topic}: there are {', '.join(map(str, queues))}"
            )
        return fitting[self.place.partition % len(fitting)]

    # -- sending ---------------------------------------------------------------------------------

    async def store(self, queue: MessageQueue, rows: list[Numbered]) -> None:
        """Store rows in a queue, at least once.

        Raises:
            GantryError: one is not stored.
        """
        try:
            await self._all(queue, [row.message for row in rows])
        except (ResponseError, InvalidValue):
            if not self.options.dead_letter_topic:
                raise
            for row in rows:
                await self._or_dead(queue, row.message)

    async def _all(self, queue: MessageQueue, messages: list[Message]) -> None:
        plain = [one for one in messages if not one.delay_level and one.deliver_at_ms is None]
        for part in await self.requests(plain):
            await self.part(queue, part)
        for message in messages if len(plain) < len(messages) else ():
            if message.delay_level or message.deliver_at_ms is not None:
                await self.part(queue, await self.alone(message))
        self.sent += len(messages)

    async def requests(self, messages: list[Message]) -> list[Outgoing]:
        """Return the requests that send messages, in their order.

        Raises:
            InvalidValue: one is too large.
        """
        core = self.link.core
        found: list[Outgoing] = []
        for is_large, some in groupby(messages, key=_is_large):
            if is_large:
                found += [await self.alone(message) for message in some]
            else:
                next_id = core.identity.keys.next
                found += batches_of(list(some), next_id, core.namespace, BODY_BYTES_MAX)
        return found

    async def alone(
        self, message: Message, properties: Mapping[str, str] | None = None
    ) -> Outgoing:
        """Return the request that sends one message, with some properties more.

        Raises:
            InvalidValue: it is too large.
        """
        check_body(message.body, BODY_BYTES_MAX)
        identity = self.link.core.identity.keys.next()
        return await self._ready.outgoing(message, identity, properties or {})

    async def part(self, queue: MessageQueue, outgoing: Outgoing) -> SendResult:
        """Send one request until it is stored safely; it may be stored more than once.

        Raises:
            GantryError: it is not.
        """
        return await self.link.patiently(queue.topic, lambda: self.once(queue, outgoing))

    async def once(self, queue: MessageQueue, outgoing: Outgoing) -> SendResult:
        """Send one request once.

        Raises:
            PeerGone, PeerLate: it may be stored.
            NotSafe: it is stored, but not as safely as it should be.
            GantryError: it is not.
        """
        deadline = self._deadline()
        target = await self.sending.lanes.target(queue, deadline)
        result = await self.sending.send(outgoing, target, deadline)
        if not result.is_ok:
            raise NotSafe(f"{queue}: stored, but {result.status.name}")
        return result

    async def _or_dead(self, queue: MessageQueue, message: Message) -> None:
        """Store a message in its queue, or among the dead ones if a broker refuses it."""
        try:
            await self._all(queue, [message])
        except (PeerGone, PeerLate):
            raise
        except (ResponseError, InvalidValue) as error:
            topic = self.options.dead_letter_topic
            queues = await self.queues(topic)
            dead = _dead_letter(message, topic, error)
            await self._all(queues[self.place.partition % len(queues)], [dead])


def _is_large(message: Message) -> bool:
    return len(message.body) > BATCHED_BYTES_MAX


def _dead_letter(message: Message, topic: str, error: GantryError) -> Message:
    """Return what is kept of a message that is refused: too large a body only in part."""
    told = {
        ERROR_NAME: str(error)[:ERROR_CHARACTERS_MAX] or type(error).__name__,
        ORIGIN_NAME: message.topic,
        SIZE_NAME: str(len(message.body)),
    }
    return Message(
        topic=topic,
        body=message.body[:DEAD_BYTES_MAX] or b"-",
        tags=message.tags,
        keys=message.keys,
        properties={**message.properties, **told},
        flag=message.flag,
    )
