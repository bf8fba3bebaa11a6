"""Requests of ours that wait for the peer's answer, by opaque.

Two ranges of opaques are kept apart: what `ask` sends, and sends of messages, whose plain answers
are read many at a time and never become commands (`client_connection`).

There is one timer for all that wait, set for the first that can be late. Most answers come in time,
so a timer for each of them would be made and cancelled for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from gantrymq.wire.peer import PeerGone, PeerLate

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

    from gantrymq.kernel.values import SendAnswer
    from gantrymq.wire.command import Command

    Waiting: TypeAlias = "asyncio.Future[Command] | asyncio.Future[SendAnswer | Command]"

OPAQUE_MAX: Final = 2**31 - 1
SEND_OPAQUE_MIN: Final = 2**30
"""The first opaque of a send; those of other requests are below."""
LOOK_S_MIN: Final = 0.005
"""Between two looks for those that are late."""
_NEVER: Final = float("inf")


class Asks:
    """Opaque -> future, for one connection. Owned by the event loop's thread."""

    __slots__ = ("_last", "_last_send", "_look_at", "_loop", "_on_late", "_timer", "_waiting")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_late: Callable[[float], None] | None = None,
    ) -> None:
        """`on_late` is told when the oldest request was sent that has just been given up."""
        self._loop = loop
        self._on_late = on_late
        self._last = 0
        self._last_send = SEND_OPAQUE_MIN - 1
        self._waiting: dict[int, tuple[Waiting, float, float]] = {}
        self._look_at = _NEVER
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._waiting)

    def next_opaque(self) -> int:
        """Return a number that no waiting request has."""
        while True:
            self._last = self._last + 1 if self._last < SEND_OPAQUE_MIN - 1 else 1
            if self._last not in self._waiting:
                return self._last

    def next_send_opaque(self) -> int:
        """Return a number that no waiting send has."""
        while True:
            last = self._last_send
            self._last_send = last = last + 1 if last < OPAQUE_MAX else SEND_OPAQUE_MIN
            if last not in self._waiting:
                return last

    def add(self, opaque: int, future: Waiting, timeout_s: float, now: float) -> None:
        """Let a future wait for the answer with this opaque; it fails with PeerLate.

        `now` is the loop's time, which who sends much has asked for already.
        """
        deadline = now + timeout_s
        self._waiting[opaque] = future, deadline, timeout_s
        if deadline < self._look_at:
            self._set_timer(deadline)

    def settle(self, answer: Command) -> bool:
        """Give an answer to who waits for it; False if nobody does, or not any more."""
        found = self._waiting.pop(answer.opaque, None)
        if found is None:
            return False
        if not found[0].done():
            found[0].set_result(answer)
        return True

    def settle_sends(self, replies: Iterable[SendAnswer]) -> None:
        """Give the plain answers to sends to who waits for them."""
        waiting = self._waiting
        for reply in replies:
            found = waiting.pop(reply[0], None)
            if found is not None and not found[0].done():
                found[0].set_result(reply)  # type: ignore[arg-type]  # its opaque is a send's

    def fail_all(self, reason: str) -> None:
        """Tell all who wait that the connection is gone."""
        waiting, self._waiting = self._waiting, {}
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self._look_at = None, _NEVER
        for future, _deadline, _timeout_s in waiting.values():
            if not future.done():
                future.set_exception(PeerGone(reason))

    def _set_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._look_at = when
        self._timer = self._loop.call_at(when, self._look)

    def _look(self) -> None:
        """Fail those that are late, and come again when the next one can be."""
        self._timer, self._look_at = None, _NEVER
        now = self._loop.time()
        late = [opaque for opaque, (_, deadline, _s) in self._waiting.items() if deadline <= now]
        oldest = _NEVER
        for opaque in late:
            future, deadline, timeout_s = self._waiting.pop(opaque)
            oldest = min(oldest, deadline - timeout_s)
            if not future.done():
                future.set_exception(PeerLate(f"no answer within {timeout_s:g} s"))
        if self._waiting:
            first = min(deadline for _future, deadline, _timeout_s in self._waiting.values())
            self._set_timer(max(first, now + LOOK_S_MIN))
        if late and self._on_late is not None:
            self._on_late(oldest)
