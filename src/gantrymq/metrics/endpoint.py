"""The HTTP port of a process: /metrics, /healthz and /readyz.

Those who scrape at the same time share one scrape, and for `KEPT_S` the next ones get the same
text: however many ask, the broker is looked through once a second at most.

Owned by the event loop's task.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from gantrymq.clock import SystemClock
from gantrymq.metrics.exposition import CONTENT_TYPE, rendered
from gantrymq.metrics.health import alive, readiness
from gantrymq.metrics.http import JSON, HttpAnswer, HttpResponder
from gantrymq.metrics.of_process import LoopDelay
from gantrymq.metrics.sheet import Sheet
from gantrymq.metrics.sources import OwnSource
from gantrymq.metrics.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gantrymq.clock import Clock
    from gantrymq.metrics.health import Check, Health
    from gantrymq.metrics.sources import Source

KEPT_S: Final = 1.0


class Endpoint:
    """Answers Prometheus and those who ask whether the process is well."""

    def __init__(
        self,
        sources: Sequence[Source],
        checks: Callable[[], Iterable[Check]],
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._checks = checks
        self._delay = LoopDelay(self._clock)
        self._sources = (*sources, OwnSource(self._delay, lambda: self._scrape_s))
        self._scrape_s = 0.0
        self._kept: tuple[float, bytes] | None = None
        self._running: asyncio.Task[bytes] | None = None
        self._http = HttpResponder(
            {"/metrics": self._metrics, "/healthz": self._alive, "/readyz": self._ready},
            always=("/healthz",),
        )
        self.address = ""
        """`host:port` where it listens."""

    async def start(self, host: str, port: int) -> None:
        """Listen; port 0 is any that is free.

        Raises:
            OSError: the address cannot be bound.
        """
        bound, number = await self._http.start(host, port)
        self.address = f"[{bound}]:{number}" if ":" in bound else f"{bound}:{number}"
        self._delay.start()

    async def stop(self) -> None:
        """Answer nobody any more."""
        self._delay.stop()
        await self._http.stop()
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def text(self) -> bytes:
        """Return the text of a scrape: the last one's, while it is new."""
        if self._kept is not None and self._clock.monotonic() - self._kept[0] < KEPT_S:
            return self._kept[1]
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._scrape())
        # One that goes away does not take the scrape from the others.
        return await asyncio.shield(self._running)

    async def _scrape(self) -> bytes:
        began = self._clock.monotonic()
        try:
            sheet, turns = Sheet(), Turns(self._clock)
            for source in self._sources:
                await source.fill(sheet, turns)
            text = await rendered(sheet, turns)
        finally:
            self._running = None
        now = self._clock.monotonic()
        self._scrape_s = now - began
        self._kept = now, text
        return text

    async def _metrics(self) -> HttpAnswer:
        return HttpAnswer(HTTPStatus.OK, CONTENT_TYPE, await self.text())

    async def _alive(self) -> HttpAnswer:
        return _told(alive())

    async def _ready(self) -> HttpAnswer:
        return _told(readiness(self._checks()))


def _told(health: Health) -> HttpAnswer:
    status = HTTPStatus.OK if health.ok else HTTPStatus.SERVICE_UNAVAILABLE
    return HttpAnswer(status, JSON, health.body + b"\n")
