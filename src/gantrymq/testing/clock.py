"""Clocks that a test moves: one stands still until then, one goes on by itself meanwhile."""

from __future__ import annotations

from gantrymq.clock import SystemClock
from gantrymq.errors import InvalidValue

START_MS = 1_700_000_000_000
"""A round moment in 2023, so that ages and file times look like real ones."""


class VirtualClock:
    """Wall clock and interval clock, moved together by `jump`; `set_now_ms` moves one alone."""

    __slots__ = ("_elapsed_ms", "_now_ms")

    def __init__(self, now_ms: int = START_MS) -> None:
        self._now_ms = now_ms
        self._elapsed_ms = 0

    def now_ms(self) -> int:
        """Return wall-clock milliseconds since 1970."""
        return self._now_ms

    def monotonic(self) -> float:
        """Return the seconds that were jumped over so far."""
        return self._elapsed_ms / 1000

    def jump(self, seconds: float) -> None:
        """Let time pass, to the millisecond."""
        if seconds < 0:
            raise InvalidValue(f"time does not pass backwards ({seconds} s); see set_now_ms")
        passed_ms = round(seconds * 1000)
        self._now_ms += passed_ms
        self._elapsed_ms += passed_ms

    def set_now_ms(self, now_ms: int) -> None:
        """Set the wall clock, forwards or back, as an operator or NTP may; no interval passes."""
        self._now_ms = now_ms


class RunningClock:
    """The machine's clock and what a test has jumped over."""

    __slots__ = ("_clock", "_jumped_ms")

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._jumped_ms = 0

    def now_ms(self) -> int:
        """Return wall-clock milliseconds since 1970."""
        return self._clock.now_ms() + self._jumped_ms

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return self._clock.monotonic() + self._jumped_ms / 1000

    def jump(self, seconds: float) -> None:
        """Let time pass at once, to the millisecond."""
        if seconds < 0:
            raise InvalidValue(f"time does not pass backwards ({seconds} s)")
        self._jumped_ms += round(seconds * 1000)
