"""Settings: RocketMQ's names and defaults, and everything that is wrong said at once."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest

from gantrymq.errors import GantryError
from gantrymq.store.settings import (
    BrokerRole,
    FlushDiskType,
    InvalidSettings,
    PathSettings,
    StoreSettings,
    changed_settings,
    known_settings,
    read_settings,
)
from gantrymq.store.settings_names import FOREIGN
from gantrymq.wire.bodies.settings import SETTINGS
from support.golden import STORE, STORE_LABELS

ROOT = Path("/data")


def read(**properties: str | int) -> StoreSettings:
    """Read settings of a store at ROOT."""
    texts = {name: str(value) for name, value in properties.items()}
    return read_settings({"storePathRootDir": str(ROOT)} | texts)


def problems(**properties: str | int) -> tuple[str, ...]:
    """Return what is wrong with settings."""
    with pytest.raises(InvalidSettings) as caught:
        read(**properties)
    return caught.value.problems


DEFAULTS = {
    "storePathRootDir": str(ROOT),
    "storePathCommitLog": "",
    "readOnlyCommitLogStorePaths": "",
    "rocketmq.broker.multiPathSplitter": ",",
    "mappedFileSizeCommitLog": "1073741824",
    "mappedFileSizeConsumeQueue": "6000000",
    "enableConsumeQueueExt": "false",
    "mappedFileSizeConsumeQueueExt": "50331648",
    "bitMapLengthConsumeQueueExt": "64",
    "flushIntervalCommitLog": "500",
    "commitIntervalCommitLog": "200",
    "useReentrantLockWhenPutMessage": "true",
    "flushCommitLogTimed": "true",
    "flushIntervalConsumeQueue": "1000",
    "cleanResourceInterval": "10000",
    "deleteCommitLogFilesInterval": "100",
    "deleteConsumeQueueFilesInterval": "100",
    "destroyMapedFileIntervalForcibly": "120000",
    "redeleteHangedFileInterval": "120000",
    "deleteWhen": "04",
    "diskMaxUsedSpaceRatio": "75",
    "fileReservedTime": "72",
    "putMsgIndexHightWater": "600000",
    "maxMessageSize": "4194304",
    "checkCRCOnRecover": "true",
    "flushCommitLogLeastPages": "4",
    "commitCommitLogLeastPages": "4",
    "flushLeastPagesWhenWarmMapedFile": "4096",
    "flushConsumeQueueLeastPages": "2",
    "flushCommitLogThoroughInterval": "10000",
    "commitCommitLogThoroughInterval": "200",
    "flushConsumeQueueThoroughInterval": "60000",
    "maxTransferBytesOnMessageInMemory": "262144",
    "maxTransferCountOnMessageInMemory": "32",
    "maxTransferBytesOnMessageInDisk": "65536",
    "maxTransferCountOnMessageInDisk": "8",
    "accessMessageInMemoryMaxRatio": "40",
    "messageIndexEnable": "true",
    "maxHashSlotNum": "5000000",
    "maxIndexNum": "20000000",
    "maxMsgsNumBatch": "64",
    "messageIndexSafe": "false",
    "haListenPort": "10912",
    "haSendHeartbeatInterval": "5000",
    "haHousekeepingInterval": "20000",
    "haTransferBatchSize": "32768",
    "haAllowedAddresses": "",
    "haMasterAddress": "",
    "haSlaveFallbehindMax": "268435456",
    "brokerRole": "ASYNC_MASTER",
    "flushDiskType": "ASYNC_FLUSH",
    "syncFlushTimeout": "5000",
    "slaveTimeout": "3000",
    "messageDelayLevel": "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",
    "flushDelayOffsetInterval": "10000",
    "cleanFileForciblyEnable": "true",
    "warmMapedFileEnable": "false",
    "offsetCheckInSlave": "false",
    "diskFallRecorded": "true",
    "osPageCacheBusyTimeOutMills": "1000",
    "defaultQueryMaxNum": "32",
    "transientStorePoolEnable": "false",
    "transientStorePoolSize": "5",
    "fastFailIfNoBufferInStorePool": "false",
    "enableDLegerCommitLog": "false",
    "enableScheduleMessageStats": "true",
    "enableMultiDispatch": "false",
    "enableScheduleAsyncDeliver": "false",
    "scheduleAsyncDeliverMaxPendingLimit": "2000",
    "scheduleAsyncDeliverMaxResendNum2Blocked": "3",
    "diskSpaceWarningLevelRatio": "90",
    "diskSpaceCleanForciblyRatio": "85",
    "deleteFileBatchMax": "10",
}
"""Of Apache RocketMQ 4.9.7; the last three are parameters since 5.x and constants before."""


def test_every_setting_has_its_name_and_its_default() -> None:
    assert read().properties() == DEFAULTS


def test_settings_written_are_settings_read() -> None:
    texts = {
        "mappedFileSizeCommitLog": "1048576",
        "deleteWhen": "04;16",
        "messageDelayLevel": "0s 90s 36h 7d",
        "brokerRole": "SYNC_MASTER",
        "storePathCommitLog": "/a,/b",
    }
    settings = read(**texts)
    again = read_settings(settings.properties())
    assert again == settings
    assert again.schedule.delays_ms == (0, 90_000, 129_600_000, 604_800_000)


def test_every_row_says_what_it_does() -> None:
    rows = known_settings()
    names = [name for row in rows for name in row.names]
    assert len(names) == len(set(names))
    assert not set(names) & FOREIGN
    assert all(row.meaning and not row.meaning.endswith(".") for row in rows)
    assert all(row.kind.allowed for row in rows)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("mapedFileSizeCommitLog", "mappedFileSizeCommitLog"),
        ("mapedFileSizeConsumeQueue", "mappedFileSizeConsumeQueue"),
        ("haMaxGapNotInSync", "haSlaveFallbehindMax"),
    ],
)
def test_the_other_spelling(old: str, new: str) -> None:
    assert read(**{old: 1 << 20}) == read(**{new: 1 << 20}) != read()
    assert read(**{old: 1 << 20, new: 1 << 20}) == read(**{new: 1 << 20})
    (problem,) = problems(**{old: 1 << 20, new: 1 << 21})
    assert "two names of one setting" in problem


class TestPaths:
    def test_the_log_follows_the_root(self) -> None:
        paths = read().paths
        assert paths.commit_log == (ROOT / "commitlog",)
        assert paths.read_only_commit_log == ()
        assert [paths.consume_queue, paths.consume_queue_ext, paths.index, paths.config] == [
            ROOT / "consumequeue",
            ROOT / "consumequeue_ext",
            ROOT / "index",
            ROOT / "config",
        ]

    def test_several_disks(self) -> None:
        settings = read(storePathCommitLog="/a, /b ,/c", readOnlyCommitLogStorePaths="/c")
        assert settings.paths.commit_log == (Path("/a"), Path("/b"), Path("/c"))
        assert settings.paths.read_only_commit_log == (Path("/c"),)

    def test_another_splitter(self) -> None:
        settings = read(
            **{"storePathCommitLog": "/a,b:/c", "rocketmq.broker.multiPathSplitter": ":"}
        )
        assert settings.paths.commit_log == (Path("/a,b"), Path("/c"))
        (problem,) = problems(**{"rocketmq.broker.multiPathSplitter": ""})
        assert "not an empty one" in problem

    def test_a_store_without_a_root_is_at_home(self) -> None:
        assert read_settings({}, home=Path("/h")).paths.root == Path("/h/store")
        with pytest.raises(InvalidSettings, match="storePathRootDir is missing"):
            read_settings({})

    def test_one_directory_must_be_left_to_write_to(self) -> None:
        (problem,) = problems(storePathCommitLog="/a", readOnlyCommitLogStorePaths="/a")
        assert "left to write to" in problem


class TestValues:
    def test_a_queue_file_holds_whole_units(self) -> None:
        assert read(mappedFileSizeConsumeQueue=1000).files.consume_queue_bytes == 1000
        assert read(mappedFileSizeConsumeQueue=1001).files.consume_queue_bytes == 1020
        assert read(mappedFileSizeConsumeQueue=1).files.consume_queue_bytes == 20

    @pytest.mark.parametrize(("text", "percent"), [("5", 10), ("-3", 10), ("99", 95), ("50", 50)])
    def test_the_clean_ratio_is_clamped(self, text: str, percent: int) -> None:
        assert read(diskMaxUsedSpaceRatio=text).disk.clean_percent == percent

    @pytest.mark.parametrize("text", ["0.86", ".86", "86"])
    @pytest.mark.parametrize("prefix", ["", "rocketmq.broker."])
    def test_ratios_as_fractions_or_percentages(self, text: str, prefix: str) -> None:
        name = f"{prefix}diskSpaceCleanForciblyRatio"
        assert read(**{name: text}).disk.force_percent == 86

    @pytest.mark.parametrize(
        ("text", "hours"), [("04", (4,)), ("4", (4,)), ("04;16", (4, 16)), ("0; 23;", (0, 23))]
    )
    def test_hours(self, text: str, hours: tuple[int, ...]) -> None:
        assert read(deleteWhen=text).retention.delete_hours == hours

    def test_delays(self) -> None:
        assert read(messageDelayLevel="1s 2m 3h 4d").schedule.delays_ms == (
            1_000,
            120_000,
            10_800_000,
            345_600_000,
        )

    def test_choices(self) -> None:
        settings = read(brokerRole="SLAVE", flushDiskType="SYNC_FLUSH", checkCRCOnRecover="FALSE")
        assert settings.replication.role is BrokerRole.SLAVE
        assert settings.flush.disk_type is FlushDiskType.SYNC_FLUSH
        assert settings.recovery.checks_crc is False

    def test_blanks_around_a_value_are_none_of_it(self) -> None:
        assert read(maxMessageSize=" 100 ").put.body_bytes_max == 100
        assert read(maxMessageSize="100").put.record_bytes_max == 65636

    @pytest.mark.parametrize("flush", ["SYNC_FLUSH", "ASYNC_FLUSH"])
    def test_the_pool_goes_with_both_ways_to_flush(self, flush: str) -> None:
        assert read(transientStorePoolEnable="true", flushDiskType=flush).uses_pool
        assert not read(transientStorePoolEnable="true", brokerRole="SLAVE").uses_pool

    @pytest.mark.parametrize(
        ("name", "text", "allowed"),
        [
            ("flushIntervalCommitLog", "0", "a whole number from 1 to 2147483647"),
            ("flushIntervalCommitLog", "1_000", "a whole number"),
            ("flushIntervalCommitLog", "", "a whole number"),
            ("flushIntervalCommitLog", "500ms", "a whole number"),
            ("flushIntervalCommitLog", "99999999999", "to 2147483647"),
            ("diskMaxUsedSpaceRatio", "75%", "from 10 to 95"),
            ("mappedFileSizeConsumeQueue", "0", "raised to a multiple of 20"),
            ("checkCRCOnRecover", "yes", "true or false"),
            ("flushDiskType", "SYNC", "one of ASYNC_FLUSH, SYNC_FLUSH"),
            ("brokerRole", "slave", "one of ASYNC_MASTER, SYNC_MASTER, SLAVE"),
            ("deleteWhen", "24", "hours from 00 to 23"),
            ("deleteWhen", "", "hours from 00 to 23"),
            ("deleteWhen", ";", "hours from 00 to 23"),
            ("messageDelayLevel", "", "at least one"),
            ("messageDelayLevel", "1s 5", "times like"),
            ("messageDelayLevel", "1y", "times like"),
            ("diskSpaceWarningLevelRatio", "0", "a percentage from 1 to 100"),
            ("diskSpaceWarningLevelRatio", "1.5", "or the same as a fraction"),
            ("maxIndexNum", "1", "from 2"),
        ],
    )
    def test_what_is_not_allowed_is_refused(self, name: str, text: str, allowed: str) -> None:
        (problem,) = problems(**{name: text})
        assert problem.startswith(f"{name} is {text!r}; it must be")
        assert allowed in problem


class TestProblems:
    @pytest.mark.parametrize(
        ("name", "near"),
        [
            ("flushDiskTyp", "flushDiskType"),
            ("MAPPEDFILESIZECOMMITLOG", "mappedFileSizeCommitLog"),
            ("fileReserveTime", "fileReservedTime"),
            ("brokerNam", "brokerName"),
        ],
    )
    def test_an_unknown_name_is_told_the_nearest(self, name: str, near: str) -> None:
        (problem,) = problems(**{name: "1"})
        assert name in problem
        assert f"did you mean {near}?" in problem

    def test_a_name_that_is_near_to_nothing(self) -> None:
        assert problems(xyz="1") == ("xyz is not a setting that is known here",)

    def test_names_of_other_parts_are_passed_over(self) -> None:
        assert read(brokerName="a", listenPort="x", kvConfigPath="", timerPrecisionMs=1) == read()
        assert read(metricsPort="1", failoverEtcd="x", logFormat="json") == read(), "our own, too"

    def test_all_problems_come_at_once(self) -> None:
        found = problems(
            flushDiskTyp="x",
            flushIntervalCommitLog="x",
            brokerRole="x",
            enableDLegerCommitLog="true",
            maxMessageSize=1 << 29,
            mappedFileSizeCommitLog=1 << 20,
        )
        assert len(found) == 5

    def test_a_message_must_fit_into_a_file(self) -> None:
        fits = read(maxMessageSize=100, mappedFileSizeCommitLog=65536 + 108)
        assert fits.put.body_bytes_max == 100
        (problem,) = problems(maxMessageSize=101, mappedFileSizeCommitLog=65536 + 108)
        assert "maxMessageSize 101 needs log files of 65645 bytes" in problem
        small = read(mappedFileSizeCommitLog=262144)
        assert small.put.body_bytes_max == 4 << 20, "the default may be more than fits"
        assert read_settings(small.properties()) == small

    def test_there_is_no_raft_log(self) -> None:
        (problem,) = problems(enableDLegerCommitLog="true")
        assert "automatic failover" in problem

    def test_writes_do_not_stop_before_anything_is_deleted(self) -> None:
        (problem,) = problems(diskSpaceWarningLevelRatio=80)
        assert "above diskSpaceWarningLevelRatio" in problem

    def test_the_error_is_of_the_family_and_travels(self) -> None:
        error = InvalidSettings(["a", "b"])
        assert isinstance(error, GantryError)
        assert isinstance(error, ValueError)
        assert str(error) == "a\nb"
        assert pickle.loads(pickle.dumps(error)).problems == ("a", "b")  # noqa: S301 - our own


class TestLiveChanges:
    def test_what_is_read_on_every_use_may_change(self) -> None:
        before = read(storePathCommitLog="/a")
        after = changed_settings(before, {"maxMessageSize": "100", "deleteWhen": "05"})
        assert after == replace(
            before,
            put=replace(before.put, body_bytes_max=100),
            retention=replace(before.retention, delete_hours=(5,)),
        )

    def test_the_other_spelling_changes_the_same(self) -> None:
        after = changed_settings(read(), {"haMaxGapNotInSync": "5"})
        assert after.replication.gap_bytes_max == 5

    def test_what_is_fixed_at_the_start_may_not(self) -> None:
        with pytest.raises(InvalidSettings) as caught:
            changed_settings(
                read(),
                {
                    "flushDiskType": "SYNC_FLUSH",
                    "mapedFileSizeCommitLog": "2048000",
                    "maxMessageSize": "x",
                },
            )
        first, second, third = caught.value.problems
        assert first.startswith("flushDiskType is fixed")
        assert second.startswith("mapedFileSizeCommitLog is fixed")
        assert third.startswith("maxMessageSize is 'x'")

    def test_a_fixed_one_alone(self) -> None:
        with pytest.raises(InvalidSettings, match="storePathRootDir is fixed"):
            changed_settings(read(), {"storePathRootDir": "/other"})

    def test_saying_the_same_again_is_no_change(self) -> None:
        settings = read()
        assert changed_settings(settings, settings.properties()) == settings
        assert changed_settings(settings, {"brokerPermission": "4"}) == settings


def test_settings_do_not_change_by_themselves() -> None:
    settings = StoreSettings(paths=PathSettings(root=ROOT))
    assert settings == read()
    with pytest.raises(FrozenInstanceError):
        settings.paths.root = Path("/x")  # type: ignore[misc]


@pytest.mark.parametrize("label", STORE_LABELS)
def test_the_settings_of_a_golden_store(label: str) -> None:
    properties = SETTINGS.decode((STORE / label / "broker.conf").read_bytes())
    settings = read_settings(properties, home=ROOT)
    assert settings.files.commit_log_bytes == 262144
    assert settings.files.consume_queue_bytes == 1000
    assert (settings.index.slots, settings.index.entries) == (200, 800)
    assert settings.schedule.delays_ms[-1] == 3650 * 86_400_000
    assert settings.retention.reserved_hours == 480_000
    assert settings.files.consume_queue_ext_enabled == ("cqext" in label)
