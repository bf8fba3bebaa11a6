"""Which log files go now, and why. A decision and nothing else: the caller deletes.

RocketMQ's rules (CleanCommitLogService, MappedFileQueue.deleteExpiredFileByTime): there must be an
occasion - the hour, the disk, an operator's order - and then the oldest files go, one by one, until
one is too young. The last file never goes; some at a time, so that deleting never takes the disk
for itself.

Forcing a file away from its reader has no place here. RocketMQ counts references and unmaps a
deleted file under a reader that held it for two minutes, which can only end in an error, or worse.
Our mapping belongs to the slices that were handed out: the name goes at once, readers finish, and
the space comes back with the last of them. So `destroyMapedFileIntervalForcibly` has no effect, and
a deletion that failed is simply decided again.

Per-topic retention is an extra: a topic may be kept shorter than the log files that its messages
share with others. Its messages stay in the log and are no longer served, by moving the min offset
of its queues up to `TopicRetention.horizons_ms`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import InvalidValue
from gantrymq.store.disk import DiskLevel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gantrymq.store.settings import DiskSettings, RetentionSettings

HOUR_MS: Final = 3_600_000
MANUAL_RUNS: Final = 20
"""Looks that an operator's order to delete holds for."""


class LogFileAge(NamedTuple):
    """A file of the log, as far as its age goes."""

    start: int
    modified_ms: int
    size: int


class Occasion(Enum):
    """Why files may be deleted now."""

    HOUR = "it is the hour of deleteWhen"
    SPACE = "the disk is above diskMaxUsedSpaceRatio"
    FORCED = "the disk is above diskSpaceCleanForciblyRatio, so age does not count"
    ORDER = "an operator asked for it"


class Deletions(NamedTuple):
    """What to delete, oldest first; `occasion` is None if this is not the time to."""

    files: tuple[LogFileAge, ...] = ()
    occasion: Occasion | None = None

    @property
    def size(self) -> int:
        """Return the bytes that come back."""
        return sum(file.size for file in self.files)

    @property
    def min_offset(self) -> int | None:
        """Return where the log begins afterwards; None if nothing goes."""
        return self.files[-1].start + self.files[-1].size if self.files else None


def local_hour(now_ms: int) -> int:
    """Return the hour of the machine's time zone, from 0 to 23."""
    return datetime.fromtimestamp(now_ms / 1000, UTC).astimezone().hour


def decide(
    files: Sequence[LogFileAge],
    now_ms: int,
    hour: int,
    level: DiskLevel,
    retention: RetentionSettings,
    disk: DiskSettings,
    *,
    ordered: bool = False,
) -> Deletions:
    """Return the log files that go now; `files` are all there are, oldest first."""
    occasion = _occasion(hour, level, retention, disk, ordered=ordered)
    if occasion is None:
        return Deletions()
    youngest_ms = now_ms - retention.reserved_hours * HOUR_MS
    chosen: list[LogFileAge] = []
    for file in files[:-1]:
        if len(chosen) == retention.files_per_run_max:
            break
        if occasion is not Occasion.FORCED and file.modified_ms > youngest_ms:
            break
        chosen.append(file)
    return Deletions(tuple(chosen), occasion)


def _occasion(
    hour: int,
    level: DiskLevel,
    retention: RetentionSettings,
    disk: DiskSettings,
    *,
    ordered: bool,
) -> Occasion | None:
    if level >= DiskLevel.FORCE and disk.may_force:
        return Occasion.FORCED
    if level >= DiskLevel.CLEAN:
        return Occasion.SPACE
    if hour in retention.delete_hours:
        return Occasion.HOUR
    return Occasion.ORDER if ordered else None


class DeletionOrder:
    """An operator's order to delete expired files whatever the hour. Owned by one task."""

    def __init__(self) -> None:
        self._runs_left = 0

    def give(self) -> None:
        """Let the next looks delete."""
        self._runs_left = MANUAL_RUNS

    def take(self) -> bool:
        """Tell whether this look may delete, and count it."""
        if self._runs_left == 0:
            return False
        self._runs_left -= 1
        return True


class TopicRetention:
    """How long the messages of single topics are served; a topic without an entry, as its files."""

    def __init__(self, hours: Mapping[str, int]) -> None:
        for topic, kept in hours.items():
            if kept <= 0:
                raise InvalidValue(f"topic {topic} is kept for {kept} hours; at least 1")
        self._hours = dict(hours)

    def horizons_ms(self, now_ms: int) -> dict[str, int]:
        """Return for each topic the store timestamp before which its messages are not served."""
        return {topic: now_ms - kept * HOUR_MS for topic, kept in self._hours.items()}
