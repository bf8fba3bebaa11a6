"""The pages on the client are run: the blocks of each, in order, as one program with a broker."""

from __future__ import annotations

import ast
import asyncio
import inspect
from pathlib import Path
from typing import Any

import pytest

from gantrymq.testing import ThreadedBroker
from support import markdown

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {"client.md": 10, "moving.md": 6}
"""Page -> how many blocks it has at least."""
NAMESRV = "127.0.0.1:9876"
PAGE_S_MAX = 120


def programs(page: str) -> list[tuple[int, str]]:
    """Return the Python blocks of a page with their lines."""
    found = markdown.blocks((DOCS / page).read_text(encoding="utf-8"))
    assert {block.kind for block in found} == {"python"}
    return [(block.line, block.text) for block in found]


async def run_blocks(page: str, namesrv: str) -> int:
    """Run the blocks of a page, which may await, and share their names; return how many."""
    names: dict[str, Any] = {"__name__": "page"}
    count = 0
    for line, text in programs(page):
        code = compile(
            "\n" * line + text.replace(NAMESRV, namesrv),
            str(DOCS / page),
            "exec",
            flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
            dont_inherit=True,
        )
        result = eval(code, names)  # noqa: S307 - our own page
        if inspect.isawaitable(result):
            await result
        count += 1
    return count


@pytest.mark.parametrize("page", PAGES)
def test_page_runs(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    async def main(namesrv: str) -> int:
        return await asyncio.wait_for(run_blocks(page, namesrv), PAGE_S_MAX)

    with ThreadedBroker() as broker:
        assert asyncio.run(main(broker.namesrv)) >= PAGES[page]
    assert capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES)
def test_page_names_the_usual_address(page: str) -> None:
    assert NAMESRV in (DOCS / page).read_text(encoding="utf-8")
