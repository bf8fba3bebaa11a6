"""Every line that a server may log at warning level or above is explained to its operator."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "operating.md"
SERVER_PARTS = ("broker", "cluster", "metrics", "namesrv", "node", "security", "store", "transport")
LEVELS = frozenset({"warning", "error", "exception", "critical"})
LOGGERS = frozenset({"log", "logger", "_logger", "rare_log"})
PLACEHOLDER = re.compile(r"%[-+0-9.]*[a-z]")
LITERAL_MIN = 4


def lines_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield line number and text of every such call, with a gap where something is filled in."""
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        on = node.func.value
        name = on.attr if isinstance(on, ast.Attribute) else getattr(on, "id", "")
        if node.func.attr not in LEVELS or name not in LOGGERS:
            continue
        # A rare log has a key in front, which is not shown.
        text = node.args[1 if name == "rare_log" else 0]
        yield node.lineno, PLACEHOLDER.sub("\0", _text(text))


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.IfExp):
        return _text(node.body)
    return "\0"


def fragment(text: str) -> str:
    """Return the longest piece of a line that is always the same."""
    return max(text.split("\0"), key=len).strip(" :;,({")


def page_text() -> str:
    """Return the page on one line, without the marks of its tables."""
    return re.sub(r"\s+", " ", PAGE.read_text(encoding="utf-8"))


def test_every_line_is_explained() -> None:
    page = page_text()
    missing, seen = [], 0
    for part in SERVER_PARTS:
        for path in sorted((ROOT / "src" / "gantrymq" / part).rglob("*.py")):
            for number, text in lines_of(path.read_text(encoding="utf-8")):
                said = fragment(text)
                seen += len(said) >= LITERAL_MIN
                if len(said) >= LITERAL_MIN and said not in page:
                    missing.append(f"{path.relative_to(ROOT)}:{number}: {said}")
    assert seen > 30
    assert missing == [], "say in docs/operating.md what these lines mean"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('log.warning("name %s is %d things", a, b)', "things"),
        ('self._table.rare_log.warning("key", f"closing {a}: because of that")', "because of that"),
        ('log.info("nothing")', None),
        ('log.warning("%s", text)', ""),
    ],
)
def test_lines_are_found_in_a_source(source: str, expected: str | None) -> None:
    assert [fragment(text) for _, text in lines_of(source)] == (
        [] if expected is None else [expected]
    )
