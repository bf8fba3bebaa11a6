"""The store as a whole: start, stop, and what a failing disk does to either."""

from __future__ import annotations

import errno
import os
import queue
from typing import TYPE_CHECKING

import pytest

from gantrymq.clock import SystemClock
from gantrymq.kernel import QueueRun
from gantrymq.store import allocation
from gantrymq.store.errors import StoreLocked
from gantrymq.store.failed_disk import MARK_NAME, is_marked, leave_mark, remove_mark
from gantrymq.store.files import OsFiles
from gantrymq.store.message_store import Identity, MessageStore
from gantrymq.store.settings import read_settings
from gantrymq.store.status import PutStatus
from gantrymq.store.worker import ThreadWorker, Workers
from gantrymq.testing.clock import VirtualClock
from gantrymq.testing.disk import Names, Operation, SimulatedFiles
from support.small_stores import small_store
from support.store_rig import (
    BORN_HOST,
    LOG,
    ROOT,
    SMALL,
    STORE_HOST,
    Rig,
    frames,
    message,
    open_settings,
    sync_rig,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class TestStart:
    """Opening."""

    def test_the_directories_are_made_and_their_names_are_safe(self) -> None:
        rig = Rig(disk=SimulatedFiles(names=Names.STRICT))
        after = rig.disk.crash(0.0)
        assert after.names(ROOT) == [
            "abort", "commitlog", "config", "consumequeue", "index", "lock",
        ]  # fmt: skip

    def test_a_second_one_is_refused(self) -> None:
        rig = Rig()
        with pytest.raises(StoreLocked):
            rig.again(rig.disk)
        rig.store.close()
        assert rig.again(rig.disk).report.clean

    def test_a_start_that_fails_lets_the_lock_go(self) -> None:
        rig = Rig()
        rig.store.close()
        rig.disk.fail(Operation.SYNC, errno.EIO)
        with pytest.raises(OSError, match="Input/output"):
            rig.again(rig.disk)
        assert rig.again(rig.disk).put(b"x").status is PutStatus.PUT_OK

    def test_nothing_can_be_put_before_it(self) -> None:
        store = MessageStore(
            open_settings({}),
            Identity(STORE_HOST),
            files=SimulatedFiles(),
            clock=SystemClock(),
            workers=Workers(*Rig().store._workers),
        )
        assert store.put([message()]).status is PutStatus.SERVICE_NOT_AVAILABLE
        assert not store.flush_queues(thorough=True)
        assert not store.close()


class TestStop:
    """Closing."""

    def test_everyone_who_waits_is_let_out(self) -> None:
        rig = sync_rig()
        out = [rig.hold(rig.put(b"%d" % number)) for number in range(3)]
        assert rig.store.close()
        assert out == 3 * [[PutStatus.PUT_OK]]
        assert rig.again(rig.disk.crash(0.0)).bodies() == [b"0", b"1", b"2"]

    def test_who_waits_for_a_replica_is_let_out_late(self) -> None:
        rig = Rig()
        stored = rig.put(b"x")
        out: list[PutStatus] = []
        rig.store.gate.hold(out.append, 0.0, replica_offset=stored.end)
        assert rig.store.close()
        assert out == [PutStatus.FLUSH_SLAVE_TIMEOUT]

    @pytest.mark.parametrize("ran", [False, True], ids=["waiting", "unreported"])
    def test_jobs_under_way_come_to_their_end(self, ran: bool) -> None:
        rig = sync_rig()
        out = rig.hold(rig.put(b"x"))
        rig.tick(1.0)
        if ran:
            rig.log_flush.run_one()
            rig.queue_flush.run_one()
        assert rig.store.close()
        assert out == [PutStatus.PUT_OK]
        for worker in (rig.log_flush, rig.queue_flush):
            worker.drain()  # what arrives late finds everything done
        assert rig.again(rig.disk.crash(0.0)).bodies() == [b"x"]

    def test_twice_is_once(self) -> None:
        rig = Rig()
        rig.put(b"x")
        assert rig.store.close()
        other = rig.again(rig.disk)
        assert not rig.store.close()
        assert rig.disk.exists(ROOT / "abort"), "it belongs to the other one now"
        assert other.store.close()

    @pytest.mark.parametrize(
        "where", ["commitlog", "consumequeue", "index", "checkpoint.tmp"], ids=str
    )
    def test_a_disk_that_fails_at_the_end(self, where: str) -> None:
        rig = Rig()
        rig.put(b"x", properties={"KEYS": "k"})
        rig.disk.fail(
            Operation.SYNC, errno.EIO, where=lambda path: where in path.parts or path.name == where
        )
        assert not rig.store.close()
        assert rig.disk.exists(ROOT / "abort")
        assert is_marked(rig.disk, ROOT)
        again = rig.again(rig.disk)  # the lock is free
        assert not again.report.clean
        assert again.bodies() == [b"x"]
        assert again.again(again.disk.crash(0.0)).bodies() == [b"x"]

    def test_a_disk_without_room_at_the_end(self) -> None:
        rig = Rig()
        rig.put(b"x")
        rig.disk.other_bytes = rig.disk.usage(ROOT).available
        assert not rig.store.close()
        rig.disk.other_bytes = 0
        assert rig.again(rig.disk).bodies() == [b"x"]

    @pytest.mark.parametrize("operation", [Operation.REMOVE, Operation.SYNC_DIRECTORY])
    def test_the_mark_cannot_be_taken_away(self, operation: Operation) -> None:
        rig = Rig()
        rig.put(b"x")
        rig.settle()
        rig.disk.fail(operation, errno.EIO, times=None, where=lambda path: path.parent != LOG)
        assert not rig.store.close()
        rig.disk.heal()
        assert rig.again(rig.disk).bodies() == [b"x"]

    def test_a_failed_disk_is_not_asked_again(self) -> None:
        rig = sync_rig()
        rig.hold(rig.put(b"x"))
        rig.disk.fail(Operation.SYNC, errno.EIO)
        rig.settle()
        syncs = rig.disk.counts[Operation.SYNC]
        assert not rig.store.close()
        assert rig.disk.counts[Operation.SYNC] == syncs


class TestDispatch:
    """What is told to those who wait for messages, and when."""

    def test_arrivals_are_told_after_they_can_be_read(self) -> None:
        seen: list[tuple[bytes, int, int]] = []
        rig = sync_rig()
        rig.store._dispatcher._arrived = lambda runs: seen.extend(
            (run.topic, run.first_queue_offset, len(rig.bodies())) for run in runs
        )
        rig.put(b"x")
        rig.put(b"y")
        assert seen == []
        rig.log_flush.drain()
        assert seen == [(b"T", 0, 1), (b"T", 1, 2)]

    def test_somebody_who_fails_to_hear_of_them_holds_up_nobody(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        rig = sync_rig()

        def deaf(_runs: object) -> None:
            raise KeyError("deaf")

        rig.store._dispatcher._arrived = deaf
        out = rig.hold(rig.put(b"x"))
        rig.log_flush.drain()
        assert out == [PutStatus.PUT_OK]
        assert rig.bodies() == [b"x"]
        assert "could not all be told" in caplog.text
        assert rig.store.writability.reason is None

    def test_a_log_that_is_damaged_in_memory_is_not_acknowledged(self) -> None:
        rig = sync_rig()
        out = rig.hold(rig.put(b"x"))
        rig.store.log.files[0].region.buffer[4:8] = b"????"
        rig.log_flush.drain()
        assert out == [PutStatus.UNKNOWN_ERROR]
        assert "BAD_MAGIC" in str(rig.store.writability.reason)
        assert rig.bodies() == []

    def test_a_topic_that_can_have_no_queue_does_not_stop_the_others(self) -> None:
        rig = Rig()
        rig.put(b"x")
        raw = bytearray(rig.store.log.files[0].region.buffer[: rig.store.log.wrote_offset])
        rig.put(b"y")
        # As another system may have written it: a topic that is no name of a directory.
        at = raw.rindex(b"\x01T")
        rig.store.log.files[0].region.buffer[at + 1 : at + 2] = b"/"
        again = rig.again()
        assert again.report.log_end.records == 2
        found = again.store.get("T", 0, 1, 32)
        assert (found.min_offset, len(found.records)) == (1, 1)

    def test_files_that_are_gone_are_passed_over(self) -> None:
        rig = sync_rig()
        for _ in range(3):
            rig.put(bytes(3000))
        rig.store.log.drop_first()
        rig.log_flush.drain()
        assert rig.store.dispatched_offset == rig.store.log.wrote_offset
        assert rig.store.flush.flushed_offset == rig.store.log.wrote_offset
        again = rig.store.queues.find("T", 0)
        assert again is not None
        assert again.max_offset == 3


class TestFailedDisk:
    """The mark that the next process finds."""

    def test_left_and_found_and_removed(self) -> None:
        disk = SimulatedFiles()
        disk.make_directory(ROOT)
        assert not is_marked(disk, ROOT)
        leave_mark(disk, ROOT, "why")
        assert disk.read(ROOT / MARK_NAME) == b"why"
        remove_mark(disk, ROOT)
        assert not is_marked(disk, ROOT)

    def test_a_full_disk_and_one_that_hardly_writes_can_be_marked(self) -> None:
        for failing in ([Operation.WRITE], [Operation.WRITE, Operation.TRUNCATE]):
            disk = SimulatedFiles()
            disk.make_directory(ROOT)
            for operation in failing:
                disk.fail(operation, errno.ENOSPC, times=None)
            leave_mark(disk, ROOT, "why")
            assert is_marked(disk, ROOT)
            disk.heal()
            remove_mark(disk, ROOT)
            assert not is_marked(disk, ROOT)

    def test_one_that_does_nothing_any_more_raises_nothing(self) -> None:
        disk = SimulatedFiles()
        disk.make_directory(ROOT)
        disk.read_only = True
        leave_mark(disk, ROOT, "why")
        assert not is_marked(disk, ROOT)


class Owner:
    """A thread's own queue of calls, as an event loop has one."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.post = self._calls.put

    def run_one(self) -> None:
        """Do the next call, waiting for it if need be."""
        self._calls.get(timeout=120)()


def test_with_threads_and_a_real_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocation, "ALLOCATION_TIMEOUT_S", 120)  # other tests may have the disk
    owner, told = Owner(), list[QueueRun]()
    settings = read_settings(
        SMALL | {"storePathRootDir": str(tmp_path), "flushDiskType": "SYNC_FLUSH"}
    )

    def opened() -> MessageStore:
        workers = Workers.made(lambda name: ThreadWorker(name, owner.post))
        store = MessageStore(
            settings,
            Identity(STORE_HOST),
            files=OsFiles(),
            clock=SystemClock(),
            workers=workers,
            arrived=told.extend,
        )
        store.open(1)
        store.open_topic("T", 2)
        return store

    store, out = opened(), list[PutStatus]()
    for number in range(50):
        buffer = frames([b"%d" % number, bytes(300)])
        store.append_sends(buffer, 0, len(buffer), BORN_HOST)
        store.hold(store.log.wrote_offset, out.append)
    while len(out) < 25:
        owner.run_one()
    store.flush_queues(thorough=True)
    assert store.close()
    assert out == 50 * [PutStatus.PUT_OK]
    assert sum(len(run.units) for run in told) == 100 * 20
    again = opened()
    assert again.get("T", 0, 0, 32).max_offset == 100
    assert again.close()


def test_a_file_that_apache_left_with_a_hole_in_it_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writing into the hole would be SIGBUS: sends are refused until there is room for it."""
    log = tmp_path / "store" / "commitlog" / f"{0:020d}"
    log.parent.mkdir(parents=True)
    log.touch()
    os.truncate(log, 8192)
    reserve, is_full = os.posix_fallocate, True

    def on_a_full_disk(handle: int, position: int, count: int) -> None:
        if is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        reserve(handle, position, count)

    monkeypatch.setattr(os, "posix_fallocate", on_a_full_disk)
    clock = VirtualClock()
    store = small_store(tmp_path / "store", clock)
    store.open(1)
    reason = store.writability.reason
    assert reason is not None
    assert f"{log} has no room" in reason
    assert store.put([message()]).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert log.stat().st_blocks == 0
    is_full = False
    store.retry_dispatch()
    assert store.put([message()]).status is PutStatus.PUT_OK
    assert log.stat().st_blocks * 512 >= 8192
    assert store.close()
