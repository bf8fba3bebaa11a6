"""The clock that tests move by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.testing.clock import VirtualClock

if TYPE_CHECKING:
    from gantrymq.clock import Clock


def test_it_is_a_clock_that_stands_still() -> None:
    clock: Clock = VirtualClock(5_000)
    assert (clock.now_ms(), clock.monotonic()) == (5_000, 0.0)
    assert (clock.now_ms(), clock.monotonic()) == (5_000, 0.0)


def test_a_jump_moves_both() -> None:
    clock = VirtualClock(0)
    clock.jump(1.5)
    clock.jump(0.0004)  # less than it can show
    assert (clock.now_ms(), clock.monotonic()) == (1_500, 1.5)


def test_the_wall_clock_may_be_set_back_alone() -> None:
    clock = VirtualClock(10_000)
    clock.jump(1)
    clock.set_now_ms(3)
    assert (clock.now_ms(), clock.monotonic()) == (3, 1.0)


def test_time_does_not_pass_backwards() -> None:
    with pytest.raises(InvalidValue, match="backwards"):
        VirtualClock().jump(-1)
