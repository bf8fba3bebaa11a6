"""Does a series go up? A slope with its confidence interval, which holds zero or does not.

Samples of one process that follow each other are alike, so many of them say less than their number.
What is compared is therefore lives: of each life of a process (from one restart to the next) the
slope behind its warm-up, and of all lives the middle, against the time of day. The mean of the
first over all lives, and the slope of the second, have the intervals of Student's t.
"""

from __future__ import annotations

from itertools import groupby
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

HOUR_S: Final = 3600.0
WARM_PART: Final = 0.3
"""Of a life that is left out: caches fill, and the system learns who is busy."""
_T99: Final = (
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012,
    2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779,
    2.771, 2.763, 2.756, 2.750,
)  # fmt: skip
"""Student's t for 99 % on both sides, from one degree of freedom on."""
_NORMAL99: Final = 2.576
SAMPLES_MIN: Final = 3


class Sample(NamedTuple):
    """What was seen of a broker at one moment."""

    at_s: float
    broker: str
    life: int
    age_s: float
    rss_anon_mib: float
    open_files: int
    sent_per_s: float = 0.0
    refused: int = 0
    p50_ms: float = 0.0
    p99_ms: float = 0.0


class Slope(NamedTuple):
    """How much something changes in an hour, with the interval that holds it 99 times of 100."""

    per_hour: float
    low: float
    high: float

    @property
    def is_flat(self) -> bool:
        """Tell whether it cannot be told from zero."""
        return self.low <= 0.0 <= self.high

    def __str__(self) -> str:
        """Return it for people."""
        verdict = "flat" if self.is_flat else "NOT FLAT"
        return f"{self.per_hour:+.3f}/h [{self.low:+.3f}, {self.high:+.3f}] {verdict}"


class Trend(NamedTuple):
    """A value within lives, and from life to life; None where there is too little to tell."""

    within: Slope | None
    between: Slope | None

    @property
    def is_flat(self) -> bool:
        """Tell whether neither can be told from zero."""
        return all(one is None or one.is_flat for one in self)


def student(degrees: int) -> float:
    """Return Student's t."""
    return _T99[degrees - 1] if 1 <= degrees <= len(_T99) else _NORMAL99


def line_slope(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the slope of the least squares line through points, and its standard error."""
    middle_x = fmean(x for x, _ in points)
    middle_y = fmean(y for _, y in points)
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    if not spread:
        return 0.0, 0.0
    slope = sum((x - middle_x) * (y - middle_y) for x, y in points) / spread
    left = sum((y - middle_y - slope * (x - middle_x)) ** 2 for x, y in points)
    return slope, (left / max(len(points) - 2, 1) / spread) ** 0.5


def lives_of(samples: Iterable[Sample]) -> list[list[Sample]]:
    """Return the samples of each life without its warm-up."""
    found = []
    key: Callable[[Sample], tuple[str, int]] = lambda one: (one.broker, one.life)  # noqa: E731
    for _, group in groupby(sorted(samples, key=key), key):
        life = list(group)
        warm_s = WARM_PART * max(one.age_s for one in life)
        kept = [one for one in life if one.age_s >= warm_s]
        if len(kept) >= SAMPLES_MIN:
            found.append(kept)
    return found


def trend(samples: Iterable[Sample], name: str) -> Trend:
    """Return how a column of the samples goes."""
    lives = lives_of(samples)
    return Trend(_within(lives, name), _between(lives, name))


def _within(lives: Sequence[Sequence[Sample]], name: str) -> Slope | None:
    slopes = [
        line_slope([(one.age_s / HOUR_S, float(getattr(one, name))) for one in life])
        for life in lives
    ]
    if not slopes:
        return None
    if len(slopes) == 1:  # its own error is all there is
        (slope, error), count = slopes[0], len(lives[0])
        reach = student(count - 2) * error
        return Slope(slope, slope - reach, slope + reach)
    means = [slope for slope, _ in slopes]
    reach = student(len(means) - 1) * stdev(means) / len(means) ** 0.5
    return Slope(fmean(means), fmean(means) - reach, fmean(means) + reach)


def _between(lives: Sequence[Sequence[Sample]], name: str) -> Slope | None:
    """Return the slope of the lives' medians; each broker is measured against its own mean."""
    points: list[tuple[float, float]] = []
    brokers = {life[0].broker for life in lives}
    for broker in sorted(brokers):
        mine = [
            (
                fmean(one.at_s for one in life) / HOUR_S,
                median(float(getattr(one, name)) for one in life),
            )
            for life in lives
            if life[0].broker == broker
        ]
        mean = fmean(value for _, value in mine)
        points += [(moment, value - mean) for moment, value in mine]
    degrees = len(points) - len(brokers) - 1
    if degrees < 1:
        return None
    slope, error = line_slope(points)
    reach = student(degrees) * error
    return Slope(slope, slope - reach, slope + reach)
