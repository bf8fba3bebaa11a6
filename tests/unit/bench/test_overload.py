"""`make overload`, for a moment: three times what a broker takes in, and everybody is answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.open_load import Tally
from bench.overload.run import Plan, measured, recovered_s, table

if TYPE_CHECKING:
    from pathlib import Path


def test_an_overload(tmp_path: Path) -> None:
    found = measured(Plan(connections=100, seconds=2.0), tmp_path)
    assert "accepted, p99" in table(found)
    assert found.capacity > 1_000
    assert found.offered > 1.5 * found.capacity, "it was more than the broker takes in"
    assert found.accepted > 0.02 * found.capacity, "it goes on working meanwhile"
    assert found.unanswered == 0
    assert "none" not in found.causes, "whoever was refused was told why"
    assert found.accepted_p99_ms < 5_000, "a machine that does other things, too"
    assert found.memory_most_mib < found.memory_before_mib + 64
    assert found.recovered_s < 8, "5 s where nothing else runs"


def test_recovery_is_the_end_of_the_last_interval_that_was_not_as_before() -> None:
    def interval(at_s: float, p99_ms: float = 1.0, refused: int = 0) -> Tally:
        return Tally(0.25, 10, 10, refused, 0, 0, 1.0, p99_ms, 1.0, 1.0, 0.0, at_s)

    calm = [interval(5.0 + number / 4) for number in range(8)]
    assert recovered_s(calm, 5.0) == 0.0
    assert recovered_s([interval(4.0, refused=9), *calm], 5.0) == 0.0, "the overload itself"
    assert recovered_s([*calm, interval(6.0, p99_ms=500)], 5.0) == 1.25
    assert recovered_s([*calm, interval(6.5, refused=1)], 5.0) == 1.75
