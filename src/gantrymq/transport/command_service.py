"""A service made of one function: a request as a value goes in, an answer comes out.

It is what a name server needs, and a client for the requests that brokers send. A broker's own
service has a fast lane in front, and its router answers for what fails: it knows no transport.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from gantrymq.errors import GantryError, ProtocolError, shown
from gantrymq.kernel import kernel
from gantrymq.limits import ERROR_TEXT_CHARACTERS_MAX, FRAME_BYTES_MAX
from gantrymq.wire.codes import ResponseCode
from gantrymq.wire.frame import decode_frame
from gantrymq.wire.peer import Taken
from gantrymq.wire.response_errors import RequestCodeNotSupported, ResponseError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from gantrymq.kernel.interface import Buffer
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Handler, Peer, Pending

logger = logging.getLogger(__name__)


def answer_error(request: Command, error: BaseException) -> Command:
    """Return what is answered to a request that failed; an error nobody foresaw is logged.

    A ResponseError has its code and remark; what the peer wrote wrong (ContentError) and all else
    is SYSTEM_ERROR with the error's text.
    """
    if isinstance(error, ResponseError):
        return request.response(error.code, remark=error.remark or str(error))
    if isinstance(error, ProtocolError):
        return request.response(ResponseCode.SYSTEM_ERROR, remark=str(error))
    if isinstance(error, GantryError):
        logger.warning("request %d failed: %s: %s", request.code, type(error).__name__, error)
        remark = str(error) or type(error).__name__
    elif isinstance(error, asyncio.CancelledError):
        remark = "the request was given up: the server is stopping"
    else:
        logger.error("request %d failed", request.code, exc_info=error)
        remark = f"{type(error).__name__}: {error}"
    return request.response(
        ResponseCode.SYSTEM_ERROR, remark=shown(remark, ERROR_TEXT_CHARACTERS_MAX)
    )


def settle(request: Command, pending: Pending) -> Pending:
    """Return the same answer, or a promise of it that does not fail.

    A failure becomes `answer_error`, and the answer to a oneway request becomes None.
    """
    if asyncio.isfuture(pending):
        if pending.done():
            return _settled(request, pending)
        outer: asyncio.Future[Answer] = pending.get_loop().create_future()

        def pass_on(done: asyncio.Future[Answer]) -> None:
            if not outer.done():
                outer.set_result(_settled(request, done))

        pending.add_done_callback(pass_on)
        return outer
    if asyncio.iscoroutine(pending):
        return _settle_later(request, pending)
    return None if request.is_oneway else pending


def _settled(request: Command, done: asyncio.Future[Answer]) -> Answer:
    answer: Answer
    try:
        answer = done.result()
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  (answered, and logged)
        answer = answer_error(request, error)
    return None if request.is_oneway else answer


async def _settle_later(request: Command, coroutine: Coroutine[Any, Any, Answer]) -> Answer:
    answer: Answer
    try:
        answer = await coroutine
    except Exception as error:  # noqa: BLE001  (answered, and logged)
        answer = answer_error(request, error)
    return None if request.is_oneway else answer


def handle(handler: Handler, request: Command, peer: Peer) -> Pending:
    """Return a handler's answer to a request, whatever it does, as `settle` makes it."""
    try:
        pending = handler(request, peer)
    except Exception as error:  # noqa: BLE001  (answered, and logged)
        answer = answer_error(request, error)
        return None if request.is_oneway else answer
    return settle(request, pending)


def refuse(request: Command, peer: Peer) -> Pending:
    """Handle a request by not knowing it: for a client that offers nothing."""
    raise RequestCodeNotSupported(f"request type {request.code} not supported")


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

    def take(self, buffer: Buffer, start: int, end: int, peer: Peer) -> Taken:
        """Take the requests of a range, up to a response or a frame that is none.

        Raises:
            ProtocolError: the first frame is not one.
        """
        frames, behind = kernel.split_frames(buffer, start, end, FRAME_BYTES_MAX)
        answers: list[Pending] = []
        for frame in frames:
            try:
                request = decode_frame(buffer, frame)
            except ProtocolError:
                if frame.start == start:
                    raise
                return Taken(frame.start, answers)
            if request.is_response:
                return Taken(frame.start, answers)
            answer = handle(self._handler, request, peer)
            if answer is not None:
                answers.append(answer)
        return Taken(behind, answers)
