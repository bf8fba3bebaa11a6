"""Messages of one queue handled one after the other, in the order of the queue.

Every queue has a lane with a task of its own; at most `workers` lanes call handlers at once. A lane
works only while the broker's lock is ours. A message that fails is tried again in its place, with a
pause in between, and nothing behind it is handled before: order is worth more than progress here.
After `reconsume_max` attempts, where that is given, it goes to the dead letters.

A queue that is given up keeps its lock until the handler has returned and its offset is committed;
only then may another member begin.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from enum import Enum, auto
from itertools import islice
from typing import TYPE_CHECKING, Final

from gantrymq.client.consuming.calls import DLQ_LEVEL
from gantrymq.client.consuming.handling import (
    ConsumeStatus,
    NotHere,
    cancelled_level,
    failed_level,
)
from gantrymq.client.consuming.inbox import Inbox
from gantrymq.client.received import ReceivedMessage
from gantrymq.wire.record import MessageRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gantrymq.client.consuming.locks import QueueLocks
    from gantrymq.client.consuming.process_queue import Held, ProcessQueue
    from gantrymq.client.consuming.retrying import Retrying
    from gantrymq.client.consuming.subscribed import Subscribed
    from gantrymq.client.core import ClientCore

logger = logging.getLogger(__name__)

SUSPEND_S: Final = 1.0
"""Pause before a failed message is tried again."""
TURN_S: Final = 0.002


class _Outcome(Enum):
    """What became of a message with the application."""

    TAKEN = auto()
    AGAIN = auto()
    GIVEN_UP = auto()
    NOT_HERE = auto()


class _Lane:
    """One queue in order."""

    __slots__ = ("is_stopping", "queue", "task", "waiting", "woken")

    def __init__(self, queue: ProcessQueue) -> None:
        self.queue = queue
        self.waiting: deque[Held] = deque()
        self.woken = asyncio.Event()
        self.is_stopping = False
        self.task: asyncio.Task[None] | None = None


class Orderly:
    """The lanes of a consumer."""

    def __init__(
        self,
        core: ClientCore,
        find: Callable[[Held], Subscribed],
        *,
        workers: int,
        batch: int,
        reconsume_max: int,
        suspend_s: float = SUSPEND_S,
    ) -> None:
        self.inbox = Inbox()
        """For `async for`: at most one message, or batch, of each lane."""
        self.retrying: Retrying
        self.locks: QueueLocks | None = None
        """None in broadcasting, where nobody else reads the queues."""
        self._core = core
        self._find = find
        self._gate = asyncio.Semaphore(workers)
        self._batch = batch
        self._reconsume_max = reconsume_max
        self._suspend_s = suspend_s
        self._lanes: dict[ProcessQueue, _Lane] = {}
        self._handed: dict[Held, asyncio.Future[None]] = {}
        self._busy = 0

    def start(self) -> None:
        """Begin: lanes come with their queues."""

    def opened(self, queue: ProcessQueue) -> None:
        """Make the lane of a queue."""
        lane = _Lane(queue)
        self._lanes[queue] = lane
        lane.task = self._core.spawn(self._run(lane), f"lane {queue.queue}")

    def deliver(self, queue: ProcessQueue, arrived: Sequence[Held]) -> None:
        """Give messages to their lane."""
        lane = self._lanes.get(queue)
        if lane is not None and not lane.is_stopping:
            lane.waiting.extend(arrived)
            lane.woken.set()

    def deliver_again(self, held: Held) -> None:
        """Give one message to its lane once more: lanes keep what failed, so there is none."""

    def unlocked(self, queue: ProcessQueue) -> None:
        """Learn that the lock of a queue is ours (again)."""
        lane = self._lanes.get(queue)
        if lane is not None:
            lane.woken.set()

    def settle_taken(self, held: Held) -> None:
        """Be done with a message that was taken from the inbox by `async for`."""
        future = self._handed.pop(held, None)
        if future is not None and not future.done():
            future.set_result(None)

    @property
    def busy(self) -> int:
        """Return how many handlers are at work."""
        return self._busy

    async def release(self, queue: ProcessQueue) -> None:
        """Return when the handler of a queue has ended; what it took counts.

        The lane is known until then: two who give up the same queue both wait for its handler.
        """
        lane = self._lanes.get(queue)
        if lane is None or lane.task is None:
            return
        lane.is_stopping = True
        lane.woken.set()
        self._give_up_handed(queue)
        await asyncio.wait([lane.task])
        self._lanes.pop(queue, None)

    async def close(self, timeout_s: float) -> None:
        """Deliver nothing more, and wait for the handlers that are at work."""
        closer = self._core.closer
        tasks = [
            task for lane in self._lanes.values() if (task := lane.task) and task is not closer
        ]
        for lane in self._lanes.values():
            lane.is_stopping = True
            lane.woken.set()
            self._give_up_handed(lane.queue)
        self._lanes.clear()
        if tasks:
            _done, late = await asyncio.wait(tasks, timeout=timeout_s)
            for task in late:
                logger.warning("%s did not end within %g s", task.get_name(), timeout_s)
                task.cancel()

    def _give_up_handed(self, queue: ProcessQueue) -> None:
        """Take back what waits in the inbox and was not taken yet."""
        waiting = [held for held in self.inbox.waiting if held.queue is queue]
        for held in waiting:
            self.inbox.waiting.remove(held)
            future = self._handed.pop(held, None)
            if future is not None:
                future.cancel()

    # -- lanes ----------------------------------------------------------------------------------

    async def _run(self, lane: _Lane) -> None:
        now = asyncio.get_running_loop().time
        turn = now()
        while not (lane.is_stopping or lane.queue.dropped):
            if not lane.waiting or not self._may_work(lane):
                lane.woken.clear()
                await lane.woken.wait()
                turn = now()
                continue
            async with self._gate:
                if lane.is_stopping or not self._may_work(lane):
                    continue  # it stood in line, and meanwhile the queue is not ours any more
                self._busy += 1
                try:
                    pause_s = await self._handle(lane, self._next(lane))
                finally:
                    self._busy -= 1
            if pause_s:
                await self._pause(lane, pause_s)
            if now() - turn > TURN_S:
                await asyncio.sleep(0)
                turn = now()

    def _may_work(self, lane: _Lane) -> bool:
        return self.locks is None or self.locks.holds(lane.queue)

    def _next(self, lane: _Lane) -> list[Held]:
        """Return the first messages of a lane, up to a batch, all of one topic."""
        batch = [lane.waiting[0]]
        if self._batch > 1 and not self._find(batch[0]).iterates:
            topic = batch[0].message.topic
            for held in islice(lane.waiting, 1, self._batch):
                if held.message.topic != topic:
                    break  # a retry topic has messages of several
                batch.append(held)
        return batch

    async def _pause(self, lane: _Lane, pause_s: float) -> None:
        """Wait before the same message is tried again, unless the queue is given up."""
        end = asyncio.get_running_loop().time() + pause_s
        while not lane.is_stopping:
            left = end - asyncio.get_running_loop().time()
            if left <= 0:
                return
            lane.woken.clear()
            try:
                async with asyncio.timeout(left):
                    await lane.woken.wait()
            except TimeoutError:
                return

    async def _handle(self, lane: _Lane, batch: Sequence[Held]) -> float:
        """Have the application take messages; return how long to pause before the next attempt."""
        now = asyncio.get_running_loop().time
        began = now()
        subscribed = lane.queue.subscribed or self._find(batch[0])
        outcome = await self._call(subscribed, batch)
        counters = subscribed.counters
        counters.spent_s += now() - began
        if outcome is _Outcome.TAKEN:
            counters.taken += len(batch)
            self._settle(lane, batch)
            return 0.0
        counters.failed += len(batch)
        return await self._failed(lane, batch, outcome)

    async def _call(self, subscribed: Subscribed, batch: Sequence[Held]) -> _Outcome:
        """Return what the application did with the messages."""
        message = batch[0].message
        argument: object = [held.message for held in batch] if self._batch > 1 else message
        try:
            if subscribed.iterates:
                await self._hand_over(batch[0])
                return _Outcome.TAKEN
            said = await subscribed.run(argument)
        except NotHere:
            return _Outcome.NOT_HERE
        except (Exception, GeneratorExit) as error:  # noqa: BLE001 - whatever it raises
            given_up = failed_level(error, batch[0]) < 0
            return _Outcome.GIVEN_UP if given_up else _Outcome.AGAIN
        except asyncio.CancelledError:
            cancelled_level(batch[0])
            return _Outcome.AGAIN
        return _Outcome.AGAIN if said is ConsumeStatus.LATER else _Outcome.TAKEN

    async def _hand_over(self, held: Held) -> None:
        """Give a message to an `async for`, and return when that goes on to the next."""
        future = asyncio.get_running_loop().create_future()
        self._handed[held] = future
        self.inbox.put((held,))
        try:
            await future
        finally:
            self._handed.pop(held, None)

    def _settle(self, lane: _Lane, batch: Sequence[Held]) -> None:
        for held in batch:
            lane.waiting.popleft()
            lane.queue.settle(held)

    async def _failed(self, lane: _Lane, batch: Sequence[Held], outcome: _Outcome) -> float:
        """Count the attempt; a message without further attempts goes to the dead letters.

        One without a handler here goes back to the broker: what is behind it is of other topics.
        """
        limit = self._reconsume_max
        level = 0 if outcome is _Outcome.NOT_HERE else None
        if outcome is _Outcome.GIVEN_UP or any(
            0 <= limit <= held.message.reconsume_times for held in batch
        ):
            level = DLQ_LEVEL
        if level is not None:
            for held in batch:
                if not await self.retrying.send_back(held, level):
                    return self._suspend_s
                lane.waiting.popleft()
                lane.queue.settle(held)
            return 0.0
        for held in batch:
            held.message = attempted_again(held.message)
        return self._suspend_s


def attempted_again(message: ReceivedMessage) -> ReceivedMessage:
    """Return the same message as its next delivery, which counts one more."""
    raw = message.record.raw
    record = MessageRecord(raw._replace(reconsume_times=raw.reconsume_times + 1))
    return ReceivedMessage(record, message.broker_name, message.topic)
