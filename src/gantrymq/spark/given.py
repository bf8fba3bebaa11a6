"""Options as they come from Spark: text, in any case; each read as what it is to be.

A name that is not known is refused, with the one it may have been meant to be. Problems are
collected, so that all of them are said at once.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from gantrymq.errors import GantryError, InvalidValue, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

SPARKS_OWN: Final = frozenset(
    {"checkpointlocation", "queryname", "outputmode", "mergeschema", "path", "pathglobfilter"}
)
"""Options that Spark itself hands on to every source or sink."""
_DURATION: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|seconds?|minutes?|hours?)?\s*")
_FACTORS: Final = {"ms": 0.001, "": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class Given:
    """Options by name, each taken once; problems are collected."""

    def __init__(self, options: Mapping[str, str], known: tuple[str, ...]) -> None:
        self._options = {name.lower(): value for name, value in options.items()}
        self.problems: list[str] = []
        names = {name.lower(): name for name in known}
        for name in self._options:
            if name in names or name in SPARKS_OWN or name.startswith(("__", "spark.")):
                continue
            near = get_close_matches(name, names, 1, 0.6)
            hint = f"did you mean {names[near[0]]}?" if near else f"known are {', '.join(known)}"
            self.problems.append(f"there is no option {shown(name)}: {hint}")

    def text(self, name: str, default: str = "") -> str:
        """Return an option's text."""
        value = self._options.get(name.lower())
        return default if value is None else str(value).strip()

    def optional(self, name: str) -> str | None:
        """Return an option's text; None if it was not given."""
        return self.text(name) or None

    def flag(self, name: str, *, default: bool) -> bool:
        """Return an option that is true or false."""
        text = self.text(name, str(default)).lower()
        if text not in {"true", "false"}:
            self.problems.append(f"{name} is {shown(text)}: say true or false")
        return text == "true"

    def number(self, name: str, default: int | None = None, least: int = 1) -> int | None:
        """Return an option that is a whole number."""
        text = self.text(name)
        if not text:
            return default
        if not text.isascii() or not text.isdecimal() or int(text) < least:
            self.problems.append(f"{name} is {shown(text)}: give a whole number from {least} on")
            return default
        return int(text)

    def seconds(self, name: str, default: float, least: float = 0.0) -> float:
        """Return an option that is a time: `500ms`, `30s`, `5m`; a bare number is milliseconds."""
        text = self.text(name)
        if not text:
            return default
        found = _DURATION.fullmatch(text)
        if found is None:
            self.problems.append(f"{name} is {shown(text)}: give a time such as 500ms, 30s or 5m")
            return default
        unit = found[2] or ""
        seconds = float(found[1]) * _FACTORS[unit if unit == "ms" else unit[:1]]
        if seconds < least:
            self.problems.append(f"{name} is {shown(text)}: give a time of at least {least:g} s")
            return default
        return seconds

    def choice(self, name: str, known: Mapping[str, str] | tuple[str, ...], default: str) -> str:
        """Return an option that is one of a few words."""
        text = self.text(name, default).lower()
        table = known if not isinstance(known, tuple) else {word: word for word in known}
        if text not in table:
            self.problems.append(f"{name} is {shown(text)}: say one of {', '.join(table)}")
            return default
        return table[text]

    def check(self, name: str, value: str, checked: object) -> None:
        """Note what a check of a value says."""
        if value and callable(checked):
            try:
                checked(value)
            except GantryError as error:
                self.problems.append(f"{name}: {error}")

    def refuse(self) -> None:
        """Raise what was wrong, if anything was.

        Raises:
            InvalidValue: all of it.
        """
        if self.problems:
            raise InvalidValue("; ".join(self.problems))


def words(text: str) -> tuple[str, ...]:
    """Return the words of a list; `,` and `;` end them."""
    return tuple(dict.fromkeys(filter(None, map(str.strip, re.split("[,;]", text)))))
