# ruff: noqa: RUF009 - `setting` makes a field, as `dataclasses.field` does
"""Settings of what a store does beside appending: deleting, answering, replicating, delaying.

The second half of the table that `settings_log` begins; the columns are explained there.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from gantrymq.store.settings_kinds import (
    INTERVAL,
    LONG_MAX,
    PAUSE,
    TEXT,
    YES_NO,
    Choice,
    Delays,
    Hours,
    Network,
    Networks,
    Percent,
    Whole,
    setting,
)


class BrokerRole(Enum):
    """What a broker is to its group; a SYNC_MASTER answers after a slave has the message."""

    ASYNC_MASTER = "ASYNC_MASTER"
    SYNC_MASTER = "SYNC_MASTER"
    SLAVE = "SLAVE"


@dataclass(frozen=True, kw_only=True)
class RetentionSettings:
    """When files are deleted."""

    reserved_hours: int = setting(
        "fileReservedTime", 72, Whole(0), "hours after which a log file may go", live=True
    )
    delete_hours: tuple[int, ...] = setting(
        "deleteWhen", (4,), Hours(), "local hours in which those that may go do", live=True
    )
    clean_interval_ms: int = setting(
        "cleanResourceInterval", 10_000, INTERVAL, "pause between two looks"
    )
    log_pause_ms: int = setting(
        "deleteCommitLogFilesInterval", 100, PAUSE, "pause behind a deleted log file", live=True
    )
    queue_pause_ms: int = setting(
        "deleteConsumeQueueFilesInterval",
        100,
        PAUSE,
        "pause behind a queue that lost files",
        live=True,
    )
    forced_unmap_ms: int = setting(
        "destroyMapedFileIntervalForcibly", 120_000, PAUSE,
        "no effect: a deleted file stays mapped for its readers and for nobody else", live=True,
    )  # fmt: skip
    retry_interval_ms: int = setting(
        "redeleteHangedFileInterval", 120_000, PAUSE,
        "pause before a failed deletion is tried again", live=True,
    )  # fmt: skip
    files_per_run_max: int = setting(
        "deleteFileBatchMax", 10, Whole(1, 10_000), "log files deleted in one go (5.x)", live=True
    )


@dataclass(frozen=True, kw_only=True)
class DiskSettings:
    """Percentages of the disk at which something is done about it."""

    clean_percent: int = setting(
        "diskMaxUsedSpaceRatio", 75, Whole(10, 95, clamped=True),
        "above, expired files go at any hour; used as 10 to 95", live=True,
    )  # fmt: skip
    force_percent: int = setting(
        "diskSpaceCleanForciblyRatio rocketmq.broker.diskSpaceCleanForciblyRatio", 85, Percent(),
        "above, files go whatever their age", live=True,
    )  # fmt: skip
    full_percent: int = setting(
        "diskSpaceWarningLevelRatio rocketmq.broker.diskSpaceWarningLevelRatio", 90, Percent(),
        "above, nothing is written", live=True,
    )  # fmt: skip
    may_force: bool = setting(
        "cleanFileForciblyEnable",
        True,
        YES_NO,
        "whether files may go whatever their age",
        live=True,
    )


@dataclass(frozen=True, kw_only=True)
class TransferSettings:
    """How much one pull may take."""

    memory_bytes_max: int = setting(
        "maxTransferBytesOnMessageInMemory", 256 << 10, Whole(1), "bytes, hot messages", live=True
    )
    memory_messages_max: int = setting(
        "maxTransferCountOnMessageInMemory", 32, Whole(1), "messages, hot ones", live=True
    )
    disk_bytes_max: int = setting(
        "maxTransferBytesOnMessageInDisk", 64 << 10, Whole(1), "bytes, cold messages", live=True
    )
    disk_messages_max: int = setting(
        "maxTransferCountOnMessageInDisk", 8, Whole(1), "messages, cold ones", live=True
    )
    memory_percent: int = setting(
        "accessMessageInMemoryMaxRatio", 40, Whole(0, 100),
        "part of the RAM behind the log's end that counts as hot", live=True,
    )  # fmt: skip
    records_fall_behind: bool = setting(
        "diskFallRecorded",
        True,
        YES_NO,
        "does nothing: metrics say how far groups are behind",
        live=True,
    )
    checks_offset_in_slave: bool = setting(
        "offsetCheckInSlave", False, YES_NO, "a slave corrects pull offsets too", live=True
    )


@dataclass(frozen=True, kw_only=True)
class IndexSettings:
    """The index by message key; slots and entries are the layout of a file."""

    enabled: bool = setting("messageIndexEnable", True, YES_NO, "build index files", live=True)
    slots: int = setting("maxHashSlotNum", 5_000_000, Whole(1), "hash slots in a file")
    entries: int = setting("maxIndexNum", 20_000_000, Whole(2), "entries in a file")
    hits_max: int = setting("maxMsgsNumBatch", 64, Whole(1), "answers to a query by key", live=True)
    unique_hits_max: int = setting(
        "defaultQueryMaxNum", 32, Whole(1), "answers to a query by unique key", live=True
    )
    is_safe: bool = setting(
        "messageIndexSafe", False, YES_NO, "recovery begins early enough to rebuild the index"
    )


@dataclass(frozen=True, kw_only=True)
class ReplicationSettings:
    """Master and slaves."""

    role: BrokerRole = setting(
        "brokerRole", BrokerRole.ASYNC_MASTER, Choice(BrokerRole), "what the broker is to its group"
    )
    listen_port: int = setting(
        "haListenPort",
        10_912,
        Whole(0, 65_535),
        "port for slaves; 4.9 takes listenPort + 1 instead",
    )
    heartbeat_interval_ms: int = setting(
        "haSendHeartbeatInterval", 5_000, INTERVAL, "idle time before a sign of life", live=True
    )
    silence_ms_max: int = setting(
        "haHousekeepingInterval",
        20_000,
        INTERVAL,
        "a silent connection is closed after it",
        live=True,
    )
    batch_bytes_max: int = setting(
        "haTransferBatchSize", 32 << 10, Whole(1), "log bytes in one frame", live=True
    )
    allowed_peers: tuple[Network, ...] = setting(
        "haAllowedAddresses", (), Networks(),
        "who may copy the log: addresses and networks; empty is everybody who reaches the port",
    )  # fmt: skip
    master_address: str = setting(
        "haMasterAddress", "", TEXT, "slave: where the master is, instead of asking the name server"
    )
    gap_bytes_max: int = setting(
        "haSlaveFallbehindMax haMaxGapNotInSync", 256 << 20, Whole(0, LONG_MAX),
        "SYNC_MASTER: a slave further behind does not count", live=True,
    )  # fmt: skip
    slave_timeout_ms: int = setting(
        "slaveTimeout", 3_000, INTERVAL, "longest wait of a send for a slave", live=True
    )
    raft_enabled: bool = setting(
        "enableDLegerCommitLog", False, YES_NO, "a Raft log instead; not offered here"
    )


@dataclass(frozen=True, kw_only=True)
class ScheduleSettings:
    """Delayed messages."""

    delays_ms: tuple[int, ...] = setting(
        "messageDelayLevel",
        Delays().parse("1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"),
        Delays(), "the delay of each level, from 1",
    )  # fmt: skip
    flush_interval_ms: int = setting(
        "flushDelayOffsetInterval", 10_000, Whole(1, LONG_MAX), "pause between two saved positions"
    )
    counts_deliveries: bool = setting(
        "enableScheduleMessageStats", True, YES_NO, "count deliveries", live=True
    )
    delivers_async: bool = setting(
        "enableScheduleAsyncDeliver", False, YES_NO, "do not wait for each delivery to be stored"
    )
    pending_max: int = setting(
        "scheduleAsyncDeliverMaxPendingLimit", 2_000, Whole(1), "deliveries under way in a level",
        live=True,
    )  # fmt: skip
    resends_max: int = setting(
        "scheduleAsyncDeliverMaxResendNum2Blocked", 3, Whole(0),
        "tries before a level waits; after twice as many a message is skipped", live=True,
    )  # fmt: skip
