"""The log's tail: rolling, refusing, stamping, and the transient buffers in front of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.kernel import LaneStop, Record, Stop, kernel
from gantrymq.store import commit_log
from gantrymq.store.allocation import FileNotMade, LogFiles
from gantrymq.store.commit_log import CommitLog
from gantrymq.store.log_directories import LogDirectories
from gantrymq.store.transient_pool import TransientPool
from gantrymq.store.worker import InlineWorker
from gantrymq.testing.clock import VirtualClock
from gantrymq.testing.disk import SimulatedFiles
from support.samples import GOLDEN_RECORD, blank_on_disk
from support.store_rig import BORN_HOST, STORE_HOST, frames

FILE_BYTES = 2000
DIRECTORY = Path("/log")


class Bench:
    """A log, and what it stands on."""

    def __init__(self, pool: TransientPool | None = None) -> None:
        self.disk = SimulatedFiles()
        self.clock = VirtualClock()
        self.lane = kernel.SendLane(
            store_host=STORE_HOST,
            cluster=b"C",
            region=b"R",
            trace_on=True,
            version=407,
            body_bytes_max=100_000,
            policy_names=[b"DELAY"],
        )
        self.lane.open_topic(b"T", [0])
        self.files = LogFiles(
            LogDirectories((DIRECTORY,)), FILE_BYTES, self.disk, InlineWorker(), pool=pool
        )
        self.log = CommitLog(self.files, self.lane, self.clock)

    def raw(self, start: int) -> bytes:
        """Return a file of the log as it is on the disk."""
        return self.disk.read(self.files.path(start))

    def stamps(self) -> list[int]:
        """Return the store timestamps of all records in log order."""
        found: list[int] = []
        for file in self.log.files:
            position = 0
            while kernel.scan_records(
                file.region.buffer, position, file.wrote, -1, True, 1
            ).records:
                record, position = kernel.decode_record(
                    file.region.buffer, position, file.wrote, True
                )
                found.append(record.store_timestamp)
        return found


def record(size: int = 100) -> Record:
    """Return a record of a given size on the disk."""
    bare = GOLDEN_RECORD._replace(body=b"", topic=b"T", properties=b"")
    return bare._replace(body=bytes([7]) * (size - kernel.record_bytes(bare)))


def test_an_empty_log() -> None:
    log = Bench().log
    assert (log.min_offset, log.wrote_offset, log.committed_offset) == (0, 0, 0)
    assert log.file_at(0) is None
    assert log.read(0, 1) is None
    assert list(log.spans(0, 100)) == []
    assert not log.commit()


def test_a_record_that_does_not_fit_rolls() -> None:
    bench = Bench()
    assert bench.log.append([record(1500)])[:2] == ((0,), 1500)
    assert bench.log.append([record(500)])[:2] == ((2000,), 2500)
    assert bench.raw(0)[1500:] == blank_on_disk(500)
    assert bench.log.append([record(1492)])[:2] == ((2500,), 3992)
    assert bench.log.append([record(100)])[:2] == ((4000,), 4100)
    assert bench.raw(2000)[1992:] == blank_on_disk(8)
    scan = kernel.scan_records(bench.raw(0), 0, FILE_BYTES, 0, True, 10)
    assert (scan.records, scan.stop) == (1, Stop.BLANK)


def test_records_of_one_put_stay_in_one_file() -> None:
    bench = Bench()
    bench.log.append([record(1000)])
    appended = bench.log.append([record(600), record(600)])
    assert appended[:2] == ((2000, 2600), 3200)
    assert len(set(bench.stamps()[1:])) == 1


def test_a_record_that_fits_no_file_is_refused_and_leaves_nothing() -> None:
    bench = Bench()
    bench.log.append([record(100)])
    with pytest.raises(InvalidValue, match="mappedFileSizeCommitLog"):
        bench.log.append([record(FILE_BYTES - 7)])
    assert bench.log.wrote_offset == 100
    assert bench.log.append([record(FILE_BYTES - 8)]).log_offsets == (FILE_BYTES,)


class _Failing:
    """A kernel that cannot encode the third record."""

    def __init__(self) -> None:
        self._left = 2
        self.record_bytes = kernel.record_bytes

    def encode_record(self, target: memoryview, position: int, limit: int, record: Record) -> int:
        """Encode, while it can."""
        if self._left == 0:
            raise MemoryError
        self._left -= 1
        return kernel.encode_record(target, position, limit, record)


def test_an_append_that_fails_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    with monkeypatch.context() as patch:
        patch.setattr(commit_log, "kernel", _Failing())
        with pytest.raises(MemoryError):
            bench.log.append([record(100), record(100), record(100)])
    assert bench.log.wrote_offset == 0
    assert not any(bench.raw(0))
    # One of the same length comes: what stood behind it must not be there to be found.
    bench.log.append([record(100)])
    assert kernel.scan_records(bench.raw(0), 0, FILE_BYTES, 0, True, 10).records == 1


def test_a_number_that_fits_no_field_is_refused() -> None:
    bench = Bench()
    with pytest.raises(InvalidValue):
        bench.log.append([record(100), record(100)._replace(born_timestamp=1 << 70)])
    assert bench.log.wrote_offset == 0


def test_sends_go_on_in_the_next_file() -> None:
    bench = Bench()
    buffer = frames([bytes([65 + number]) * 300 for number in range(10)])
    run = bench.log.append_sends(buffer, 0, len(buffer), BORN_HOST)
    assert (run.consumed, run.messages, run.stop) == (len(buffer), 10, LaneStop.DRAINED)
    assert len(bench.log.files) == 3
    assert [file.is_full for file in bench.log.files] == [True, True, False]
    answers = kernel.split_frames(run.replies, 0, len(run.replies), 1 << 20)[0]
    assert len(answers) == 10
    assert bench.lane.next_offsets(b"T") == [10]


def test_a_send_for_which_no_file_is_large_enough_is_left_to_policy() -> None:
    bench = Bench()
    buffer = frames([b"small", bytes(3000)])
    run = bench.log.append_sends(buffer, 0, len(buffer), BORN_HOST)
    assert (run.messages, run.stop) == (1, LaneStop.POLICY)


def test_sends_before_a_file_that_cannot_be_made_are_answered() -> None:
    bench = Bench()
    bench.log.append([record(100)])
    bench.disk.other_bytes = bench.disk.capacity - bench.disk.usage(DIRECTORY).used
    buffer = frames([b"x" * 400] * 10)
    first = bench.log.append_sends(buffer, 0, len(buffer), BORN_HOST)
    # The next file was made ahead; the one behind it cannot be.
    assert first.stop is LaneStop.LOG_FULL
    assert 0 < first.messages < 10
    assert len(bench.log.files) == 2
    with pytest.raises(FileNotMade, match="No space left"):
        bench.log.append_sends(buffer, first.consumed, len(buffer), BORN_HOST)
    bench.disk.other_bytes = 0
    rest = bench.log.append_sends(buffer, first.consumed, len(buffer), BORN_HOST)
    assert (first.messages + rest.messages, rest.stop) == (10, LaneStop.DRAINED)
    assert bench.lane.next_offsets(b"T") == [10]


def test_time_never_goes_back_along_the_log() -> None:
    bench = Bench()
    begin = bench.clock.now_ms()
    for change in (0, 5, -1000, 3, -1, 2000, -10_000):
        bench.clock.set_now_ms(bench.clock.now_ms() + change)
        bench.log.append([record()])
        buffer = frames([b"x"])
        bench.log.append_sends(buffer, 0, len(buffer), BORN_HOST)
    stamps = bench.stamps()
    assert stamps == sorted(stamps)
    assert stamps[0] == begin
    assert stamps[-1] == begin + 5 - 1000 + 3 - 1 + 2000


def test_time_goes_on_from_what_was_recovered() -> None:
    bench = Bench()
    later = bench.clock.now_ms() + 60_000
    bench.log.load([], later)
    assert bench.log.append([record()]).store_timestamp == later
    bench.log.stamp_from(later + 5)
    assert bench.log.append([record()]).store_timestamp == later + 5


def test_bytes_of_a_master_are_taken_as_they_are() -> None:
    master, slave = Bench(), Bench()
    for size in (1500, 700, 1200):
        master.log.append([record(size)])
    for file, begin, stop in master.log.spans(0, master.log.wrote_offset):
        middle = (begin + stop) // 2  # a frame may end anywhere
        slave.log.append_raw(file.start + begin, file.region.buffer[begin:middle])
        slave.log.append_raw(file.start + middle, file.region.buffer[middle:stop])
    assert slave.log.wrote_offset == master.log.wrote_offset
    assert [slave.raw(file.start) for file in master.log.files] == [
        master.raw(file.start) for file in master.log.files
    ]


def test_a_replica_may_begin_at_any_file() -> None:
    slave = Bench()
    slave.log.append_raw(6000, b"\1" * 100)
    assert (slave.log.min_offset, slave.log.wrote_offset) == (6000, 6100)
    assert [(begin, stop) for _file, begin, stop in slave.log.spans(0, 6050)] == [(0, 50)]


@pytest.mark.parametrize(
    ("log_offset", "data"), [(6001, b"x"), (2100, b"x"), (99, b"x"), (101, b"x"), (0, b"x")]
)
def test_bytes_that_do_not_continue_the_log_are_refused(log_offset: int, data: bytes) -> None:
    slave = Bench()
    if log_offset != 6001:
        slave.log.append_raw(0, bytes(100))
    with pytest.raises(InvalidValue, match="ends at"):
        slave.log.append_raw(log_offset, data)


def test_bytes_that_cross_a_file_are_refused() -> None:
    slave = Bench()
    slave.log.append_raw(0, bytes(1900))
    with pytest.raises(InvalidValue, match="cross"):
        slave.log.append_raw(1900, bytes(101))


def test_the_last_file_is_never_dropped() -> None:
    bench = Bench()
    for _ in range(2):
        bench.log.append([record(1500)])
    assert bench.log.drop_first().start == 0
    assert bench.log.min_offset == FILE_BYTES
    with pytest.raises(InvalidValue):
        bench.log.drop_first()


class TestTransientPool:
    """Appending to memory first."""

    def test_only_what_is_committed_can_be_seen(self) -> None:
        bench = Bench(TransientPool(2, FILE_BYTES))
        bench.log.append([record(300)])
        assert (bench.log.wrote_offset, bench.log.committed_offset) == (300, 0)
        assert bench.log.read(0, 300) is None
        assert not any(bench.raw(0))
        assert bench.log.commit()
        assert not bench.log.commit()
        assert bench.log.committed_offset == 300
        seen = bench.log.read(0, 300)
        assert seen is not None
        assert kernel.decode_record(seen, 0, 300, True)[1] == 300

    def test_a_commit_waits_for_its_pages(self) -> None:
        bench = Bench(TransientPool(1, FILE_BYTES))
        bench.log.append([record(300)])
        assert not bench.log.commit(4)
        assert bench.log.committed_offset == 0

    def test_a_file_is_committed_before_the_next_begins(self) -> None:
        pool = TransientPool(1, FILE_BYTES)
        bench = Bench(pool)
        bench.log.append([record(1500)])
        assert pool.free == 0
        bench.log.append([record(1500)])
        # No buffer was free then, so this file is written through its map.
        assert bench.log.committed_offset == bench.log.wrote_offset == 3500
        assert pool.free == 1
        bench.log.append([record(1500)])
        assert bench.log.committed_offset == 4000
        assert pool.free == 0
        assert len(bench.stamps()) == 2

    def test_what_a_buffer_held_before_is_not_seen_again(self) -> None:
        bench = Bench(TransientPool(1, FILE_BYTES))
        for _ in range(4):
            bench.log.append([record(1900)])
            bench.log.commit()
        bench.log.append([record(100)])
        bench.log.commit()
        assert not any(bench.log.files[-1].region.buffer[100:])

    def test_without_a_free_buffer_a_file_may_be_refused(self) -> None:
        pool = TransientPool(1, FILE_BYTES, fails_fast=True)
        bench = Bench(pool)
        buffer = pool.borrow()
        assert buffer is not None
        with pytest.raises(FileNotMade, match="transientStorePoolSize"):
            bench.log.append([record()])
        pool.give_back(buffer)
        assert bench.log.append([record()]).log_offsets == (0,)

    def test_a_failed_file_gives_its_buffer_back(self) -> None:
        pool = TransientPool(1, FILE_BYTES)
        bench = Bench(pool)
        bench.disk.other_bytes = bench.disk.capacity
        with pytest.raises(FileNotMade):
            bench.log.append([record()])
        assert pool.free == 1

    def test_the_stamp_is_that_of_what_is_committed(self) -> None:
        bench = Bench(TransientPool(1, FILE_BYTES))
        first = bench.log.append([record()]).store_timestamp
        bench.log.commit()
        bench.clock.jump(5)
        bench.log.append([record()])
        assert bench.log.committed_stamp_ms == first
        bench.log.commit()
        assert bench.log.committed_stamp_ms == first + 5000

    def test_a_foreign_buffer_is_refused(self) -> None:
        with pytest.raises(InvalidValue):
            TransientPool(1, FILE_BYTES).give_back(memoryview(bytearray(3)))
