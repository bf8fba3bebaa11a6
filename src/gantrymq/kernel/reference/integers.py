"""Whole numbers as Java keeps and reads them: 32 or 64 bits, two's complement."""

from __future__ import annotations

import re

_DECIMAL = re.compile(r"([+-]?)0*([0-9]*)")


def fits(value: int, bits: int) -> bool:
    """Tell whether a number lies within a signed field of so many bits."""
    return -(1 << bits - 1) <= value < 1 << bits - 1


def wrap(value: int, bits: int) -> int:
    """Return what is left of a number in a signed field of so many bits."""
    half = 1 << bits - 1
    return (value + half & (1 << bits) - 1) - half


def parse_integer(text: str, bits: int) -> int | None:
    """Return the number that Java's parseInt or parseLong reads, or None where they throw.

    A sign, ASCII digits, any number of leading zeros, nothing else.
    """
    match = _DECIMAL.fullmatch(text)
    if match is None or not text[-1:].isdigit():
        return None
    sign, digits = match.groups()
    # Longer than any 64-bit number: say so before int() has to read it.
    if len(digits) > 19:
        return None
    value = int(sign + (digits or "0"))
    return value if fits(value, bits) else None
