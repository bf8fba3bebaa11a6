"""White lists of addresses, in the forms that Apache's RemoteAddressStrategyFactory understands.

    (nothing)                      nobody
    *    *.*.*.*    *:*:*:*:*:*:*:*    everybody
    192.168.0.7    fe80::1         one
    10.0.0.1,10.0.0.2              several
    10.0.0.{1,2,3}   fe80::{a,b}   several that differ in their last part
    10.0.*.*    10.0.1-20.*    10.0.0.1-100          a range of the second, third or fourth part
    fe80:1:2:3:4:5:6:*    fe80::1-200    fe80::1-200:*      a range of the last two

Behind a range Apache's reader passes over what is written, so that `10.0.1-20.7` lets all of
`10.0.1.*` in. A pattern that would mean more than it says is refused here.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import InvalidValue, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

EVERYBODY: Final = frozenset({"*", "*.*.*.*", "*:*:*:*:*:*:*:*"})
_V4_PARTS: Final = 4
_V6_PARTS: Final = 8
_V4_LAST: Final = 0xFF
_V6_LAST: Final = 0xFFFF


class Range(NamedTuple):
    """Parts of an address, each from a least to a greatest number."""

    is_v6: bool
    parts: tuple[tuple[int, int], ...]

    def has(self, numbers: tuple[int, ...]) -> bool:
        """Tell whether the parts of an address are in it."""
        return len(numbers) == len(self.parts) and all(
            least <= number <= greatest
            for number, (least, greatest) in zip(numbers, self.parts, strict=True)
        )


class Addresses(NamedTuple):
    """The addresses that a pattern, or several, let in."""

    everybody: bool = False
    single: frozenset[IPv4Address | IPv6Address] = frozenset()
    ranges: tuple[Range, ...] = ()

    def has(self, address: IPv4Address | IPv6Address | None) -> bool:
        """Tell whether an address is among them; None is one that nobody could read."""
        if self.everybody:
            return True
        if address is None:
            return False
        if address in self.single:
            return True
        return bool(self.ranges) and self._in_range(address)

    def _in_range(self, address: IPv4Address | IPv6Address) -> bool:
        numbers = _numbers(address)
        return any(one.has(numbers) for one in self.ranges)


NOBODY: Final = Addresses()


def read_address(peer: str) -> IPv4Address | IPv6Address | None:
    """Return the address in `host:port`; None if there is none in it."""
    host = peer.rpartition(":")[0].strip("[]").partition("%")[0]
    try:
        found = ip_address(host)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found


def joined(patterns: Iterable[str]) -> Addresses:
    """Return the addresses that several patterns let in.

    Raises:
        InvalidValue: one of them is no pattern.
    """
    found = [read_pattern(pattern) for pattern in patterns]
    return Addresses(
        any(one.everybody for one in found),
        frozenset().union(*(one.single for one in found)),
        tuple(kept for one in found for kept in one.ranges),
    )


def read_pattern(pattern: str) -> Addresses:
    """Return the addresses that a pattern lets in.

    Raises:
        InvalidValue: it is no pattern.
    """
    text = pattern.strip()
    if not text:
        return NOBODY
    if text in EVERYBODY:
        return Addresses(everybody=True)
    if text.endswith("}"):
        head, brace, items = text[:-1].partition("{")
        if not brace or not head.endswith((".", ":")):
            raise _wrong(pattern, "braces stand for the last part, as in 10.0.0.{1,2}")
        return Addresses(single=frozenset(_one(head + item, pattern) for item in items.split(",")))
    if "," in text:
        return Addresses(single=frozenset(_one(one, pattern) for one in text.split(",")))
    if "*" in text or "-" in text:
        found = _range_v6(text, pattern) if ":" in text else _range_v4(text, pattern)
        return Addresses(ranges=(found,))
    return Addresses(single=frozenset({_one(text, pattern)}))


def _wrong(pattern: str, why: str) -> InvalidValue:
    return InvalidValue(f"{shown(pattern)!r} is no pattern of addresses: {why}")


def _one(text: str, pattern: str) -> IPv4Address | IPv6Address:
    try:
        return ip_address(text.strip())
    except ValueError:
        raise _wrong(pattern, f"{shown(text.strip())!r} is no address") from None


def _span(text: str, last: int, pattern: str) -> tuple[int, int]:
    """Return the least and greatest number of a part."""
    if text == "*":
        return 0, last
    base = 16 if last == _V6_LAST else 10
    least, minus, greatest = text.partition("-")
    try:
        start = _number(least, base)
        end = _number(greatest, base) if minus else start
    except ValueError:
        raise _wrong(pattern, f"{shown(text)!r} is no part of an address") from None
    if not start <= end <= last:
        raise _wrong(pattern, f"{shown(text)!r} is no range of a part of an address")
    return start, end


def _number(text: str, base: int) -> int:
    digits = text.strip()
    if not digits.isascii() or not digits.isalnum():
        raise ValueError(digits)
    return int(digits, base)


def _check_rest(parts: list[str], first: int, pattern: str) -> None:
    if any(part != "*" for part in parts[first:]):
        raise _wrong(pattern, "behind a range there can be nothing but *")


def _range_v4(text: str, pattern: str) -> Range:
    parts = [part.strip() for part in text.split(".")]
    if len(parts) != _V4_PARTS:
        raise _wrong(pattern, "an IPv4 address has four parts")
    ranged = next(place for place, part in enumerate(parts) if part == "*" or "-" in part)
    if ranged == 0:
        raise _wrong(pattern, "the first part cannot be a range")
    _check_rest(parts, ranged + 1, pattern)
    return Range(is_v6=False, parts=tuple(_span(part, _V4_LAST, pattern) for part in parts))


def _range_v6(text: str, pattern: str) -> Range:
    """Read `prefix:*`, `prefix:a-b` or `prefix:a-b:*`; `::` in the prefix stands for zeros."""
    parts = text.split(":")
    count = 2 if parts[-1] == "*" and "-" in parts[-2] else 1
    tail = parts[-count:]
    prefix = ":".join(parts[:-count])
    if "*" in prefix or "-" in prefix or not any(part == "*" or "-" in part for part in tail):
        raise _wrong(pattern, "of an IPv6 address the last part can be a range, or the last but *")
    missing = _V6_PARTS - count
    if prefix.endswith(":") and not prefix.endswith("::"):
        prefix += ":"  # the `::` stood right before the range
    try:
        whole = IPv6Address(_filled(prefix, missing))
    except ValueError:
        raise _wrong(pattern, f"{shown(prefix)!r} is not the beginning of an address") from None
    head = tuple((number, number) for number in _numbers(whole)[:missing])
    return Range(is_v6=True, parts=head + tuple(_span(part, _V6_LAST, pattern) for part in tail))


def _filled(prefix: str, parts: int) -> str:
    """Return a whole address that begins with a prefix of so many parts."""
    rest = ":".join("0" * (_V6_PARTS - parts))
    if "::" not in prefix:
        return f"{prefix}:{rest}"
    before, _, behind = prefix.partition("::")
    had = [part for part in (before + ":" + behind).split(":") if part]
    zeros = ["0"] * (parts - len(had))
    if not zeros or "::" in behind:
        raise ValueError(prefix)
    middle = [part for part in before.split(":") if part] + zeros
    return ":".join([*middle, *(part for part in behind.split(":") if part), rest])


def _numbers(address: IPv4Address | IPv6Address) -> tuple[int, ...]:
    packed = address.packed
    if isinstance(address, IPv4Address):
        return tuple(packed)
    return tuple(int.from_bytes(packed[place : place + 2]) for place in range(0, 16, 2))
