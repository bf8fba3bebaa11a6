"""Acknowledgements of popped messages: gathered while one is on its way, then sent together.

A broker keeps a popped message from others for a while and hands it out again unless it hears that
it is done with. An acknowledgement that is lost therefore costs a duplicate and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from gantrymq.client.errors import ClientClosed, GantryError
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.wire.bodies.assignment import BATCH_ACK, BatchAck, BatchAckRequest
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.pop import AckMessageRequest
from gantrymq.wire.response_errors import NoMessage, RequestCodeNotSupported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.client.consuming.calls import ConsumerCalls
    from gantrymq.client.consuming.pop_handles import PopHandle

logger = logging.getLogger(__name__)

TOGETHER_MAX: Final = 256
TRIES: Final = 3
RETRY_S: Final = 0.5


class PopAcks:
    """The acknowledgements of one topic on one broker."""

    def __init__(self, calls: ConsumerCalls, topic: str, broker_name: str) -> None:
        self._calls = calls
        self._topic = topic
        self._queue = MessageQueue(topic, broker_name, QueueId(0))
        self._waiting: deque[PopHandle] = deque()
        self._task: asyncio.Task[None] | None = None
        self._batches = True

    def add(self, handle: PopHandle) -> None:
        """Acknowledge a message in a moment."""
        self._waiting.append(handle)
        if self._task is None or self._task.done():
            try:
                self._task = self._calls.core.spawn(self._send(), f"acks {self._queue.broker_name}")
            except ClientClosed:
                logger.info("%s: a message is acknowledged too late, and comes again", self._queue)

    async def flush(self, timeout_s: float) -> None:
        """Return when all are sent, or it took too long."""
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task], timeout=timeout_s)

    async def _send(self) -> None:
        waiting = self._waiting
        while waiting:
            some = [waiting.popleft() for _ in range(min(len(waiting), TOGETHER_MAX))]
            for left in range(TRIES, 0, -1):
                try:
                    await self._send_some(some)
                except (GantryError, ValueError) as error:  # the latter: offsets that cannot be
                    if left == 1:
                        logger.warning(
                            "%d messages of %s are not acknowledged and come again: %s",
                            len(some), self._queue, error,
                        )  # fmt: skip
                    else:
                        await asyncio.sleep(RETRY_S)
                else:
                    break

    async def _send_some(self, handles: Sequence[PopHandle]) -> None:
        if len(handles) > 1 and self._batches:
            try:
                await self._send_together(handles)
            except RequestCodeNotSupported:
                self._batches = False
            else:
                return
        await asyncio.gather(*map(self._send_one, handles))

    async def _send_one(self, handle: PopHandle) -> None:
        calls = self._calls
        header = AckMessageRequest(
            consumer_group=calls.group,
            topic=handle.real_topic(self._topic, calls.group),
            queue_id=handle.queue_id,
            extra_info=handle.text,
            offset=handle.offset,
        )
        try:
            await calls.core.remote.call(
                await calls.master(self._queue), RequestCode.ACK_MESSAGE, header
            )
        except NoMessage as error:
            logger.info("%s: nothing to acknowledge any more: %s", self._queue, error)

    async def _send_together(self, handles: Sequence[PopHandle]) -> None:
        calls = self._calls
        bits: dict[PopHandle, int] = {}
        for handle in handles:
            pop = handle._replace(offset=0)
            bits[pop] = bits.get(pop, 0) | 1 << (handle.offset - handle.start_offset)
        acks = tuple(
            BatchAck(
                group=calls.group,
                topic=self._topic,
                retry=pop.mark,
                start_offset=pop.start_offset,
                queue_id=QueueId(pop.queue_id),
                revive_queue_id=QueueId(pop.revive_queue),
                pop_time=pop.pop_time,
                invisible_time=pop.invisible_time,
                bits=chosen.to_bytes((chosen.bit_length() + 7) // 8, "little"),
            )
            for pop, chosen in bits.items()
        )
        body = BATCH_ACK.encode(BatchAckRequest(broker_name=self._queue.broker_name, acks=acks))
        await calls.core.remote.call(
            await calls.master(self._queue), RequestCode.BATCH_ACK_MESSAGE, None, body
        )
