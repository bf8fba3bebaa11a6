"""Kinds of setting: how a text becomes a value, which texts are allowed, and back.

Java reads settings leniently: a number it cannot parse keeps its default and nothing is said. Here
a text that is not allowed is refused, and the refusal says what would be.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final, NamedTuple, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
E = TypeVar("E", bound=Enum)

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,19}")
_DELAY: Final = re.compile(r"([0-9]{1,10})([smhd])")
_UNIT_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Kind(Protocol[T_co]):
    """A set of values and their texts."""

    @property
    def allowed(self) -> str:
        """Return which texts are allowed, to stand behind `must be`."""
        ...

    def parse(self, text: str) -> T_co:
        """Return the value of a text; ValueError if it is not allowed."""
        ...

    def text(self, value: object) -> str:
        """Return the text of a value."""
        ...


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number; with `clamped`, one outside of the range counts as its nearest end."""

    minimum: int
    maximum: int = INT_MAX
    clamped: bool = False

    @property
    def allowed(self) -> str:
        """Return the range."""
        return f"a whole number from {self.minimum} to {self.maximum}"

    def parse(self, text: str) -> int:
        """Return the number."""
        if not _WHOLE.fullmatch(text):
            raise ValueError
        number = int(text)
        inside = min(max(number, self.minimum), self.maximum)
        if number != inside and not self.clamped:
            raise ValueError
        return inside

    def text(self, value: object) -> str:
        """Return the digits."""
        return str(value)


@dataclass(frozen=True, slots=True)
class RoundedUp:
    """A whole number that is raised to a multiple."""

    multiple: int
    maximum: int = INT_MAX

    @property
    def allowed(self) -> str:
        """Return the range."""
        return f"a whole number from 1 to {self.maximum}, raised to a multiple of {self.multiple}"

    def parse(self, text: str) -> int:
        """Return the number, raised."""
        number = Whole(1, self.maximum).parse(text)
        return -(-number // self.multiple) * self.multiple

    def text(self, value: object) -> str:
        """Return the digits."""
        return str(value)


@dataclass(frozen=True, slots=True)
class Switch:
    """On or off."""

    allowed: str = "true or false"

    def parse(self, text: str) -> bool:
        """Return what a text in any case says."""
        try:
            return {"true": True, "false": False}[text.lower()]
        except KeyError:
            raise ValueError from None

    def text(self, value: object) -> str:
        """Return Java's word."""
        return "true" if value else "false"


@dataclass(frozen=True, slots=True)
class Choice(Kind[E]):
    """One name out of an enumeration."""

    names: type[E]

    @property
    def allowed(self) -> str:
        """Return the names."""
        return "one of " + ", ".join(member.name for member in self.names)

    def parse(self, text: str) -> E:
        """Return the member of that name."""
        try:
            return self.names[text]
        except KeyError:
            raise ValueError from None

    def text(self, value: object) -> str:
        """Return the member's name."""
        return value.name if isinstance(value, Enum) else str(value)


@dataclass(frozen=True, slots=True)
class Text:
    """Any text, or any but the empty one."""

    required: bool = False

    @property
    def allowed(self) -> str:
        """Return whether it may be empty."""
        return "a text, not an empty one" if self.required else "a text"

    def parse(self, text: str) -> str:
        """Return the text."""
        if self.required and not text:
            raise ValueError
        return text

    def text(self, value: object) -> str:
        """Return the text."""
        return str(value)


@dataclass(frozen=True, slots=True)
class Word:
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def allowed(self) -> str:
        """Return the words."""
        return "one of " + ", ".join(self.words)

    def parse(self, text: str) -> str:
        """Return the word."""
        if text not in self.words:
            raise ValueError
        return text

    def text(self, value: object) -> str:
        """Return the word."""
        return str(value)


Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class Networks:
    """Addresses and networks: `10.0.0.7,10.1.0.0/16`; none at all is allowed."""

    allowed: str = "addresses and networks like `10.0.0.7,10.1.0.0/16`, separated by `,` or `;`"

    def parse(self, text: str) -> tuple[Network, ...]:
        """Return the networks; an address is one of its own."""
        parts = (part.strip() for part in re.split("[,;]", text))
        return tuple(ip_network(part) for part in parts if part)

    def text(self, value: object) -> str:
        """Return the networks, addresses without their length."""
        networks = value if isinstance(value, tuple) else ()
        return ",".join(
            str(one.network_address if one.prefixlen == one.max_prefixlen else one)
            for one in networks
        )


@dataclass(frozen=True, slots=True)
class Percent:
    """A part of a hundred, which system properties give as a fraction: `85` or `0.85`."""

    minimum: int = 1
    maximum: int = 100

    @property
    def allowed(self) -> str:
        """Return the range."""
        return f"a percentage from {self.minimum} to {self.maximum}, or the same as a fraction"

    def parse(self, text: str) -> int:
        """Return the percentage."""
        if re.fullmatch(r"0?\.[0-9]{1,4}|1\.0*", text):
            number = round(float(text) * 100)
        else:
            number = Whole(0).parse(text)
        if not self.minimum <= number <= self.maximum:
            raise ValueError
        return number

    def text(self, value: object) -> str:
        """Return the percentage."""
        return str(value)


@dataclass(frozen=True, slots=True)
class Hours:
    """Hours of the day, local time: `04` or `04;16`."""

    allowed: str = "hours from 00 to 23, separated by `;`"

    def parse(self, text: str) -> tuple[int, ...]:
        """Return the hours in their order."""
        hours = [Whole(0, 23).parse(part.strip()) for part in text.split(";") if part.strip()]
        if not hours:
            raise ValueError
        return tuple(hours)

    def text(self, value: object) -> str:
        """Return the hours in two digits."""
        hours = value if isinstance(value, tuple) else ()
        return ";".join(f"{hour:02d}" for hour in hours)


@dataclass(frozen=True, slots=True)
class Delays:
    """Times that a message may be delayed by, in milliseconds, the first one being level 1."""

    allowed: str = "times like `1s 10m 2h 1d`, separated by blanks, at least one"

    def parse(self, text: str) -> tuple[int, ...]:
        """Return the delay of each level."""
        found = [_DELAY.fullmatch(part) for part in text.split()]
        if not found:
            raise ValueError
        delays = []
        for match in found:
            if match is None:
                raise ValueError
            delays.append(int(match[1]) * _UNIT_MS[match[2]])
        return tuple(delays)

    def text(self, value: object) -> str:
        """Return each delay in its largest whole unit."""
        delays = value if isinstance(value, tuple) else ()
        return " ".join(_delay_text(delay) for delay in delays)


def _delay_text(delay_ms: int) -> str:
    for unit in ("h", "m"):
        if delay_ms and delay_ms % _UNIT_MS[unit] == 0:
            return f"{delay_ms // _UNIT_MS[unit]}{unit}"
    return f"{delay_ms // 1000}s"


YES_NO: Final = Switch()
TEXT: Final = Text()
INTERVAL: Final = Whole(1)
"""Milliseconds that something waits for: never none."""
PAUSE: Final = Whole(0)
PAGES: Final = Whole(0, 1 << 18)


class Setting(NamedTuple):
    """A row of the table."""

    names: tuple[str, ...]
    kind: Kind[object]
    meaning: str
    live: bool

    @property
    def name(self) -> str:
        """Return the name under which it is written."""
        return self.names[0]


def setting(names: str, default: T, kind: Kind[T], meaning: str, *, live: bool = False) -> T:
    """Make a field of a settings class; `names` are separated by blanks."""
    row = Setting(tuple(names.split()), kind, meaning, live)
    made: T = field(default=default, metadata={"setting": row})
    return made
