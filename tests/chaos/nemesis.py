"""Who breaks things: one fault after the other, sometimes two at once, decided by a seed."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final

from chaos.faults import KINDS
from chaos.workload import now

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chaos.faults import World

TWO_AT_ONCE: Final = 0.3
"""How often."""
QUIET_S: Final = (0.3, 2.0)
"""Between faults."""


class Nemesis:
    """The faults of one run."""

    def __init__(self, world: World, kinds: Sequence[str]) -> None:
        self._world = world
        self._kinds = kinds
        self._deck: list[str] = []
        self.injected: Counter[str] = Counter()
        self.both: int = 0
        """How often two were at work at once."""
        self.timeline: list[tuple[float, str]] = []
        self.now = "nothing"
        """What is broken at this moment."""
        world.said = self._note

    def _note(self, text: str) -> None:
        self.timeline.append((now(), f"{self.now}: {text}"))

    def _draw(self) -> str:
        """Take a kind; all of them come before one comes again."""
        if not self._deck:
            self._deck = list(self._kinds)
            self._world.dice.shuffle(self._deck)
        return self._deck.pop()

    async def run(self, seconds: float) -> None:
        """Break things for so long, and undo the last of it."""
        dice, ended = self._world.dice, now() + seconds
        while now() < ended:
            await asyncio.sleep(dice.uniform(*QUIET_S))
            names = [self._draw()]
            if dice.random() < TWO_AT_ONCE and len(self._kinds) > 1:
                second = self._draw()
                if second != names[0]:
                    names.append(second)
                    self.both += 1
            self.injected.update(names)
            self.now = " and ".join(names)
            async with asyncio.TaskGroup() as group:  # if one cannot be, the other is undone
                for name in names:
                    group.create_task(KINDS[name].inject(self._world))
            self._note("over")
            self.now = "nothing"

    def let_everything_be_due(self) -> None:
        """Put all clocks where the furthest ever was, so that nothing waits for its time."""
        shifts = self._world.workload.history.shifts
        furthest = max((one.ahead_s for one in shifts), default=0.0)
        if any(one.ahead_s for one in shifts):
            for broker in self._world.cluster.brokers:
                self._world.set_clock(broker, furthest)
