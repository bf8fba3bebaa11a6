"""Dropping the end of a closed store's log: what a broker wrote and nobody was told is safe.

The bytes are overwritten with zeros and forced, later files removed, and the store is marked as one
that was not stopped cleanly: the next start walks the log to its new end and cuts queues and index
to it, as after a crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.errors import InvalidValue
from gantrymq.store.log_directories import log_directories
from gantrymq.store.process_lock import ProcessLock, mark_running

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.store.files import Files
    from gantrymq.store.settings import StoreSettings


def cut_log(files: Files, settings: StoreSettings, end: int, pid: int) -> int:
    """Drop everything from log offset `end` on; return how many files were touched. Blocks.

    Raises:
        InvalidValue: `end` is negative.
        StoreLocked: a broker has the store open.
        OSError: the disk refuses.
    """
    if end < 0:
        raise InvalidValue(f"a log cannot end at {end}")
    root, size = settings.paths.root, settings.files.commit_log_bytes
    lock = ProcessLock(files, root)
    try:
        mark_running(files, root, pid)
        later = [(start, path) for start, path in _log_files(files, settings) if start + size > end]
        # The last first: a kill in between leaves a log without a hole.
        for start, path in sorted(later, reverse=True):
            if start >= end:
                files.remove(path)
            else:
                _zero(files, path, end - start)
        return len(later)
    finally:
        lock.release()


def _log_files(files: Files, settings: StoreSettings) -> list[tuple[int, Path]]:
    return [
        (int(name), directory / name)
        for directory in log_directories(settings.paths).writable
        if files.is_directory(directory)
        for name in files.names(directory)
        if name.isdecimal()
    ]


def _zero(files: Files, path: Path, position: int) -> None:
    region = files.open(path)
    try:
        step = 1 << 20
        for at in range(position, region.size, step):
            stop = min(at + step, region.size)
            region.buffer[at:stop] = bytes(stop - at)
        region.sync(position, region.size)
    finally:
        region.close()
