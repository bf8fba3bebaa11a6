"""What a query has already sent, found in the queues themselves.

A task that begins may be the second attempt of one that died, or of a batch that is replayed after
a restart. Its messages have marks (`places`), so the end of its queue tells how far the first came.
How far back the end goes is known by a *base*: an offset that no message of the batch lies before.
The driver moves it when it commits a batch, to where that batch begins, since Spark may die before
it has noted the commit and replay the batch. The base is the committed offset of a consumer group
of the query's own, which every broker keeps; one that is too old only costs a longer look.

The first task that finds none sets it to the queue's end, which it has asked for before it asked
for the base: whoever sends has set a base first, so no task can find a base behind what it sent. A
batch job needs none: it looks back to when it was planned.
"""

from __future__ import annotations

import zlib
from functools import partial
from typing import TYPE_CHECKING, Final

from gantrymq.client.consuming.calls import ConsumerCalls
from gantrymq.client.errors import NoRoute, NoRouteCause
from gantrymq.errors import InvalidValue
from gantrymq.kernel import kernel
from gantrymq.spark.places import MARK
from gantrymq.spark.pulls import Pulls
from gantrymq.wire.properties import decode_properties
from gantrymq.wire.record import decode_records
from gantrymq.wire.response_errors import ResponseError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.model.queue import MessageQueue
    from gantrymq.spark.link import Link

CLOCKS_DIFFER_MS: Final = 60_000
_PULL_COUNT: Final = 1024


class Tails:
    """The ends of queues, for one query. Its coroutines run on the link's loop."""

    def __init__(self, link: Link, group: str) -> None:
        self._link = link
        self._calls = ConsumerCalls(link.core, link.full_name(group))

    async def base(self, queue: MessageQueue) -> int:
        """Return the offset that no message of the batch lies before; set it, if there is none.

        Raises:
            InvalidValue: the topic does not exist.
        """
        calls, topic = self._calls, queue.topic
        try:
            end = await self._link.patiently(topic, partial(calls.max_offset, queue))
        except NoRoute as error:
            if error.cause is not NoRouteCause.UNKNOWN_TOPIC:
                raise
            raise InvalidValue(
                f"topic {topic} does not exist: create it first, since this level looks into its "
                "queues before it sends"
            ) from error
        known = await self._link.patiently(topic, partial(calls.committed, queue))
        if known is not None:
            return min(known, end)
        await self.set_base(queue, end)
        return end

    async def set_base(self, queue: MessageQueue, offset: int) -> None:
        """Note that nothing before an offset needs to be looked at again."""
        await self._link.patiently(queue.topic, partial(self._commit, queue, offset))

    async def _commit(self, queue: MessageQueue, offset: int) -> None:
        try:
            await self._calls.commit(queue, offset)
        except ResponseError:
            # A group that nobody has pulled for may not exist yet; a pull makes it.
            await Pulls(self._link, queue, 1, group=self._calls.group).probe(offset)
            await self._calls.commit(queue, offset)

    async def since(self, queue: MessageQueue, time_ms: int) -> int:
        """Return an offset before everything that was stored since a time."""
        calls, topic = self._calls, queue.topic
        least = await self._link.patiently(topic, partial(calls.min_offset, queue))
        most = await self._link.patiently(topic, partial(calls.max_offset, queue))
        while least < most:
            middle = (least + most) // 2
            body = await Pulls(self._link, queue, 1).first(middle)
            stored_ms = decode_records(body)[0].raw.store_timestamp if body else time_ms
            if stored_ms >= time_ms - CLOCKS_DIFFER_MS:
                most = middle
            else:
                least = middle + 1
        return least

    async def marks(
        self, queue: MessageQueue, begin: int, take: Callable[[str, int, int], object]
    ) -> int:
        """Tell mark, offset and body CRC of all messages from an offset on; return the end."""
        pulls = Pulls(self._link, queue, _PULL_COUNT)
        end = await self._link.patiently(queue.topic, partial(self._calls.max_offset, queue))
        while begin < end:
            chunk = await pulls.chunk(begin, end)
            for body in chunk.bodies:
                for found in _marks(body):
                    take(*found)
            if chunk.ended or chunk.next <= begin:
                break
            begin = chunk.next
        return end


def _marks(body: bytes) -> list[tuple[str, int, int]]:
    """Return the marks of the messages in an answer, their offsets, and their CRCs."""
    position = 0
    found: list[tuple[str, int, int]] = []
    while position < len(body):
        record, position = kernel.decode_record(body, position, len(body), False)
        if MARK.encode() in record.properties:
            mark = decode_properties(record.properties.decode(errors="replace")).get(MARK)
            if mark is not None:
                found.append((mark, record.queue_offset, zlib.crc32(record.body)))
    return found
