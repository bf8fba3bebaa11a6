"""What a command says: tables and sentences for people, one JSON value for programs.

A command returns an `Answer` and prints nothing. Cells keep their value beside how it is shown, so
that JSON has milliseconds where a table has a date.
"""

from __future__ import annotations

import re
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.cli.arguments import FAILED, SUCCESS
from gantrymq.errors import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_WORDS: Final = r"[A-Za-z0-9]+"
_CAPITALS: Final = r"^[A-Z0-9]+(?=[A-Z][a-z]|$)|^[A-Z]"


class Cell(NamedTuple):
    """A value and how it is shown."""

    value: object
    text: str


class Table:
    """Rows under heads; the heads are mqadmin's where it has such a table."""

    __slots__ = ("heads", "rows")

    def __init__(self, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        self.heads = heads
        self.rows = rows

    def data(self) -> list[dict[str, object]]:
        """Return the rows as JSON has them: by name."""
        names = [json_name(head) for head in self.heads]
        return [dict(zip(names, map(value_of, row), strict=True)) for row in self.rows]

    def lines(self) -> list[str]:
        """Return the table as text, each column as wide as it has to be."""
        rows = [[visible(text_of(cell), lines=False) for cell in row] for row in self.rows]
        widths = [
            max(len(head), *(len(row[at]) for row in rows)) if rows else len(head)
            for at, head in enumerate(self.heads)
        ]
        return [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in [list(self.heads), *rows]
        ]


class Answer:
    """What a command found."""

    __slots__ = ("data", "is_raw", "parts", "problems", "status")

    def __init__(
        self,
        parts: Iterable[Table | str] = (),
        data: object = None,
        problems: list[str] | None = None,
        status: int | None = None,
        *,
        is_raw: bool = False,
    ) -> None:
        # Rows of tables become lists: they are walked more than once.
        self.parts: list[Table | str] = [
            Table(part.heads, [tuple(row) for row in part.rows])
            if isinstance(part, Table)
            else part
            for part in parts
        ]
        self.data = data
        """What `--json` prints; made of the tables where it is None."""
        self.problems = [] if problems is None else problems
        """What went wrong with a part of it: said on standard error, and the status is 1."""
        self.status = status
        self.is_raw = is_raw
        """Whether the text is a program's, as a completion script: `--json` changes nothing."""

    def json(self) -> object:
        """Return the value that `--json` prints."""
        if self.data is not None:
            found = self.data
        else:
            tables = [part.data() for part in self.parts if isinstance(part, Table)]
            texts = [part for part in self.parts if isinstance(part, str) and part]
            found = tables[0] if len(tables) == 1 else tables or {"said": texts}
        return {"found": found, "problems": self.problems} if self.problems else found


def show(answer: Answer, *, as_json: bool) -> int:
    """Print an answer and return the exit status."""
    if as_json and not answer.is_raw:
        import json  # noqa: PLC0415

        text = json.dumps(answer.json(), ensure_ascii=False, indent=2, default=str)
        sys.stdout.write(text + "\n")
    else:
        for part in answer.parts:
            lines = part.lines() if isinstance(part, Table) else [part]
            shown = lines if answer.is_raw else map(visible, lines)
            sys.stdout.writelines(line + "\n" for line in shown)
        sys.stderr.writelines(f"problem: {visible(text)}\n" for text in answer.problems)
    if answer.status is not None:
        return answer.status
    return FAILED if answer.problems else SUCCESS


def json_name(head: str) -> str:
    """Return `brokerName` for `#Broker Name`."""
    shown = head.title() if head.isupper() and " " in head else head
    first, *words = re.findall(_WORDS, shown)
    begin = re.sub(_CAPITALS, lambda found: found[0].lower(), first)
    return begin + "".join(word[:1].upper() + word[1:] for word in words)


def value_of(cell: object) -> object:
    """Return what JSON has of a cell."""
    return cell.value if isinstance(cell, Cell) else cell


def text_of(cell: object) -> str:
    """Return what a table has of a cell."""
    if isinstance(cell, Cell):
        return str(cell.text)
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return str(cell)


def moment(time_ms: int, none: str = "") -> Cell:
    """Return a time as mqadmin shows it with milliseconds: `2026-11-15 21:16:38,640`."""
    if time_ms <= 0:
        return Cell(time_ms, none)
    dated = _dated(time_ms)
    return Cell(time_ms, f"{dated},{time_ms % 1000:03d}" if dated else str(time_ms))


def second(time_ms: int, none: str = "N/A") -> Cell:
    """Return a time as mqadmin shows it to the second."""
    if time_ms <= 0:
        return Cell(time_ms, none)
    return Cell(time_ms, _dated(time_ms) or str(time_ms))


def _dated(time_ms: int) -> str:
    """Return a time in the zone of whoever reads it; nothing if no calendar has it.

    A producer says itself when a message was born, and may say anything.
    """
    try:
        return f"{datetime.fromtimestamp(time_ms / 1000).astimezone():%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return ""


def span(seconds: float) -> str:
    """Return how long something is, in words: `3 s`, `12 min`, `5 h`, `2 d`."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def ended(*lines: str, **data: object) -> Answer:
    """Return what a change says: sentences, and the same as data."""
    return Answer(list(lines), data or None)
