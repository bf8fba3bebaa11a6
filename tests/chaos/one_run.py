"""One run: servers and clients are started, faults come and go, all is healed, and it is judged."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from chaos import disk, network, shim
from chaos.checker import Checker, Verdict, Violation, check
from chaos.cluster import Cluster, Places, Setting
from chaos.faults import KINDS, World
from chaos.nemesis import Nemesis
from chaos.workload import Workload, now
from support import tools

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterator, Sequence

HEAL_S_MAX: Final = 60.0
"""From the last fault to the last message."""
SETTLE_S: Final = 2.0
"""Behind the last message, for what should not come."""
LOOK_S: Final = 0.3
PROGRESS_S: Final = 10.0
SPARE_S: Final = 90.0
"""What a run may take besides its faults and HEAL_S_MAX: to start, to read everything."""
DISK_MEBIBYTES: Final = 96
GROWTH_MEBIBYTES: Final = 2
"""For each second."""


class Machine(NamedTuple):
    """What can be done on this machine."""

    has_links: bool
    has_disks: bool
    has_shim: bool
    has_etcd: bool
    problems: tuple[str, ...]

    @classmethod
    def here(cls) -> Self:
        """Try everything."""
        with tempfile.TemporaryDirectory() as folder:
            disks = disk.problem(Path(folder))
        links, etcd = network.problem(), tools.problem("etcd")
        compiler = None if shim.compiler() else "no C compiler for the faults of disk and clock"
        problems = tuple(why for why in (links, disks, compiler, etcd) if why)
        return cls(links is None, disks is None, compiler is None, etcd is None, problems)

    def possible(self, kinds: Sequence[str]) -> list[str]:
        """Return those kinds of fault that can be had."""
        there = {
            "": True, "links": self.has_links, "shim": self.has_shim, "etcd": self.has_etcd,
            "disk or shim": self.has_disks or self.has_shim,
        }  # fmt: skip
        return [kind for kind in kinds if there[KINDS[kind].needs]]


class Plan(NamedTuple):
    """What a run is to be."""

    setting: Setting
    seed: int
    seconds: float
    kinds: Sequence[str]


@dataclass
class Result:
    """What came of it."""

    plan: Plan
    verdict: Verdict
    injected: Counter[str]
    both: int
    outage_s: float
    healed_s: float
    """From the last fault's end until everything promised had come."""
    timeline: list[str]
    ends: list[str] = field(default_factory=list)
    """Servers that ended by themselves."""

    @property
    def is_kept(self) -> bool:
        """Say whether every promise was."""
        return not self.verdict.violations


async def run_one(
    plan: Plan, folder: Path, machine: Machine, say: Callable[[str], object]
) -> Result:
    """Run it; nothing is left behind but the folder."""
    with ExitStack() as stack:
        stack.enter_context(_client_log(folder / "clients.log"))
        places = Places(
            stack,
            folder,
            network.Network(stack, namespaces=machine.has_links),
            shim.compiled(folder) if machine.has_shim else None,
            DISK_MEBIBYTES + int(plan.seconds * GROWTH_MEBIBYTES) if machine.has_disks else 0,
        )
        cluster = Cluster(places, plan.setting)
        workload = Workload(cluster.name_addresses, Random(f"clients {plan.seed}"))
        async with asyncio.timeout(plan.seconds + HEAL_S_MAX + SPARE_S):
            try:
                return await Run(plan, cluster, workload, say).go()
            finally:
                cluster.heal()  # so that clients can say goodbye
                await workload.close()


@contextmanager
def _client_log(path: Path) -> Iterator[None]:
    """Write what clients have to say about so many faults into a file of their own."""
    logger, handler = logging.getLogger("gantrymq"), logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s"))
    propagates, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagates
        handler.close()


class Run:
    """The course of a run."""

    def __init__(
        self, plan: Plan, cluster: Cluster, workload: Workload, say: Callable[[str], object]
    ) -> None:
        self._plan, self._cluster, self._workload, self._say = plan, cluster, workload, say
        self._begun = self._healed = now()
        world = World(
            cluster, workload, Random(f"faults {plan.seed} {plan.setting.name}"), lambda _text: None
        )
        kinds = [kind for kind in plan.kinds if kind != "etcd" or plan.setting.has_etcd]
        self._world, self._nemesis = world, Nemesis(world, kinds)

    async def go(self) -> Result:
        """Do it all."""
        self._cluster.start()
        for broker in self._cluster.brokers:
            self._world.set_clock(broker, 0.0)
        await self._workload.start()
        begun = now()
        looking = asyncio.create_task(self._look_after())
        try:
            await self._nemesis.run(self._plan.seconds)
            self._cluster.heal()
            self._nemesis.let_everything_be_due()
            ended = now()
            await self._workload.join_all()
            await self._workload.stop_sending()
            await self._until_delivered()
            await self._workload.read_all()
        finally:
            looking.cancel()
        return self._judged(begun, ended)

    async def _look_after(self) -> None:
        """Start servers again, and say how it goes."""
        said = now()
        while True:
            await asyncio.sleep(LOOK_S)
            self._cluster.look_after()
            if now() - said >= PROGRESS_S:
                said = now()
                history = self._workload.history
                self._say(
                    f"  {self._plan.setting.name}, seed {self._plan.seed}: {said - self._begun:.0f}"
                    f" s, {len(history.attempts)} sent, {len(history.acknowledged_at)}"
                    f" acknowledged, {len(history.deliveries)} delivered; {self._nemesis.now}\n"
                )

    async def _until_delivered(self) -> None:
        """Wait for what is promised, and a little longer for what should not come."""
        deadline = now() + HEAL_S_MAX
        while Checker(self._workload.history).missing():
            if now() > deadline:
                break
            await asyncio.sleep(LOOK_S)
        self._healed = now()
        await asyncio.sleep(SETTLE_S)

    def _judged(self, begun: float, ended: float) -> Result:
        history = self._workload.history
        verdict = check(history)
        verdict.violations += [Violation("crash", text) for text in self._cluster.crashes]
        return Result(
            self._plan,
            verdict,
            self._nemesis.injected,
            self._nemesis.both,
            history.longest_outage_s(begun, ended),
            self._healed - ended,
            [f"{at:.2f} {text}" for at, text in self._nemesis.timeline],
            [f"{one.name} {one.ends}" for one in self._cluster.servers if one.ends],
        )
