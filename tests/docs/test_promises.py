"""Every line of docs/promises.md names tests that exist, and every setting has its lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chaos.cluster import SETTINGS
from chaos.faults import KINDS
from support.named_tests import is_a_test

PAGE = (Path(__file__).parents[2] / "docs" / "promises.md").read_text(encoding="utf-8")


def rows_of(text: str) -> dict[str, list[str]]:
    """Return the cells of each row: setting, what happens, what survives, tests."""
    lines = re.findall(r"^\| ([A-Z][0-9]+) \| (.*) \|$", text, re.MULTILINE)
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in lines}


ROWS = rows_of(PAGE)


@pytest.mark.parametrize("name", ROWS)
def test_a_promise_names_tests_that_exist(name: str) -> None:
    _setting, happens, promised, tests = ROWS[name]
    assert happens
    assert promised
    named = re.findall(r"`([^`]+)`", tests)
    assert named
    assert [one for one in named if not is_a_test(one)] == []


def test_every_setting_has_a_line_for_each_kind_of_loss() -> None:
    settings = ("ASYNC_FLUSH", "SYNC_FLUSH", "ASYNC_MASTER", "SYNC_MASTER", "failover")
    for setting in settings:
        assert any(setting in row[0] for row in ROWS.values()), setting
    for part in "ABC":
        happens = " ".join(row[1] for name, row in ROWS.items() if name.startswith(part))
        for loss in ("dies", "power", "disk", "part" if part == "B" else "reach|cut off"):
            assert re.search(loss, happens), (part, loss)


def test_every_setting_and_fault_of_the_suite_is_on_the_page() -> None:
    named = set(re.findall(r"`([a-z0-9-]+)`", PAGE))
    assert set(SETTINGS) <= named
    assert set(KINDS) <= named


def test_a_row_without_its_test_is_noticed() -> None:
    rows = rows_of(
        "| X1 | any | it dies | all | `tests/no/test_such.py` |\n| row | a | b | c | d |"
    )
    assert rows == {"X1": ["any", "it dies", "all", "`tests/no/test_such.py`"]}
    assert not is_a_test("tests/no/test_such.py")
