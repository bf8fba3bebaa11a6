"""Two brokers at 70 % of what they can take in, for hours, restarted in turn: does anything grow?

python -m bench.soak --hours 4                    into build/soak: samples.csv, soak.svg
python -m bench.soak --hours 0.01 --lives 2

The capacity of both together is measured first. Each then gets its part of the load (open loop) in
lives of equal length, and is stopped in good order and started again on its store in between, when
the other one is in the middle of a life. Private memory (RssAnon), open files and the latency of
sends are written down all the time. The status is 1 if a slope of memory, files or latency can be
told from zero (99 %), or a send had no answer.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from bench.compare.brokers import OURS, NotMeasured, started
from bench.open_load import OpenLoader
from bench.soak.lives import SETTINGS, Load, run_life
from bench.soak.plot import svg
from bench.soak.trends import Sample, Trend, trend

if TYPE_CHECKING:
    from collections.abc import Sequence

BROKERS: Final = ("broker-a", "broker-b")
JUDGED: Final = ("rss_anon_mib", "open_files", "p99_ms")
SHOWN: Final = (*JUDGED, "p50_ms")
WINDOW: Final = 8
CAPACITY_S: Final = 5.0
SAMPLES_A_LIFE_MAX: Final = 600


class Plan(NamedTuple):
    """What is done."""

    hours: float
    lives: int = 6
    """Of each broker."""
    share: float = 0.7
    connections: int = 32
    """Of each broker."""
    body_bytes: int = 128
    capacity_s: float = CAPACITY_S

    @property
    def life_s(self) -> float:
        """Return how long a life is."""
        return self.hours * 3600 / self.lives

    @property
    def sample_s(self) -> float:
        """Return the time between two looks."""
        return max(self.life_s / SAMPLES_A_LIFE_MAX, min(1.0, self.life_s / 10))


class Soaked(NamedTuple):
    """What was found."""

    capacity: float
    samples: list[Sample]
    trends: dict[str, Trend]

    @property
    def is_flat(self) -> bool:
        """Tell whether nothing grows that must not."""
        return all(self.trends[name].is_flat for name in JUDGED)


def soaked(plan: Plan, work: Path) -> Soaked:
    """Do it.

    Raises:
        NotMeasured: a broker or the generator does not do what it must.
    """
    loader = OpenLoader(work)
    capacity = capacity_of_both(loader, plan, work)
    load = Load(
        capacity * plan.share / len(BROKERS), plan.connections, plan.body_bytes, plan.sample_s
    )
    begun = time.monotonic()

    def all_lives(number: int) -> list[Sample]:
        """Live so often; the lives of the second broker begin in the middle of the first's."""
        name, found = BROKERS[number], []
        for life in range(plan.lives):
            seconds = plan.life_s * (1.5 if life == 0 and number else 1.0)
            found += run_life(loader, work / name, name, life, seconds, load, begun)
        return found

    with ThreadPoolExecutor(len(BROKERS)) as pool:
        samples = [one for found in pool.map(all_lives, range(len(BROKERS))) for one in found]
    samples.sort()
    return Soaked(capacity, samples, {name: trend(samples, name) for name in SHOWN})


def capacity_of_both(loader: OpenLoader, plan: Plan, work: Path) -> float:
    """Return how many sends a second both take in at the same time."""

    def most(name: str) -> float:
        folder = work / f"capacity-{name}"
        with started(OURS, folder, SETTINGS | {"storePathRootDir": str(folder)}) as broker:
            phases = [f"w{WINDOW}:{plan.capacity_s / 3:.2f}", f"w{WINDOW}:{plan.capacity_s:.2f}"]
            found = loader.run(broker.process.port, plan.connections, plan.body_bytes, phases)
        return found.phases[1].accepted / plan.capacity_s

    with ThreadPoolExecutor(len(BROKERS)) as pool:
        return sum(pool.map(most, BROKERS))


def write_down(found: Soaked, folder: Path) -> None:
    """Write the samples as a table and as a picture."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "samples.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(Sample._fields)
        writer.writerows(found.samples)
    (folder / "soak.svg").write_text(svg(found.samples), encoding="utf-8")


def table(found: Soaked, plan: Plan) -> str:
    """Return it for people."""
    sent = sum(one.sent_per_s for one in found.samples) * plan.sample_s
    refused = sum(one.refused for one in found.samples)
    lines = [
        f"capacity {found.capacity:,.0f} sends/s; {plan.share:.0%} of it for {plan.hours:g} h",
        f"{sent:,.0f} sends, {refused} refused; {plan.lives} lives of each broker",
        f"{'':<14} {'within lives':<46} from life to life",
    ]
    for name, way in found.trends.items():
        within, between = (str(one) if one is not None else "too short to tell" for one in way)
        lines.append(f"{name:<14} {within:<46} {between}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak, write down, and tell by the status whether all is flat."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--hours", type=float, default=4.0)
    parser.add_argument("--lives", type=int, default=6, help="of each broker")
    parser.add_argument("--connections", type=int, default=32, help="of each broker")
    parser.add_argument("--body", type=int, default=128, help="bytes of a message")
    parser.add_argument("--out", type=Path, default=Path("build/soak"))
    given = parser.parse_args(arguments)
    plan = Plan(given.hours, given.lives, connections=given.connections, body_bytes=given.body)
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        try:
            found = soaked(plan, Path(folder))
        except NotMeasured as error:
            print(f"not measured: {error}", file=sys.stderr)
            return 1
    write_down(found, given.out)
    print(table(found, plan))
    print(f"{given.out / 'samples.csv'}, {given.out / 'soak.svg'}")
    return 0 if found.is_flat else 1


if __name__ == "__main__":
    sys.exit(main())
