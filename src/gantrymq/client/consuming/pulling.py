"""One queue is read: a task asks the broker for what comes next, and asks again.

The next pull is asked for as soon as the last one has been answered; handlers work meanwhile, and
the bounds of the process queue say when to stop. With nothing to read the broker holds the pull
until there is.

A pull could commit an offset on its way, and Java's do. Here they do not: Apache's brokers handle
pulls and commits on different threads, so that an older offset in a pull may be stored after a
newer one that was committed when the queue was given back.

Whatever goes wrong is waited for and tried again: a broker that is killed and comes back, a name
server that is gone, a connection that is cut. The waits grow to a few seconds and no further.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from gantrymq.client.consuming.process_queue import Held
from gantrymq.client.consuming.pull_requests import Pulled, PullRequests, read_answer
from gantrymq.client.consuming.waits import Waits
from gantrymq.client.errors import ContentError, GantryError, PeerGone, PeerLate, ResponseError
from gantrymq.client.received import ReceivedMessage
from gantrymq.model.names import is_retry_topic
from gantrymq.model.route import MASTER_ID
from gantrymq.wire import properties as names
from gantrymq.wire.codes import ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.record import decode_records
from gantrymq.wire.response_errors import (
    FilterDataNotExist,
    FilterDataNotLatest,
    SubscriptionNotExist,
    SubscriptionNotLatest,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gantrymq.client.consuming.calls import ConsumerCalls
    from gantrymq.client.consuming.process_queue import ProcessQueue
    from gantrymq.client.consuming.subscribed import Subscribed

logger = logging.getLogger(__name__)

PULL_TIMEOUT_S: Final = 30.0
QUICK_S: Final = 0.02
"""An empty answer that comes sooner was not held, so the next pull waits a little."""
_TELL_AGAIN: Final = (
    SubscriptionNotExist, SubscriptionNotLatest, FilterDataNotExist, FilterDataNotLatest,
)  # fmt: skip
"""What a broker says that has not heard what this member subscribes to."""


class PullLoop:
    """Reads one queue until it is dropped."""

    def __init__(
        self,
        calls: ConsumerCalls,
        queue: ProcessQueue,
        subscribed: Subscribed,
        deliver: Callable[[ProcessQueue, Sequence[Held]], None],
        moved: Callable[[ProcessQueue, int], None],
        *,
        count: int,
        names_subscription: bool = False,
    ) -> None:
        """Prepare; `moved` is told when the broker says that reading goes on elsewhere."""
        self._calls = calls
        self._queue = queue
        self._subscribed = subscribed
        self._deliver = deliver
        self._moved = moved
        self._requests = PullRequests(
            calls.group,
            queue.queue,
            subscribed,
            count,
            names_subscription=names_subscription,
        )
        self._broker_id = MASTER_ID
        self._is_retry = is_retry_topic(queue.queue.topic)
        self._waits = Waits()
        self._quick = Waits(first_s=0.005, most_s=0.5)

    async def run(self) -> None:
        """Read; a task of the client's."""
        queue, loop = self._queue, asyncio.get_running_loop()
        while True:
            if queue.dropped:
                return
            if not queue.has_room:
                await queue.room()
                continue
            if self._subscribed.is_paused:
                await self._subscribed.reading()
                continue
            began = loop.time()
            try:
                pulled = await self._pull()
                arrived = self._received(pulled) if pulled.body else ()
            except GantryError as error:
                await self._recover(error)
                continue
            except Exception:  # an answer that nobody thought of must not end the reading
                logger.exception("%s cannot be read, it is tried again", queue.queue)
                await asyncio.sleep(self._waits.next())
                continue
            spent_s = loop.time() - began
            self._waits.reset()
            self._count(spent_s, len(arrived))
            if not await self._take(pulled, arrived, spent_s):
                return

    async def _take(self, pulled: Pulled, arrived: Sequence[Held], spent_s: float) -> bool:
        """Act upon an answer; False when the queue is read from elsewhere, or by another, now."""
        queue = self._queue
        if queue.dropped:
            return False
        if pulled.code == ResponseCode.PULL_OFFSET_MOVED:
            logger.warning(
                "%s is read from %d on: the broker has no offset %d there",
                queue.queue, pulled.next_offset, queue.position,
            )  # fmt: skip
            self._moved(queue, pulled.next_offset)
            return False
        stood_still = pulled.next_offset == queue.position
        queue.position = max(queue.position, pulled.next_offset)
        self._broker_id = pulled.suggested_id
        if arrived:
            queue.hold(arrived)
            self._deliver(queue, arrived)
        elif stood_still and spent_s < QUICK_S:
            await asyncio.sleep(self._quick.next())
            return True
        self._quick.reset()
        return True

    def _count(self, spent_s: float, arrived: int) -> None:
        counters = self._subscribed.counters
        counters.pulls += 1
        counters.pull_s += spent_s
        counters.pulled += arrived
        self._queue.last_pulled_ms = self._calls.core.clock.now_ms()

    async def _pull(self) -> Pulled:
        queue, calls = self._queue, self._calls
        core = calls.core
        address = await calls.address(queue.queue, self._broker_id)
        line = core.connections.open_connection(address)
        if line is None or line.is_congested or core.settings.credentials is not None:
            request = self._requests.at(queue.position)
            return read_answer(await core.remote.ask(address, request, PULL_TIMEOUT_S))
        # Pulls of one turn of the loop leave in one write.
        opaque = line.sends.next_opaque()
        frame = self._requests.frame(opaque, queue.position)
        now = asyncio.get_running_loop().time()
        reply = await line.ask_frame(opaque, frame, PULL_TIMEOUT_S, now)
        if not isinstance(reply, Command):
            raise ContentError("header", f"{address} answered a pull as if it were a send")
        return read_answer(reply)

    def _received(self, pulled: Pulled) -> list[Held]:
        """Return the messages of an answer that are wanted.

        Raises:
            RecordError: there is something else among them; the pull is tried again.
        """
        queue, tags = self._queue, self._subscribed.tags
        broker, topic = queue.queue.broker_name, self._subscribed.name
        found: list[Held] = []
        for record in decode_records(pulled.body):
            if tags and record.tags not in tags:
                continue
            raw = record.raw
            if raw.queue_offset < queue.position:
                continue  # what was asked for begins behind it
            name = self._origin(record.properties) if self._is_retry else topic
            message = ReceivedMessage(record, broker, name)
            found.append(Held(queue, message, raw.queue_offset, len(raw.body)))
        return found

    def _origin(self, properties: dict[str, str]) -> str:
        """Return the topic that a message was in before it was given back."""
        origin = properties.get(names.RETRY_TOPIC, self._subscribed.name)
        return self._calls.core.namespace.unwrap(origin)

    async def _recover(self, error: GantryError) -> None:
        """Wait before the next attempt, and look up again what may have changed."""
        core, queue = self._calls.core, self._queue.queue
        again = bool(self._waits)
        wait_s = self._waits.next()
        if isinstance(error, _TELL_AGAIN):
            # It was started again, or has not heard of a new subscription: say it once more.
            await core.heartbeats.now()
        elif isinstance(error, ResponseError | PeerGone | PeerLate):
            self._broker_id = MASTER_ID
            if again:
                core.routes.refresh_soon(queue.topic)
        level = logging.WARNING if not again else logging.DEBUG
        logger.log(level, "%s cannot be read, it is tried again: %s", queue, error)
        await asyncio.sleep(wait_s)
