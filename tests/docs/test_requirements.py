"""The tests that docs/requirements.md names exist, and what it calls working names some."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from support.named_tests import is_a_test

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "requirements.md"
STATES = {"working", "not yet", "no effect"}


class Row(NamedTuple):
    """A capability, and the tests that show it."""

    name: str
    state: str
    tests: tuple[str, ...]


def rows_of(text: str) -> list[Row]:
    """Return the rows of all tables.

    | S1 | commit log | not yet | `tests/...` |      a capability
    | deleteWhen | not yet | `tests/...` |           a parameter
    """
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if re.match(r"\| ([A-Z]+[0-9]+|[a-z]+[A-Z]\w+) \|", line)
    ]
    return [Row(row[0], row[-2], tuple(re.findall(r"`([^`]+)`", row[-1]))) for row in cells]


ROWS = rows_of(PAGE.read_text(encoding="utf-8"))


def missing(row: Row) -> list[str]:
    """Return the tests of a row that are not there."""
    return [name for name in row.tests if not is_a_test(name)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_named_tests_exist(row: Row) -> None:
    assert missing(row) == []
    assert row.state in STATES
    assert row.tests or row.state != "working"


def test_no_path_stands_outside_the_tables() -> None:
    named = set(re.findall(r"tests/[\w./:-]+", PAGE.read_text(encoding="utf-8")))
    assert named == {name for row in ROWS for name in row.tests}


def test_every_row_has_its_own_name() -> None:
    names = [row.name for row in ROWS]
    assert len(names) > 80
    assert "deleteWhen" in names
    assert len(set(names)) == len(names)


def test_a_test_that_is_not_there_is_noticed() -> None:
    here = "tests/docs/test_requirements.py"
    (row,) = rows_of(f"| X1 | a | not yet | `tests/no/test_such.py`, `{here}`, `{here}::test_no` |")
    assert row.state == "not yet"
    assert missing(row) == ["tests/no/test_such.py", f"{here}::test_no"]
    assert is_a_test(f"{here}::test_named_tests_exist")
    assert is_a_test("tests/docs")
    assert not is_a_test("tests/docs::test_x")
    assert not is_a_test("tests/conftest.py")
    assert not is_a_test("README.md")
