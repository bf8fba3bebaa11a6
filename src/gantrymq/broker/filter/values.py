"""Numbers as Java reads and compares them, for a filter must not depend on who evaluates it."""

from __future__ import annotations

import math
import re
from typing import Final

from gantrymq.broker.filter.errors import NotComparable
from gantrymq.errors import shown
from gantrymq.limits import FILTER_NUMERAL_CHARACTERS_MAX

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1

_WHOLE: Final = re.compile(r"[+-]?\d+")
"""Java takes the decimal digits of every script, as `\\d` does."""
_BMP_LAST: Final = "\uffff"
"""Java looks at half a pair of surrogates at a time, which is no digit."""
_DOUBLE: Final = re.compile(
    r"""[+-]?(?:
        (?P<word>NaN|Infinity)
      | (?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?P<suffix>[fFdD]?)
      | (?P<hex>0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?
    )""",
    re.VERBOSE,
)
_TRIMMED: Final = "".join(map(chr, range(33)))


def read_int(text: str) -> int:
    """Return a text as a 32-bit integer, or raise `NotComparable`."""
    return _read_whole(text, INT_MAX)


def read_long(text: str) -> int:
    """Return a text as a 64-bit integer, or raise `NotComparable`."""
    return _read_whole(text, LONG_MAX)


def _read_whole(text: str, most: int) -> int:
    if len(text) <= FILTER_NUMERAL_CHARACTERS_MAX and _WHOLE.fullmatch(text):
        number = int(text)
        if -most - 1 <= number <= most and (text.isascii() or max(text) <= _BMP_LAST):
            return number
    raise NotComparable(f"{shown(text)!r} is no integer of {most.bit_length() + 1} bits")


def read_double(text: str) -> float:
    """Return a text as a double, or raise `NotComparable`."""
    trimmed = text.strip(_TRIMMED) if len(text) <= FILTER_NUMERAL_CHARACTERS_MAX else ""
    found = _DOUBLE.fullmatch(trimmed)
    if found is None:
        raise NotComparable(f"{shown(text)!r} is no number")
    if found["hex"] is not None:
        return _read_hexadecimal(trimmed.rstrip("fFdD"))
    return float(trimmed[:-1] if found["suffix"] else trimmed)


def _read_hexadecimal(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return -math.inf if text.startswith("-") else math.inf


def read_boolean(text: str) -> bool:
    """Return whether a text says true, in any case; every other text says false."""
    return len(text) == 4 and text.isascii() and text.lower() == "true"


def compare_doubles(left: float, right: float) -> int:
    """Return -1, 0 or 1: NaN is equal to itself and above all others, -0.0 is below 0.0."""
    if left < right:
        return -1
    if left > right:
        return 1
    if left == right:
        if left:
            return 0
        left, right = math.copysign(1.0, left), math.copysign(1.0, right)
        return (left > right) - (left < right)
    return math.isnan(left) - math.isnan(right)
