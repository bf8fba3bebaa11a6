"""Every request gets its answer: here, and nowhere else, an error becomes one.

A handler may raise, or promise an answer and fail later. Servers of both kinds and clients turn
that into the same codes and sentences:

    ResponseError                     its code and remark
    ContentError, ProtocolError       SYSTEM_ERROR with what was wrong with the request
    another GantryError               SYSTEM_ERROR with its text, and a line in the log
    anything else, a fault of ours    SYSTEM_ERROR with its type and text, and the whole in the log

Nothing here has a state.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from gantrymq.errors import GantryError, ProtocolError, shown
from gantrymq.limits import ERROR_TEXT_CHARACTERS_MAX
from gantrymq.wire.codes import ResponseCode
from gantrymq.wire.response_errors import ResponseError

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Handler, Peer, Pending

log = logging.getLogger(__name__)

REMARK_CHARACTERS_MAX: Final = 1024
"""Of an answer's remark: what a peer wrote may stand in it."""


def problem(error: BaseException) -> tuple[int, str]:
    """Return code and remark of the answer to a request that failed."""
    if isinstance(error, ResponseError):
        return error.code, (error.remark or str(error))[:REMARK_CHARACTERS_MAX]
    if isinstance(error, ProtocolError):
        text = str(error)
    elif isinstance(error, asyncio.CancelledError):
        text = "the request was given up: the server is stopping"
    elif isinstance(error, GantryError):
        text = str(error) or type(error).__name__
    else:
        text = f"{type(error).__name__}: {error}"
    return ResponseCode.SYSTEM_ERROR, shown(text, ERROR_TEXT_CHARACTERS_MAX)


def note(error: BaseException, code: int, who: str = "") -> None:
    """Log an error that is no part of the protocol; `code` is that of the request."""
    if isinstance(error, (ResponseError, ProtocolError, asyncio.CancelledError)):
        return
    of = f" of {who}" if who else ""
    if isinstance(error, GantryError):
        log.warning("request %d%s failed: %s: %s", code, of, type(error).__name__, error)
    else:
        log.error("request %d%s failed", code, of, exc_info=error)


def answer_error(request: Command, error: BaseException, who: str = "") -> Command:
    """Return what is answered to a request that failed; an error nobody foresaw is logged."""
    note(error, request.code, who)
    code, remark = problem(error)
    return request.response(code, remark=remark)


def settle(request: Command, pending: Pending, who: str = "") -> Pending:
    """Return the same answer, or a promise of it that does not fail.

    A failure becomes `answer_error`, and the answer to a oneway request becomes None.
    """
    if asyncio.isfuture(pending):
        if pending.done():
            return _settled(request, pending, who)
        outer: asyncio.Future[Answer] = pending.get_loop().create_future()

        def pass_on(done: asyncio.Future[Answer]) -> None:
            if not outer.done():
                outer.set_result(_settled(request, done, who))

        pending.add_done_callback(pass_on)
        return outer
    if asyncio.iscoroutine(pending):
        return _settle_later(request, pending, who)
    return None if request.is_oneway else pending


def _settled(request: Command, done: asyncio.Future[Answer], who: str) -> Answer:
    answer: Answer
    try:
        answer = done.result()
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  (answered, and logged)
        answer = answer_error(request, error, who)
    return None if request.is_oneway else answer


async def _settle_later(
    request: Command, coroutine: Coroutine[Any, Any, Answer], who: str
) -> Answer:
    answer: Answer
    try:
        answer = await coroutine
    except Exception as error:  # noqa: BLE001  (answered, and logged)
        answer = answer_error(request, error, who)
    return None if request.is_oneway else answer


def handle(handler: Handler, request: Command, peer: Peer) -> Pending:
    """Return a handler's answer to a request, whatever it does, as `settle` makes it."""
    try:
        pending = handler(request, peer)
    except Exception as error:  # noqa: BLE001  (answered, and logged)
        answer = answer_error(request, error, peer.address)
        return None if request.is_oneway else answer
    return settle(request, pending, peer.address)
