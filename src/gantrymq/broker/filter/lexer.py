"""The words of a SQL92 filter.

As in Apache's SelectorParser.jj: the longest word wins, keywords are written in any case, names are
ASCII letters, digits, `_` and `$`, and a line comment needs its line end. Words are cut off one at
a time, since the parser does not look at all of them (see `parser`).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from gantrymq.broker.filter.errors import FilterError

END: Final = ""
"""Kind of what stands behind the last word."""
NAME: Final = "name"
TEXT: Final = "text"
WHOLE: Final = "whole"
FLOAT: Final = "float"

KEYWORDS: Final = frozenset({
    "NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS",
    # From 5.0 on; to 4.9 these three are names.
    "CONTAINS", "STARTSWITH", "ENDSWITH",
})  # fmt: skip

_SKIPPED: Final = re.compile(r"(?:[ \t\n\r\f]|--[^\n\r]*+[\n\r]|/\*.*?\*/)*+", re.DOTALL)
_WORD: Final = re.compile(
    r"""
      (?P<float>[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)? | \.[0-9]+(?:[eE][+-]?[0-9]+)?
               | [0-9]+[eE][+-]?[0-9]+)
    | (?P<whole>0|[1-9][0-9]*[lL]?)
    | (?P<text>'[^']*(?:''[^']*)*')
    | (?P<name>[A-Za-z_$][A-Za-z0-9_$]*)
    | (?P<sign><>|>=|<=|[=<>+\-(),])
    """,
    re.VERBOSE,
)
_HINTS: Final = {
    "'": "a text begins here and does not end; a quote inside it is written twice",
    '"': "texts stand in single quotes",
    "!": "not equal is written <>",
    "&": "write AND",
    "|": "write OR",
    "/": "a comment begins with /* and ends with */, and there is no division",
    "*": "there is no multiplication",
    ".": "a property with a point in its name cannot be filtered by",
    ";": "an expression has no end mark",
}


class Word(NamedTuple):
    """One word: its kind (a keyword or a sign is its own kind), its text, where it begins."""

    kind: str
    text: str
    start: int

    def __str__(self) -> str:
        """Name it as an error text does."""
        return self.text or "the end"


def next_word(text: str, position: int) -> Word:
    """Return the first word at or behind a position.

    Raises:
        FilterError: no word begins there.
    """
    skipped = _SKIPPED.match(text, position)
    if skipped is not None:
        position = skipped.end()
    if position == len(text):
        return Word(END, "", position)
    found = _WORD.match(text, position)
    if found is None:
        hint = _HINTS.get(text[position])
        problem = f"{text[position]!r} has no meaning here"
        raise FilterError(position, f"{problem}: {hint}" if hint else problem)
    word = found.group()
    kind = found.lastgroup or ""
    if kind == "sign":
        kind = word
    elif kind == NAME and word.upper() in KEYWORDS:
        kind = word.upper()
    return Word(kind, word, position)
