"""What is deleted when, what that does to readers and offsets, and what a full disk stops."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.kernel import kernel
from gantrymq.store.cleaning import QUEUES_AT_ONCE
from gantrymq.store.reader import StoreReader
from gantrymq.store.retention import HOUR_MS, MANUAL_RUNS, local_hour
from gantrymq.store.settings import read_settings
from gantrymq.store.status import GetStatus, PutStatus
from gantrymq.store.timers import StoreTimers
from gantrymq.store.verify import verify
from gantrymq.testing.clock import START_MS, VirtualClock
from gantrymq.testing.disk import Operation, SimulatedFiles
from support.small_stores import PROPERTIES, put, small_store
from support.store_rig import LOG, ROOT, Rig

NOW = local_hour(START_MS)
HOUR = {"deleteWhen": f"{NOW:02d}"}
OTHER_HOUR = {"deleteWhen": f"{(NOW + 12) % 24:02d}"}
CAPACITY = 1 << 30
FILE = 4096
DAYS_S = 86400.0


def filled(settings: dict[str, str], bodies: int = 20, **more: object) -> Rig:
    """Return a store with four days old messages, five log files of them, on a disk with room."""
    rig = Rig(settings, SimulatedFiles(capacity=CAPACITY))
    for number in range(bodies):
        stored = rig.put(b"%02d" % number + bytes(900), **more)
        assert stored.status is PutStatus.PUT_OK
    pass_time(rig, 62.0)
    rig.clock.jump(4 * DAYS_S)
    return rig


def pass_time(rig: Rig, seconds: float, step: float = 0.5) -> None:
    """Let time pass with every worker at work."""
    for _ in range(round(seconds / step)):
        rig.tick(step)
        rig.settle()


def log_names(rig: Rig) -> list[int]:
    """Return where the log files on the disk begin; the one made ahead is not counted."""
    starts = [int(name) for name in rig.disk.names(LOG)]
    return [start for start in starts if start <= rig.store.log.files[-1].start]


def fill(rig: Rig, percent: int) -> None:
    """Let somebody else take a part of the disk."""
    rig.disk.other_bytes = CAPACITY * percent // 100


class TestWhen:
    """The hour, the room, an order."""

    def test_at_the_hour_what_is_old_goes(self) -> None:
        rig = filled(HOUR)
        rig.put(b"young")
        rig.log_flush.drain()
        rig.store.flush_log(0)
        pass_time(rig, 12.0)
        assert log_names(rig) == [4 * FILE]
        assert rig.store.log.min_offset == 4 * FILE
        assert rig.store.cleaner.removed.log_files == 4

    def test_at_another_hour_it_stays(self) -> None:
        rig = filled(OTHER_HOUR)
        pass_time(rig, 30.0)
        assert len(log_names(rig)) == 5

    def test_what_is_young_stays(self) -> None:
        rig = filled(HOUR | {"fileReservedTime": "97"})
        pass_time(rig, 30.0)
        assert len(log_names(rig)) == 5

    def test_an_operator_orders_it(self) -> None:
        rig = filled(OTHER_HOUR | {"fileReservedTime": "97"})
        rig.store.cleaner.order()
        pass_time(rig, 30.0)
        assert len(log_names(rig)) == 5, "not what is young"
        rig.clock.jump(2 * HOUR_MS / 1000)
        rig.tick()
        pass_time(rig, 12.0)
        assert log_names(rig) == [4 * FILE]

    def test_an_order_is_over_some_day(self) -> None:
        rig = filled(OTHER_HOUR | {"fileReservedTime": "97"})
        rig.store.cleaner.order()
        pass_time(rig, 10.0 * (MANUAL_RUNS + 1))
        rig.clock.jump(2 * HOUR_MS / 1000)
        pass_time(rig, 30.0)
        assert len(log_names(rig)) == 5

    def test_a_tight_disk_takes_what_is_old(self) -> None:
        rig = filled(OTHER_HOUR | {"fileReservedTime": "97"})
        fill(rig, 80)
        pass_time(rig, 12.0)
        assert len(log_names(rig)) == 5
        rig.clock.jump(2 * HOUR_MS / 1000)
        pass_time(rig, 12.0)
        assert log_names(rig) == [4 * FILE]

    def test_a_tighter_one_takes_everything_but_the_last(self) -> None:
        rig = filled(OTHER_HOUR | {"fileReservedTime": "1000"})
        fill(rig, 87)
        pass_time(rig, 30.0)
        assert log_names(rig) == [4 * FILE]
        pass_time(rig, 30.0)
        assert log_names(rig) == [4 * FILE]
        assert rig.put(b"x").status is PutStatus.PUT_OK

    def test_unless_it_must_not(self) -> None:
        rig = filled(OTHER_HOUR | {"fileReservedTime": "1000", "cleanFileForciblyEnable": "false"})
        fill(rig, 87)
        pass_time(rig, 30.0)
        assert len(log_names(rig)) == 5

    def test_not_in_the_first_minute(self) -> None:
        rig = filled(HOUR).again()
        pass_time(rig, 59.0)
        assert len(log_names(rig)) == 5
        pass_time(rig, 5.0)
        assert log_names(rig) == [4 * FILE]

    def test_in_every_directory_of_the_log(self) -> None:
        rig = filled(HOUR | {"storePathCommitLog": "/a,/b"})
        directories = [Path("/a"), Path("/b")]
        assert all(len(rig.disk.names(path)) > 1 for path in directories)
        pass_time(rig, 12.0)
        names = [int(name) for path in directories for name in rig.disk.names(path)]
        assert min(names) == rig.store.log.min_offset == 4 * FILE
        fill(rig, 87)
        pass_time(rig, 12.0)
        assert rig.store.log_files.avoid == set(directories)


class TestPace:
    """One by one, some at a time."""

    def test_a_pause_between_two_files(self) -> None:
        rig = filled(HOUR | {"deleteCommitLogFilesInterval": "3000"})
        rig.tick()
        rig.settle()
        assert len(log_names(rig)) == 4
        assert rig.timers.tick(rig.clock.monotonic()) <= rig.clock.monotonic() + 3.0
        pass_time(rig, 2.5)
        assert len(log_names(rig)) == 4
        pass_time(rig, 0.5)
        assert len(log_names(rig)) == 3

    def test_some_in_a_run(self) -> None:
        rig = filled(HOUR | {"deleteFileBatchMax": "2"})
        pass_time(rig, 5.0)
        assert len(log_names(rig)) == 3
        pass_time(rig, 10.0)
        assert len(log_names(rig)) == 1

    def test_the_owner_waits_for_nobody(self) -> None:
        rig = filled(HOUR)
        rig.tick()
        assert rig.queue_flush.waiting_jobs > 0
        assert len(log_names(rig)) == 5, "a worker removes it"
        assert rig.timers.tick(rig.clock.monotonic()) <= rig.clock.monotonic() + 0.1


class TestSafety:
    """A file goes only when nothing is lost with it."""

    def test_not_before_it_is_forced(self) -> None:
        rig = Rig(OTHER_HOUR, SimulatedFiles(capacity=CAPACITY))
        pass_time(rig, 62.0)
        fill(rig, 87)
        for _ in range(10):
            rig.put(bytes(900))
        rig.store.flush_log(0)
        for _ in range(30):  # the log's worker does nothing
            rig.tick(0.5)
            rig.queue_flush.drain()
        assert len(log_names(rig)) == 3
        pass_time(rig, 12.0)
        assert len(log_names(rig)) == 1

    def test_not_before_its_queues_are_saved(self) -> None:
        rig = Rig(OTHER_HOUR, SimulatedFiles(capacity=CAPACITY))
        pass_time(rig, 70.0)
        fill(rig, 87)
        rig.put(b"the only one", queue_id=1)
        for _ in range(10):
            rig.put(bytes(900))
        rig.store.flush_log(0)
        rig.log_flush.drain()
        while not rig.queue_flush.waiting_jobs:
            rig.tick(0.5)
        rig.store.cleaner.clean()  # begins a save instead
        assert len(log_names(rig)) == 3
        pass_time(rig, 30.0)
        assert len(log_names(rig)) == 1
        again = rig.again(rig.disk.crash(0.0))
        assert again.put(b"the next", queue_id=1).queue_offset == 1, "its offset is not given again"

    def test_queues_that_a_start_made_again_are_forced_before_their_messages_go(self) -> None:
        rig = Rig(HOUR, SimulatedFiles(capacity=CAPACITY))
        rig.put(b"the only one", queue_id=1)
        for number in range(20):
            rig.put(b"%02d" % number + bytes(900))
        again = rig.again()  # killed; with ASYNC_FLUSH a start forces nothing
        again.store.flush_log(0)
        again.settle()
        for name in again.disk.names(LOG):
            again.disk.set_modified_ms(LOG / name, START_MS - 96 * HOUR_MS)
        again.store.cleaner.clean()
        pass_time(again, 20.0)
        assert again.store.log.min_offset > 0
        later = again.again(again.disk.crash(0.0))
        assert later.put(b"the next", queue_id=1).queue_offset == 1, "its offset is not given again"

    def test_not_on_a_disk_that_has_failed(self) -> None:
        rig = filled(HOUR)
        rig.put(b"x")
        rig.disk.fail(Operation.SYNC, errno.EIO)
        rig.store.flush_log(0)
        rig.log_flush.drain()
        pass_time(rig, 30.0)
        assert rig.store.gate.failure is not None
        assert len(log_names(rig)) == 5

    def test_a_store_that_is_closed_meanwhile(self) -> None:
        rig = filled(HOUR)
        rig.tick()
        for _ in range(20):
            if log_names(rig)[0] > 0:
                break
            rig.queue_flush.report_one()
            rig.queue_flush.run_one()
        assert rig.queue_flush.waiting_reports == 1, "it is removed and nobody knows"
        assert rig.store.close()
        rig.queue_flush.report_one()
        again = rig.again(rig.disk)
        assert again.report.clean
        assert again.store.log.min_offset == FILE
        assert [record.body[:2] for record in again.records()] == []
        queue = again.store.queues.find("T", 0)
        assert queue is not None
        assert (queue.min_offset, queue.max_offset) == (4, 20)


class TestTrouble:
    """A removal that fails changes nothing, and is tried again."""

    @pytest.mark.parametrize("operation", [Operation.REMOVE, Operation.SYNC_DIRECTORY])
    def test_of_a_log_file(self, operation: Operation) -> None:
        rig = filled(HOUR)
        rig.disk.fail(operation, errno.EIO, where=lambda path: "commitlog" in path.parts)
        pass_time(rig, 60.0)
        assert rig.store.log.min_offset == 0
        assert "Input/output error" in str(rig.store.cleaner.last_error)
        assert rig.bodies()[0][:2] == b"00", "it is still there to be read"
        assert rig.put(b"x").status is PutStatus.PUT_OK
        pass_time(rig, 130.0)
        assert log_names(rig) == [4 * FILE]
        assert rig.store.cleaner.last_error is None

    def test_of_a_queue_file(self) -> None:
        rig = filled(HOUR)
        rig.disk.fail(Operation.REMOVE, errno.EACCES, where=lambda path: "T" in path.parts)
        pass_time(rig, 60.0)
        directory = ROOT / "consumequeue/T/0"
        assert len(rig.disk.names(directory)) == 2
        assert rig.store.get("T", 0, 3, 1).status is GetStatus.OFFSET_TOO_SMALL
        pass_time(rig, 130.0)
        assert len(rig.disk.names(directory)) == 1

    def test_of_an_index_file(self) -> None:
        rig = filled(HOUR, 60, properties={"KEYS": "k"})
        rig.disk.fail(Operation.REMOVE, errno.EIO, where=lambda path: "index" in path.parts)
        pass_time(rig, 40.0)
        assert rig.store.index is not None
        assert len(rig.store.index.files) == 2
        pass_time(rig, 130.0)
        assert len(rig.store.index.files) == len(rig.disk.names(ROOT / "index")) == 1


class TestReaders:
    """Nobody is cut off, and offsets tell what is left."""

    def test_a_slice_outlives_its_file(self) -> None:
        rig = filled(HOUR)
        found = rig.store.get("T", 0, 0, 2)
        pass_time(rig, 12.0)
        assert log_names(rig) == [4 * FILE]
        bodies = [kernel.decode_record(raw, 0, len(raw), True)[0].body for raw in found.records]
        assert [body[:2] for body in bodies] == [b"00", b"01"]

    def test_at_every_step_a_reader_gets_a_message_or_is_told(self) -> None:
        rig = filled(HOUR | {"mappedFileSizeConsumeQueue": "100"})
        rig.tick()
        seen = set()
        for _ in range(200):
            if not (rig.queue_flush.run_one() or rig.queue_flush.report_one()):
                rig.tick(0.1)
            found = rig.store.get("T", 0, 2, 32)
            seen.add(found.status)
            if found.status is GetStatus.FOUND:
                body = kernel.decode_record(found.records[0], 0, len(found.records[0]), True)[
                    0
                ].body
                assert int(body[:2]) >= 2
            else:
                assert found.next_offset > 2
        assert seen == {GetStatus.FOUND, GetStatus.OFFSET_TOO_SMALL}

    def test_offsets_and_times(self) -> None:
        rig = filled(HOUR | {"mappedFileSizeConsumeQueue": "100"})
        pass_time(rig, 12.0)
        queue = rig.store.queues.find("T", 0)
        assert queue is not None
        assert (queue.min_offset, queue.max_offset) == (16, 20)
        assert rig.store.get("T", 0, 0, 32).status is GetStatus.OFFSET_TOO_SMALL
        assert rig.store.get("T", 0, 0, 32).next_offset == 16
        assert rig.store.reads.earliest_timestamp() == rig.store.reads.earliest_stored("T", 0)
        assert rig.disk.names(queue.directory) == [f"{300:020d}"]
        for again in (rig.again(), rig.again(rig.disk.kill().crash(0.0))):
            found = again.store.queues.find("T", 0)
            assert found is not None
            assert (found.min_offset, found.max_offset) == (16, 20)
            assert again.put(b"next").queue_offset == 20

    def test_a_queue_whose_messages_are_all_gone_is_empty_and_keeps_its_place(self) -> None:
        rig = filled(HOUR, 3, queue_id=1)
        for _ in range(12):
            rig.put(bytes(900))
        rig.store.flush_log(0)
        pass_time(rig, 62.0)
        rig.clock.jump(4 * DAYS_S)
        pass_time(rig, 12.0)
        queue = rig.store.queues.find("T", 1)
        assert queue is not None
        assert (queue.min_offset, queue.max_offset) == (3, 3)
        assert rig.store.get("T", 1, 0, 32).status is GetStatus.OFFSET_TOO_SMALL
        assert rig.put(b"x", queue_id=1).queue_offset == 3
        assert rig.again().put(b"y", queue_id=1).queue_offset == 4


class TestQueuesAndIndex:
    """What follows the log."""

    def test_index_files_go_with_their_messages(self) -> None:
        rig = filled(HOUR, 60, properties={"KEYS": "k"})
        index = rig.store.index
        assert index is not None
        assert len(index.files) == 2
        pass_time(rig, 40.0)
        assert len(index.files) == len(rig.disk.names(ROOT / "index")) == 1
        assert rig.store.cleaner.removed.index_files == 1
        assert len(rig.store.reads.query_by_key("T", "k", 64, 0, 1 << 60).records) == 4
        assert rig.store.close()

    def test_not_before_they_are_forced(self) -> None:
        rig = Rig(HOUR, SimulatedFiles(capacity=CAPACITY))
        pass_time(rig, 60.0)
        for _ in range(60):
            rig.put(bytes(900), properties={"KEYS": "k"})
        index = rig.store.index
        assert index is not None
        (full, _last) = index.files
        assert index.expired(1 << 40) == []
        rig.store.flush_queues(thorough=True)
        assert rig.store._saver is not None
        assert rig.store._saver.is_waiting(full.region)
        rig.settle()
        assert index.expired(1 << 40) == [full]

    def test_nor_while_a_failed_save_is_to_be_done_again(self) -> None:
        rig = Rig(OTHER_HOUR | {"fileReservedTime": "1"}, SimulatedFiles(capacity=CAPACITY))
        for _ in range(39):
            rig.put(bytes(900), properties={"KEYS": "k"})
        rig.put(bytes(3000))
        rig.store.flush_log(0)
        pass_time(rig, 60.0)
        rig.put(b"x", properties={"KEYS": "k"})  # the first index file is full now
        rig.disk.fail(Operation.WRITE, errno.ENOSPC)
        assert rig.store.flush_queues(thorough=True)
        rig.settle()
        rig.clock.jump(2 * HOUR_MS / 1000)
        rig.store.cleaner.order()
        rig.store.cleaner.clean()
        for _ in range(200):
            rig.queue_flush.drain()
            rig.clock.jump(0.1)
            rig.store.cleaner.tick(rig.clock.monotonic())
        assert rig.store.index is not None
        assert rig.store.log.min_offset > rig.store.index.files[0].header.end_log_offset
        assert len(rig.store.index.files) == 2
        pass_time(rig, 80.0)
        assert rig.store.gate.failure is None
        assert len(rig.store.index.files) == 1

    def test_thousands_of_queues_are_searched_in_parts_and_once(self) -> None:
        rig = Rig(HOUR, SimulatedFiles(capacity=CAPACITY))
        count = 3 * QUEUES_AT_ONCE
        for number in range(2 * count):
            rig.put(b"x", topic="Many", queue_id=number % count)
        for _ in range(8):
            rig.put(bytes(1800), topic="Few")
        rig.store.flush_log(0)
        pass_time(rig, 62.0)
        rig.clock.jump(4 * DAYS_S)
        pass_time(rig, 40.0)
        assert rig.store.log.min_offset > 0
        for queue in rig.store.queues.queues("Many"):
            assert queue.knows_min(rig.store.log.min_offset)
        reads = rig.disk.counts[Operation.READ]
        pass_time(rig, 30.0)
        assert rig.disk.counts[Operation.READ] == reads, "nothing has moved"

    def test_what_a_crash_left_undone_is_done_after_the_next_start(self) -> None:
        rig = filled(HOUR | {"mappedFileSizeConsumeQueue": "100"})
        rig.tick()
        while rig.store.log.min_offset < 4 * FILE:
            rig.queue_flush.run_one()
            rig.queue_flush.report_one()
            rig.tick(0.1)
        again = rig.again(rig.disk.crash(0.0))
        directory = ROOT / "consumequeue/T/0"
        assert len(again.disk.names(directory)) == 4
        queue = again.store.queues.find("T", 0)
        assert queue is not None
        assert queue.min_offset == 16
        pass_time(again, 75.0)
        assert len(again.disk.names(directory)) == 1


class TestFullDisk:
    """Writes stop, and go on by themselves."""

    def test_over_the_watermark(self) -> None:
        rig = Rig(disk=SimulatedFiles(capacity=CAPACITY))
        fill(rig, 95)
        rig.tick(1.0)
        rig.settle()
        assert rig.put(b"x").status is PutStatus.SERVICE_NOT_AVAILABLE
        assert "the disk is full: 96%" in str(rig.store.writability.reason)
        assert rig.store.log_files.avoid == {LOG}
        fill(rig, 91)
        pass_time(rig, 11.0)
        assert rig.put(b"x").status is PutStatus.SERVICE_NOT_AVAILABLE
        fill(rig, 86)
        pass_time(rig, 11.0)
        assert rig.put(b"x").status is PutStatus.PUT_OK
        assert rig.store.log_files.avoid == {LOG}
        fill(rig, 20)
        pass_time(rig, 11.0)
        assert rig.store.log_files.avoid == frozenset()

    def test_no_space_at_all_then_deletion_then_room(self) -> None:
        disk = SimulatedFiles(capacity=300_000)
        settings = {"messageIndexEnable": "false", "flushConsumeQueueLeastPages": "0"}
        rig = Rig(OTHER_HOUR | settings, disk)
        for _ in range(120):
            assert rig.put(bytes(900)).status is PutStatus.PUT_OK
        pass_time(rig, 62.0)
        disk.other_bytes = disk.capacity - disk.usage(ROOT).used  # not a byte is left
        statuses = [rig.put(bytes(900)).status for _ in range(20)]
        assert PutStatus.CREATE_MAPPED_FILE_FAILED in statuses
        stored = 120 + statuses.count(PutStatus.PUT_OK)
        rig.tick(1.0)
        rig.queue_flush.drain()
        assert "No space left" in str(rig.store.writability.reason)
        pass_time(rig, 60.0)
        assert rig.store.log.min_offset > 0
        assert rig.store.writability.reason is None
        assert rig.put(b"again").queue_offset == stored
        assert rig.store.get("T", 0, stored, 1).status is GetStatus.FOUND
        assert rig.store.gate.failure is None
        queue = rig.again().store.queues.find("T", 0)
        assert queue is not None
        assert queue.max_offset == stored + 1


class TestTopics:
    """Deleting a topic, and keeping one shorter than its files."""

    def test_its_queues_go(self) -> None:
        rig = filled(OTHER_HOUR)
        rig.put(b"other", topic="Other")
        pass_time(rig, 2.0)
        queue = rig.store.queues.find("T", 0)
        assert queue is not None
        rig.store.delete_topic("T")
        assert rig.store.get("T", 0, 0, 32).status is GetStatus.NO_MESSAGE_IN_QUEUE
        assert queue.read(0, 5) == b"", "whoever still has it finds nothing"
        rig.settle()
        assert rig.disk.names(ROOT / "consumequeue") == ["Other"]
        assert rig.bodies("Other") == [b"other"]
        assert rig.put(b"anew").queue_offset == 0
        pass_time(rig, 62.0)
        again = rig.again()
        assert again.bodies("Other") == [b"other"]

    def test_made_again_before_its_files_are_gone(self) -> None:
        rig = filled(OTHER_HOUR)
        rig.put(b"late")
        rig.tick(1.0)  # a flush of the old queue is under way
        rig.store.delete_topic("T")
        for number in range(4000):
            rig.put(b"%d" % number)
        rig.settle()
        pass_time(rig, 62.0)
        assert [int(body) for body in rig.bodies()] == list(range(4000))
        assert rig.store.close()
        again = rig.again(rig.disk)
        assert [int(body) for body in again.bodies()] == list(range(4000))

    def test_files_that_cannot_be_removed_are_tried_again(self) -> None:
        rig = filled(OTHER_HOUR)
        rig.disk.fail(Operation.REMOVE, errno.EIO, where=lambda path: "consumequeue" in path.parts)
        rig.store.delete_topic("T")
        rig.settle()
        assert rig.store.cleaner.last_error is not None
        assert "T" in rig.disk.names(ROOT / "consumequeue")
        pass_time(rig, 140.0)
        assert rig.disk.names(ROOT / "consumequeue") == []

    def test_or_when_the_topic_comes_again(self) -> None:
        rig = filled(OTHER_HOUR)
        rig.disk.fail(Operation.REMOVE, errno.EIO, where=lambda path: "consumequeue" in path.parts)
        rig.store.delete_topic("T")
        rig.settle()
        assert rig.put(b"anew").queue_offset == 0
        pass_time(rig, 5.0)
        assert rig.bodies() == [b"anew"]
        assert rig.disk.names(ROOT / "consumequeue/T/0") == [f"{0:020d}"]
        assert rig.store.writability.reason is None

    def test_a_removal_that_fails_under_a_topic_in_use_stops_the_store(self) -> None:
        rig = filled(OTHER_HOUR)
        rig.disk.fail(Operation.REMOVE, errno.EIO, where=lambda path: "consumequeue" in path.parts)
        rig.store.delete_topic("T")
        rig.put(b"anew")
        rig.settle()
        assert "removing the former queues of T failed" in str(rig.store.writability.reason)

    def test_a_store_closed_before_they_are_gone(self) -> None:
        rig = filled(OTHER_HOUR)
        rig.store.delete_topic("T")
        assert rig.store.close()
        assert rig.disk.names(ROOT / "consumequeue") == []
        rig = filled(OTHER_HOUR)
        rig.disk.fail(
            Operation.REMOVE, errno.EIO, times=2, where=lambda path: "consumequeue" in path.parts
        )
        rig.allocation.drain()
        used = len(rig.store.log.files)
        assert len(rig.disk.names(ROOT / "commitlog")) == used + 1, "one is made ahead"
        rig.store.delete_topic("T")
        assert not rig.store.close(), "the next start looks at everything"
        assert len(rig.disk.names(ROOT / "commitlog")) == used

    def test_a_topic_is_served_for_less_than_its_files(self) -> None:
        rig = filled(OTHER_HOUR)
        rig.put(b"young")
        rig.put(b"other", topic="Other")
        rig.store.cleaner.topics.keep(lambda: {"T": 24, "Other": 24, "Unknown": 1})
        found = rig.store.get("T", 0, 0, 32)
        assert (found.status, found.next_offset) == (GetStatus.OFFSET_TOO_SMALL, 20)
        assert found.min_offset == 20
        assert len(rig.store.get("T", 0, 20, 32).records) == 1
        assert rig.bodies("Other") == [b"other"]
        assert rig.store.log.min_offset == 0
        rig.clock.jump(25 * HOUR_MS / 1000)
        pass_time(rig, 12.0)
        assert rig.store.get("Other", 0, 0, 32).status is GetStatus.OFFSET_TOO_SMALL
        again = rig.again()
        assert len(again.bodies()) == 21, "nobody has said how long it is kept"
        again.store.cleaner.topics.keep(lambda: {"T": 24})
        assert again.store.get("T", 0, 0, 32).min_offset == 21

    def test_an_hour_at_least(self) -> None:
        with pytest.raises(InvalidValue, match="at least 1"):
            Rig().store.cleaner.topics.keep(lambda: {"T": 0})

    def test_its_times_are_read_by_a_thread_where_they_are_cold(self) -> None:
        rig = filled(OTHER_HOUR)
        hours: dict[str, int] = {}
        rig.store.cleaner.topics.keep(lambda: hours)
        hours["T"] = 24
        for file in rig.store.log.files:
            rig.disk.evict(file.region.path)
        rig.store.cleaner.clean()
        rig.queue_flush.drain()  # where it looks at the disks and removes files
        assert rig.cold_read.waiting_jobs == 1, "the owner has not waited"
        assert rig.store.reads.min_offset("T", 0) == 0
        pass_time(rig, 9.0, step=0.1)
        assert rig.store.reads.min_offset("T", 0) == 20


def test_the_machines_own_disk(tmp_path: Path) -> None:
    clock, root = VirtualClock(), tmp_path / "store"
    clock.set_now_ms(START_MS)
    more = {"mappedFileSizeCommitLog": "65536", "mappedFileSizeConsumeQueue": "2000"} | HOUR
    store = small_store(root, clock, **more)
    store.open(1)
    settings = read_settings(PROPERTIES | more | {"storePathRootDir": str(root)})
    timers = StoreTimers(store, settings, clock.monotonic())
    stored = [put(store, number, clock) for number in range(2000)]
    clock.set_now_ms(START_MS)
    starts = [file.start for file in store.log.files]
    assert len(starts) > 4
    held, region = store.get("Alpha", 0, 0, 1), store.log.files[0].region
    for _ in range(140):
        clock.jump(0.5)
        clock.set_now_ms(START_MS)
        timers.tick(clock.monotonic())
    assert [file.start for file in store.log.files] == starts, "all of them are young"
    old_s = START_MS / 1000 - 73 * 3600
    for start in starts[:3]:
        os.utime(root / "commitlog" / f"{start:020d}", (old_s, old_s))
    for _ in range(60):
        clock.jump(0.5)
        clock.set_now_ms(START_MS)
        timers.tick(clock.monotonic())
    assert [file.start for file in store.log.files] == starts[3:]
    with pytest.raises(OSError, match="closed"):
        region.sync()
    assert kernel.decode_record(held.records[0], 0, len(held.records[0]), True)[0].body == b"body 0"
    assert store.close()
    assert sorted(int(path.name) for path in (root / "commitlog").iterdir()) == starts[3:]
    first = next(number for number, offset in enumerate(stored) if offset >= starts[3])
    with StoreReader(settings) as reader:
        reader.recover()
        assert not verify(reader).problems
        for queue in reader.queues():
            assert queue.min_offset == first // 3 + (queue.min_offset > first // 3)
            directory = root / "consumequeue" / queue.topic / str(queue.queue_id)
            assert min(int(path.name) for path in directory.iterdir()) == (
                queue.min_offset // 100 * 2000
            )
