"""A broker group under a thousand seeds of trouble; `make simulate` runs as many as one likes.

A failure names its seed; `make simulate FIRST=seed SEEDS=1` runs it again.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from gantrymq.cluster import election
from gantrymq.cluster.failover import Failover
from gantrymq.cluster.in_sync import InSyncSet, Progress
from support.cluster_world import Violation, World

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SEEDS = 1000
CHUNK = 100


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Elections are said in the log, thousands of them."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def violation_of(seed: int) -> str | None:
    try:
        World(seed).run()
    except Violation as error:
        return f"seed {seed}: {error}; make simulate FIRST={seed} SEEDS=1"
    return None


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_nothing_acknowledged_is_lost(first: int) -> None:
    found = [violation_of(seed) for seed in range(first, first + CHUNK)]
    assert [one for one in found if one] == []


def test_a_seed_that_once_failed() -> None:
    """A power cut, and a kill before the broker had left the in-sync set: it is still doubtful."""
    assert violation_of(36321) is None


def test_the_seeds_meet_what_they_are_for() -> None:
    worlds = []
    for seed in range(40):
        worlds.append(World(seed))
        worlds[-1].run()
    assert sum(len(world.acknowledged) for world in worlds) > 40 * 10
    assert sum(len(world.masters) for world in worlds) > 40 * 1.5, "masters are replaced"


class TestItWouldBeSeen:
    """Rules that are left out show within a few hundred seeds."""

    def is_seen(self, seeds: int = 400) -> bool:
        return any(violation_of(seed) for seed in range(seeds))

    def test_if_one_of_several_slaves_were_enough(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def best(self: InSyncSet, reported: Mapping[int, int]) -> int | None:
            return max((reported[one] for one in self.required if one in reported), default=None)

        monkeypatch.setattr(InSyncSet, "replicated", best)
        assert self.is_seen()

    def test_if_anybody_could_be_elected(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(election, "_why_not_master", lambda *_: None)
        assert self.is_seen()

    def test_if_a_master_did_not_look_at_its_lease(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Failover, "may_reign", lambda _: True)
        assert self.is_seen()

    def test_if_consumers_were_shown_what_slaves_lack(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(InSyncSet, "shown_until", lambda *_: None)
        assert self.is_seen()

    def test_if_one_came_in_who_lacks_what_was_shown(self, monkeypatch: pytest.MonkeyPatch) -> None:
        look = InSyncSet.look

        def careless(self: InSyncSet, now: Progress, at: float) -> frozenset[int] | None:
            return look(self, now._replace(shown=0), at)

        monkeypatch.setattr(InSyncSet, "look", careless)
        assert self.is_seen()
