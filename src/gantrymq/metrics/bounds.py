"""Which of many topics and groups have series of their own; the others are one, called `_other`.

A series that comes and goes is a poor graph, so whoever is shown stays. Where there are more than
may be shown, one that has stood still for `IDLE_ROUNDS` scrapes gives way to the one that moves
most. What those did that are not shown is added up scrape by scrape, so that the sum never goes
back when one of them gets a series of its own.

Owned by the task of the scrape.
"""

from __future__ import annotations

from heapq import nlargest
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.metrics.turns import Turns

Counts = tuple[int, ...]
IDLE_ROUNDS: Final = 20


class Counted(NamedTuple):
    """What a scrape shows of some counters."""

    shown: list[tuple[str, Counts]]
    other: Counts
    """Added up; empty while everybody is shown and always was."""
    left_out: int


class CounterTable:
    """Counters by key, of which some are shown; the first number of each says how active it is."""

    def __init__(self, shown_max: int) -> None:
        self._shown_max = shown_max
        self._idle: dict[str, int] = {}
        """Those that are shown, and for how many scrapes they have stood still."""
        self._before: dict[str, Counts] = {}
        self._other: list[int] = []

    async def look(self, totals: Mapping[str, Counts], turns: Turns) -> Counted:
        """Take in all counters as they are now; nobody may change `totals` meanwhile."""
        moved = await self._moves(totals, turns)
        self._choose(totals, moved)
        for key in totals:
            if key in moved and key not in self._idle:
                self._add_other(totals[key], self._before.get(key))
            await turns.next()
        self._before = dict(totals)
        shown = [(key, totals[key]) for key in self._idle]
        return Counted(shown, tuple(self._other), len(totals) - len(shown))

    async def _moves(self, totals: Mapping[str, Counts], turns: Turns) -> dict[str, int]:
        """Return who has moved since the last scrape, and how far."""
        moved: dict[str, int] = {}
        for key, counts in totals.items():
            before = self._before.get(key)
            if before is None or before != counts:
                moved[key] = counts[0] - (0 if before is None else before[0])
            await turns.next()
        return moved

    def _choose(self, totals: Mapping[str, Counts], moved: Mapping[str, int]) -> None:
        idle = self._idle
        for key in [key for key in idle if key not in totals]:
            del idle[key]
        if len(totals) <= self._shown_max:
            self._idle = {key: 0 if key in moved else idle.get(key, 0) for key in totals}
            return
        for key in idle:
            idle[key] = 0 if key in moved else idle[key] + 1
        free = self._shown_max - len(idle)
        tired = [key for key, rounds in idle.items() if rounds >= IDLE_ROUNDS]
        if free + len(tired) <= 0:
            return
        wanted = [key for key in moved if key not in idle]
        wanted = nlargest(free + len(tired), wanted, key=lambda key: (moved[key], key))
        for key in tired[: max(0, len(wanted) - free)]:
            del idle[key]
        idle.update(dict.fromkeys(wanted, 0))

    def _add_other(self, now: Counts, before: Counts | None) -> None:
        if not self._other:
            self._other = [0] * len(now)
        for place, count in enumerate(now):
            self._other[place] += max(0, count - (0 if before is None else before[place]))
