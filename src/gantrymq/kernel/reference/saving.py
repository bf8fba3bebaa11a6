"""Many small writes to many files, in one call."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from gantrymq.kernel.values import FileWrite

_POSITION_MAX: Final = 2**62


def write_files(writes: list[FileWrite]) -> None:
    """Write at positions of files, in order, and make those that are not there."""
    for path, position, _data, size in writes:
        if "\0" in path:
            raise InvalidValue("write: a path holds no zeros")
        if not (0 <= position <= _POSITION_MAX and 0 <= size <= _POSITION_MAX):
            raise InvalidValue("write: position and size must be between 0 and 2**62")
    for write in writes:
        try:
            _write(*write)
        except FileNotFoundError:
            Path(write.path).parent.mkdir(parents=True, exist_ok=True)
            _write(*write)


def _write(path: str, position: int, data: bytes, size: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if os.fstat(handle).st_size < size:
            os.ftruncate(handle, size)
        view = memoryview(data)
        while view:
            written = os.pwrite(handle, view, position)
            position += written
            view = view[written:]
    except OSError as error:
        error.filename = path
        raise
    finally:
        os.close(handle)
