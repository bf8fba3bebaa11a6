"""How long puts take, until they may be answered: for the statistics, and a line for slow ones.

A put that waits for nothing is over when it is in the log. One that waits for the disk or a slave
is over when the gate lets it out. Puts that nobody waits for by themselves (several puts, one
answer) are counted with the next that somebody waits for, so that the counts add up.

Agrees with DefaultMessageStore.java in what is slow (more than 500 ms) and in what a put is: a
batch is one. A refusal is a failed put, whatever the reason for it; there those are left out that
are refused before the log is asked.

Owned by the task that appends.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from gantrymq.store.statistics import QUICK_S
from gantrymq.store.status import PutStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.clock import Clock
    from gantrymq.store.put import Stored
    from gantrymq.store.statistics import StoreStatistics

log = logging.getLogger(__name__)

SLOW_S: Final = 0.5
QUIET_S: Final = 1.0
"""One line about slow answers in so long: a slow disk makes thousands late at once."""


class PutTiming:
    """Tells the statistics about puts."""

    def __init__(self, statistics: StoreStatistics, clock: Clock, *, waits: bool) -> None:
        """With `waits` a put is not over before the gate lets it out."""
        self._statistics = statistics
        self._times = statistics.put_times
        self._appends = statistics.appends
        self._clock = clock
        self._waits = waits
        self._began = 0.0
        self._unheld = 0
        self._quiet_until = 0.0

    def appended(self, puts: int, began: float, took: float) -> None:
        """Count puts that were appended together, in so many seconds."""
        self._appends.add(took)
        if took < QUICK_S and not self._waits:
            self._times.quick += puts  # nearly all of them come by here
            return
        if took > SLOW_S:
            log.warning("an append took %d ms; everybody else waited meanwhile", took * 1000)
        if self._waits:
            self._began = began
            self._unheld += puts
        else:
            self._times.add_s(took, puts)

    def put(self, stored: Stored, began: float, took: float) -> None:
        """Count one put that did not come by the lane."""
        if stored.status is PutStatus.PUT_OK:
            size = stored.end - stored.log_offset
            self._statistics.put(stored.topic, stored.messages, size)
            self.appended(1, began, took)
        else:
            self._statistics.put_failed()
            self._times.add_s(took)

    def held(self, let_out: Callable[[PutStatus], None]) -> Callable[[PutStatus], None]:
        """Return `let_out`, which counts the puts that were appended for it."""
        puts, self._unheld = self._unheld, 0
        began = self._began

        def counted(status: PutStatus) -> None:
            took = self._clock.monotonic() - began
            self._times.add_s(took, puts)
            self._count_wait(puts, took, status)
            if status is PutStatus.UNKNOWN_ERROR:
                self._statistics.put_failed(puts)
            if took > SLOW_S:
                self._say_slow(puts, took, status)
            let_out(status)

        return counted if puts else let_out

    def _count_wait(self, puts: int, took: float, status: PutStatus) -> None:
        """Count one answer, and its puts by how they left the gate."""
        self._statistics.gate_waits.add(took)
        outcomes = self._statistics.gate_outcomes
        outcomes[status] = outcomes.get(status, 0) + puts

    def _say_slow(self, puts: int, took: float, status: PutStatus) -> None:
        now = self._clock.monotonic()
        if now >= self._quiet_until:
            self._quiet_until = now + QUIET_S
            log.warning(
                "%d puts waited %d ms for the disk or a slave (%s)", puts, took * 1000, status.name
            )
