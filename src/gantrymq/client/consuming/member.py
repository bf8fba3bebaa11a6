"""A member of a consumer group: which queues it has, and what is done with each of them.

    rebalancing ──▶ take up, give back ──▶ a reader for each queue ──▶ delivery ──▶ handlers
                          │                 pulling, or popping        concurrent or orderly
                          └─ offsets, locks

A queue is taken up when its lock (orderly) and its offset are known, and given back in the other
order: no more pulls, handlers done or no longer counted, offset committed, lock given back. Owned
by the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, Protocol

from gantrymq.client.consuming.process_queue import ProcessQueue
from gantrymq.client.consuming.pulling import PullLoop
from gantrymq.client.errors import GantryError
from gantrymq.model.names import is_retry_topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gantrymq.client.consuming.calls import ConsumerCalls
    from gantrymq.client.consuming.inbox import Inbox
    from gantrymq.client.consuming.locks import QueueLocks
    from gantrymq.client.consuming.offsets import OffsetStore
    from gantrymq.client.consuming.popping import Popping
    from gantrymq.client.consuming.process_queue import Held, HoldLimits
    from gantrymq.client.consuming.start_position import StartPosition
    from gantrymq.client.consuming.statistics import Statistics
    from gantrymq.client.consuming.subscribed import Subscribed, Subscriptions
    from gantrymq.model.queue import MessageQueue

logger = logging.getLogger(__name__)

TAKEN_UP_AT_ONCE: Final = 16
"""Queues whose offsets are asked for at the same time."""
LAST_COMMIT_TRIES: Final = 3
"""Requests for one offset before a locked queue is given back without it."""
LAST_COMMIT_PAUSE_S: Final = 0.2


class Delivery(Protocol):
    """How messages come to handlers: `concurrent.Concurrent` or `orderly.Orderly`."""

    inbox: Inbox

    def opened(self, queue: ProcessQueue) -> None:
        """Learn of a queue before anything of it is delivered."""
        ...

    def deliver(self, queue: ProcessQueue, arrived: Sequence[Held]) -> None:
        """Take messages."""
        ...

    async def release(self, queue: ProcessQueue) -> None:
        """Deliver nothing more of a queue; return when its offset may be committed."""
        ...

    async def close(self, timeout_s: float) -> None:
        """Deliver nothing more; wait for handlers, but not for ever."""
        ...


class Reader:
    """One queue that is read."""

    __slots__ = ("queue", "task")

    def __init__(self, queue: ProcessQueue) -> None:
        self.queue = queue
        self.task: asyncio.Task[None] | None = None

    async def stop(self) -> None:
        """Ask the broker for nothing more."""
        if self.task is not None and not self.task.done():
            self.task.cancel()
            await asyncio.wait([self.task])


class Member:
    """The queues of one consumer."""

    def __init__(
        self,
        calls: ConsumerCalls,
        subscriptions: Subscriptions,
        offsets: OffsetStore,
        start: StartPosition,
        delivery: Delivery,
        limits: HoldLimits,
        statistics: Statistics,
        *,
        pull_batch: int,
        locks: QueueLocks | None,
        popping: Popping | None,
    ) -> None:
        self.calls = calls
        self.subscriptions = subscriptions
        self.offsets = offsets
        self.delivery = delivery
        self.locks = locks
        self.popping = popping
        self.statistics = statistics
        self.readers: dict[MessageQueue, Reader] = {}
        self._start = start
        self._limits = limits
        self._pull_batch = pull_batch
        self._leaving: dict[MessageQueue, asyncio.Task[None]] = {}
        self._leaving_queues: dict[MessageQueue, ProcessQueue] = {}
        self._taking: set[MessageQueue] = set()
        """Asked for, and not read yet; after a cancelled start they may be locked."""
        self._moving: dict[MessageQueue, int] = {}
        """Where a queue is to be read from that is on its way there."""
        self._is_closed = False

    @property
    def queues(self) -> list[ProcessQueue]:
        """Return the queues whose offsets and locks are ours, those on their way out included."""
        return [
            *(reader.queue for reader in self.readers.values()), *self._leaving_queues.values(),
        ]  # fmt: skip

    def owned(self, topic: str) -> list[MessageQueue]:
        """Return the queues of a topic that are read."""
        return [queue for queue in self.readers if queue.topic == topic]

    # -- taking up ------------------------------------------------------------------------------

    async def take_up(self, subscribed: Subscribed, queues: Iterable[MessageQueue]) -> bool:
        """Begin to read queues; False if some could not be, to be tried again soon."""
        if self._is_closed:
            return True  # a look at the balance was under way: what it locked would stay locked
        asked = tuple(queues)
        wanted = [queue for queue in asked if queue not in self._leaving]
        complete = len(wanted) == len(asked)
        locked: dict[MessageQueue, float] = {}
        taking = frozenset(wanted)
        self._taking |= taking
        if self.locks is not None and wanted:
            locked = await self.locks.lock(wanted)
            complete = complete and len(locked) == len(wanted)
            wanted = [queue for queue in wanted if queue in locked]
        room = asyncio.Semaphore(TAKEN_UP_AT_ONCE)

        async def take(queue: MessageQueue) -> bool:
            async with room:
                return await self._take_one(subscribed, queue, locked.get(queue))

        complete = all(await asyncio.gather(*map(take, wanted))) and complete
        if not self._is_closed:  # else `close` gives back what was not read after all
            self._taking -= taking
        return complete

    async def _take_one(
        self, subscribed: Subscribed, queue: MessageQueue, locked_at: float | None
    ) -> bool:
        try:
            position = await self._start.offset(queue, self.offsets, self.calls)
        except GantryError as error:
            logger.warning("where to begin with %s is not known yet: %s", queue, error)
            if locked_at is not None and self.locks is not None:
                await self.locks.unlock([queue])
            return False
        if not self._is_closed and queue not in self.readers:
            self.read(subscribed, queue, position, locked_at)
        return True

    def read(
        self,
        subscribed: Subscribed,
        queue: MessageQueue,
        position: int,
        locked_at: float | None = None,
    ) -> ProcessQueue:
        """Begin to read a queue at a position."""
        mine = ProcessQueue(
            queue, position, self._limits, None if is_retry_topic(queue.topic) else subscribed
        )
        mine.locked_at = locked_at
        reader = Reader(mine)
        self.readers[queue] = reader
        self.delivery.opened(mine)
        loop = PullLoop(
            self.calls,
            mine,
            subscribed,
            self.delivery.deliver,
            self._moved,
            count=self._pull_batch,
        )
        reader.task = self.calls.core.spawn(loop.run(), f"pull {queue}")
        logger.info("%s is read from %d on", queue, position)
        return mine

    def resubscribed(self, topic: str) -> None:
        """Read the queues of a topic anew, by what is subscribed to now."""
        self.give_back(self.owned(topic))
        if self.popping is not None:
            self.popping.drop_topic(topic)

    # -- giving back ----------------------------------------------------------------------------

    def give_back(self, queues: Iterable[MessageQueue]) -> None:
        """Stop reading queues; what that takes goes on in the background."""
        for queue in queues:
            reader = self.readers.pop(queue, None)
            if reader is not None:
                task = self.calls.core.spawn(self._release(reader), f"give back {queue}")
                self._leaving[queue] = task
                self._leaving_queues[queue] = reader.queue

    async def _release(self, reader: Reader) -> None:
        mine = reader.queue
        try:
            await reader.stop()
            await self.delivery.release(mine)
            await self._save_last(mine)
            mine.drop()
            if self.locks is not None:
                await self.locks.unlock([mine.queue])
            logger.info("%s is given back at %d", mine.queue, mine.commit_offset)
        finally:
            mine.drop()
            self._leaving.pop(mine.queue, None)
            self._leaving_queues.pop(mine.queue, None)

    async def _save_last(self, mine: ProcessQueue) -> None:
        """Commit how far a queue was read, for its next owner.

        A broker may be slow for once, so it is tried again while the lock keeps others out. Without
        one the next owner may have begun, and a late commit would take it back.
        """
        for left in range(0 if self.locks is None else LAST_COMMIT_TRIES - 1, -1, -1):
            if await self.offsets.save_one(mine):
                return
            if left:
                await asyncio.sleep(LAST_COMMIT_PAUSE_S)
        logger.warning(
            "%s is given back, and %d could not be committed: the next member begins before it",
            mine.queue, mine.commit_offset,
        )  # fmt: skip

    def _moved(self, mine: ProcessQueue, offset: int) -> None:
        """Go on elsewhere in a queue, since the broker says so."""
        self.calls.core.spawn(self.move(mine.queue, offset, mine), f"move {mine.queue}")

    async def move(
        self, queue: MessageQueue, offset: int, expected: ProcessQueue | None = None
    ) -> None:
        """Read a queue from another offset on, and commit that; what is in hand counts no more.

        Of several that come while a handler is waited for, the last one counts. A queue that is
        given back meanwhile is not read, but its next owner begins there.
        """
        reader = self.readers.get(queue)
        if expected is not None and (reader is None or reader.queue is not expected):
            return
        if reader is None:
            self._leave_at(queue, offset)
            return
        if queue in self._moving:
            if expected is None:
                self._moving[queue] = offset
            return
        self._moving[queue] = offset
        try:
            await reader.stop()
            await self.delivery.release(reader.queue)
            async with reader.queue.committing:  # an older offset must not be stored after the new
                reader.queue.drop()
        finally:
            offset = self._moving.pop(queue)
        subscribed = self.subscriptions.find(queue.topic)
        if self.readers.get(queue) is not reader:
            self._leave_at(queue, offset)
        elif subscribed is not None and not self._is_closed:
            mine = self.read(subscribed, queue, offset, reader.queue.locked_at)
            await self.offsets.save_one(mine)

    def _leave_at(self, queue: MessageQueue, offset: int) -> None:
        """Have the last commit of a queue on its way out say this offset."""
        leaving = self._leaving_queues.get(queue)
        if leaving is not None:
            leaving.go_to(offset)

    # -- keeping --------------------------------------------------------------------------------

    async def keep_offsets(self, period_s: float) -> None:
        """Commit for ever; a task of the client's."""
        while True:
            await asyncio.sleep(period_s)
            try:
                await self.commit()
            except Exception:  # one bad round must not be the last
                logger.exception("offsets could not be committed")
            self.statistics.sample(self.calls.core.clock.monotonic())

    async def commit(self) -> None:
        """Commit what has changed."""
        await self.offsets.save([one for one in self.queues if not one.dropped])

    async def close(self, timeout_s: float) -> None:
        """Let handlers end, commit, give back locks. Bounded by the time and a few requests."""
        self._is_closed = True
        readers = list(self.readers.values())
        for reader in readers:
            if reader.task is not None:
                reader.task.cancel()
        if self.popping is not None:
            self.popping.stop()
        await self.delivery.close(timeout_s)
        if self._leaving:
            await asyncio.wait(self._leaving.values(), timeout=timeout_s)
        if self.popping is not None:
            await self.popping.flush()
        mine = self.queues
        await self.offsets.save(mine)
        for one in mine:
            one.drop()
        if self.locks is not None:
            await self.locks.unlock({*(one.queue for one in mine), *self._taking})
        self.readers.clear()
        await self.offsets.close()
