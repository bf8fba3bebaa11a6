"""Rates out of counters: gaps where nothing was said, no peaks that there were not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from gantrymq.admin.session import Gathered
from gantrymq.dashboard import sampling
from gantrymq.dashboard.api.brokers import _row
from gantrymq.dashboard.sampling import Sampler, number
from gantrymq.errors import GantryError
from gantrymq.testing.clock import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    import pytest


class Cluster:
    """A session's part that samples use, with brokers that say what a test wants."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.told: dict[str, dict[str, str] | GantryError] = {}

    async def masters(self) -> dict[str, str]:
        return {name: name for name in self.told}

    async def gather(
        self, keys: Iterable[str], ask: Callable[[str], Awaitable[object]]
    ) -> Gathered[str, object]:
        gathered: Gathered[str, object] = Gathered()
        for key in keys:
            try:
                gathered.found[key] = await ask(key)
            except GantryError as error:
                gathered.problems[key] = error
        return gathered

    def say(self, name: str, count_in: int, count_out: int, **more: str) -> None:
        self.told[name] = {
            "msgPutTotalTodayNow": str(count_in), "msgGetTotalTodayNow": str(count_out), **more
        }  # fmt: skip


async def info(session: Cluster, address: str) -> dict[str, str]:
    said = session.told[address]
    if isinstance(said, GantryError):
        raise said
    return said


def test_rates_follow_from_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gantrymq.admin.brokers.runtime_info", info)
    cluster = Cluster()

    async def run() -> None:
        sampler = Sampler(cluster, samples_max=5)  # type: ignore[arg-type]
        cluster.say("a", 100, 10, putLatency99="1.50")
        first = (await sampler.take()).brokers["a"]
        assert (first.in_per_s, first.out_per_s, first.put_p99_ms) == (None, None, 1.5)
        assert first.put_p999_ms is None
        cluster.clock.jump(2)
        cluster.say("a", 300, 10)
        second = (await sampler.take()).brokers["a"]
        assert (second.in_per_s, second.out_per_s) == (100.0, 0.0)
        cluster.clock.jump(2)
        cluster.told["a"] = GantryError("away")
        silent = await sampler.take()
        assert (silent.brokers, silent.problems) == ({}, {"a": "away"})
        cluster.clock.jump(2)
        cluster.say("a", 5, 5)
        assert (await sampler.take()).brokers["a"].in_per_s is None
        cluster.clock.jump(2)
        cluster.say("a", 3, 5)  # started again
        again = (await sampler.take()).brokers["a"]
        assert (again.in_per_s, again.out_per_s) == (None, 0.0)
        for _ in range(9):
            cluster.clock.jump(1)
            await sampler.take()
        kept = sampler.since(0)
        assert len(kept) == 5
        assert sampler.since(kept[-2].time_ms) == kept[-1:]

    asyncio.run(run())


def test_figures_that_are_none() -> None:
    assert [number(text) for text in (None, "", "  ", "x", "1.5 2 3", "0.29")] == [
        None, None, None, None, 1.5, 0.29,
    ]  # fmt: skip
    odd = ("nan", "inf", "-inf", "1e999", "1e300", "-1e300 3")
    assert [number(text) for text in odd] == [None] * len(odd)


def test_odd_figures_hide_no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gantrymq.admin.brokers.runtime_info", info)
    cluster = Cluster()
    cluster.say("a", 1, 1)
    cluster.told["b"] = {"msgPutTotalTodayNow": "nan", "msgGetTotalTodayNow": "inf"}
    sample = asyncio.run(Sampler(cluster).take())  # type: ignore[arg-type]
    assert set(sample.brokers) == {"a", "b"}
    row = _row({"putTps": "inf", "msgPutTotalTodayNow": "nan", "msgPutTotalTodayMorning": "1e308"})
    assert (row["inPerS"], row["inToday"]) == (None, None)


def test_a_sample_that_fails_is_not_the_last_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sampling, "EVERY_S", 0.01)
    tries: list[int] = []

    async def run() -> None:
        sampler = Sampler(Cluster())  # type: ignore[arg-type]
        enough = asyncio.Event()

        async def fail() -> None:
            tries.append(1)
            if len(tries) == 3:
                enough.set()
            raise ValueError("odd")

        monkeypatch.setattr(sampler, "take", fail)
        sampler.start()
        await asyncio.wait_for(enough.wait(), 5)
        await sampler.stop()
        assert sampler.since(0)[0].problems.keys() == {"dashboard"}

    asyncio.run(run())
    assert "odd" in caplog.text
