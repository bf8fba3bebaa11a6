"""How long something took, as a histogram that costs next to nothing to add to.

A bucket ends at a power of two of microseconds, so that a duration finds its bucket by the length
of a number and nobody searches. Counts go up for as long as the process lives: whoever reads them
twice knows what happened in between.

Owned by one task.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Final

BUCKETS: Final = 25
"""The last but one ends at 2**24 microseconds, 16 s; the last one has the rest."""
LENGTHS: Final = 65
"""As long as the number can be: a quarter of a million years."""
BOUNDS_S: Final = tuple((1 << place) / 1_000_000 for place in range(BUCKETS))
"""Where each bucket but the last ends, in seconds."""


class Durations:
    """Counts by duration."""

    __slots__ = ("counts", "total_s")

    def __init__(self) -> None:
        self.counts = [0] * LENGTHS
        """By the length of the number of microseconds; those beyond `BUCKETS` count as one."""
        self.total_s = 0.0

    def add(self, seconds: float) -> None:
        """Count something that took so long."""
        self.counts[int(seconds * 1_000_000).bit_length()] += 1
        self.total_s += seconds

    @property
    def count(self) -> int:
        """Return how many were counted."""
        return sum(self.counts)

    def below(self) -> list[int]:
        """Return for every bound how many took no longer; then how many there are."""
        below = list(accumulate(self.counts))
        return [*below[:BUCKETS], below[-1]]
