"""How full the disks are, and what each level forbids.

Three watermarks (percent used, as `df` counts):

    clean  75    expired files are deleted at any hour, not only at `deleteWhen`
    force  85    files are deleted whatever their age; a log directory above it gets no new files
    full   90    nothing is written any more

Going over `full` stops writes at once. They come back as RocketMQ has it (CleanCommitLogService in
DefaultMessageStore.java): the regular look lets them go on at `full` or below, while a look by the
cleaner, which knows that more is being deleted, waits until `force` is reached. RocketMQ's regular
look sees the log's disk alone, and so takes back what the cleaner said of the consume queues' disk;
here both look at both.

A disk that cannot be asked counts as one to clean, and stops nothing: the next write will tell.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from gantrymq.store.files import Files
    from gantrymq.store.settings import DiskSettings

UNKNOWN: Final = -1.0


class DiskLevel(IntEnum):
    """What has to be done about a disk."""

    FREE = 0
    CLEAN = 1
    FORCE = 2
    FULL = 3


class DiskUse(NamedTuple):
    """The used part of every disk that a store is on, from 0 to 1, or `UNKNOWN`."""

    logs: Mapping[Path, float]
    queues: float

    @property
    def log(self) -> float:
        """Return the emptiest log directory's: one that has room is enough."""
        return min(self.logs.values(), default=0.0)

    @property
    def worst(self) -> float:
        """Return the larger of log and queues: a message needs room in both."""
        return max(self.log, self.queues)

    @property
    def is_unknown(self) -> bool:
        """Tell whether a disk could not be asked."""
        return self.log < 0 or self.queues < 0


def measure(files: Files, logs: Iterable[Path], queues: Path) -> DiskUse:
    """Ask how full the disks are."""
    return DiskUse({path: _ratio(files, path) for path in logs}, _ratio(files, queues))


def _ratio(files: Files, path: Path) -> float:
    try:
        return files.usage(path).ratio
    except OSError:
        return UNKNOWN


def level(use: DiskUse, settings: DiskSettings) -> DiskLevel:
    """Return the level of the worst disk."""
    used = round(use.worst * 100)
    if used > settings.full_percent:
        return DiskLevel.FULL
    if used > settings.force_percent:
        return DiskLevel.FORCE
    if used > settings.clean_percent or use.is_unknown:
        return DiskLevel.CLEAN
    return DiskLevel.FREE


def full_logs(use: DiskUse, settings: DiskSettings) -> frozenset[Path]:
    """Return the log directories that get no new files."""
    return frozenset(
        path for path, used in use.logs.items() if round(used * 100) > settings.force_percent
    )


class DiskGuard:
    """Remembers whether the disk is full, between one look and the next. Owned by one task."""

    def __init__(self) -> None:
        self._full_since: float | None = None

    @property
    def is_full(self) -> bool:
        """Tell whether writes have to be refused."""
        return self._full_since is not None

    def why(self) -> str | None:
        """Return why writes are refused, or None."""
        if self._full_since is None:
            return None
        return f"the disk is full: {self._full_since:.0%} were used when writes were stopped"

    def checked(self, use: DiskUse, settings: DiskSettings) -> bool:
        """Take in a regular look; tell whether the answer to `is_full` has changed."""
        return self._look(use, settings, settings.full_percent)

    def cleaned(self, use: DiskUse, settings: DiskSettings) -> bool:
        """Take in a look by the cleaner, which resumes writes later; tell whether it changed."""
        return self._look(use, settings, settings.force_percent)

    def _look(self, use: DiskUse, settings: DiskSettings, resume_percent: int) -> bool:
        used = round(use.worst * 100)
        if self._full_since is None and used > settings.full_percent:
            self._full_since = use.worst
            return True
        if self._full_since is not None and used <= resume_percent:
            self._full_since = None
            return True
        return False
