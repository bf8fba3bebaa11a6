"""The process: how late its loop is, what it takes of the machine, what it is."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from prometheus_client import ProcessCollector

from gantrymq.kernel import kernel
from gantrymq.metrics.of_store import put_durations
from gantrymq.store.durations import Durations
from gantrymq.version import VERSION

if TYPE_CHECKING:
    from gantrymq.clock import Clock
    from gantrymq.metrics.sheet import Page

PROBE_S: Final = 0.1
"""How often it is looked whether the loop is on time."""


class LoopDelay:
    """Asks to be called at a moment, and notes how much later that is. Owned by the loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.times = Durations()
        self._worst = 0.0

    def start(self) -> None:
        """Begin."""
        self._due = self._clock.monotonic() + PROBE_S
        self._timer = asyncio.get_running_loop().call_later(PROBE_S, self._look)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        late = max(0.0, self._clock.monotonic() - self._due)
        self.times.add(late)
        self._worst = max(self._worst, late)
        self.start()

    def take_worst(self) -> float:
        """Return the worst delay since this was last asked."""
        worst, self._worst = self._worst, 0.0
        return worst


class ProcessSource:
    """Writes what is known of the process."""

    def __init__(self, delay: LoopDelay) -> None:
        self._delay = delay
        self._process = ProcessCollector(registry=None)

    def fill(self, page: Page, scrape_s: float) -> None:
        """Write everything; `scrape_s` is how long the scrape before took."""
        page.put("gantrymq_build_info", 1, VERSION, kernel.KERNEL_NAME)
        put_durations(page, "gantrymq_loop_delay_seconds", self._delay.times)
        page.put("gantrymq_loop_delay_max_seconds", self._delay.take_worst())
        page.put("gantrymq_scrape_seconds", scrape_s)
        for metric in self._process.collect():
            for sample in metric.samples:
                page.put(sample.name, sample.value)
