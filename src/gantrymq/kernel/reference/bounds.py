"""The one check that every kernel function begins with: its range lies within its buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Buffer


def check_range(buffer: Buffer, start: int, end: int) -> None:
    """Raise InvalidValue unless `buffer[start:end]` lies within the buffer."""
    if not 0 <= start <= end <= len(buffer):
        raise InvalidValue(
            f"range: start={start} end={end} do not lie within a buffer of {len(buffer)} bytes"
        )


def check_room(buffer: Buffer, position: int, limit: int) -> None:
    """Raise InvalidValue unless `buffer[position:limit]`, to be written to, lies within it."""
    if not 0 <= position <= limit <= len(buffer):
        raise InvalidValue(
            f"range: position={position} limit={limit} do not lie within a buffer of"
            f" {len(buffer)} bytes"
        )
