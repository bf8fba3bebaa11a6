"""Requests that come from brokers, on the connections that the client has opened.

A producer or consumer says which codes it handles; all others are answered with
REQUEST_CODE_NOT_SUPPORTED, as a client must that never heard of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.transport.command_service import CommandService
from gantrymq.wire.response_errors import RequestCodeNotSupported

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.wire.codes import RequestCode
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Handler, Peer, Pending


class Incoming:
    """Request code -> handler."""

    __slots__ = ("_handlers", "_opened", "service")

    def __init__(self) -> None:
        self._handlers: dict[int, Handler] = {}
        self._opened: Callable[[Peer], object] | None = None
        self.service = CommandService(self._handle, opened=self._on_opened)

    def on(self, code: RequestCode, handler: Handler) -> None:
        """Give requests with this code to a handler, in place of the one before it.

        It is called as `handler(command, peer)` and returns a Command (`command.response(...)`),
        None for nothing, or a coroutine of either; what it raises is answered as an error.
        """
        self._handlers[int(code)] = handler

    def on_opened(self, callback: Callable[[Peer], object]) -> None:
        """Tell `callback` of every new connection."""
        self._opened = callback

    def _on_opened(self, peer: Peer) -> None:
        if self._opened is not None:
            self._opened(peer)

    def _handle(self, request: Command, peer: Peer) -> Pending:
        handler = self._handlers.get(request.code)
        if handler is None:
            raise RequestCodeNotSupported(f"request type {request.code} not supported")
        return handler(request, peer)
