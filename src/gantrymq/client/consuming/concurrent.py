"""Messages handled in any order, several at once.

A fixed number of worker tasks takes messages from one inbox and awaits the handler. There is no
task for a message: a handler that returns without waiting costs a call. A worker that was not
interrupted for a while steps aside, so that pulls and heartbeats go on beside quick handlers.

A message that a handler has had for longer than `consume_timeout_s` is given back to the broker;
the handler is left alone, and what it says in the end no longer counts.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from gantrymq.client.consuming.handling import (
    ConsumeStatus,
    cancelled_level,
    failed_level,
)
from gantrymq.client.consuming.inbox import Inbox

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gantrymq.client.consuming.process_queue import Held, ProcessQueue
    from gantrymq.client.consuming.retrying import Retrying
    from gantrymq.client.consuming.subscribed import Subscribed
    from gantrymq.client.core import ClientCore

logger = logging.getLogger(__name__)

TURN_S: Final = 0.002
"""How long a worker may go on before others of the loop have their turn."""
EXPIRED_LEVEL: Final = 3
"""Delay level of a message whose handler takes too long."""


class _Slot:
    """What one worker is at."""

    __slots__ = ("batch", "since")

    def __init__(self) -> None:
        self.batch: Sequence[Held] | None = None
        self.since = 0.0


class Concurrent:
    """The workers of a consumer."""

    def __init__(
        self,
        core: ClientCore,
        find: Callable[[Held], Subscribed],
        *,
        workers: int,
        batch: int,
        consume_timeout_s: float,
    ) -> None:
        self.inbox = Inbox()
        self.retrying: Retrying
        """Set once by whoever makes both."""
        self._core = core
        self._find = find
        self._workers = workers
        self._batch = batch
        self._consume_timeout_s = consume_timeout_s
        self._slots: list[_Slot] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._is_closing = False

    def start(self) -> None:
        """Begin to take messages; again: nothing."""
        if self._tasks:
            return
        for number in range(self._workers):
            slot = _Slot()
            self._slots.append(slot)
            self._tasks.append(self._core.spawn(self._work(slot), f"worker {number}"))
        self._core.spawn(self._watch_slow(), "slow handlers")

    def deliver(self, _queue: ProcessQueue, arrived: Sequence[Held]) -> None:
        """Give messages to the workers."""
        self.inbox.put(arrived)

    def deliver_again(self, held: Held) -> None:
        """Give one message to the workers once more."""
        self.inbox.put((held,))

    def opened(self, queue: ProcessQueue) -> None:
        """Learn of a queue: nothing is kept by queue."""

    def settle_taken(self, held: Held) -> None:
        """Be done with a message that was taken from the inbox by `async for`."""
        held.queue.settle(held)

    async def release(self, queue: ProcessQueue) -> None:
        """Deliver nothing more of a queue; what is with handlers goes on and counts no more."""
        queue.drop()

    async def close(self, timeout_s: float) -> None:
        """Deliver nothing more, and wait for the handlers that are at work."""
        self._is_closing = True
        self.inbox.waiting.clear()
        self.inbox.wake_all()
        at_work = [task for task in self._tasks if task is not self._core.closer]
        if at_work:
            _done, late = await asyncio.wait(at_work, timeout=timeout_s)
            if late:
                logger.warning(
                    "%d handlers did not end within %g s: their messages come again",
                    len(late),
                    timeout_s,
                )
            for task in late:
                task.cancel()

    @property
    def busy(self) -> int:
        """Return how many handlers are at work."""
        return sum(slot.batch is not None for slot in self._slots)

    # -- workers --------------------------------------------------------------------------------

    async def _work(self, slot: _Slot) -> None:
        """Take messages one after the other, or a few of one queue at once."""
        inbox, waiting, now = self.inbox, self.inbox.waiting, asyncio.get_running_loop().time
        takes_list = self._batch > 1
        began = turn = now()
        while not self._is_closing:
            if not waiting:
                await inbox.rest()
                began = turn = now()
                continue
            held = waiting.popleft()
            queue = held.queue
            if queue.dropped or (held.expires and self._is_expired(held, began)):
                continue
            if waiting and inbox.has_idle:
                inbox.wake()
            subscribed = queue.subscribed or self._find(held)
            batch = self._more(held) if takes_list else (held,)
            slot.batch, slot.since = batch, began
            level: int | None = None
            try:
                result = await subscribed.run(
                    [one.message for one in batch] if takes_list else held.message
                )
                if result is ConsumeStatus.LATER:
                    level = 0
            except (Exception, GeneratorExit) as error:  # noqa: BLE001 - whatever it raises
                level = failed_level(error, held)
            except asyncio.CancelledError:
                level = cancelled_level(held)
            ended = now()
            counters = subscribed.counters
            counters.spent_s += ended - began
            if level is None and slot.batch is batch:
                slot.batch = None
                counters.taken += len(batch)
                for one in batch:
                    one.queue.settle(one)
            else:
                counters.failed += len(batch)
                await self._not_taken(slot, batch, level)
            began = ended
            if ended - turn > TURN_S:
                await asyncio.sleep(0)
                began = turn = now()

    async def _not_taken(self, slot: _Slot, batch: Sequence[Held], level: int | None) -> None:
        """Give messages back, unless that was done already because it took too long."""
        if level is not None and slot.batch is batch:
            slot.batch = None
            await self._give_back(batch, level)
        slot.batch = None

    async def _give_back(self, batch: Sequence[Held], level: int) -> None:
        for held in batch:
            await (held.queue.retrying or self.retrying).failed(held, level)

    @staticmethod
    def _is_expired(held: Held, now: float) -> bool:
        """Tell whether a popped message has waited here so long that others have it by now."""
        if now < held.expires:
            return False
        held.queue.forget(held)
        return True

    def _more(self, first: Held) -> tuple[Held, ...]:
        """Return a message and those behind it of the same topic and queue, up to a batch."""
        batch, waiting = [first], self.inbox.waiting
        while len(batch) < self._batch and waiting and waiting[0].queue is first.queue:
            if waiting[0].message.topic != first.message.topic:
                break  # a retry topic has messages of several
            batch.append(waiting.popleft())
        return tuple(batch)

    async def _watch_slow(self) -> None:
        """Give back what handlers have had for too long."""
        limit_s = self._consume_timeout_s
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(max(limit_s / 4, 0.05), 60.0))
            for slot in self._slots:
                batch = slot.batch
                if batch is not None and loop.time() - slot.since > limit_s:
                    slot.batch = None
                    logger.warning(
                        "%r was with its handler for more than %g s: it is given back",
                        batch[0].message,
                        limit_s,
                    )
                    await self._give_back(batch, EXPIRED_LEVEL)
