"""Which of many topics and groups have series of their own; the others are one, called `_other`.

A series that comes and goes is a poor graph, so whoever is shown stays. Where there are more than
may be shown, one that has stood still for `IDLE_ROUNDS` scrapes gives way to the one that moves
most. What those did that are not shown is added up scrape by scrape, so that the sum never goes
back when one of them gets a series of its own.

Owned by the task of the scrape.
"""

from __future__ import annotations

from heapq import heappush, heappushpop
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

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

    async def look(
        self, keys: Sequence[str], counts: Callable[[str], Counts | None], turns: Turns
    ) -> Counted:
        """Take in all counters as they are now; None is one that has gone meanwhile."""
        moved: dict[str, tuple[Counts, Counts | None]] = {}
        for key in keys:
            now, before = counts(key), self._before.get(key)
            if now is not None and now != before:
                moved[key] = now, before
                self._before[key] = now
            await turns.next()
        if len(self._before) > len(keys):
            kept = set(keys)
            for key in [key for key in self._before if key not in kept]:
                del self._before[key]
        waiting: list[tuple[int, str]] = []
        for key, (now, before) in moved.items():
            if key not in self._idle:
                step = now[0] if before is None else now[0] - before[0]
                add = heappush if len(waiting) < self._shown_max else heappushpop
                add(waiting, (step, key))
            await turns.next()
        self._choose(moved, sorted(waiting, reverse=True))
        for key, (now, before) in moved.items():
            if key not in self._idle:
                self._add_other(now, before)
            await turns.next()
        shown = [(key, self._before[key]) for key in self._idle]
        return Counted(shown, tuple(self._other), len(self._before) - len(shown))

    def _choose(self, moved: Collection[str], waiting: Sequence[tuple[int, str]]) -> None:
        """Find out who is shown: of those `waiting`, the ones that did most come first."""
        idle = self._idle
        for key in [key for key in idle if key not in self._before]:
            del idle[key]
        if len(self._before) <= self._shown_max:
            self._idle = {key: 0 if key in moved else idle.get(key, 0) for key in self._before}
            return
        for key in idle:
            idle[key] = 0 if key in moved else idle[key] + 1
        free = self._shown_max - len(idle)
        tired = [key for key, rounds in idle.items() if rounds >= IDLE_ROUNDS]
        if free + len(tired) <= 0:
            return
        wanted = [key for _, key in waiting[: free + len(tired)]]
        for key in tired[: max(0, len(wanted) - free)]:
            del idle[key]
        idle.update(dict.fromkeys(wanted, 0))

    def _add_other(self, now: Counts, before: Counts | None) -> None:
        if not self._other:
            self._other = [0] * len(now)
        for place, count in enumerate(now):
            self._other[place] += max(0, count - (0 if before is None else before[place]))
