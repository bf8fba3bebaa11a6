"""`async for message in consumer`: messages one by one, each acknowledged by the next step.

Going on to the next message says that the one before it is done with. Leaving the loop says nothing
of the last one: whether its work was finished cannot be seen from here. What happens to it:

- `async with` around the loop ends without an exception: it is acknowledged;
- it ends with an exception, or the consumer is closed by hand: it is not, and comes again, here or
  at another member;
- another loop over the same consumer begins: that one gets it again, first.

One loop at a time: the messages of a second one would be acknowledged behind the first one's back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

from gantrymq.client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.client.consuming.inbox import Inbox
    from gantrymq.client.consuming.process_queue import Held
    from gantrymq.client.received import ReceivedMessage


class Source(Protocol):
    """Where messages come from: a delivery."""

    inbox: Inbox

    def settle_taken(self, held: Held) -> None:
        """Be done with a message that was taken from the inbox."""
        ...


class Iteration:
    """One loop over a consumer's messages."""

    def __init__(self, source: Source, is_closed: Callable[[], bool]) -> None:
        self._source = source
        self._is_closed = is_closed
        self._last: Held | None = None
        self._is_over = False
        self._is_waiting = False

    def __aiter__(self) -> Self:
        """Return itself."""
        return self

    async def __anext__(self) -> ReceivedMessage:
        """Acknowledge the message before, and return the next.

        Raises:
            StopAsyncIteration: the consumer was closed.
            ClientError: another loop has begun, or two tasks share this one.
        """
        if self._is_waiting:
            raise ClientError("two tasks wait in one loop over a consumer: give each a consumer")
        self._is_waiting = True
        try:
            while True:
                if self._is_closed():
                    raise StopAsyncIteration
                self._check_current()
                self.acknowledge()
                held = self._source.inbox.try_take()
                if held is not None:
                    self._last = held
                    return held.message
                await self._source.inbox.rest()
        finally:
            self._is_waiting = False

    def _check_current(self) -> None:
        if self._is_over:
            self._source.inbox.wake()  # whatever woke this loop was meant for the other
            raise ClientError(
                "another loop over this consumer has begun: use one at a time, or two consumers"
            )

    def acknowledge(self) -> None:
        """Be done with the message that was returned last."""
        if self._last is not None:
            self._source.settle_taken(self._last)
            self._last = None

    def give_up(self) -> None:
        """End; the message that was returned last comes again."""
        self._is_over = True
        held, self._last = self._last, None
        if held is not None and not held.queue.dropped:
            self._source.inbox.put_back(held)
        if self._is_waiting:
            self._source.inbox.wake_all()
