"""`python -m bench.commands`, with few letters: every figure is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.commands.run import is_reached, measured

if TYPE_CHECKING:
    from pathlib import Path


def test_every_figure_is_taken(tmp_path: Path) -> None:
    found = measured(600, 1, tmp_path)
    assert set(found) == {
        "help_ms", "topic_list_ms", "redriven_to_topic_per_second", "redriven_to_group_per_second",
    }  # fmt: skip
    assert all(value > 0 for value in found.values())


def test_each_bar_counts() -> None:
    good = {"help_ms": 199.0, "redriven_to_topic_per_second": 20_000.0}
    assert is_reached(good)
    assert not is_reached(good | {"help_ms": 200.0})
    assert not is_reached(good | {"redriven_to_topic_per_second": 19_999.0})
