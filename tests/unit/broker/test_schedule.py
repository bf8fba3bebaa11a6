"""The list of what is done by the clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.broker.schedule import FAILED_PAUSE_S, Schedule

if TYPE_CHECKING:
    import pytest


def test_each_entry_says_when_it_runs_again() -> None:
    schedule = Schedule()
    ran: list[tuple[str, float]] = []

    def every_third(now: float) -> float:
        ran.append(("third", now))
        return now + 3

    def once(now: float) -> None:
        ran.append(("once", now))

    schedule.add("third", every_third, 1.0)
    schedule.add("once", once, 2.0)
    schedule.every("five", 5.0, lambda: ran.append(("five", -1)), 0.0)
    assert schedule.tick(0.0) == 1.0
    assert schedule.tick(1.0) == 2.0
    assert schedule.tick(2.0) == 4.0
    assert schedule.tick(5.0) == 8.0
    assert ran == [("third", 1.0), ("once", 2.0), ("third", 5.0), ("five", -1)]


def test_an_entry_that_sleeps_is_poked_and_the_owner_learns_of_it() -> None:
    moved: list[int] = []
    schedule = Schedule(lambda: moved.append(1))
    ran: list[float] = []
    entry = schedule.add("sleeper", ran.append, None)
    assert schedule.tick(10.0) is None
    schedule.poke(entry, 12.0)
    schedule.poke(entry, 13.0)
    assert len(moved) == 1
    assert schedule.tick(11.0) == 12.0
    schedule.poke(entry, 11.5)
    assert len(moved) == 2
    schedule.tick(11.5)
    assert ran == [11.5]


def test_a_poke_while_it_runs_is_not_lost() -> None:
    schedule = Schedule()

    def pokes_itself(now: float) -> float | None:
        schedule.poke(entry, now + 1)
        return None

    entry = schedule.add("x", pokes_itself, 0.0)
    assert schedule.tick(0.0) == 1.0
    assert schedule.tick(1.0) == 2.0


def test_one_that_fails_stops_nobody_and_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    schedule = Schedule()
    ran: list[float] = []

    def fails(_now: float) -> float:
        raise ZeroDivisionError("on purpose")

    schedule.add("bad", fails, 0.0)
    schedule.every("good", 1.0, lambda: ran.append(1), -1.0)
    assert schedule.tick(0.0) == FAILED_PAUSE_S
    assert ran == [1]
    assert "bad failed" in caplog.text
