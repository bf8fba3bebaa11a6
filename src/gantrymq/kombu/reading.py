"""One queue is read: messages wait here until kombu takes them, and are settled one by one.

A handler of the push consumer is a task that ends when kombu has settled its message. So the bound
on handlers is the bound on messages that are with kombu, an acknowledgement in any order is fine,
and a process that dies leaves what it had to the other members of the group.

The consumer lives on the transport's event loop; kombu's threads call `take` and `settle`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import uuid4

from kombu.utils.json import loads

from gantrymq.client.consuming.handling import Later
from gantrymq.errors import GantryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.blocking.loop_thread import LoopThread
    from gantrymq.client.push_consumer import PushConsumer
    from gantrymq.client.received import ReceivedMessage


logger = logging.getLogger(__name__)

GIVE_UP: Final = -1
"""The delay level that sends a message to the dead letters."""


class Arrived(NamedTuple):
    """A message that kombu has not been given yet."""

    tag: str
    payload: dict[str, Any]
    """As kombu has it."""


def payload_of(message: ReceivedMessage, tag: str) -> dict[str, Any]:
    """Return a message as kombu has it; its tag is that of this delivery.

    Raises:
        GantryError, ValueError, TypeError, KeyError: it was not sent by kombu, or is broken.
    """
    payload: dict[str, Any] = loads(message.body)
    payload["properties"]["delivery_tag"] = tag
    if message.reconsume_times:
        payload["redelivered"] = True
        payload["headers"]["redelivered"] = True
    return payload


class Reading:
    """The messages of one queue for one channel."""

    def __init__(
        self,
        thread: LoopThread,
        make: Callable[[], PushConsumer],
        topic: str,
        arrived: Callable[[], None],
        *,
        again_level: int,
    ) -> None:
        """Call `arrived`, on the loop's thread, when there is something to take."""
        self._thread = thread
        self._topic = topic
        self._arrived = arrived
        self._again_level = again_level
        self._waiting: deque[Arrived] = deque()
        self._unsettled: dict[str, asyncio.Future[bool]] = {}
        self._lock = threading.Lock()
        self._is_paused = False
        self._consumer = make()
        self._consumer.subscribe(topic, handler=self._handle)

    def start(self) -> None:
        """Join the group."""
        self._thread.call(self._consumer.start())

    async def _handle(self, message: ReceivedMessage) -> None:
        """Wait until kombu has settled a message.

        One that is none of kombu's would end the worker that it is given to, and the next one
        that it comes to again: it goes to the dead letters.
        """
        tag = str(uuid4())
        try:
            payload = payload_of(message, tag)
        except (GantryError, ValueError, TypeError, KeyError) as error:
            logger.warning("%r is not kombu's, it goes to the dead letters: %r", message, error)
            raise Later(GIVE_UP) from error
        settled: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._is_paused:
                raise Later(self._again_level)
            self._unsettled[tag] = settled
            self._waiting.append(Arrived(tag, payload))
        self._arrived()
        try:
            is_done = await settled
        finally:
            with self._lock:
                self._unsettled.pop(tag, None)
        if not is_done:
            raise Later(self._again_level)

    def take(self) -> Arrived | None:
        """Return a message for kombu, if there is one."""
        with self._lock:
            return self._waiting.popleft() if self._waiting else None

    def settle(self, tag: str, *, done: bool) -> bool:
        """Acknowledge a message, or have it delivered again; False if it is not of this queue."""
        with self._lock:
            settled = self._unsettled.pop(tag, None)
        if settled is None:
            return False
        self._thread.do(lambda: None if settled.done() else settled.set_result(done))
        return True

    def pause(self, *, drop: bool = False) -> int:
        """Take no more; what kombu has may still be settled.

        What it was not given goes back, or is dropped; return how much that was.
        """
        with self._lock:
            self._is_paused = True
            left = [one.tag for one in self._waiting]
            self._waiting.clear()
        self._thread.do(lambda: self._consumer.pause(self._topic))
        return sum(self.settle(tag, done=drop) for tag in left)

    def resume(self) -> None:
        """Go on after `pause`."""
        with self._lock:
            self._is_paused = False
        self._thread.do(lambda: self._consumer.resume(self._topic))

    def close(self, *, drop: bool = False) -> int:
        """Leave the group; whatever kombu has not settled goes back.

        What kombu was not given does too, or is dropped; return how much that was.
        """
        count = self.pause(drop=drop)
        with self._lock:
            left = list(self._unsettled)
        for tag in left:
            self.settle(tag, done=False)
        self._thread.call(self._consumer.close())
        return count
