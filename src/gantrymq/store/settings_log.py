# ruff: noqa: RUF009 - `setting` makes a field, as `dataclasses.field` does
"""Settings of the log: where it lies, what gets in, when it is forced.

These classes and those of `settings_service` are the table of every store parameter of Apache
RocketMQ 4.9 that has a meaning here. Each row: our name, the names in a `.properties` file (the
first is the one that is written), the default, what is allowed, what it does, and whether it may be
changed while the store is open. Defaults are those of 4.9.7 (MessageStoreConfig.java); names of
other releases stand beside it where they differ.

Sizes are in bytes, times in milliseconds, unless a name says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from gantrymq.limits import BODY_BYTES_MAX, RECORD_OVERHEAD_BYTES_MAX
from gantrymq.store.settings_kinds import (
    INTERVAL,
    LONG_MAX,
    PAGES,
    PAUSE,
    TEXT,
    YES_NO,
    Choice,
    RoundedUp,
    Text,
    Whole,
    setting,
)

UNIT_BYTES: Final = 20
"""A consume queue unit: a file holds whole ones."""


class FlushDiskType(Enum):
    """When a send is answered: with SYNC_FLUSH, after the disk has it."""

    ASYNC_FLUSH = "ASYNC_FLUSH"
    SYNC_FLUSH = "SYNC_FLUSH"


@dataclass(frozen=True, kw_only=True)
class PathSettings:
    """Where everything lies."""

    root: Path
    """`storePathRootDir`; the one setting without a default of its own, for it needs a home."""
    commit_log_text: str = setting(
        "storePathCommitLog",
        "",
        TEXT,
        "log directory; several are several disks; none: below the root",
    )
    read_only_commit_log_text: str = setting(
        "readOnlyCommitLogStorePaths", "", TEXT, "log directories that are read and never written"
    )
    splitter: str = setting(
        "rocketmq.broker.multiPathSplitter",
        ",",
        Text(required=True),
        "what stands between two log directories",
    )

    @property
    def commit_log(self) -> tuple[Path, ...]:
        """Return the log directories; one below the root if none is named."""
        return self._split(self.commit_log_text) or (self.root / "commitlog",)

    @property
    def read_only_commit_log(self) -> tuple[Path, ...]:
        """Return the log directories that are only read."""
        return self._split(self.read_only_commit_log_text)

    def _split(self, text: str) -> tuple[Path, ...]:
        return tuple(Path(part.strip()) for part in text.split(self.splitter) if part.strip())

    @property
    def consume_queue(self) -> Path:
        """Return the directory of the consume queues."""
        return self.root / "consumequeue"

    @property
    def consume_queue_ext(self) -> Path:
        """Return the directory of the consume queue extensions."""
        return self.root / "consumequeue_ext"

    @property
    def index(self) -> Path:
        """Return the directory of the index files."""
        return self.root / "index"

    @property
    def config(self) -> Path:
        """Return the directory of the metadata."""
        return self.root / "config"


@dataclass(frozen=True, kw_only=True)
class FileSettings:
    """How long files are; existing ones, and those of a replica, must agree."""

    commit_log_bytes: int = setting(
        "mappedFileSizeCommitLog mapedFileSizeCommitLog",
        1 << 30,
        Whole(1024),
        "length of a log file",
    )
    consume_queue_bytes: int = setting(
        "mappedFileSizeConsumeQueue mapedFileSizeConsumeQueue",
        300_000 * UNIT_BYTES, RoundedUp(UNIT_BYTES), "length of a consume queue file",
    )  # fmt: skip
    consume_queue_ext_enabled: bool = setting(
        "enableConsumeQueueExt", False, YES_NO, "keep tag, time and filter bitmap beside a queue"
    )
    consume_queue_ext_bytes: int = setting(
        "mappedFileSizeConsumeQueueExt", 48 << 20, Whole(1024), "length of an extension file"
    )
    bitmap_bits: int = setting(
        "bitMapLengthConsumeQueueExt", 64, Whole(8, 1 << 16),
        "bits of the filter bitmap; no effect, as in RocketMQ: the filter's own length counts",
    )  # fmt: skip

    @property
    def ext_bytes(self) -> int | None:
        """Return the length of an extension file; None if queues have no extension."""
        return self.consume_queue_ext_bytes if self.consume_queue_ext_enabled else None


@dataclass(frozen=True, kw_only=True)
class PutSettings:
    """What a message must be to get in."""

    body_bytes_max: int = setting(
        "maxMessageSize", BODY_BYTES_MAX, Whole(1), "largest body", live=True
    )
    busy_ms: int = setting(
        "osPageCacheBusyTimeOutMills", 1_000, Whole(0, LONG_MAX),
        "a put that takes longer makes the store busy", live=True,
    )  # fmt: skip
    uses_mutex: bool = setting(
        "useReentrantLockWhenPutMessage", True, YES_NO,
        "kind of put lock; no effect: one task does all puts",
    )  # fmt: skip
    undispatched_max: int = setting(
        "putMsgIndexHightWater", 600_000, Whole(1),
        "messages not yet dispatched; no effect, as in RocketMQ: dispatch is inline", live=True,
    )  # fmt: skip
    multi_dispatch_enabled: bool = setting(
        "enableMultiDispatch", False, YES_NO, "one record into several queues"
    )

    @property
    def record_bytes_max(self) -> int:
        """Return the largest record."""
        return self.body_bytes_max + RECORD_OVERHEAD_BYTES_MAX


@dataclass(frozen=True, kw_only=True)
class FlushSettings:
    """When the log is forced."""

    disk_type: FlushDiskType = setting(
        "flushDiskType", FlushDiskType.ASYNC_FLUSH, Choice(FlushDiskType), "when a send is answered"
    )
    sync_timeout_ms: int = setting(
        "syncFlushTimeout", 5_000, INTERVAL, "longest wait of a send for the disk", live=True
    )
    interval_ms: int = setting(
        "flushIntervalCommitLog", 500, INTERVAL, "pause between two flushes", live=True
    )
    least_pages: int = setting(
        "flushCommitLogLeastPages", 4, PAGES, "4 KiB pages that are worth a flush", live=True
    )
    thorough_interval_ms: int = setting(
        "flushCommitLogThoroughInterval", 10_000, PAUSE,
        "at least this often a single byte is worth one", live=True,
    )  # fmt: skip
    is_timed: bool = setting(
        "flushCommitLogTimed", True, YES_NO, "false: a put may end the pause", live=True
    )


@dataclass(frozen=True, kw_only=True)
class QueueFlushSettings:
    """When consume queues are forced, and the checkpoint with them."""

    interval_ms: int = setting(
        "flushIntervalConsumeQueue", 1_000, INTERVAL, "pause between two flushes", live=True
    )
    least_pages: int = setting(
        "flushConsumeQueueLeastPages", 2, PAGES,
        "4 KiB pages of a queue that are worth writing while many queues change", live=True,
    )  # fmt: skip
    thorough_interval_ms: int = setting(
        "flushConsumeQueueThoroughInterval", 60_000, PAUSE,
        "at least this often all are flushed and the checkpoint is written", live=True,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PoolSettings:
    """The transient store pool: buffers that records are appended to before they reach the map."""

    enabled: bool = setting("transientStorePoolEnable", False, YES_NO, "append to buffers first")
    buffers: int = setting(
        "transientStorePoolSize", 5, Whole(1, 1024), "how many, each as long as a log file"
    )
    fails_fast: bool = setting(
        "fastFailIfNoBufferInStorePool", False, YES_NO,
        "without a free buffer a new log file fails at once", live=True,
    )  # fmt: skip
    commit_interval_ms: int = setting(
        "commitIntervalCommitLog", 200, INTERVAL, "pause between two commits", live=True
    )
    commit_least_pages: int = setting(
        "commitCommitLogLeastPages", 4, PAGES, "4 KiB pages that are worth a commit", live=True
    )
    commit_thorough_interval_ms: int = setting(
        "commitCommitLogThoroughInterval", 200, PAUSE,
        "at least this often a single byte is worth one", live=True,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class WarmUpSettings:
    """Whether the pages of a new log file are touched before they are needed."""

    enabled: bool = setting("warmMapedFileEnable", False, YES_NO, "touch them", live=True)
    pages_between_flushes: int = setting(
        "flushLeastPagesWhenWarmMapedFile", 4_096, Whole(1), "force after so many of them",
        live=True,
    )  # fmt: skip

    @property
    def step_bytes(self) -> int | None:
        """Return after how many bytes touched a new file is forced; None if it is not touched."""
        return self.pages_between_flushes * 4096 if self.enabled else None


@dataclass(frozen=True, kw_only=True)
class RecoverySettings:
    """What is looked at when a store is opened."""

    checks_crc: bool = setting("checkCRCOnRecover", True, YES_NO, "recompute the CRC of each body")
