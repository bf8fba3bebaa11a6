"""Time as an argument: nothing else may call `time.*`, so that tests can move it by hand."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What a part of the system may ask about time."""

    def now_ms(self) -> int:
        """Return wall-clock milliseconds since 1970, as stored in messages."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back, for intervals and deadlines."""
        ...


class SystemClock:
    """The machine's clock."""

    __slots__ = ()

    def now_ms(self) -> int:
        """Return wall-clock milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()
