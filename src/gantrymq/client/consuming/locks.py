"""The broker's locks on queues that are read in order (41, 42).

A queue is read in order only while the broker says that it is this member's alone. The broker
forgets a lock after 60 s; it is renewed every 20 s, and one that could not be renewed counts no
more after 30 s, so that this member has stopped well before another one may begin.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from gantrymq.client.errors import GantryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gantrymq.client.consuming.calls import ConsumerCalls
    from gantrymq.client.consuming.process_queue import ProcessQueue
    from gantrymq.clock import Clock
    from gantrymq.model.queue import MessageQueue

logger = logging.getLogger(__name__)

RENEW_S: Final = 20.0
VALID_S: Final = 30.0


class QueueLocks:
    """The locks of one member."""

    def __init__(
        self, calls: ConsumerCalls, clock: Clock, on_locked: Callable[[ProcessQueue], None]
    ) -> None:
        self._calls = calls
        self._clock = clock
        self._on_locked = on_locked

    def holds(self, queue: ProcessQueue) -> bool:
        """Tell whether a queue is surely ours."""
        at = queue.locked_at
        return at is not None and self._clock.monotonic() - at < VALID_S

    async def lock(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, float]:
        """Ask for queues; return those that are ours, with when they were asked for."""
        ours: dict[MessageQueue, float] = {}
        for some in _by_broker(queues):
            # A lock counts from when it was asked for: the broker's own count begins later.
            asked = self._clock.monotonic()
            try:
                locked = await self._calls.lock(some[0], some)
            except GantryError as error:
                logger.warning("queues of %s cannot be locked: %s", some[0].broker_name, error)
            else:
                ours.update((queue, asked) for queue in some if queue in locked)
        return ours

    async def renew(self, queues: Iterable[ProcessQueue]) -> None:
        """Ask for the queues that are read once more; one that another has is not ours any more."""
        by_queue = {one.queue: one for one in queues}
        for some in _by_broker(by_queue):
            asked = self._clock.monotonic()
            try:
                locked = await self._calls.lock(some[0], some)
            except GantryError as error:
                logger.warning("locks of %s are not renewed: %s", some[0].broker_name, error)
                continue
            for queue in some:
                one = by_queue[queue]
                if queue in locked:
                    one.locked_at = asked
                    one.lock_count += 1
                    self._on_locked(one)
                elif one.locked_at is not None:
                    logger.warning("%s was locked by another member", queue)
                    one.locked_at = None

    async def unlock(self, queues: Iterable[MessageQueue]) -> None:
        """Give queues back, so that another member need not wait a minute."""
        for some in _by_broker(queues):
            try:
                await self._calls.unlock(some[0], some)
            except GantryError as error:
                logger.info("locks of %s are not given back: %s", some[0].broker_name, error)

    async def run(self, queues: Callable[[], Iterable[ProcessQueue]]) -> None:
        """Renew for ever; a task of the client's."""
        while True:
            await asyncio.sleep(RENEW_S)
            try:
                await self.renew(queues())
            except Exception:  # one bad round must not be the last
                logger.exception("locks could not be renewed")


def _by_broker(queues: Iterable[MessageQueue]) -> list[list[MessageQueue]]:
    groups: dict[str, list[MessageQueue]] = {}
    for queue in sorted(queues):
        groups.setdefault(queue.broker_name, []).append(queue)
    return list(groups.values())
