"""Room on the disk for the rest of the files that are written to through a map.

Our own log and index files are reserved when they are made. Those that a start finds may have
holes: Apache extends its files and reserves nothing. On a full disk a write to a page of a hole is
SIGBUS, which ends the process, and nobody could refuse the message any more. So the last file of
each kind is reserved before the first write; as long as that fails, nothing is written.

Owned by the task that owns the store.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gantrymq.store.put import NO_TAIL

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.store.files import Files
    from gantrymq.store.put import Writability
    from gantrymq.store.worker import Worker


class TailRoom:
    """Knows which files have yet to be reserved."""

    def __init__(self, files: Files, writability: Writability, worker: Worker) -> None:
        self._files = files
        self._writability = writability
        self._worker = worker
        self._paths: list[Path] = []
        self._is_busy = False

    def want(self, *paths: Path) -> None:
        """Reserve files, here and now, or refuse writes until a `retry` succeeds."""
        self._took(_reserve(self._files, [*self._paths, *paths]))

    def retry(self) -> None:
        """Have a worker reserve what could not be: on a disk that is nearly full it takes long."""
        if self._paths and not self._is_busy:
            self._is_busy = True
            job = partial(_reserve, self._files, self._paths)
            self._worker.submit(job, self._took, self._not_tried)

    def _took(self, outcome: tuple[list[Path], OSError | None]) -> None:
        self._is_busy = False
        self._paths, error = outcome
        if error is None:
            self._writability.allow(NO_TAIL)
        else:
            why = f"the rest of {self._paths[0]} has no room: {error}; free some disk space"
            self._writability.forbid(NO_TAIL, why)

    def _not_tried(self, _error: Exception) -> None:
        self._is_busy = False  # the next `retry` says more


def _reserve(files: Files, paths: list[Path]) -> tuple[list[Path], OSError | None]:
    """Reserve files; return those that are left, and why; runs on the worker too."""
    for number, path in enumerate(paths):
        try:
            files.reserve(path)
        except OSError as error:
            return paths[number:], error
    return [], None
