"""How long received bytes lay in the system's buffer before this process read them.

A request has no thread queue to grow old in here, but it does grow old in its socket: while the
event loop is held up, and while a connection is not read. The system knows when the last bytes of
a connection arrived (TCP_INFO on Linux), so that everything which is read now is at least so old.

Asking costs some microseconds, so it is asked only where there is a reason: nothing was read for
`GAP_S`, which is a quiet time or a loop that stood still, or the connection was not read for a
while. Once there is a reason, all connections that are read in the same turn of the loop are asked.

Owned by the event loop's thread.
"""

from __future__ import annotations

import socket
import struct
import sys
from math import inf
from typing import TYPE_CHECKING, Final

from gantrymq.transport.pressure import PAUSE_S, Pressure

if TYPE_CHECKING:
    import asyncio

    from gantrymq.clock import Clock

GAP_S: Final = 0.1
"""Without a read; what lay for less is new enough for everybody."""
_LAST_RECEIVED_AT: Final = 52
"""Where `tcpi_last_data_recv` is, in milliseconds, a number of 4 bytes."""
_IS_KNOWN: Final = sys.platform == "linux"


def lay_ms(transport: asyncio.BaseTransport | None) -> int:
    """Return how long ago the last bytes of a connection arrived.

    It is 0 where that is not known, and for what is new enough.
    """
    found = None if transport is None else transport.get_extra_info("socket")
    if found is None or not _IS_KNOWN:
        return 0
    try:
        info = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LAST_RECEIVED_AT + 4)
        age_ms = int(struct.unpack_from("=I", info, _LAST_RECEIVED_AT)[0])
    except (OSError, struct.error, AttributeError):  # no TCP, or closed meanwhile
        return 0
    return age_ms if age_ms > GAP_S * 1000 else 0


class ReadTimes:
    """When connections of a server were last read, and whether one may find old bytes now."""

    __slots__ = ("_loop", "_monotonic", "_read_at", "is_late", "pressure")

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._monotonic = clock.monotonic
        self._read_at = -inf
        self.pressure = Pressure(loop, clock, lambda: self._read_at)
        self.is_late = False
        """Whether this turn of the loop began after a gap."""

    def read(self) -> bool:
        """Note that a connection is read; tell whether its bytes may be old."""
        now = self._monotonic()
        pause_s = now - self._read_at
        self._read_at = now
        if pause_s >= PAUSE_S:
            self._paused(pause_s, now)
        elif now >= self.pressure.overdue_at:
            self.pressure.overdue(now)
        return self.is_late

    def _paused(self, pause_s: float, now: float) -> None:
        self.pressure.paused(pause_s, now)
        if pause_s > GAP_S and not self.is_late:
            self.is_late = True
            # Behind everything that was ready together with this connection.
            self._loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self.is_late = False
        self._read_at = self._monotonic()
