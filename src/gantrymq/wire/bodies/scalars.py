"""Reading single values: numbers, texts, booleans and bytes, with the leniency of fastjson."""

import base64
import binascii
import re
from collections.abc import Callable
from typing import Final

from gantrymq.wire.fastjson import ObjectKeyed

Reader = Callable[[object], object]
"""From a raw value to a typed one."""

ABSENT: Final = object()
"""What a reader returns for a value that counts as none."""
SHOWN: Final = 48
"""Characters of a peer's text that an error repeats."""

_DECIMAL: Final = re.compile(r"[-+]?[0-9]{1,40}")
_TRUE: Final = frozenset({"true", "1"})
_FALSE: Final = frozenset({"false", "0"})
_NOTHING: Final = frozenset({"", "null"})


class Mismatch(Exception):
    """A value that its type does not take; the path grows from the inside out."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path: list[str] = []

    def within(self, segment: str) -> None:
        """Add the step that led here."""
        self.path.append(segment)


def show(raw: object) -> str:
    """Name a value in an error text, briefly."""
    if isinstance(raw, dict | ObjectKeyed):
        return "an object"
    if isinstance(raw, list):
        return "a list"
    return "null" if raw is None else repr(raw)[:SHOWN]


def int_reader(low: int, high: int) -> Reader:
    """Return the reader for whole numbers of one width."""

    def read_int(raw: object) -> object:
        if isinstance(raw, str):
            text = raw.strip()
            if text in _NOTHING:
                return ABSENT
            value = int(text) if _DECIMAL.fullmatch(text) else None
        elif isinstance(raw, float):
            value = int(raw) if raw.is_integer() else None
        else:
            value = raw if isinstance(raw, int) and not isinstance(raw, bool) else None
        if value is None:
            raise Mismatch(f"expected a whole number, got {show(raw)}")
        if not low <= value <= high:
            raise Mismatch(f"{show(raw)} is not between {low} and {high}")
        return value

    return read_int


def read_float(raw: object) -> object:
    """Read a number."""
    if isinstance(raw, float):
        return raw
    if isinstance(raw, str) and raw.strip() in _NOTHING:
        return ABSENT
    if isinstance(raw, str | int) and not isinstance(raw, bool):
        try:
            return float(raw)
        except (ValueError, OverflowError):
            pass
    raise Mismatch(f"expected a number, got {show(raw)}")


def read_bool(raw: object) -> object:
    """Read true or false, also as text or as 1 and 0."""
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str | int):
        text = str(raw).strip().lower() if isinstance(raw, str) or raw in {0, 1} else None
        if text in _NOTHING:
            return ABSENT
        if text in _TRUE or text in _FALSE:
            return text in _TRUE
    raise Mismatch(f"expected true or false, got {show(raw)}")


def read_str(raw: object) -> object:
    """Read a text, also one that was sent as a number or a boolean."""
    if isinstance(raw, str):
        return raw
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, int | float):
        return str(raw)
    raise Mismatch(f"expected a text, got {show(raw)}")


def read_bytes(raw: object) -> object:
    """Read bytes, which are Base64 in JSON."""
    if isinstance(raw, str):
        try:
            return base64.b64decode(raw, validate=True)
        except (binascii.Error, ValueError):
            pass
    raise Mismatch(f"expected Base64, got {show(raw)}")


read_int32: Final = int_reader(-(2**31), 2**31 - 1)
read_int64: Final = int_reader(-(2**63), 2**63 - 1)
