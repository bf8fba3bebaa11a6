"""What every kernel function begins with: its buffer is one of bytes, its range lies within it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Buffer

LOG_BASE_MAX: Final = 2**62
"""So that a position can be added to it."""


def check_buffer(buffer: Buffer, *, writable: bool = False) -> None:
    """Raise InvalidValue for a buffer that is not consecutive bytes, or cannot be written to."""
    with memoryview(buffer) as view:
        if view.itemsize != 1 or not view.c_contiguous or (writable and view.readonly):
            raise InvalidValue(
                "range: a buffer of consecutive bytes is needed, and a writable one where it is"
                " written to"
            )


def check_range(buffer: Buffer, start: int, end: int) -> None:
    """Raise InvalidValue unless `buffer[start:end]` lies within the buffer."""
    check_buffer(buffer)
    if not 0 <= start <= end <= len(buffer):
        raise InvalidValue(
            f"range: start={start} end={end} do not lie within a buffer of {len(buffer)} bytes"
        )


def check_room(buffer: Buffer, position: int, limit: int) -> None:
    """Raise InvalidValue unless `buffer[position:limit]`, to be written to, lies within it."""
    check_buffer(buffer, writable=True)
    if not 0 <= position <= limit <= len(buffer):
        raise InvalidValue(
            f"range: position={position} limit={limit} do not lie within a buffer of"
            f" {len(buffer)} bytes"
        )


def check_log_base(log_base: int) -> None:
    """Raise InvalidValue unless this is the log offset of a buffer, or -1 for an unknown one."""
    if not -1 <= log_base <= LOG_BASE_MAX:
        raise InvalidValue(f"range: log_base={log_base} is not between -1 and 2**62")
