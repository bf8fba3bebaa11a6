"""The machine's clock says what the machine says."""

from __future__ import annotations

import time

from gantrymq.clock import Clock, SystemClock


def test_the_system_clock_is_the_machines() -> None:
    clock: Clock = SystemClock()
    before = time.time_ns() // 1_000_000
    assert before <= clock.now_ms() <= time.time_ns() // 1_000_000


def test_intervals_never_go_back() -> None:
    clock: Clock = SystemClock()
    seen = [clock.monotonic() for _ in range(100)]
    assert seen == sorted(seen)
