"""Which share of what comes is taken in: by how long turns take, unless one stood still."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from gantrymq.testing.clock import VirtualClock
from gantrymq.transport.ages import ReadTimes
from gantrymq.transport.pressure import AGAIN_S, GOAL_S, LOWERED, PROBE_S, SHARE_MIN, TURN_S

if TYPE_CHECKING:
    from collections.abc import Callable


STEP_S = 0.005


class Loop:
    """Keeps the one timer there is."""

    def __init__(self) -> None:
        self.timer: Callable[[], None] | None = None

    def call_later(self, _delay: float, call: Callable[[], None]) -> Loop:
        """Keep a call."""
        self.timer = call
        return self

    def call_soon(self, call: Callable[[], None]) -> None:
        """Do it at once: a turn of this loop has nothing else in it."""
        call()

    def cancel(self) -> None:
        """Forget it."""
        self.timer = None

    @property
    def is_armed(self) -> bool:
        """Tell whether there is one."""
        return self.timer is not None

    def fire(self) -> None:
        """Run it."""
        assert self.timer is not None
        call, self.timer = self.timer, None
        call()


class World:
    """A server's loop."""

    def __init__(self) -> None:
        self.clock, self.loop = VirtualClock(), Loop()
        self.told: list[float] = []
        self.times = ReadTimes(self.loop, self.clock)  # type: ignore[arg-type]
        self.pressure = self.times.pressure
        self.pressure.told = self.told.append

    def turn(self, seconds: float, stall_s: float = 0.0) -> None:
        """Let a turn take so long, with a read every 5 ms but for one pause."""
        if self.loop.timer is None:
            self.times.read()
        for _ in range(4):
            self.clock.jump(PROBE_S / 4)
            self.times.read()
        reads = round(seconds / STEP_S)
        for number in range(reads):
            self.clock.jump(STEP_S + (stall_s if number == reads // 2 else 0))
            self.times.read()
        self.loop.fire()


def test_long_turns_lower_the_share_and_short_ones_raise_it_again() -> None:
    world = World()
    world.turn(TURN_S / 4)
    world.turn(TURN_S * 0.9)
    assert world.told == [], "busy is not too busy"
    world.turn(TURN_S + 2 * STEP_S)
    assert world.pressure.share == pytest.approx(LOWERED)
    world.turn(GOAL_S * 1.5)
    share = LOWERED / 1.5**0.5
    assert world.pressure.share == pytest.approx(share), "by as much as the turn was too long"
    world.turn(GOAL_S)
    assert world.pressure.share == pytest.approx(share), "good as it is"
    for _ in range(10):
        world.turn(GOAL_S / 10)
    assert world.told[-1] == world.pressure.share == 1.0


def test_a_turn_that_goes_on_and_on_lowers_it_before_it_ends() -> None:
    world = World()
    world.turn(TURN_S + 2 * AGAIN_S)
    assert 2 <= len(world.told) <= 4, "once for every so much"
    assert world.pressure.share == pytest.approx(LOWERED ** len(world.told))


def test_a_turn_that_stood_still_is_no_reason_to_refuse_anything() -> None:
    world = World()
    world.turn(TURN_S / 10, stall_s=5.0)
    assert world.told == []


def test_something_long_behind_the_last_read_is_no_reason_either() -> None:
    world = World()
    world.times.read()
    world.clock.jump(10.0)
    world.loop.fire()
    assert world.told == []


def test_something_is_always_taken_in() -> None:
    world = World()
    for _ in range(50):
        world.turn(TURN_S * 20)
    assert world.pressure.share == SHARE_MIN


def test_nothing_is_measured_while_nothing_is_read() -> None:
    world = World()
    world.turn(TURN_S / 10)
    world.clock.jump(PROBE_S)
    world.loop.fire()
    armed = [world.loop.is_armed]
    world.times.read()
    armed.append(world.loop.is_armed)
    world.pressure.stop()
    armed.append(world.loop.is_armed)
    assert armed == [False, True, False]


def test_the_share_comes_back_without_reads() -> None:
    world = World()
    world.turn(TURN_S * 10)
    for _ in range(60):
        if world.loop.timer is None:
            break
        world.clock.jump(PROBE_S)
        world.loop.fire()
    assert world.pressure.share == 1.0
    assert world.loop.timer is None


def test_it_works_on_a_loop() -> None:
    async def main() -> None:
        clock = VirtualClock()
        times = ReadTimes(asyncio.get_running_loop(), clock)
        times.read()
        await asyncio.sleep(PROBE_S * 2)
        times.pressure.stop()
        assert times.pressure.share == 1.0

    asyncio.run(main())
