"""What a handler sees of a connection, and what it gives back: values on both sides.

Brokers and name servers know no sockets, and the transport knows neither of them. Between the two
stand the types of this module. A service is given the bytes that arrived, takes the whole frames
among them and returns answers; an answer that is not there yet is a future. Only the transport
writes.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

from gantrymq.errors import GantryError
from gantrymq.wire.command import Command

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Sequence

    from gantrymq.kernel.interface import Buffer


class PeerGone(GantryError):
    """The connection was closed before the answer came."""

    retriable = True


class PeerLate(GantryError):
    """The answer did not come in time."""

    retriable = True


class Peer(Protocol):
    """The other end of a connection. Used on the event loop's own thread."""

    @property
    def number(self) -> int:
        """Return a number that no other connection of this process has had."""
        ...

    @property
    def address(self) -> str:
        """Return `host:port` of the other end."""
        ...

    @property
    def host(self) -> bytes:
        """Return the same as records keep it: 4 or 16 address bytes and a 4-byte port."""
        ...

    @property
    def listener(self) -> str:
        """Return `host:port` of this end: how the other one reached us."""
        ...

    @property
    def certificate(self) -> tuple[str, ...]:
        """Return the names of the other end's verified certificate, such as `cn:billing`."""
        ...

    @property
    def is_open(self) -> bool:
        """Tell whether anything can still be sent."""
        ...

    @property
    def waited_ms(self) -> int:
        """Return how long the bytes that are taken now lay unread, at least; mostly 0."""
        ...

    def ask(self, request: Command, timeout_s: float) -> Future[Command]:
        """Send a request, whose opaque is replaced, and return its answer when it comes.

        The future raises PeerGone or PeerLate.
        """
        ...

    def tell(self, request: Command) -> bool:
        """Send a request that gets no answer; False if the other end is gone or does not read."""
        ...

    def close(self, reason: str) -> None:
        """Close the connection."""
        ...


class RawReply(NamedTuple):
    """One or more whole frames, encoded already: slices go to the socket as they are."""

    parts: tuple[Buffer, ...]


Answer: TypeAlias = Command | RawReply | None
"""What is sent back; None is nothing, as for a oneway request."""
Pending: TypeAlias = "Answer | Future[Answer] | Coroutine[Any, Any, Answer]"
"""An answer, or the promise of one. A future costs less than a coroutine, which needs a task."""
Handler: TypeAlias = Callable[[Command, Peer], Pending]
"""Handles one request. It may raise ContentError, or a ResponseError with the code to answer."""


DATA_BYTES_ENOUGH: Final = 256 * 1024
"""Once the answers of one call are larger a service stops, so that others have their turn and the
connection can look whether its peer takes them."""


def answer_bytes(answer: Pending) -> int:
    """Return about how large an answer is; one that is not there yet is nothing."""
    if isinstance(answer, Command):
        return len(answer.body)
    if isinstance(answer, RawReply):
        return sum(map(len, answer.parts))
    return 0


class Taken(NamedTuple):
    """What a service did with received bytes."""

    end: int
    """Behind the last frame that was taken; the beginning of another may follow."""
    answers: list[Pending]
    is_plain: bool = False
    """All of it were requests of the kind that `take_turn` takes."""


class Service(Protocol):
    """What a listener offers; one object for all its connections."""

    @property
    def takes_turns(self) -> bool:
        """Tell whether `take_turn` is worth calling."""
        ...

    def opened(self, peer: Peer) -> None:
        """Learn of a new connection."""
        ...

    def closed(self, peer: Peer) -> None:
        """Learn that a connection is no more; it may have been anyone's."""
        ...

    def take(self, buffer: Buffer, start: int, end: int, peer: Peer) -> Taken:
        """Take the complete frames of a range, in order, up to the first that is a response.

        Responses (flag bit 0) are for who asked: the service stops in front of one, the connection
        takes it and calls again with what is behind it. A range may begin with a response; then
        nothing is taken. The service may also stop in front of a request, but not of the first:
        the connection calls again, at once unless its peer does not take the answers. A frame that
        is not one, behind others, is left like a response; the next call begins with it.

        Answers that are futures or coroutines must not raise: the connection does not know which
        request they belong to, logs the error and sends nothing (`wire.settling` has `settle`,
        which makes answers of errors).

        The buffer is reused when the call has returned: nothing may keep a view of it.

        Raises:
            ProtocolError: the first frame is not one; the connection is closed.
        """
        ...

    def take_turn(
        self, buffer: Buffer, parts: Sequence[tuple[int, int, Peer]]
    ) -> list[tuple[int, bytes]]:
        """Take plain requests of several connections together: ranges of a buffer, and whose.

        Returns, for as many of the parts as it took anything of, from the first on: how far it came
        and the answers, which are there at once. What is left of a part is given to `take`, and so
        is the first part when nothing is returned. It raises nothing.
        """
        ...
