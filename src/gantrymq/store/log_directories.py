"""The directories of the log: one, or one for each disk, and some that are only read.

A new file goes to the directory with the number (offset / length of a file) modulo the number of
those that can take it, in the order of their names. So the files of several disks take turns, and
either broker, ours or Apache's, finds the same place. Directories that are only read keep what they
have; one that is nearly full is avoided as long as another is left.

A file that has expired on a disk which is mounted for reading cannot be removed. It is left behind:
ROOT/log-begins then says at which offset the log begins, and a start passes over what lies before
it in directories that are only read. Nowhere else: a file before that offset in another directory
is one that nobody expects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gantrymq.store.errors import StoreDamaged

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.store.files import Files
    from gantrymq.store.settings import PathSettings


BEGIN_NAME: Final = "log-begins"


@dataclass(frozen=True, slots=True)
class LogDirectories:
    """Where files of the log may lie."""

    writable: tuple[Path, ...]
    """By name, at least one."""
    read_only: tuple[Path, ...] = ()
    root: Path | None = None
    """Where it is said what was left behind."""

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

    def left_behind(self, files: Files) -> frozenset[Path]:
        """Return the files that have expired and could not be removed.

        Raises:
            StoreDamaged: what is written down about them is no offset.
        """
        if self.root is None or not self.read_only or not files.exists(self.root / BEGIN_NAME):
            return frozenset()
        text = files.read(self.root / BEGIN_NAME)
        if not text.isdigit():
            raise StoreDamaged(
                f"{self.root / BEGIN_NAME} holds {text[:40]!r} and not the offset at which the log "
                "begins; remove it if no file of a read-only directory has expired"
            )
        return frozenset(
            path / name
            for path in self.read_only
            for name in files.names(path)
            if name.isdigit() and int(name) < int(text)
        )


def leave_behind(files: Files, root: Path, log_begin: int) -> None:
    """Write down that nothing before an offset belongs to the log any more; runs on a thread."""
    fresh, text = root / f"{BEGIN_NAME}.tmp", b"%d" % log_begin
    files.truncate(fresh, 0)
    files.write_at(fresh, 0, text, len(text))
    files.sync(fresh)
    files.rename(fresh, root / BEGIN_NAME)
    files.sync_directory(root)


def log_directories(paths: PathSettings) -> LogDirectories:
    """Return the directories that the settings name; one named twice is only read."""
    read_only = dict.fromkeys(paths.read_only_commit_log)
    writable = {path for path in paths.commit_log if path not in read_only}
    return LogDirectories(tuple(sorted(writable, key=str)), tuple(read_only), paths.root)
