"""Messages on their way to whoever takes them: workers, or an `async for`.

Those who find nothing wait in line. One of them is woken for any number of arrivals, and wakes the
next if it leaves something: a single worker that is fast enough does it all without the others
being woken for nothing, and slow handlers bring them all in.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gantrymq.client.consuming.process_queue import Held


class Inbox:
    """Held messages in the order of their arrival. Its bound is that of the queues they are of."""

    __slots__ = ("_idle", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Held] = deque()
        self._idle: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self.waiting)

    def put(self, arrived: Iterable[Held]) -> None:
        """Add messages at the end."""
        self.waiting.extend(arrived)
        if self._idle and self.waiting:
            self.wake()

    def put_back(self, held: Held) -> None:
        """Add a message at the front."""
        self.waiting.appendleft(held)
        self.wake()

    @property
    def has_idle(self) -> bool:
        """Tell whether somebody waits."""
        return bool(self._idle)

    def wake(self) -> None:
        """Let one who waits look again."""
        while self._idle:
            future = self._idle.popleft()
            if not future.done():
                future.set_result(None)
                return

    def wake_all(self) -> None:
        """Let all who wait look again."""
        while self._idle:
            self.wake()

    async def rest(self) -> None:
        """Return when there may be something."""
        future = asyncio.get_running_loop().create_future()
        self._idle.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.wake()  # what it was woken for is another's now
            raise

    def try_take(self) -> Held | None:
        """Return the next message that is still ours; None if there is none now."""
        waiting = self.waiting
        while waiting:
            held = waiting.popleft()
            if held.expires and asyncio.get_running_loop().time() >= held.expires:
                held.queue.forget(held)  # it was popped, and others have it by now
            elif not held.queue.dropped:
                return held
        return None
