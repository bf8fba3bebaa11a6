"""Waiting pulls by themselves: who is woken, who is over, and that nothing is kept of them."""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from gantrymq.broker import hold
from gantrymq.broker.hold import HeldPulls
from gantrymq.kernel import QueueRun
from gantrymq.testing.clock import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


class World:
    """Held pulls that note when they are run: (name, last)."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.calls: list[Callable[[], None]] = []
        self.held = HeldPulls(self.clock, self.calls.append)
        self.ran: list[tuple[str, bool]] = []

    def hold(
        self, name: str, timeout_ms: int = 1000, topic: str = "T", tag: int | None = None
    ) -> hold.Held | None:
        wanted = None if tag is None else lambda code: code == tag
        return self.held.hold(
            topic, 0, timeout_ms, lambda last: self.ran.append((name, last)), wanted
        )

    def arrive(self, *tags: int, topic: str = "T") -> None:
        units = b"".join(struct.pack(">qiq", 0, 1, tag) for tag in tags)
        self.held.arrived([QueueRun(topic.encode(), 0, 0, units, 0, 0)])

    def turn(self) -> None:
        calls, self.calls[:] = list(self.calls), []
        for call in calls:
            call()


def test_those_who_want_it_are_woken_once_in_the_next_turn() -> None:
    world = World()
    world.hold("any")
    world.hold("seven", tag=7)
    world.hold("nine", tag=9)
    world.arrive(1, 7)
    world.arrive(7)
    assert world.ran == []
    world.turn()
    assert world.ran == [("any", False), ("seven", False)]
    assert len(world.held) == 1
    world.arrive(9, topic="Other")
    world.turn()
    assert len(world.held) == 1


def test_those_whose_time_is_over_run_a_last_time() -> None:
    world = World()
    world.hold("late", 2000)
    world.hold("early", 1000)
    assert world.held.expire(0.9) == 1.0
    assert world.held.expire(1.0) == 2.0
    assert world.ran == [("early", True)]
    assert world.held.expire(5.0) is None
    assert world.ran == [("early", True), ("late", True)]
    assert len(world.held) == 0


def test_the_owner_is_told_of_an_earlier_deadline_only() -> None:
    world = World()
    told: list[float] = []
    world.held.sooner = told.append
    world.hold("a", 2000)
    world.hold("b", 3000)
    world.hold("c", 1000)
    assert told == [2.0, 1.0]


def test_one_that_fails_takes_nobody_with_it(caplog: pytest.LogCaptureFixture) -> None:
    world = World()

    def fails(_last: bool) -> None:
        raise ZeroDivisionError("on purpose")

    world.held.hold("T", 0, 1000, fails)
    world.hold("b")
    world.arrive(1)
    world.turn()
    assert world.ran == [("b", False)]
    assert len(world.held) == 0
    assert "on purpose" in caplog.text


def test_a_dropped_pull_is_never_run() -> None:
    world = World()
    first, second = world.hold("first"), world.hold("second")
    assert first is not None
    assert second is not None
    world.held.drop("T", 0, first)
    world.arrive(1)
    world.held.drop("T", 0, second)  # woken, and its sender left before its turn
    world.turn()
    world.held.expire(10)
    assert world.ran == []
    assert len(world.held) == 0


def test_releases() -> None:
    world = World()
    world.hold("a")
    world.hold("b", topic="U")
    world.held.release_queue("T", 0)
    assert world.ran == [("a", False)]
    world.held.release_topic("U")
    assert world.ran[1:] == [("b", True)]
    world.hold("c")
    world.hold("d", topic="U")
    world.arrive(1)
    world.held.release_all()
    world.turn()
    assert sorted(world.ran[2:]) == [("c", True), ("d", True)]
    assert len(world.held) == 0


def test_what_was_woken_does_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold, "STALE_MAX", 10)
    world = World()
    for _ in range(1000):
        world.hold("x", 60_000)
        world.arrive(1)
        world.turn()
    assert len(world.ran) == 1000
    assert len(world.held._by_deadline) <= 12
    assert world.held._by_queue == {}


@given(st.lists(st.tuples(st.sampled_from("hadtxqr"), st.integers(0, 3)), max_size=40))
def test_everybody_is_run_once_or_dropped(steps: list[tuple[str, int]]) -> None:
    world = World()
    waiting: dict[str, hold.Held] = {}
    topics: dict[str, str] = {}
    made = dropped = 0
    for kind, number in steps:
        if kind == "h":
            topics[str(made)] = topic = "TU"[number % 2]
            held = world.hold(str(made), 500 * number, topic=topic, tag=number // 2)
            assert held is not None
            waiting[str(made)] = held
            made += 1
        elif kind == "a":
            world.arrive(number // 2, topic="TU"[number % 2])
        elif kind == "d" and waiting:
            name = sorted(waiting)[number % len(waiting)]
            held = waiting.pop(name)
            if held.run is not None:
                dropped += 1
                world.held.drop(topics[name], 0, held)
        elif kind == "t":
            world.turn()
        elif kind == "x":
            world.clock.jump(number / 4)
            world.held.expire(world.clock.monotonic())
        elif kind == "q":
            world.held.release_queue("T", 0)
        else:
            world.held.release_topic("U")
        names = [name for name, _last in world.ran]
        assert len(names) == len(set(names)), "nobody is run twice"
        assert len(world.held) == made - dropped - len(names)
    world.held.release_all()
    assert len(world.ran) == made - dropped
    assert len(world.held) == 0
    assert world.held._by_queue == {}


def test_many_pulls_on_one_queue_go_without_a_look_at_the_others() -> None:
    """A connection that closes with thousands of them must not stop everybody else."""
    world = World()
    many = 5000
    parked = []
    for _ in range(many):
        held = world.hold("gone", tag=1)
        assert held is not None
        parked.append(held)
    world.hold("stays")
    started = time.perf_counter()
    for held in parked:
        world.held.drop("T", 0, held)
    assert time.perf_counter() - started < 1.0, "each costs the same: some 5 ms in all"
    assert len(world.held) == 1
    world.arrive(1)
    world.turn()
    assert world.ran == [("stays", False)]


def test_of_many_that_are_woken_or_over_some_run_at_a_time() -> None:
    world = World()
    for _ in range(2 * hold.RUNS_MAX + 1):
        world.hold("woken")
    world.arrive(1)
    for ran in (hold.RUNS_MAX, 2 * hold.RUNS_MAX, 2 * hold.RUNS_MAX + 1):
        world.turn()
        assert len(world.ran) == ran
    assert len(world.held) == 0
    world.ran.clear()
    for _ in range(hold.RUNS_MAX + 1):
        world.hold("over")
    assert world.held.expire(1.0) == 1.0, "at once"
    assert len(world.ran) == hold.RUNS_MAX
    assert world.held.expire(1.0) is None
    assert world.ran == [("over", True)] * (hold.RUNS_MAX + 1)
