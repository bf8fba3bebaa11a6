"""The parameters of the store have the effect that their names promise, at their defaults and not.

Each is given under its RocketMQ name. What a system call trace would show of a real disk, the
simulated one tells by its counts and its contents.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from gantrymq.store.checkpoint import load_checkpoint
from gantrymq.store.queue_saving import PROMPT_QUEUES_MAX
from gantrymq.store.settings import known_settings, read_settings
from gantrymq.store.status import PutStatus
from gantrymq.testing.disk import Operation, SimulatedFiles
from support.parameter_effects import (
    BIG,
    CAPACITY,
    EVERY_HOUR,
    NEVER,
    PAGE,
    POOL,
    QUEUE_FILE,
    grown_old,
    has_deleted,
    is_flushed,
    until,
)
from support.small_stores import written_store
from support.store_rig import LOG, ROOT, Rig, message, sync_rig

if TYPE_CHECKING:
    from pathlib import Path

# -- where and how large -------------------------------------------------------------------------


def test_files_are_where_the_paths_say_and_nowhere_else(tmp_path: Path) -> None:
    root, log = tmp_path / "root", tmp_path / "other" / "log"
    written_store(root, 60, storePathCommitLog=str(log))
    assert [path.name for path in sorted(log.iterdir())] == [f"{0:020d}", f"{8192:020d}"]
    assert not (root / "commitlog").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"root", "other"}
    assert {path.name for path in root.iterdir()} == {
        "checkpoint", "config", "consumequeue", "index", "lock",
    }  # fmt: skip


def test_files_have_the_length_that_was_asked_for() -> None:
    old = {"mapedFileSizeCommitLog": "12288", "mapedFileSizeConsumeQueue": "400"}
    new = {name.replace("maped", "mapped"): value for name, value in old.items()}
    root = {"storePathRootDir": str(ROOT)}
    assert read_settings(root | old).files == read_settings(root | new).files
    rig = Rig(new)
    for number in range(50):
        rig.put(bytes(1000), queue_id=number % 2)
    assert rig.store.close()
    for directory, length in ((LOG, 12288), (QUEUE_FILE.parent, 400)):
        names = rig.disk.names(directory)
        assert len(names) > 1
        assert {rig.disk.size(directory / name) for name in names} == {length}


# -- when the log is forced ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "body", "seconds"),
    [
        ({}, bytes(4 * PAGE), 0.5),
        ({"flushIntervalCommitLog": "2000"}, bytes(4 * PAGE), 2.0),
        ({}, bytes(2 * PAGE), 10.0),
        ({"flushCommitLogLeastPages": "2"}, bytes(2 * PAGE), 0.5),
        ({"flushCommitLogLeastPages": "0"}, b"x", 0.5),
        ({}, b"x", 10.0),
        ({"flushCommitLogThoroughInterval": "3000"}, b"x", 3.0),
    ],
    ids=str,
)
def test_when_the_log_is_forced(changes: dict[str, str], body: bytes, seconds: float) -> None:
    rig = Rig(BIG | changes)
    rig.put(body)
    assert until(rig, lambda: is_flushed(rig)) == pytest.approx(seconds, abs=0.051)


@pytest.mark.parametrize(("timed", "at_once"), [("true", False), ("false", True)])
def test_a_put_ends_the_pause_unless_it_is_timed(timed: str, *, at_once: bool) -> None:
    rig = Rig(BIG | {"flushCommitLogTimed": timed})
    rig.put(bytes(8 * PAGE))
    rig.log_flush.drain()
    assert is_flushed(rig) is at_once


def test_a_checkpoint_advances_although_nobody_waits() -> None:
    rig = sync_rig()
    out = rig.hold(rig.put(b"one"), waits=False)
    assert out == [PutStatus.PUT_OK]
    assert rig.store.flush.flushed_offset == 0, "the answer left before the disk was asked"
    rig.settle()
    rig.tick(60.0)
    rig.settle()
    rig.tick(60.0)
    rig.settle()
    (record,) = rig.records()
    found = load_checkpoint(rig.disk, ROOT / "checkpoint")
    assert (found.log_ms, found.queues_ms) == (record.store_timestamp, record.store_timestamp)


# -- the pool ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ({}, 0.2),
        ({"commitIntervalCommitLog": "1000"}, 1.0),
        ({"commitCommitLogThoroughInterval": "700"}, 0.85),
    ],
    ids=str,
)
def test_when_the_pool_is_committed(changes: dict[str, str], seconds: float) -> None:
    rig = Rig(BIG | POOL | changes)
    rig.put(b"x")
    assert rig.bodies() == []
    assert until(rig, lambda: rig.bodies() == [b"x"]) == pytest.approx(seconds, abs=0.051)


def test_least_pages_of_a_commit() -> None:
    rig = Rig(BIG | POOL | {"commitCommitLogLeastPages": "2"})
    rig.put(bytes(PAGE))
    assert rig.bodies() == []
    rig.put(bytes(PAGE))
    assert len(rig.bodies()) == 2
    rig = Rig(BIG | POOL | {"commitCommitLogLeastPages": "0"})
    rig.put(b"x")
    assert rig.bodies() == [b"x"], "every byte is worth it"


# -- queues --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("others", "changes", "units", "seconds"),
    [
        (0, {}, 1, 1.0),
        (0, {"flushIntervalConsumeQueue": "3000"}, 1, 3.0),
        (PROMPT_QUEUES_MAX - 1, {}, 1, 1.0),
        (PROMPT_QUEUES_MAX, {}, 410, 1.0),
        (PROMPT_QUEUES_MAX, {}, 409, 60.0),
        (PROMPT_QUEUES_MAX, {"flushIntervalConsumeQueue": "3000"}, 410, 3.0),
        (PROMPT_QUEUES_MAX, {"flushConsumeQueueLeastPages": "1"}, 205, 1.0),
        (PROMPT_QUEUES_MAX, {"flushConsumeQueueLeastPages": "1"}, 204, 60.0),
        (PROMPT_QUEUES_MAX, {"flushConsumeQueueLeastPages": "0"}, 1, 1.0),
    ],
    ids=str,
)
def test_when_queues_are_written(
    others: int, changes: dict[str, str], units: int, seconds: float
) -> None:
    rig = Rig(BIG | changes)
    for queue_id in range(others):
        rig.put(b"x", queue_id=queue_id + 1)
    for _ in range(units):
        rig.put(b"x")
    assert until(rig, lambda: rig.disk.exists(QUEUE_FILE)) == pytest.approx(seconds, abs=0.051)


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [({}, 60.0), ({"flushConsumeQueueThoroughInterval": "5000"}, 5.0)],
    ids=str,
)
def test_when_queues_are_forced(changes: dict[str, str], seconds: float) -> None:
    rig = Rig(BIG | changes)
    rig.put(b"x")

    def is_forced() -> bool:
        return load_checkpoint(rig.disk, ROOT / "checkpoint").queues_ms > 0

    assert until(rig, is_forced) == pytest.approx(seconds, abs=1.051)


# -- limits and what has no effect ---------------------------------------------------------------


@pytest.mark.parametrize("limit", [1000, 4 << 20])
def test_the_largest_body(limit: int) -> None:
    rig = Rig({"maxMessageSize": str(limit), "mappedFileSizeCommitLog": str(16 << 20)})
    stored = rig.store.put([message(bytes(limit))])
    refused = rig.store.put([message(bytes(limit + 1))])
    assert (stored.status, refused.status) == (PutStatus.PUT_OK, PutStatus.MESSAGE_ILLEGAL)
    assert [len(body) for body in rig.bodies()] == [limit]


def test_what_nothing_reads_is_taken_and_said_to_have_no_effect() -> None:
    changes = {
        "putMsgIndexHightWater": "5",
        "useReentrantLockWhenPutMessage": "false",
        "destroyMapedFileIntervalForcibly": "1",
    }
    rig = Rig(BIG | changes)
    for number in range(20):
        assert rig.put(b"%d" % number).status is PutStatus.PUT_OK
    assert rig.bodies() == [b"%d" % number for number in range(20)]
    meanings = {row.names[0]: row.meaning for row in known_settings()}
    assert all("no effect" in meanings[name] for name in changes)


# -- cleaning --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [5, 20])
def test_when_disks_are_looked_at(seconds: int) -> None:
    rig = Rig({"cleanResourceInterval": str(seconds * 1000)}, SimulatedFiles(capacity=CAPACITY))
    rig.tick(1.0)
    rig.settle()
    rig.disk.other_bytes = CAPACITY * 95 // 100
    is_full = until(rig, lambda: rig.store.writability.reason is not None)
    assert is_full == pytest.approx(seconds, abs=0.051)


@pytest.mark.parametrize(("percent", "deletes"), [(50, True), (75, False)])
def test_the_part_of_a_disk_above_which_old_files_go(percent: int, *, deletes: bool) -> None:
    rig = grown_old(NEVER | {"diskMaxUsedSpaceRatio": str(percent)})
    rig.disk.other_bytes = CAPACITY * 60 // 100
    for _ in range(30):
        rig.tick(1.0)
        rig.settle()
    assert has_deleted(rig) is deletes


@pytest.mark.parametrize("seconds", [0, 7])
def test_the_pause_behind_a_queue_that_lost_files(seconds: int) -> None:
    pause = {"deleteConsumeQueueFilesInterval": str(seconds * 1000)}
    small = {"mappedFileSizeConsumeQueue": "40"}
    rig = grown_old(EVERY_HOUR | small | pause)
    counts = [len(rig.disk.names(QUEUE_FILE.parent.parent / str(number))) for number in (0, 1)]

    def is_shorter(number: int) -> bool:
        return len(rig.disk.names(QUEUE_FILE.parent.parent / str(number))) < counts[number]

    until(rig, lambda: is_shorter(0) or is_shorter(1))
    between = until(rig, lambda: is_shorter(0) and is_shorter(1))
    assert between == pytest.approx(seconds, abs=0.151)


@pytest.mark.parametrize("seconds", [30, 60])
def test_when_a_removal_that_failed_is_tried_again(seconds: int) -> None:
    retry = {"redeleteHangedFileInterval": str(seconds * 1000)}
    rig = grown_old(EVERY_HOUR | retry)
    rig.disk.fail(Operation.REMOVE, errno.EBUSY)
    until(rig, lambda: rig.store.cleaner.last_error is not None)
    assert seconds <= until(rig, lambda: has_deleted(rig)) <= seconds + 10.2


@pytest.mark.parametrize("pages", [1, 4])
def test_after_how_many_pages_warming_forces(pages: int) -> None:
    warm = {"warmMapedFileEnable": "true", "flushLeastPagesWhenWarmMapedFile": str(pages)}
    syncs = []
    for settings in (warm, {}):
        rig = Rig(settings | {"mappedFileSizeCommitLog": str(8 * PAGE)})
        rig.put(b"x")
        syncs.append(rig.disk.counts[Operation.SYNC])
    assert syncs[0] - syncs[1] == 8 // pages
