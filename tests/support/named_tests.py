"""Tests that a document names: `tests/a/test_b.py`, or with `::test_c` behind it, or a folder."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def is_a_test(name: str) -> bool:
    """Say whether a path, or `path::test`, or a folder holds tests."""
    path, _colons, function = name.partition("::")
    place = ROOT / path
    if not path.startswith("tests/") or not place.exists():
        return False
    if place.is_dir():
        return not function and any(place.rglob("test_*.py"))
    if not place.name.startswith("test_"):
        return False
    return re.search(rf"def {re.escape(function)}\b", place.read_text(encoding="utf-8")) is not None
