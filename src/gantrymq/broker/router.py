"""Which request code is handled by whom: the one list.

A handler is given a command and the connection it came by. It returns an answer, or the promise of
one, or raises; whatever it raises becomes an answer (`wire.settling`), so that no request is met
with silence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.broker.answers import answer
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.settling import answer_error, handle

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gantrymq.broker.quotas.users import UserLimits, Who
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Handler, Peer, Pending

    Check = Callable[[int, Command, Peer], Who | None]
    """Is given the whole code of a request, the request and who asks; raises what is answered.

    Returns whose request it is; None if it is nobody's.
    """
    Watch = Callable[[Command, Callable[[], Pending]], Pending]
    """Is given a request and what answers it; returns that answer."""

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
        check: Check | None = None,
    ) -> None:
        """Refuse the codes in `refused` with their sentence; `check` may refuse anything."""
        self._handlers = dict(handlers)
        self._refused = dict(refused or {})
        self.check = check
        """Sees every request before anything else does, those that nobody handles too."""
        self.watch: Watch | None = None
        """Sees every request that has a handler, and passes its answer on; nobody, as a rule."""
        self.limits: UserLimits | None = None
        """Counts what users do; with a check that knows them."""

    @property
    def codes(self) -> frozenset[int]:
        """Return the codes that are handled."""
        return frozenset(self._handlers)

    def handler(self, code: int) -> Handler | None:
        """Return who handles a code now."""
        return self._handlers.get(code)

    def add(self, handlers: Mapping[int, Handler]) -> None:
        """Handle these requests so from now on: another part of the process knows more of them."""
        self._handlers.update(handlers)

    def handle(self, request: Command, peer: Peer) -> Pending:
        """Return the answer to a request, or the promise of one; nothing to a oneway request."""
        code = request.code
        if code not in self._handlers:
            code = _BINARY_CODES.get(code, code)
        if self.check is None:
            return self._handle(code, request, peer)
        try:
            who = self.check(code, request, peer)
            if who is not None and self.limits is not None:
                return self.limits.handle(
                    who, code, request, peer, lambda: self._handle(code, request, peer)
                )
        except Exception as error:  # noqa: BLE001  (answered, and logged)
            refused = answer_error(request, error, peer.address)
            return None if request.is_oneway else refused
        return self._handle(code, request, peer)

    def _handle(self, code: int, request: Command, peer: Peer) -> Pending:
        handler = self._handlers.get(code)
        if handler is None:
            return None if request.is_oneway else self._unknown(request, code)
        if self.watch is not None:
            return self.watch(request, lambda: handle(handler, request, peer))
        return handle(handler, request, peer)

    def _unknown(self, request: Command, code: int) -> Command:
        remark = self._refused.get(code, f"request type {code} not supported by this broker")
        return answer(request, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
