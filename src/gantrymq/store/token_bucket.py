"""A rate as a bucket: it fills by the clock, and what is done is taken out of it.

Whoever finds it above empty may go on, whatever that will cost, and what it cost is taken out
afterwards; the bucket may then stand below empty, and nobody goes on until that is made up for. So
the size of an answer need not be known before it is read, one message that is larger than the whole
bucket passes as well, and over a while no more passes than the rate allows. A full bucket holds
what the rate gives in a second.

Owned by the task that asks; time is an argument.
"""

from __future__ import annotations

from typing import Final

WAIT_S_MIN: Final = 0.001


class TokenBucket:
    """So much a second."""

    __slots__ = ("_at", "_level", "rate")

    def __init__(self, rate: int, now: float) -> None:
        """Begin with a full bucket."""
        self.rate = rate
        self._level = float(rate)
        self._at = now

    def wait_s(self, now: float) -> float:
        """Return how long to wait until there is something in it; 0 if there is."""
        if now > self._at:
            self._level = min(self._level + (now - self._at) * self.rate, float(self.rate))
            self._at = now
        if self._level > 0:
            return 0.0
        return max(-self._level / self.rate, 0.0) + WAIT_S_MIN

    def take(self, amount: float) -> None:
        """Take out what was done."""
        self._level -= amount

    def is_full(self, now: float) -> bool:
        """Tell whether it is as a new one would be."""
        return self.wait_s(now) == 0.0 and self._level >= self.rate

    def at_rate(self, rate: int, now: float) -> TokenBucket:
        """Return a bucket of another rate that owes as much time as this one."""
        fresh = TokenBucket(rate, now)
        wait_s = self.wait_s(now)
        if wait_s:
            fresh.take(rate + (wait_s - WAIT_S_MIN) * rate)
        return fresh
