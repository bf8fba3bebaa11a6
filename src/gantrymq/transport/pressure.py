"""Whether more comes than can be taken in, and which part of it can.

Requests wait in their sockets until a turn of the event loop comes to them. A turn reads every
socket that has something, so what is read now came during the turn before, and whoever is answered
waited two turns at most: as long as turns are short, everybody is served in time. When more comes
than can be done, each turn finds more than the one before and takes longer, until the sockets'
buffers are full and every request in them is seconds old. Then all that is done is done too late.

So the length of turns is looked at while there are reads: a timer that is due in `PROBE_S` and
comes later than that has waited for a turn to end. A turn that stood still, for a disk or because
the machine had other things to do, says nothing about what can be taken in; the longest pause
between two reads is therefore left out of it. Where a turn takes longer than `TURN_S`, the share
of what is taken in is lowered, and `told` refuses the rest, which costs little: the next turns are
shorter. It is raised again step by step.

Nothing is measured while nothing is read, and a read costs nothing for it: the timer is begun anew
by the first read behind a pause. Owned by the event loop's thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from gantrymq.clock import Clock

PROBE_S: Final = 0.02
PAUSE_S: Final = PROBE_S / 2
"""Without a read. Shorter than the time after which nobody looks any more, so that the first read
behind such a time is behind a pause, too, whatever a timer makes of 20 ms."""
TURN_S: Final = 0.2
"""A turn may take so long, which is what a send may lie unread (waitTimeMillsInSendQueue)."""
SHARE_MIN: Final = 0.02
LOWERED_MAX: Final = 0.5
"""A share becomes this part of what it was, at least, in one step."""
RAISED: Final = 1.08
"""And this multiple of it, where turns are short."""


class Pressure:
    """Watches the turns of a server's loop."""

    __slots__ = (
        "_begun", "_loop", "_monotonic", "_paused_s", "_read_at", "_timer", "share", "told",
    )  # fmt: skip

    def __init__(
        self, loop: asyncio.AbstractEventLoop, clock: Clock, read_at: Callable[[], float]
    ) -> None:
        """Ask `read_at` when something was last read."""
        self._loop = loop
        self._monotonic = clock.monotonic
        self._read_at = read_at
        self._begun = 0.0
        self._paused_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.share = 1.0
        """Of what comes, the part that can be taken in."""
        self.told: Callable[[float], None] = lambda _share: None
        """Told whenever that part changes."""

    def paused(self, pause_s: float, now: float) -> None:
        """Learn that something is read after a pause of `PAUSE_S` or more; begin to look."""
        self._paused_s = max(self._paused_s, pause_s)
        if self._timer is None:
            self._begin(now)

    def _begin(self, now: float) -> None:
        self._paused_s, self._begun = 0.0, now
        self._timer = self._loop.call_later(PROBE_S, self._look)

    def _look(self) -> None:
        now, read_at = self._monotonic(), self._read_at()
        self._timer = None
        self.judge(now - self._begun - PROBE_S - max(self._paused_s, now - read_at))
        if read_at > self._begun or self.share < 1.0:
            self._begin(now)

    def judge(self, turn_s: float) -> None:
        """Lower or raise the share after a turn that took so long."""
        if turn_s > TURN_S:
            share = max(self.share * max(TURN_S / turn_s, LOWERED_MAX), SHARE_MIN)
        elif turn_s < TURN_S / 2:
            share = min(self.share * RAISED, 1.0)
        else:
            return
        if share != self.share:
            self.share = share
            self.told(share)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
