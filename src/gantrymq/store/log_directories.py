"""The directories of the log: one, or one for each disk, and some that are only read.

A new file goes to the directory with the number (offset / length of a file) modulo the number of
those that can take it, in the order of their names. So the files of several disks take turns, and
either broker, ours or Apache's, finds the same place. Directories that are only read keep what they
have; one that is nearly full is avoided as long as another is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gantrymq.store.errors import StoreDamaged

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.store.files import Files
    from gantrymq.store.settings import PathSettings


@dataclass(frozen=True, slots=True)
class LogDirectories:
    """Where files of the log may lie."""

    writable: tuple[Path, ...]
    """By name, at least one."""
    read_only: tuple[Path, ...] = ()

    @property
    def all(self) -> tuple[Path, ...]:
        """Return every directory once."""
        return (*self.writable, *self.read_only)

    def choose(self, number: int, avoid: frozenset[Path] = frozenset()) -> Path:
        """Return the directory of the file with a number; those to avoid only if all are."""
        left = [path for path in self.writable if path not in avoid] or self.writable
        return left[number % len(left)]

    def check(self, files: Files) -> None:
        """See that the directories are there that nobody would make.

        Raises:
            StoreDamaged: one is not; its disk may not be mounted, and its messages would be gone.
        """
        for path in self.read_only:
            if not files.is_directory(path):
                raise StoreDamaged(
                    f"{path} of readOnlyCommitLogStorePaths is not there; mount its disk, or take "
                    "it out of the settings if its messages are not wanted any more"
                )


def log_directories(paths: PathSettings) -> LogDirectories:
    """Return the directories that the settings name; one named twice is only read."""
    read_only = dict.fromkeys(paths.read_only_commit_log)
    writable = {path for path in paths.commit_log if path not in read_only}
    return LogDirectories(tuple(sorted(writable, key=str)), tuple(read_only))
