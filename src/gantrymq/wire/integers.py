"""Integers as Java reads them from text: `Integer.parseInt` and `Long.parseLong`.

An optional sign, ASCII digits, the range of the type, and nothing else: Python's `int` would also
take blanks, underscores and the digits of other scripts, and grows with the square of the length.
"""

from __future__ import annotations

import re
from typing import Final

_INTEGER: Final = re.compile(r"([+-]?+)(0*+)([0-9]*+)")
_DIGITS_MAX: Final = 19
"""Of a 64-bit integer, without zeros in front."""
_SHORT_DIGITS: Final = 9
"""So many are always in range."""


def parse_integer(text: str, bits: int) -> int | None:
    """Return the signed integer of 32 bits or more that a text is, or None.

    Takes time linear in the length.
    """
    if len(text) <= _SHORT_DIGITS and text.isascii() and text.isdigit():
        return int(text)
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    sign, zeros, digits = match.groups()
    if len(digits) > _DIGITS_MAX or not (zeros or digits):
        return None
    number = int(f"{sign}0{digits}")
    return number if -(1 << bits - 1) <= number < 1 << bits - 1 else None


def fits(value: object, bits: int) -> bool:
    """Say whether a value is an integer that a signed field of so many bits can hold."""
    return (
        isinstance(value, int)
        and not isinstance(value, bool)
        and -(1 << bits - 1) <= value < 1 << bits - 1
    )
