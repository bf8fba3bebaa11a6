"""The consumer that you call: any queue, any offset, as often as you like.

    async with PullConsumer("127.0.0.1:9876", "audit") as consumer:
        for queue in await consumer.queues("orders"):
            offset = await consumer.min_offset(queue)
            result = await consumer.pull(queue, offset)

        await consumer.assign(*await consumer.queues("orders"), start="first")
        async for message in consumer:
            ...

It is nobody's member: queues are not shared out, and offsets are the caller's own. They can be kept
with the broker under the group's name (`commit`), or anywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, Self, Unpack

from gantrymq.client.arguments import at_least, check_queue, seconds, text
from gantrymq.client.consuming import finding
from gantrymq.client.consuming.calls import ConsumerCalls
from gantrymq.client.consuming.inbox import Inbox
from gantrymq.client.consuming.iterating import Iteration
from gantrymq.client.consuming.offsets import RemoteOffsets
from gantrymq.client.consuming.process_queue import MIB, HoldLimits, ProcessQueue
from gantrymq.client.consuming.pull_requests import PullRequests, read_answer
from gantrymq.client.consuming.pulling import PullLoop
from gantrymq.client.consuming.start_position import StartPosition, milliseconds
from gantrymq.client.consuming.statistics import TopicCounters
from gantrymq.client.consuming.subscribed import Subscribed
from gantrymq.client.consuming.subscription import subscription_of
from gantrymq.client.core import ClientCore
from gantrymq.client.errors import InvalidValue, NoRoute, NoRouteCause
from gantrymq.client.received import ReceivedMessage
from gantrymq.client.settings import ClientSettings, credentials_of, parse_name_servers
from gantrymq.model.names import check_group, check_topic
from gantrymq.model.queue import MessageQueue
from gantrymq.wire.codes import ResponseCode
from gantrymq.wire.record import decode_records

if TYPE_CHECKING:
    import asyncio
    import ssl as tls
    from collections.abc import Sequence
    from datetime import datetime
    from types import TracebackType

    from gantrymq.client.consuming.process_queue import Held
    from gantrymq.client.consuming.start_position import Start
    from gantrymq.client.consuming.subscription import Expression
    from gantrymq.client.settings import Timers
    from gantrymq.clock import Clock

COUNT_MAX: Final = 65536
WAIT_S_MAX: Final = 3600.0
_SLACK_S: Final = 10.0
"""What an answer may be later than the time that the broker was to hold the pull: Apache's look
every 5 s whose time is up."""


class PullStatus(Enum):
    """How a pull ended."""

    FOUND = 0
    NOT_FOUND = 19
    """There is nothing from this offset on, or was not within `wait_s`."""
    NO_MATCH = 20
    """There is something, and nothing of it matches: go on at `next_offset`."""
    OFFSET_MOVED = 21
    """There is no such offset in the queue: `next_offset` is the nearest."""


@dataclass(frozen=True, slots=True)
class PullResult:
    """What a pull brought."""

    status: PullStatus
    messages: tuple[ReceivedMessage, ...]
    next_offset: int
    """Where to go on."""
    min_offset: int
    """Of the oldest message in the queue."""
    max_offset: int
    """Of the message that comes next."""


class _Source:
    """The messages that `async for` takes."""

    def __init__(self) -> None:
        self.inbox = Inbox()

    def settle_taken(self, held: Held) -> None:
        """Be done with a message."""
        held.queue.settle(held)


class PullConsumer:
    """Reads queues at offsets. Used on the event loop that `start` ran on."""

    def __init__(
        self,
        namesrv: str,
        group: str,
        *,
        pull_batch: int = 32,
        hold_messages: int = 1000,
        hold_bytes: int = 100 * MIB,
        namespace: str = "",
        instance: str | None = None,
        ssl: tls.SSLContext | None = None,
        access_key: str | None = None,
        secret_key: str | None = None,
        security_token: str | None = None,
        clock: Clock | None = None,
        **settings: Unpack[Timers],
    ) -> None:
        """Prepare; `start`, or `async with`, begins.

        `pull_batch`, `hold_messages` and `hold_bytes` are for `async for` over assigned queues; the
        other arguments are those of `PushConsumer`.

        Raises:
            InvalidValue: an argument cannot be.
        """
        self.group = check_group(group)
        self._core = ClientCore(
            ClientSettings(
                name_servers=parse_name_servers(namesrv),
                namespace=namespace,
                instance=instance,
                ssl=ssl,
                credentials=credentials_of(access_key, secret_key, security_token),
                **settings,
            ),
            clock,
        )
        self._calls = ConsumerCalls(self._core, self._core.namespace.wrap(self.group))
        self._limits = HoldLimits(hold_messages, hold_bytes, None)
        self._pull_batch = at_least("pull_batch", pull_batch, 1, COUNT_MAX)
        self._readers: dict[MessageQueue, tuple[ProcessQueue, asyncio.Task[None]]] = {}
        self._expressions: dict[MessageQueue, Expression] = {}
        self._source = _Source()
        self._loop_over: Iteration | None = None
        self._is_closed = False

    # -- life -----------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin. Brokers are found when they are needed.

        Raises:
            ClientError: it was started or closed before.
        """
        await self._core.start()

    async def close(self) -> None:
        """Close all connections; offsets are committed by `commit` alone. Again: nothing."""
        await self._core.close(self._finish)
        self._is_closed = True

    async def _finish(self) -> None:
        self._is_closed = True
        for queue in list(self._readers):
            self._drop(queue)
        self._source.inbox.wake_all()

    async def __aenter__(self) -> Self:
        """Start."""
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        await self.close()

    # -- queues and offsets ---------------------------------------------------------------------

    async def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Return the queues of a topic that may be read.

        Raises:
            NoRoute: the topic is not known, or none of its queues may be read.
        """
        self._core.check_usable()
        full = self._full_name(topic)
        route = await self._core.routes.get(full)
        if not route.read_queues:
            raise NoRoute(full, NoRouteCause.NOT_READABLE, "no broker lets it be read")
        return route.read_queues

    async def min_offset(self, queue: MessageQueue) -> int:
        """Return the offset of the oldest message."""
        return await self._calls.min_offset(self._checked(queue))

    async def max_offset(self, queue: MessageQueue) -> int:
        """Return the offset that the next message gets."""
        return await self._calls.max_offset(self._checked(queue))

    async def offset_at(self, queue: MessageQueue, time: datetime | int) -> int:
        """Return the offset of the first message stored at a time (or milliseconds) or later."""
        return await self._calls.offset_at(self._checked(queue), milliseconds(time))

    async def committed(self, queue: MessageQueue) -> int | None:
        """Return the offset that was committed for the group; None if none was."""
        return await self._calls.committed(self._checked(queue))

    async def commit(self, queue: MessageQueue | None = None, offset: int | None = None) -> None:
        """Commit an offset for the group; without arguments where `async for` is in every queue.

        Raises:
            InvalidValue: one argument is given without the other, or the offset is negative.
        """
        self._core.check_usable()
        if queue is None and offset is None:
            for one, (mine, _task) in list(self._readers.items()):
                await self._calls.commit(one, mine.commit_offset)
        elif queue is None or offset is None or at_least("offset", offset, -1) < 0:
            raise InvalidValue(f"commit of {offset} in {queue}: give a queue and an offset from 0")
        else:
            await self._calls.commit(self._checked(queue), offset)

    def _full_name(self, topic: str) -> str:
        return check_topic(self._core.namespace.wrap(check_topic(topic)))

    def _checked(self, queue: MessageQueue) -> MessageQueue:
        self._core.check_usable()
        full = self._core.namespace.wrap(check_queue(queue).topic)
        if full == queue.topic:
            return queue
        return MessageQueue(full, queue.broker_name, queue.queue_id)

    # -- pulling --------------------------------------------------------------------------------

    async def pull(
        self,
        queue: MessageQueue,
        offset: int,
        *,
        count: int = 32,
        expression: Expression = "*",
        wait_s: float = 0.0,
    ) -> PullResult:
        """Return messages from an offset on; with `wait_s`, wait so long for the first of them.

        Brokers give as many as their own limits allow, which are 32 and 256 KiB unless set
        otherwise.

        Raises:
            InvalidValue: an argument is out of its range.
            ResponseError, PeerGone, PeerLate, NoRoute: it did not work; `retriable` says whether
                the same call may.
        """
        asked = self._checked(queue)
        at_least("offset", offset, -(2**63), 2**63 - 1)
        at_least("count", count, 1, COUNT_MAX)
        if seconds("wait_s", wait_s, least=0) > WAIT_S_MAX:
            raise InvalidValue(f"wait_s is {wait_s!r}: give up to an hour")
        subscribed = self._subscribed(asked, expression)
        requests = PullRequests(
            self._calls.group,
            asked,
            subscribed,
            count,
            suspend_s=wait_s,
            names_subscription=True,
        )
        address = await self._calls.master(asked)
        timeout_s = max(wait_s + _SLACK_S, self._core.settings.request_timeout_s)
        reply = await self._core.remote.ask(address, requests.at(offset), timeout_s)
        pulled = read_answer(reply)
        tags = subscribed.tags
        messages = tuple(
            ReceivedMessage(record, asked.broker_name, subscribed.name)
            for record in decode_records(pulled.body)
            if not tags or record.tags in tags
        )
        status = PullStatus(pulled.code)
        if pulled.code == ResponseCode.SUCCESS and not messages:
            status = PullStatus.NO_MATCH
        return PullResult(
            status, messages, pulled.next_offset, pulled.min_offset, pulled.max_offset
        )

    def _subscribed(self, queue: MessageQueue, expression: Expression) -> Subscribed:
        name = self._core.namespace.unwrap(queue.topic)
        return Subscribed(name, subscription_of(queue.topic, expression, 0), None, TopicCounters())

    # -- single messages ------------------------------------------------------------------------

    async def view(self, offset_id: str) -> ReceivedMessage:
        """Return the message with an id of the broker's (`SendResult.offset_id`).

        Raises:
            InvalidValue: it is no such id.
            ResponseError: the broker has no message there.
        """
        self._core.check_usable()
        return await finding.view(self._core, text("offset_id", offset_id))

    async def find(self, topic: str, message_id: str) -> ReceivedMessage | None:
        """Return the message with the id that its producer gave it; None if there is none."""
        self._core.check_usable()
        full = self._full_name(topic)
        text("message_id", message_id)
        found = await finding.query(self._core, full, message_id, unique=True)
        return found[0] if found else None

    async def query(
        self,
        topic: str,
        key: str,
        begin: datetime | int = 0,
        end: datetime | int = finding.FOREVER_MS,
        count: int = 32,
    ) -> list[ReceivedMessage]:
        """Return messages with a key that were stored between two times, the oldest first."""
        self._core.check_usable()
        at_least("count", count, 1, COUNT_MAX)
        return await finding.query(
            self._core,
            self._full_name(topic),
            text("key", key),
            begin_ms=milliseconds(begin),
            end_ms=milliseconds(end),
            count=count,
        )

    # -- reading on -----------------------------------------------------------------------------

    async def assign(
        self, *queues: MessageQueue, expression: Expression = "*", start: Start = "first"
    ) -> None:
        """Have `async for` read these queues too, from what is committed, else from `start`."""
        position, store = StartPosition(start), RemoteOffsets(self._calls)
        for queue in map(self._checked, queues):
            subscription_of(queue.topic, expression, 0)
            offset = await position.offset(queue, store, self._calls)
            self._expressions[queue] = expression
            self._read(queue, offset)

    def unassign(self, *queues: MessageQueue) -> None:
        """Read these queues no more; all of them, if none is named."""
        for queue in list(map(self._checked, queues)) or list(self._readers):
            self._drop(queue)
            self._expressions.pop(queue, None)

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Have `async for` go on at an offset of a queue.

        Raises:
            InvalidValue: the queue is not assigned, or the offset is negative.
        """
        checked = self._checked(queue)
        if checked not in self._readers or at_least("offset", offset, -1) < 0:
            raise InvalidValue(f"{queue} at {offset}: assign the queue, and give an offset from 0")
        self._read(checked, offset)

    def position(self, queue: MessageQueue) -> int:
        """Return the offset of a queue behind which nothing was acknowledged by `async for`.

        Raises:
            InvalidValue: the queue is not assigned.
        """
        found = self._readers.get(self._checked(queue))
        if found is None:
            raise InvalidValue(f"{queue} is not assigned: assign it first")
        return found[0].commit_offset

    @property
    def assignment(self) -> tuple[MessageQueue, ...]:
        """Return the queues that `async for` reads."""
        return tuple(sorted(self._readers))

    def _read(self, queue: MessageQueue, offset: int) -> None:
        self._drop(queue)
        subscribed = self._subscribed(queue, self._expressions.get(queue, "*"))
        mine = ProcessQueue(queue, offset, self._limits, subscribed)
        loop = PullLoop(
            self._calls,
            mine,
            subscribed,
            self._deliver,
            self._moved,
            count=self._pull_batch,
            names_subscription=True,
        )
        self._readers[queue] = mine, self._core.spawn(loop.run(), f"pull {queue}")

    def _moved(self, mine: ProcessQueue, offset: int) -> None:
        current = self._readers.get(mine.queue)
        if current is not None and current[0] is mine:
            self._read(mine.queue, offset)

    def _drop(self, queue: MessageQueue) -> None:
        found = self._readers.pop(queue, None)
        if found is not None:
            found[0].drop()
            found[1].cancel()

    def _deliver(self, _queue: ProcessQueue, arrived: Sequence[Held]) -> None:
        self._source.inbox.put(arrived)

    def __aiter__(self) -> Iteration:
        """Return a loop over the messages of the assigned queues; the one before it is over."""
        self._core.check_usable()
        if self._loop_over is not None:
            self._loop_over.give_up()
        self._loop_over = Iteration(self._source, lambda: self._is_closed)
        return self._loop_over
