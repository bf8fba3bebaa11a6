"""A broker that is offered a multiple of what it can take in, over many connections.

python -m bench.overload                          500 connections, 3 times the capacity, 20 s
python -m bench.overload --seconds 2 --connections 100

First the capacity: as many sends as are answered when every connection always has some in flight.
Then, open loop: half of it for a while, the multiple of it, and half of it again. What is required:
accepted sends are answered within a second (p99), everything else is refused with the cause, memory
stays flat, and five seconds after the overload all is as before.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from bench.compare.brokers import OURS, NotMeasured, memory, started
from bench.open_load import OpenLoad, OpenLoader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.open_load import Tally

SETTINGS: Final = {
    "mappedFileSizeCommitLog": str(1 << 30),
    "maxHashSlotNum": "500000",
    "maxIndexNum": "2000000",
}
IN_FLIGHT: Final = 3000
"""On all connections while the capacity is measured: enough to keep the broker busy."""
WARM_S: Final = 2.0
CALM: Final = 0.5
"""Of the capacity, before and after."""
SAMPLE_S: Final = 0.1
P99_MS_MAX: Final = 1000.0
RECOVERED_S_MAX: Final = 5.0
RECOVERED_MS: Final = 100.0
"""An interval is as before if nothing in it was refused and its p99 is below this."""
GROWTH_MIB_MAX: Final = 64.0
UNSENT_MAX: Final = 0.001


class Plan(NamedTuple):
    """What is done."""

    connections: int = 500
    factor: float = 3.0
    seconds: float = 20.0
    body_bytes: int = 128

    @property
    def calm_s(self) -> float:
        """Return how long it is calm before; it is for longer afterwards."""
        return min(3.0, self.seconds)


class Outcome(msgspec.Struct):
    """What was found."""

    connections: int
    capacity: float
    """Sends a second."""
    offered: float
    """The same, while it was overloaded."""
    accepted: float
    refused: float
    accepted_p50_ms: float
    accepted_p99_ms: float
    accepted_max_ms: float
    refused_p99_ms: float
    unsent: int
    unanswered: int
    causes: dict[str, int]
    memory_before_mib: float
    memory_most_mib: float
    memory_after_mib: float
    recovered_s: float
    generator_late_ms: float

    @property
    def problems(self) -> list[str]:
        """Return what is not as it must be."""
        growth = self.memory_most_mib - self.memory_before_mib
        return [
            text
            for is_bad, text in (
                (self.accepted_p99_ms > P99_MS_MAX, f"p99 is above {P99_MS_MAX:g} ms"),
                (self.unanswered > 0, "some were never answered"),
                (self.unsent > UNSENT_MAX * self.offered, "the broker did not read all of it"),
                ("none" in self.causes, "some were refused without a cause"),
                (growth > GROWTH_MIB_MAX, f"memory grew by more than {GROWTH_MIB_MAX:g} MiB"),
                (self.recovered_s > RECOVERED_S_MAX, f"not back in {RECOVERED_S_MAX:g} s"),
            )
            if is_bad
        ]


class _Watch:
    """Looks at the memory of a process all the time."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._stop = threading.Event()
        self.most = 0.0
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def _look(self) -> None:
        while not self._stop.wait(SAMPLE_S):
            self.most = max(self.most, memory(self._pid).private)

    def end(self) -> float:
        """Return the most there was."""
        self._stop.set()
        self._thread.join()
        return self.most


def measured(plan: Plan, work: Path) -> Outcome:
    """Do it.

    Raises:
        NotMeasured: the broker or the generator cannot be had.
    """
    loader = OpenLoader(work)
    settings = SETTINGS | {"storePathRootDir": str(work / "store")}
    with started(OURS, work / "broker", settings) as broker:
        port, pid = broker.process.port, broker.process.pid
        most_s = max(plan.seconds / 2, 1.0)
        window = max(IN_FLIGHT // plan.connections, 1)
        found = loader.run(
            port, plan.connections, plan.body_bytes, [f"w{window}:{WARM_S}", f"w{window}:{most_s}"]
        )
        capacity = found.phases[1].accepted / most_s
        before = memory(pid).private
        watch = _Watch(pid)
        calm = capacity * CALM
        try:
            load = loader.run(
                port, plan.connections, plan.body_bytes,
                [f"{calm:.0f}:{plan.calm_s}", f"{capacity * plan.factor:.0f}:{plan.seconds}",
                 f"{calm:.0f}:{plan.calm_s + RECOVERED_S_MAX}"],
            )  # fmt: skip
        finally:
            most = watch.end()
        after = memory(pid).private
    return _outcome(plan, capacity, load, (before, most, after))


def _outcome(
    plan: Plan, capacity: float, load: OpenLoad, memories: tuple[float, float, float]
) -> Outcome:
    over = load.phases[1]
    return Outcome(
        connections=plan.connections,
        capacity=round(capacity),
        offered=round(over.offered / plan.seconds),
        accepted=round(over.accepted / plan.seconds),
        refused=round(over.refused / plan.seconds),
        accepted_p50_ms=over.p50_ms,
        accepted_p99_ms=over.p99_ms,
        accepted_max_ms=over.max_ms,
        refused_p99_ms=over.refused_p99_ms,
        unsent=sum(one.unsent for one in load.phases),
        unanswered=sum(one.unanswered for one in load.phases),
        causes=load.causes,
        memory_before_mib=memories[0],
        memory_most_mib=memories[1],
        memory_after_mib=memories[2],
        recovered_s=recovered_s(load.intervals, plan.calm_s + plan.seconds),
        generator_late_ms=load.late_ms,
    )


def recovered_s(intervals: Sequence[Tally], end_s: float) -> float:
    """Return how long after `end_s` the last interval ended that was not as before."""
    bad = [
        one.at_s + one.seconds
        for one in intervals
        if one.at_s >= end_s and (one.refused or one.p99_ms > RECOVERED_MS or one.unanswered)
    ]
    return round(max(bad, default=end_s) - end_s, 3)


def table(outcome: Outcome) -> str:
    """Return it for people."""
    rows = [
        ("connections", f"{outcome.connections}"),
        ("capacity", f"{outcome.capacity:,.0f} sends/s"),
        ("offered", f"{outcome.offered:,.0f} /s ({outcome.offered / outcome.capacity:.2f} x)"),
        ("accepted", f"{outcome.accepted:,.0f} /s"),
        ("refused", f"{outcome.refused:,.0f} /s, {outcome.causes}"),
        ("accepted, p50", f"{outcome.accepted_p50_ms:.1f} ms"),
        ("accepted, p99", f"{outcome.accepted_p99_ms:.1f} ms"),
        ("accepted, at most", f"{outcome.accepted_max_ms:.1f} ms"),
        ("refused, p99", f"{outcome.refused_p99_ms:.1f} ms"),
        ("never answered, unsent", f"{outcome.unanswered}, {outcome.unsent}"),
        ("memory before, at most", f"{outcome.memory_before_mib}, {outcome.memory_most_mib} MiB"),
        ("memory after", f"{outcome.memory_after_mib} MiB"),
        ("as before", f"{outcome.recovered_s:g} s after the end"),
        ("generator late", f"{outcome.generator_late_ms:.1f} ms at worst"),
    ]  # fmt: skip
    lines = [f"{name:<24} {text}" for name, text in rows]
    return "\n".join([*lines, *(f"NOT AS REQUIRED: {one}" for one in outcome.problems)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and tell by the status whether all is as required."""
    parser = argparse.ArgumentParser(prog="python -m bench.overload", description=__doc__)
    parser.add_argument("--connections", type=int, default=500)
    parser.add_argument("--factor", type=float, default=3.0, help="of the capacity")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--body", type=int, default=128, help="bytes of a message")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    given = parser.parse_args(arguments)
    plan = Plan(given.connections, given.factor, given.seconds, given.body)
    with tempfile.TemporaryDirectory(prefix="overload-") as folder:
        try:
            outcome = measured(plan, Path(folder))
        except NotMeasured as error:
            print(f"not measured: {error}", file=sys.stderr)
            return 1
    print(table(outcome))
    if given.json:
        given.json.write_bytes(msgspec.json.format(msgspec.json.encode(outcome), indent=2))
    return 1 if outcome.problems else 0


if __name__ == "__main__":
    sys.exit(main())
