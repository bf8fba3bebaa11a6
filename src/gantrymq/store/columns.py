"""Columns of records as lists of Python values: for tools that look at whole logs.

`kernel.scan_columns` lays them out as Arrow does, little-endian. One list is made in one go, which
costs a small part of what decoding record by record does.
"""

from __future__ import annotations

import sys
from array import array
from itertools import pairwise
from typing import TYPE_CHECKING

from gantrymq.errors import InvalidValue
from gantrymq.kernel.values import INT32_COLUMNS, INT64_COLUMNS

if TYPE_CHECKING:
    from gantrymq.kernel import Columns

__all__ = ["integers", "slices", "texts"]


def integers(rows: Columns, name: str) -> array[int]:
    """Return a column of numbers.

    Raises:
        InvalidValue: the column holds something else.
    """
    if name not in INT32_COLUMNS and name not in INT64_COLUMNS:
        raise InvalidValue(f"the column {name} holds no numbers")
    return _little_endian("i" if name in INT32_COLUMNS else "q", rows.columns[name].values)


def slices(rows: Columns, name: str) -> list[bytes]:
    """Return a column of bytes."""
    values = rows.columns[name].values
    return [values[begin:end] for begin, end in _ranges(rows, name)]


def texts(rows: Columns, name: str) -> list[str]:
    """Return a column of texts, none of which may be null."""
    values = rows.columns[name].values
    if not values.isascii():
        return [values[begin:end].decode() for begin, end in _ranges(rows, name)]
    text = values.decode("ascii")
    return [text[begin:end] for begin, end in _ranges(rows, name)]


def _ranges(rows: Columns, name: str) -> pairwise[tuple[int, int]]:
    return pairwise(_little_endian("i", rows.columns[name].offsets or bytes(4)))


def _little_endian(code: str, data: bytes) -> array[int]:
    numbers = array(code, data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
