"""Which request code is handled by whom: the one list, and the one place where errors are answered.

A handler is given a command and the connection it came by. It returns an answer, or the promise of
one, or raises; whatever it raises becomes an answer here, so that no request is met with silence.
"""

from __future__ import annotations

import asyncio
import logging
from inspect import iscoroutine
from typing import TYPE_CHECKING, Final

from gantrymq.broker.answers import answer, refusal
from gantrymq.errors import ContentError
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.response_errors import ResponseError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from typing import Any

    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Handler, Peer, Pending

log = logging.getLogger(__name__)

_EXPECTED: Final = (ResponseError, ContentError)
"""Errors that are part of the protocol; any other is a fault of ours, and logged."""
_BINARY_CODES: Final = {
    code & 0xFFFF: code for code in RequestCode if code > 0x7FFF and code & 0x8000 == 0
}
"""A binary header has 16 bits for the code; the pop family's do not fit, and come cut off."""


class Router:
    """Finds the handler of a request and answers for it when it fails."""

    def __init__(
        self,
        handlers: Mapping[int, Handler],
        refused: Mapping[int, str] | None = None,
        check: Callable[[Command, Peer], None] | None = None,
    ) -> None:
        """Refuse the codes in `refused` with their sentence; `check` may refuse anything."""
        self._handlers = dict(handlers)
        self._refused = dict(refused or {})
        self._check = check

    @property
    def codes(self) -> frozenset[int]:
        """Return the codes that are handled."""
        return frozenset(self._handlers)

    def handle(self, request: Command, peer: Peer) -> Pending:
        """Return the answer to a request, or the promise of one; nothing to a oneway request."""
        handler = self._handlers.get(request.code) or self._handlers.get(
            _BINARY_CODES.get(request.code, -1)
        )
        if handler is None:
            return _kept(request, self._unknown(request))
        try:
            if self._check is not None:
                self._check(request, peer)
            pending = handler(request, peer)
        except Exception as error:  # noqa: BLE001 - whatever it is, its sender gets an answer
            return _kept(request, failed(request, error, peer))
        if iscoroutine(pending):
            return _settled(request, pending, peer)
        if isinstance(pending, asyncio.Future):
            return _settled(request, _awaited(pending), peer)
        return _kept(request, pending)  # type: ignore[arg-type]

    def _unknown(self, request: Command) -> Command:
        remark = self._refused.get(
            request.code, f"request type {request.code} not supported by this broker"
        )
        return answer(request, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)


def failed(request: Command, error: Exception, peer: Peer) -> Command:
    """Return the answer to a request whose handler raised; a fault of ours is logged."""
    if not isinstance(error, _EXPECTED):
        log.error("request %s of %s failed", request.code, peer.address, exc_info=error)
    return refusal(request, error)


def _kept(request: Command, reply: Answer) -> Answer:
    return None if request.is_oneway else reply


async def _settled(request: Command, pending: Coroutine[Any, Any, Answer], peer: Peer) -> Answer:
    try:
        return _kept(request, await pending)
    except Exception as error:  # noqa: BLE001 - as above
        return _kept(request, failed(request, error, peer))


async def _awaited(future: asyncio.Future[Answer]) -> Answer:
    return await future
