"""Which brokers to leave alone for a while: those that were slow, and those that failed.

    answer took    550 ms   1 s    2 s     3 s     15 s
    left alone     30 s     60 s   120 s   180 s   600 s

The numbers are Apache's. A failure counts as an answer after ten seconds, as in 5.x. When every
broker is to be left alone, none is: a slow send is better than none.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gantrymq.clock import Clock

_TOOK_S: Final = (0.55, 1.0, 2.0, 3.0, 15.0)
_LEFT_ALONE_S: Final = (0.0, 30.0, 60.0, 120.0, 180.0, 600.0)
FAILURE_COUNTS_AS_S: Final = 10.0
BROKERS_MAX: Final = 10_000
"""Broker names that are remembered."""


def left_alone_s(took_s: float) -> float:
    """Return for how long a broker is left alone whose answer took so long."""
    return _LEFT_ALONE_S[bisect_right(_TOOK_S, took_s)]


class Faults:
    """Broker name -> when it may be used again."""

    __slots__ = ("_clock", "_until")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}

    def note(self, broker_name: str, took_s: float, *, failed: bool = False) -> None:
        """Learn how long an answer took; the last one counts."""
        wait_s = left_alone_s(FAILURE_COUNTS_AS_S if failed else took_s)
        if wait_s > 0:
            if len(self._until) >= BROKERS_MAX:
                self._until.clear()
            self._until[broker_name] = self._clock.monotonic() + wait_s
        else:
            self._until.pop(broker_name, None)

    def is_usable(self, broker_name: str) -> bool:
        """Tell whether a broker need not be left alone."""
        until = self._until.get(broker_name)
        if until is None:
            return True
        if self._clock.monotonic() < until:
            return False
        del self._until[broker_name]
        return True
