"""Requests of ours that wait for the peer's answer, by opaque."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.wire.peer import PeerGone, PeerLate

if TYPE_CHECKING:
    import asyncio

    from gantrymq.wire.command import Command

OPAQUE_MAX: Final = 2**31 - 1


class Asks:
    """Opaque -> future, for one connection. Owned by the event loop's thread."""

    __slots__ = ("_last", "_loop", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._last = 0
        self._waiting: dict[int, tuple[asyncio.Future[Command], asyncio.TimerHandle]] = {}

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._waiting)

    def next_opaque(self) -> int:
        """Return a number that no waiting request has."""
        while True:
            self._last = self._last + 1 if self._last < OPAQUE_MAX else 1
            if self._last not in self._waiting:
                return self._last

    def add(self, opaque: int, future: asyncio.Future[Command], timeout_s: float) -> None:
        """Let a future wait for the answer with this opaque; it fails with PeerLate."""
        timer = self._loop.call_later(timeout_s, self._fail_late, opaque, timeout_s)
        self._waiting[opaque] = future, timer

    def settle(self, answer: Command) -> bool:
        """Give an answer to who waits for it; False if nobody does, or not any more."""
        found = self._waiting.pop(answer.opaque, None)
        if found is None:
            return False
        future, timer = found
        timer.cancel()
        if not future.done():
            future.set_result(answer)
        return True

    def fail_all(self, reason: str) -> None:
        """Tell all who wait that the connection is gone."""
        waiting, self._waiting = self._waiting, {}
        for future, timer in waiting.values():
            timer.cancel()
            if not future.done():
                future.set_exception(PeerGone(reason))

    def _fail_late(self, opaque: int, timeout_s: float) -> None:
        future, _timer = self._waiting.pop(opaque)
        if not future.done():
            future.set_exception(PeerLate(f"no answer within {timeout_s:g} s"))
