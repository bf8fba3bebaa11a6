"""The table says what runs came to, the exit status whether promises were kept."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, cast

import pytest

from chaos import faults, nemesis, run
from chaos.checker import Verdict, Violation
from chaos.cluster import SETTINGS
from chaos.one_run import Machine, Plan, Result
from chaos.table import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from chaos.cluster import Cluster
    from chaos.workload import Workload

MACHINE = Machine(has_links=False, has_disks=False, has_shim=False, has_etcd=False, problems=())


def result_of(plan: Plan, *violations: Violation) -> Result:
    verdict = Verdict(1000, 900, 905, 17, list(violations))
    return Result(plan, verdict, Counter(kill=2, pause=1), 1, 3.25, 1.5, ["1.00 kill: broker1"])


def main_with(
    monkeypatch: pytest.MonkeyPatch, folder: Path, broken: Callable[[Plan], list[Violation]]
) -> int:
    """Run the program with runs that have ended already."""

    async def run_one(plan: Plan, *_rest: object) -> Result:
        await asyncio.sleep(0)
        return result_of(plan, *broken(plan))

    monkeypatch.setattr(run, "run_one", run_one)
    monkeypatch.setattr(Machine, "here", lambda: MACHINE)
    monkeypatch.setattr(tempfile, "mkdtemp", lambda prefix: str(made(folder / prefix)))
    monkeypatch.setattr(signal, "signal", lambda *_arguments: None)
    monkeypatch.setattr(
        sys, "argv", ["run.py", "--seeds", "2", "--settings", "sync-flush,failover"]
    )
    return run.main()


def made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def test_a_run_that_kept_its_promises(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main_with(monkeypatch, tmp_path, lambda _plan: []) == 0
    lines = capsys.readouterr().out.splitlines()
    heads = lines[0].split()
    assert heads[:6] == ["setting", "seed", "faults", "sent", "acknowledged", "delivered"]
    assert lines[1].split() == (
        ["sync-flush", "1", "3", "1000", "900", "905", "0", "17", "0", "0", "3.2", "1.5"]
    )
    assert [line.split()[:2] for line in lines[2:5]] == (
        [["failover", "1"], ["sync-flush", "2"], ["failover", "2"]]
    )
    assert lines[5].split()[:5] == ["all", "12", "4000", "3600", "3620"]
    assert lines[6] == "faults: 8 kill, 4 pause; 4 times two at once"
    assert list(tmp_path.iterdir()) == []


def test_a_broken_promise_is_the_exit_status_and_its_run_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(plan: Plan) -> list[Violation]:
        is_it = (plan.setting.name, plan.seed) == ("failover", 2)
        return [Violation("lost", "plain-1-17")] if is_it else []

    assert main_with(monkeypatch, tmp_path, broken) == 1
    printed = capsys.readouterr()
    assert "lost: plain-1-17" in printed.err
    (kept,) = tmp_path.iterdir()
    assert "plain-1-17" in (kept / "run.txt").read_text()


def test_violations_of_each_kind_are_counted() -> None:
    plan = Plan(SETTINGS["async-flush"], 5, 60, ["kill"])
    kinds = ["lost", "lost", "order", "early", "crash"]
    lines = table([result_of(plan, *(Violation(kind, "") for kind in kinds))]).splitlines()
    row = dict(zip(lines[0].split(), lines[1].split(), strict=False))
    assert (row["lost"], row["order"], row["other"]) == ("2", "1", "2")


def test_unknown_names_are_refused() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="no-such; known: sync-flush"):
        run.chosen("failover,no-such", dict(SETTINGS))
    assert run.chosen("all", dict(SETTINGS)) == list(SETTINGS)


def test_every_kind_comes_before_one_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []

    def drawing(name: str) -> faults.Kind:
        async def inject(_world: faults.World) -> None:
            drawn.append(name)
            await asyncio.sleep(0)

        return faults.Kind(name, inject)

    kinds = {name: drawing(name) for name in faults.KINDS}
    monkeypatch.setattr(nemesis, "KINDS", kinds)
    monkeypatch.setattr(nemesis, "QUIET_S", (0.0, 0.0))

    def schedule(seed: int) -> list[str]:
        world = faults.World(
            cast("Cluster", None), cast("Workload", None), Random(seed), lambda _text: None
        )
        drawn.clear()
        asyncio.run(nemesis.Nemesis(world, list(kinds)).run(0.05))
        return list(drawn)

    first = schedule(1)
    assert set(first[: len(kinds)]) == set(kinds)
    again = schedule(1)
    shorter = min(len(first), len(again))
    assert shorter > len(kinds)
    assert first[:shorter] == again[:shorter], "a seed decides what comes"
    assert schedule(2)[: len(kinds)] != first[: len(kinds)]
