"""Room on the disk for the rest of the files that are written to through a map.

Our own log and index files are reserved when they are made. Those that a start finds may have
holes: Apache extends its files and reserves nothing. On a full disk a write to a page of a hole is
SIGBUS, which ends the process, and nobody could refuse the message any more. So the last file of
each kind is reserved before the first write; as long as that fails, nothing is written.

Owned by the task that owns the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.store.put import NO_TAIL

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.store.files import Files
    from gantrymq.store.put import Writability


class TailRoom:
    """Knows which files have yet to be reserved."""

    def __init__(self, files: Files, writability: Writability) -> None:
        self._files = files
        self._writability = writability
        self._paths: list[Path] = []

    def want(self, *paths: Path) -> None:
        """Reserve files, or refuse writes until `retry` succeeds."""
        self._paths += paths
        self.retry()

    def retry(self) -> None:
        """Reserve what could not be reserved."""
        while self._paths:
            try:
                self._files.reserve(self._paths[0])
            except OSError as error:
                why = f"the rest of {self._paths[0]} has no room: {error}; free some disk space"
                self._writability.forbid(NO_TAIL, why)
                return
            del self._paths[0]
        self._writability.allow(NO_TAIL)
