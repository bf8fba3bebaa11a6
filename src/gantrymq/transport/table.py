"""All connections of a server or of a client: what they share, and the look at all of them.

They share one receive buffer (`arrivals`).

The table also knows how many bytes all connections hold, and looks at each of them every
`sweep_s`: one timer for all. Those that ask for much at once wait in one line for their turns.
Owned by the event loop's thread.
"""

from __future__ import annotations

import logging
from collections import deque
from itertools import count, islice
from typing import TYPE_CHECKING, Final

from gantrymq.clock import SystemClock
from gantrymq.transport.admission import Admission
from gantrymq.transport.arrivals import Arrivals
from gantrymq.transport.rare_log import RareLog
from gantrymq.transport.settings import TransportSettings
from gantrymq.transport.shortage import relieve

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator

    from gantrymq.clock import Clock
    from gantrymq.transport.ages import ReadTimes
    from gantrymq.transport.connection import Connection
    from gantrymq.wire.command import Command

logger = logging.getLogger(__name__)

LOOKS_MAX: Final = 500
"""Connections looked at before other work of the loop has its turn."""

TURN_S: Final = 0.005
"""How long connections that ask for much are served before other work of the loop has its turn."""

connection_numbers: Final = count(1)


class ConnectionTable:
    """The connections of one server or client."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        settings: TransportSettings | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.loop = loop
        self.settings = settings or TransportSettings()
        self.clock = clock or SystemClock()
        self.rare_log = RareLog(logger, self.clock)
        self.read_times: ReadTimes | None = None
        """Of a server: whether what is read now may have lain for long."""
        self.arrivals = Arrivals(loop, self.settings.receive_bytes)
        """Where sockets' bytes go."""
        self.connections: dict[int, Connection] = {}
        self.admission = Admission()
        self.closed = dict.fromkeys(("idle", "unread", "memory"), 0)
        """Connections that this end has closed, by why."""
        self.busy_answers = 0
        """Answers with data that became SYSTEM_BUSY, because their peer does not take them."""
        self.slow_connections = 0
        """With so much unsent that they are not read, when they were last looked at."""
        self.held_bytes = 0
        """In beginnings of frames."""
        self.unsent_bytes = 0
        """Waiting for peers to take them: what connections above their mark have, and what all had
        when they were last looked at."""
        self.told: tuple[Command | None, bytes] = None, b""
        """What a peer was told last, and its frame."""
        self.on_sweep: Callable[[float], None] | None = None
        """Told the time when a sweep begins."""
        self._turns: deque[Callable[[], None]] = deque()
        self._is_turning = False
        self._sweeps_always = False
        self._emptied: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | asyncio.Handle | None = None
        self._round: Iterator[Connection] = iter(())
        self._unsent: list[tuple[int, Connection]] = []
        self._starved: list[Connection] = []
        self._slow = 0

    @property
    def is_full(self) -> bool:
        """Tell whether connections hold as many bytes as they may."""
        return self.held_bytes + self.unsent_bytes > self.settings.buffered_bytes_max

    @property
    def buffered_bytes(self) -> int:
        """Return how many bytes connections hold."""
        return self.held_bytes + self.unsent_bytes

    def add(self, connection: Connection) -> None:
        """Take a new connection; the first one starts the timer."""
        self.connections[connection.number] = connection
        self._start_timer()

    def discard(self, connection: Connection) -> None:
        """Forget a connection that is no more."""
        self.connections.pop(connection.number, None)
        if connection.admitted_as is not None:
            self.admission.leave(connection.admitted_as)
            connection.admitted_as = None
        if not self.connections and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)

    async def wait_until_empty(self) -> None:
        """Return when the last connection is gone."""
        while self.connections:
            self._emptied = self.loop.create_future()
            await self._emptied

    # -- turns ----------------------------------------------------------------------------------

    def take_turn(self, take: Callable[[], None]) -> None:
        """Call `take` when those in front have had their turns, and others in between."""
        self._turns.append(take)
        if not self._is_turning:
            self._is_turning = True
            self.loop.call_soon(self._run_turns)

    def _run_turns(self) -> None:
        until = self.loop.time() + TURN_S
        for _ in range(len(self._turns)):
            self._turns.popleft()()
            if self.loop.time() >= until:
                break
        self._is_turning = bool(self._turns)
        if self._turns:
            self.loop.call_soon(self._run_turns)

    # -- the sweep ------------------------------------------------------------------------------

    def start_sweeping(self) -> None:
        """Look every `sweep_s` from now on, even while there are no connections."""
        self._sweeps_always = True
        self._start_timer()

    def stop_sweeping(self) -> None:
        """Look no more, until there is a new connection."""
        self._sweeps_always = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def sweep(self) -> None:
        """Look at all connections now."""
        self._begin_round()
        self._look_at(self._round)
        self._relieve()

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.settings.sweep_s, self._on_timer)

    def _on_timer(self) -> None:
        self._begin_round()
        self._look_at_some()

    def _look_at_some(self) -> None:
        if self._look_at(islice(self._round, LOOKS_MAX)) == LOOKS_MAX:
            self._timer = self.loop.call_soon(self._look_at_some)
            return
        self._relieve()
        self._timer = None
        if self.connections or self._sweeps_always:
            self._start_timer()

    def _begin_round(self) -> None:
        if self.on_sweep is not None:
            self.on_sweep(self.clock.monotonic())
        self._round = iter(tuple(self.connections.values()))
        self._unsent, self._starved = [], []
        self.slow_connections, self._slow = self._slow, 0

    def _look_at(self, connections: Iterator[Connection]) -> int:
        now = self.clock.monotonic()
        looks = 0
        for looks, connection in enumerate(connections, 1):  # noqa: B007
            connection.look(now)
            if size := connection.unsent_bytes:
                self._unsent.append((size, connection))
            self._slow += connection.is_slow
            if connection.is_starved:
                self._starved.append(connection)
        return looks

    def _relieve(self) -> None:
        relieve(self, self._unsent, self._starved, self.clock.monotonic())
