"""A service made of one function: a request as a value goes in, an answer comes out.

It is what a name server needs, and a client for the requests that brokers send. A broker's own
service has a fast lane in front, and its router answers for what fails: it knows no transport.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.errors import ProtocolError
from gantrymq.kernel import kernel
from gantrymq.limits import FRAME_BYTES_MAX
from gantrymq.wire.frame import decode_frame
from gantrymq.wire.peer import DATA_BYTES_ENOUGH, Taken, answer_bytes
from gantrymq.wire.response_errors import RequestCodeNotSupported
from gantrymq.wire.settling import handle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gantrymq.kernel.interface import Buffer
    from gantrymq.kernel.values import Frame
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Handler, Peer, Pending


def refuse(request: Command, peer: Peer) -> Pending:
    """Handle a request by not knowing it: for a client that offers nothing."""
    raise RequestCodeNotSupported(f"request type {request.code} not supported")


def take_each(
    buffer: Buffer, start: int, end: int, answered: Callable[[Command, Frame], list[Pending]]
) -> Taken:
    """Have every request of a range answered, up to a response or a frame that is none.

    Raises:
        ProtocolError: the first frame is not one.
    """
    frames, behind = kernel.split_frames(buffer, start, end, FRAME_BYTES_MAX)
    answers: list[Pending] = []
    size = 0
    for frame in frames:
        try:
            request = decode_frame(buffer, frame)
        except ProtocolError:
            if frame.start == start:
                raise
            return Taken(frame.start, answers)
        if request.is_response:
            return Taken(frame.start, answers)
        for answer in answered(request, frame):
            if answer is not None:
                answers.append(answer)
                size += answer_bytes(answer)
        if size > DATA_BYTES_ENOUGH:
            return Taken(frame.end, answers)
    return Taken(behind, answers)


class CommandService:
    """A `Service` that decodes every request and gives it to one handler."""

    def __init__(
        self,
        handler: Handler = refuse,
        *,
        opened: Callable[[Peer], object] | None = None,
        closed: Callable[[Peer], object] | None = None,
    ) -> None:
        self._handler = handler
        self._opened = opened
        self._closed = closed

    def opened(self, peer: Peer) -> None:
        """Learn of a new connection."""
        if self._opened is not None:
            self._opened(peer)

    def closed(self, peer: Peer) -> None:
        """Learn that a connection is no more."""
        if self._closed is not None:
            self._closed(peer)

    @property
    def takes_turns(self) -> bool:
        """Tell that every connection is served by itself."""
        return False

    def take_turn(
        self, buffer: Buffer, parts: Sequence[tuple[int, int, Peer]]
    ) -> list[tuple[int, bytes]]:
        """Take nothing; see `takes_turns`."""
        return []

    def take(self, buffer: Buffer, start: int, end: int, peer: Peer) -> Taken:
        """Take the requests of a range, up to a response or a frame that is none.

        Raises:
            ProtocolError: the first frame is not one.
        """
        return take_each(
            buffer, start, end, lambda request, _frame: [handle(self._handler, request, peer)]
        )
