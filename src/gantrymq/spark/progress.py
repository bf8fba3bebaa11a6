"""Progress of a query as that of a consumer group, so that every tool shows its lag.

What is committed is the next offset to read, of every queue, idle ones as well.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.spark.link import link_to
from gantrymq.spark.pulls import Pulls
from gantrymq.wire.response_errors import ResponseError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.spark.options import ConnectionOptions
    from gantrymq.spark.slices import Queue

COMMITS_MAX: Final = 64
"""Under way at the same time."""


class GroupProgress:
    """Commits offsets for a group. Owned by one thread."""

    def __init__(self, options: ConnectionOptions) -> None:
        self._link = link_to(options)
        self._known: dict[Queue, int] = {}

    def commit(self, offsets: Mapping[Queue, int]) -> None:
        """Commit those offsets that have changed since the last time.

        Raises:
            GantryError: a broker did not take one; what others took is remembered.
        """
        changed = {
            queue: offset for queue, offset in offsets.items() if self._known.get(queue) != offset
        }
        if changed:
            self._link.run(self._commit(changed))

    async def _commit(self, offsets: Mapping[Queue, int]) -> None:
        gate = asyncio.Semaphore(COMMITS_MAX)

        async def one(queue: Queue, offset: int) -> None:
            asked = MessageQueue(
                self._link.full_name(queue.topic), queue.broker, QueueId(queue.queue_id)
            )
            async with gate:
                await self._link.patiently(asked.topic, partial(self._one, asked, offset))
            self._known[queue] = offset

        await asyncio.gather(*(one(*item) for item in offsets.items()))

    async def _one(self, queue: MessageQueue, offset: int) -> None:
        try:
            await self._link.calls.commit(queue, offset)
        except ResponseError:
            # A group that nobody has pulled for may not exist yet; a pull makes it.
            await Pulls(self._link, queue, 1).probe(offset)
            await self._link.calls.commit(queue, offset)
