"""Fenced blocks of Markdown pages, as commands with the output that the page promises.

A `console` block has `$ ` before each command and the output below it; a `bash` block has commands
alone; a `python` block is a program. A block that cannot be run inside a test stands under a
comment that names the make targets which cover it: `<!-- runs in CI: make test, make lint -->`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

FENCE = re.compile(
    r"(?:^<!-- runs in CI: (?P<covered>[^\n]*?) -->\n)?^```(?P<kind>\w*)[^\n]*\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Command(NamedTuple):
    """One command and what it must print; None when the page does not say."""

    line: str
    output: str | None


class Block(NamedTuple):
    """A fenced block: where it begins, its kind, its text, the make commands that cover it."""

    line: int
    kind: str
    text: str
    covered_by: tuple[str, ...]

    @property
    def commands(self) -> list[Command]:
        """Return the commands of a `console` or `bash` block."""
        if self.kind == "bash":
            lines = self.text.replace("\\\n", " ").splitlines()
            return [Command(line, None) for line in lines if line.strip() and line[0] != "#"]
        found = re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]
        halves = (part.partition("\n") for part in found)
        return [Command(line, output or None) for line, _, output in halves]


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    return [
        Block(
            page.count("\n", 0, match.start("kind")) + 1,
            match["kind"],
            match["text"],
            tuple(filter(None, (match["covered"] or "").split(", "))),
        )
        for match in FENCE.finditer(page)
    ]
