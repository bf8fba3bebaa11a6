"""Requests that are over a quota and wait for it, so that their senders slow down and do not spin.

A reader that is told "nothing there" comes again at once, and one that is told an error pauses for
seconds (3 s in Apache's clients). So a read whose turn is near is simply held, as one that waits
for a message is, and done when the quota allows it: the reader sees an answer that took longer. A
send that is refused is told so after a moment, which slows down whoever sends one after the other.

What waits is bounded; beyond the bound requests are refused at once. Owned by the event loop's
task.
"""

from __future__ import annotations

import heapq
import logging
from itertools import count
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable

    from gantrymq.clock import Clock
    from gantrymq.wire.peer import Answer, Peer

log = logging.getLogger(__name__)

WAITING_MAX: Final = 20_000
RUNS_MAX: Final = 256
"""Requests that are gone on with before other work of the loop has its turn."""
REFUSAL_S_MAX: Final = 0.2
"""How long the refusal of a send is held back: far less than a producer waits for an answer."""
WAIT_CAUSES: Final = (
    "QUOTA_USER", "QUOTA_TOPIC", "QUOTA_GROUP", "COLD_READS", "CONNECTIONS_USER",
)  # fmt: skip
"""Why a request may have to wait: the words that remarks begin with."""
READ_S_MAX: Final = 5.0
"""How long a read waits for a quota; the clients of Apache wait 10 s for an answer and more."""


class _Entry:
    __slots__ = ("peer_number", "run")

    def __init__(self, peer_number: int, run: Callable[[], None]) -> None:
        self.peer_number = peer_number
        self.run: Callable[[], None] | None = run


class Throttled:
    """The requests that wait."""

    def __init__(self, clock: Clock, new_future: Callable[[], Future[Answer]]) -> None:
        self._clock = clock
        self._new_future = new_future
        self._heap: list[tuple[float, int, _Entry]] = []
        self._numbers = count()
        self._by_peer: dict[int, set[_Entry]] = {}
        self._waiting = 0
        self.totals = dict.fromkeys(WAIT_CAUSES, 0)
        """Requests that were made to wait, by cause."""
        self.sooner: Callable[[float], None] = lambda _due: None
        """Told when `tick` has something to do earlier than it last said."""
        self._is_closed = False

    def __len__(self) -> int:
        """Return how many wait."""
        return self._waiting

    def now(self) -> float:
        """Return the time that waits are counted by."""
        return self._clock.monotonic()

    def hold(self, cause: str, wait_s: float, peer: Peer, run: Callable[[], None]) -> bool:
        """Call `run` after a while, unless the peer has gone; False if too many wait."""
        if self._waiting >= WAITING_MAX or self._is_closed or not peer.is_open:
            return False
        due = self.now() + wait_s
        entry = _Entry(peer.number, run)
        heapq.heappush(self._heap, (due, next(self._numbers), entry))
        self._by_peer.setdefault(peer.number, set()).add(entry)
        self._waiting += 1
        self.totals[cause] += 1
        if self._heap[0][2] is entry:
            self.sooner(due)
        return True

    def refusal(
        self, cause: str, wait_s: float, peer: Peer, reply: Answer
    ) -> Answer | Future[Answer]:
        """Return the refusal of a send, held back for a moment where that is possible."""
        future = self._new_future()

        def let_out() -> None:
            if not future.done():
                future.set_result(reply)

        held = self.hold(cause, min(wait_s, REFUSAL_S_MAX), peer, let_out)
        return future if held else reply

    def tick(self, now: float) -> float | None:
        """Go on with those whose time has come; return when the next one's does."""
        runs = 0
        while self._heap and (self._heap[0][0] <= now or self._heap[0][2].run is None):
            if runs == RUNS_MAX:
                return now
            entry = heapq.heappop(self._heap)[2]
            if entry.run is not None:
                runs += 1
                self._go_on(entry)
        return self._heap[0][0] if self._heap else None

    def _go_on(self, entry: _Entry) -> None:
        run, entry.run = entry.run, None
        self._waiting -= 1
        mine = self._by_peer.get(entry.peer_number)
        if mine is not None:
            mine.discard(entry)
            if not mine:
                del self._by_peer[entry.peer_number]
        if run is not None:
            try:
                run()
            except Exception:
                # Others wait behind this one.
                log.exception("a throttled request failed")

    def peer_closed(self, peer: Peer) -> None:
        """Forget what a connection that is no more has waiting."""
        for entry in self._by_peer.pop(peer.number, ()):
            entry.run = None
            self._waiting -= 1

    def close(self) -> None:
        """Let everybody go on: a broker that stops leaves nobody waiting."""
        self._is_closed = True
        while self._heap:
            entry = heapq.heappop(self._heap)[2]
            if entry.run is not None:
                self._go_on(entry)
