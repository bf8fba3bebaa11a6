"""The kernel's columns as pyarrow arrays, fully checked by pyarrow.

pyarrow has no type stubs: what crosses into it is untyped, what comes back is given a type here.
"""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa

from gantrymq.kernel.values import (
    BINARY_COLUMNS,
    INT32_COLUMNS,
    INT64_COLUMNS,
    Columns,
)

Cell: TypeAlias = int | str | bytes | None


def as_pylists(columns: Columns) -> dict[str, list[Cell]]:
    """Return every column as a Python list, by way of an Arrow array that pyarrow finds valid."""
    lists: dict[str, list[Cell]] = {}
    for name, column in columns.columns.items():
        parts = [column.validity, column.values]
        if column.offsets is not None:
            parts.insert(1, column.offsets)
        buffers = [None if part is None else pa.py_buffer(part) for part in parts]
        array = pa.Array.from_buffers(_type(name), columns.rows, buffers)
        array.validate(full=True)
        lists[name] = array.to_pylist()
    return lists


def _type(name: str) -> object:
    if name in INT32_COLUMNS:
        return pa.int32()
    if name in INT64_COLUMNS:
        return pa.int64()
    return pa.binary() if name in BINARY_COLUMNS else pa.string()
