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
of what is taken in is lowered at once, in the middle of the turn, and again while that goes on; and
`told` refuses the rest, which costs little: the turn comes to its end, and the next ones are
shorter. The share is raised again step by step.

Nothing is measured while nothing is read, and a read costs nothing for it: the timer is begun anew
by the first read behind a pause. Owned by the event loop's thread.
"""

from __future__ import annotations

from math import inf
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
SHARE_MIN: Final = 0.03
"""Reading and refusing costs about a quarter of taking in, so that at three times the capacity not
much is left for what is taken in, and nothing until what has piled up is refused."""
LOWERED: Final = 0.7
"""The share becomes this part of what it was when a turn is too long,"""
AGAIN_S: Final = 0.04
"""and again for every so much longer."""
GOAL_S: Final = 0.1
"""While not all is taken in, turns should take so long: the share follows the root of how much
shorter or longer they are, for what it does is seen a turn later,"""
STEP_MIN: Final = 0.6
STEP_MAX: Final = 1.2
"""within these bounds."""


class Pressure:
    """Watches the turns of a server's loop."""

    __slots__ = (
        "_begun", "_is_lowered", "_loop", "_monotonic", "_paused_s", "_read_at", "_timer",
        "overdue_at", "share", "told",
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
        self._is_lowered = False
        self.overdue_at = inf
        """When the turn that is under way will be too long: whoever reads then says so."""
        self._timer: asyncio.TimerHandle | None = None
        self.share = 1.0
        """Of what comes, the part that can be taken in."""
        self.told: Callable[[float], None] = lambda _share: None
        """Told whenever that part changes."""

    def paused(self, pause_s: float, now: float) -> None:
        """Learn that something is read after a pause of `PAUSE_S` or more; begin to look."""
        self._paused_s = max(self._paused_s, pause_s)
        self.overdue_at += pause_s
        if self._timer is None:
            self._begin(now)

    def overdue(self, now: float) -> None:
        """Learn that a turn is too long and goes on: less of what is left of it is taken in."""
        self.overdue_at = now + AGAIN_S
        self._is_lowered = True
        self._set(self.share * LOWERED)

    def _begin(self, now: float) -> None:
        self._paused_s, self._begun, self._is_lowered = 0.0, now, False
        self.overdue_at = now + PROBE_S + TURN_S
        self._timer = self._loop.call_later(PROBE_S, self._look)

    def _look(self) -> None:
        now, read_at = self._monotonic(), self._read_at()
        self._timer, self.overdue_at = None, inf
        if not self._is_lowered:
            self.judge(now - self._begun - PROBE_S - max(self._paused_s, now - read_at))
        if read_at > self._begun or self.share < 1.0:
            self._begin(now)

    def judge(self, turn_s: float) -> None:
        """Lower or raise the share after a turn that took so long."""
        if self.share < 1.0 or turn_s > TURN_S:
            step = (GOAL_S / max(turn_s, GOAL_S / 4)) ** 0.5
            self._set(self.share * min(max(step, STEP_MIN), STEP_MAX))

    def _set(self, share: float) -> None:
        share = min(max(share, SHARE_MIN), 1.0)
        if share != self.share:
            self.share = share
            self.told(share)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.overdue_at = inf
