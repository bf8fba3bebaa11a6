"""A request to the dashboard as its functions see it, and the table entry that leads to one.

A function takes a `Call` and returns what becomes JSON. It checks what it was given and asks the
cluster; who may call it, whether the call is forged, what is written down about it and what an
error looks like is decided in `gate`, for all of them alike.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gantrymq.dashboard.settings import CHANGE_BYTES_MAX
from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from gantrymq.admin.session import Session
    from gantrymq.dashboard.parts import Parts
    from gantrymq.model.roles import Role

PAGE_ROWS: Final = 50
PAGE_ROWS_MAX: Final = 200
TEXT_CHARACTERS_MAX: Final = 4_096
_PLAIN: Final = re.compile(r"[A-Za-z0-9._%|@:/-]+")
PROBLEMS_MAX: Final = 20
"""Problems that one answer names; beyond, they are counted."""


@dataclass(slots=True)
class Call:
    """One request."""

    parts: Parts
    query: Mapping[str, str]
    """What stands in the address; a change has none, so that there is one place for its values."""
    body: Mapping[str, object]
    user: str
    role: Role
    address: str
    token: str = ""
    is_secure: bool = False
    target: str = ""
    """What the audit log says was changed."""
    detail: str = ""

    @property
    def session(self) -> Session:
        """Return the way to the cluster."""
        return self.parts.session

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text that must be there, unless there is a default.

        Raises:
            InvalidValue: it is missing, too long, or no text.
        """
        found = self.maybe(name)
        if found is not None:
            return found
        if default is None:
            raise InvalidValue(f"{name} is missing")
        return default

    def maybe(self, name: str) -> str | None:
        """Return a text without blanks around it, or None."""
        value = self.raw(name, TEXT_CHARACTERS_MAX)
        return value.strip() or None if value is not None else None

    def raw(self, name: str, characters_max: int) -> str | None:
        """Return a text as it was given, or None.

        Raises:
            InvalidValue: it is too long, or no text.
        """
        value = self.body.get(name, self.query.get(name))
        if value is None:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str):
            raise InvalidValue(f"{name} is no text")
        if len(value) > characters_max:
            raise InvalidValue(f"{name} has {len(value)} characters: at most {characters_max}")
        return value

    def number(self, name: str, default: int | None = None, least: int = 0,
               most: int = 2**63 - 1) -> int:  # fmt: skip
        """Return a whole number.

        Raises:
            InvalidValue: it is missing, none, or out of range.
        """
        found = self.maybe_number(name, least, most)
        if found is None:
            if default is None:
                raise InvalidValue(f"{name} is missing")
            return default
        return found

    def maybe_number(self, name: str, least: int = 0, most: int = 2**63 - 1) -> int | None:
        """Return a whole number, or None.

        Raises:
            InvalidValue: it is none, or out of range.
        """
        text = self.maybe(name)
        if text is None:
            return None
        try:
            found = int(text)
        except ValueError:
            raise InvalidValue(f"{name} is {text[:64]!r}: give a whole number") from None
        if not least <= found <= most:
            raise InvalidValue(f"{name} is {found}: give {least} to {most}")
        return found

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a yes or no.

        Raises:
            InvalidValue: it is neither.
        """
        value = self.body.get(name, self.query.get(name))
        if value is None:
            return default
        if isinstance(value, bool):
            return value
        if value in {"true", "1"}:
            return True
        if value in {"false", "0", ""}:
            return False
        raise InvalidValue(f"{name} is {str(value)[:64]!r}: give true or false")

    def words(self, name: str) -> list[str]:
        """Return a list of texts, or what stands between commas.

        Raises:
            InvalidValue: it is neither.
        """
        value = self.body.get(name)
        if isinstance(value, list):
            if len(value) > 1_000 or not all(isinstance(each, str) for each in value):
                raise InvalidValue(f"{name} is no list of texts")
            return [str(each) for each in value]
        return [word.strip() for word in (self.maybe(name) or "").split(",") if word.strip()]

    def mapping(self, name: str) -> dict[str, str]:
        """Return texts by name.

        Raises:
            InvalidValue: it is something else.
        """
        value = self.body.get(name, {})
        if not isinstance(value, dict) or len(value) > 200:
            raise InvalidValue(f"{name} is no table of texts")
        if not all(isinstance(each, str) for pair in value.items() for each in pair):
            raise InvalidValue(f"{name} is no table of texts")
        return {str(key): str(text) for key, text in value.items()}


@dataclass(frozen=True, slots=True)
class Download:
    """An answer that is a file and not JSON."""

    content: bytes
    name: str


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What a method and a path lead to, and who may go there."""

    method: str
    path: str
    role: Role
    work: Callable[[Call], Awaitable[object]]
    action: str = ""
    """What the audit log calls it; every change has one, nothing else has."""
    is_own: bool = False
    """Whether it changes nothing but the caller's own login, which read-only mode leaves alone."""
    about: tuple[str, ...] = ()
    """The names of what it acts on, in the order in which the audit log tells them."""
    bytes_max: int = CHANGE_BYTES_MAX
    """Of a request to it."""

    def target_of(self, call: Call) -> str:
        """Return what a call is about, out of the very values that the function acts on."""
        told = []
        for name in self.about:
            try:
                value = call.maybe(name)
            except InvalidValue:  # the function will say so; that it was tried is written down
                told.append(f"{name} ?")
                continue
            if value is not None:
                told.append(f"{name} {plain(value)}")
        return " ".join(told)

    @property
    def is_change(self) -> bool:
        """Tell whether it changes something."""
        return bool(self.action)


@dataclass(frozen=True, slots=True)
class Page:
    """Which rows of a list are wanted."""

    number: int
    rows: int

    @classmethod
    def of(cls, call: Call) -> Page:
        """Read `page`, from 1 on, and `rows`."""
        return cls(
            call.number("page", 1, least=1, most=1_000_000),
            call.number("rows", PAGE_ROWS, least=1, most=PAGE_ROWS_MAX),
        )

    def cut(self, names: list[str]) -> list[str]:
        """Return the part of a list that is on the page."""
        begin = (self.number - 1) * self.rows
        return names[begin : begin + self.rows]


@dataclass(slots=True)
class Rows:
    """A list that may be a part of a longer one, and may lack what somebody did not say."""

    total: int
    page: Page
    rows: list[dict[str, object]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def data(self) -> dict[str, object]:
        """Return what becomes JSON."""
        return {
            "total": self.total,
            "page": self.page.number,
            "rowsMax": self.page.rows,
            "rows": self.rows,
            **problem_data(self.problems),
        }


def plain(name: str) -> str:
    """Return a name as the audit log has it: one that could be read as two is quoted."""
    return name if _PLAIN.fullmatch(name) is not None else ascii(name)


def problem_data(problems: list[str]) -> dict[str, object]:
    """Return problems as answers have them: a bounded list, and how many there are."""
    told = list(dict.fromkeys(problems))
    return {"problems": told[:PROBLEMS_MAX], "problemCount": len(told)}
