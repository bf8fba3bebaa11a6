"""Figures over time: brokers are asked every few seconds, and the last while is kept.

Rates come from the brokers' own counters, so a sample that is late or missing makes no false peak:
the next one divides by the time that has passed. A broker that does not answer leaves a gap with
its reason. While nobody looks, samples are taken rarely.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.admin import brokers as brokers_of
from gantrymq.errors import GantryError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.admin.session import Session

EVERY_S: Final = 2.0
IDLE_EVERY_S: Final = 15.0
LOOKED_AT_S: Final = 60.0
"""So long after the last look, somebody counts as looking."""
SAMPLES_MAX: Final = 900
BROKERS_MAX: Final = 256
FIGURE_MAX: Final = 2.0**63

logger = logging.getLogger(__name__)


class Figures(NamedTuple):
    """What one broker said, and what follows from what it said before."""

    in_per_s: float | None
    out_per_s: float | None
    put_p99_ms: float | None
    put_p999_ms: float | None
    answer_ms: float
    """How long the dashboard waited for it."""


class Sample(NamedTuple):
    """One moment."""

    time_ms: int
    brokers: dict[str, Figures]
    problems: dict[str, str]


class Sampler:
    """Takes samples until it is stopped."""

    def __init__(self, session: Session, samples_max: int = SAMPLES_MAX) -> None:
        self._session = session
        self._samples: deque[Sample] = deque(maxlen=samples_max)
        self._before: dict[str, tuple[float, int, int]] = {}
        self._looked_at_s = session.clock.monotonic()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.ensure_future(self._run())

    async def stop(self) -> None:
        """End."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def since(self, time_ms: int) -> list[Sample]:
        """Return the samples after a time; somebody looks at them."""
        now = self._session.clock.monotonic()
        if now - self._looked_at_s > LOOKED_AT_S:
            self._wake.set()
        self._looked_at_s = now
        return [sample for sample in self._samples if sample.time_ms > time_ms]

    async def _run(self) -> None:
        while True:
            try:
                await self.take()
            except GantryError as error:
                self._note("name servers", str(error))
            except Exception:
                # One sample that cannot be taken must not be the end of all later ones.
                logger.exception("dashboard: a sample was not taken")
                self._note("dashboard", "a sample was not taken; the log says why")
            idle = self._session.clock.monotonic() - self._looked_at_s > LOOKED_AT_S
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), IDLE_EVERY_S if idle else EVERY_S)
            except TimeoutError:
                continue

    def _note(self, who: str, problem: str) -> None:
        self._samples.append(Sample(self._session.clock.now_ms(), {}, {who: problem}))

    async def take(self) -> Sample:
        """Take one sample.

        Raises:
            GantryError: no name server answers.
        """
        clock = self._session.clock
        masters = dict(list((await self._session.masters()).items())[:BROKERS_MAX])

        async def ask(name: str) -> tuple[float, float, dict[str, str]]:
            begun = clock.monotonic()
            told = await brokers_of.runtime_info(self._session, masters[name])
            return begun, clock.monotonic(), told

        answers = await self._session.gather(masters, ask)
        found = {
            name: self._figures(name, begun, ended, told)
            for name, (begun, ended, told) in answers.found.items()
        }
        for name in set(self._before) - set(answers.found):
            del self._before[name]
        problems = {name: str(error) for name, error in answers.problems.items()}
        sample = Sample(clock.now_ms(), found, problems)
        self._samples.append(sample)
        return sample

    def _figures(self, name: str, begun: float, ended: float, told: Mapping[str, str]) -> Figures:
        count_in = int(number(told.get("msgPutTotalTodayNow")) or 0)
        count_out = int(number(told.get("msgGetTotalTodayNow")) or 0)
        rates: list[float | None] = [None, None]
        before = self._before.get(name)
        if before is not None and begun > before[0]:
            seconds = begun - before[0]
            for at, more in enumerate((count_in - before[1], count_out - before[2])):
                rates[at] = more / seconds if more >= 0 else None  # it was started again
        self._before[name] = begun, count_in, count_out
        return Figures(
            rates[0], rates[1], number(told.get("putLatency99")),
            number(told.get("putLatency999")), (ended - begun) * 1000,
        )  # fmt: skip


def number(text: str | None) -> float | None:
    """Return the first number of a broker's figure, or None if it has none.

    What is not finite, or beyond a counter's 64 bits, is none: nothing can be reckoned with it.
    """
    try:
        found = float((text or "").split()[0])
    except (ValueError, IndexError):
        return None
    return found if abs(found) < FIGURE_MAX else None
