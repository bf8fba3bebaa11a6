"""What a consumer has in hand of one queue, and how far it is done.

Messages are pulled in order and finish in any order. What may be committed is the lowest offset
that is not finished; with nothing in hand it is where the next pull begins, so that a stretch that
a filter left out counts as read. Three bounds say when to pull no more for now: messages, bytes,
and the span from the oldest to the newest, which one stuck message would let grow for ever.

Owned by the event loop; nothing here waits or sends.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from gantrymq.client.arguments import at_least

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gantrymq.client.consuming.subscribed import Subscribed
    from gantrymq.client.received import ReceivedMessage
    from gantrymq.model.queue import MessageQueue

MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class HoldLimits:
    """How much of one queue may be in hand before the client stops pulling from it."""

    messages: int = 1000
    bytes: int = 100 * MIB
    span: int | None = 2000
    """Newest offset minus oldest; None where order keeps it small anyway."""

    def __post_init__(self) -> None:
        """Refuse limits under which nothing could be read."""
        for name in ("messages", "bytes", "span"):
            value = getattr(self, name)
            if value is not None:
                at_least(f"hold_{name}", value, 1)


class Failures(Protocol):
    """Takes care of messages that handlers did not take."""

    async def failed(self, held: Held, delay_level: int) -> None:
        """Have a message come again later."""
        ...


class Held:
    """One message in hand."""

    __slots__ = ("message", "offset", "queue", "size")

    expires = 0.0
    """Until when it is ours, on the loop's clock; 0 for ever. Popped messages have their own."""

    def __init__(
        self, queue: ProcessQueue, message: ReceivedMessage, offset: int, size: int
    ) -> None:
        self.queue = queue
        self.message = message
        self.offset = offset
        self.size = size


class ProcessQueue:
    """One queue that this consumer reads."""

    __slots__ = (
        "_committed", "_done", "_offsets", "_room", "bytes_held", "committing", "dropped",
        "last_consumed_ms", "last_pulled_ms", "limits", "lock_count", "locked_at", "position",
        "queue", "retrying", "subscribed",
    )  # fmt: skip

    def __init__(
        self,
        queue: MessageQueue,
        position: int,
        limits: HoldLimits,
        subscribed: Subscribed | None = None,
    ) -> None:
        self.queue = queue
        self.subscribed = subscribed
        """Whose messages these are; None on a retry topic, where each message says it."""
        self.retrying: Failures | None = None
        """Where failed messages go, if not where the consumer's others do."""
        self.position = position
        """Where the next pull begins."""
        self.limits = limits
        self.dropped = False
        """Another member has it, or will: nothing of it is delivered or committed any more."""
        self.bytes_held = 0
        self.last_pulled_ms = 0
        self.last_consumed_ms = 0
        self.locked_at: float | None = None
        """Orderly: when the broker last said that the queue is ours, on the monotonic clock."""
        self.lock_count = 0
        self._offsets: deque[int] = deque()
        self._done: set[int] = set()
        self._room: asyncio.Future[None] | None = None
        self._committed = -1
        self.committing = asyncio.Lock()
        """One commit at a time: a broker with several threads may store the older one last."""

    def __len__(self) -> int:
        """Return how many messages are in hand, with those that wait for an older one."""
        return len(self._offsets)

    # -- messages -------------------------------------------------------------------------------

    def hold(self, arrived: Iterable[Held]) -> None:
        """Take messages in hand, in the order of their offsets, behind those that are there."""
        offsets = self._offsets
        for held in arrived:
            offsets.append(held.offset)
            self.bytes_held += held.size

    def settle(self, held: Held) -> None:
        """Be done with a message; a second time changes nothing."""
        offsets, offset = self._offsets, held.offset
        if offsets and offsets[0] == offset:
            offsets.popleft()
            done = self._done
            while done and offsets[0] in done:
                done.remove(offsets.popleft())
        elif not offsets or offset < offsets[0] or offset in self._done:
            return
        else:
            self._done.add(offset)
        self.bytes_held -= held.size
        if self._room is not None and self.has_room:
            self.wake()

    def forget(self, held: Held) -> None:
        """Be done with a message that somebody else has now."""
        self.settle(held)

    def go_to(self, offset: int) -> None:
        """Have nothing in hand, and say that this is how far it was read."""
        self._offsets.clear()
        self._done.clear()
        self.bytes_held = 0
        self.position = offset

    @property
    def commit_offset(self) -> int:
        """Return the offset behind everything that is done."""
        return self._offsets[0] if self._offsets else self.position

    @property
    def oldest(self) -> int | None:
        """Return the lowest offset in hand."""
        return self._offsets[0] if self._offsets else None

    @property
    def newest(self) -> int | None:
        """Return the highest offset in hand."""
        return self._offsets[-1] if self._offsets else None

    # -- commits --------------------------------------------------------------------------------

    @property
    def uncommitted(self) -> int | None:
        """Return the offset to commit, or None if it was committed already."""
        offset = self.commit_offset
        return offset if offset != self._committed else None

    def note_committed(self, offset: int) -> None:
        """Remember what was committed."""
        self._committed = offset

    # -- flow control ---------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        """Tell whether more may be pulled."""
        offsets, limits = self._offsets, self.limits
        count = len(offsets)
        if not count:
            return True
        if count - len(self._done) >= limits.messages or self.bytes_held >= limits.bytes:
            return False
        return limits.span is None or offsets[-1] - offsets[0] <= limits.span

    async def room(self) -> None:
        """Return when more may be pulled, or when the queue is dropped. For one task only."""
        while not (self.dropped or self.has_room):
            self._room = asyncio.get_running_loop().create_future()
            try:
                await self._room
            finally:
                self._room = None

    def wake(self) -> None:
        """Let `room` look again."""
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def drop(self) -> None:
        """Deliver and commit nothing more."""
        self.dropped = True
        self.wake()
