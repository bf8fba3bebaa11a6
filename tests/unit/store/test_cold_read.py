"""Gets of what is not in memory: read by a worker, bounded, and never in anybody's way."""

from __future__ import annotations

import errno
import mmap
import os
import queue
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gantrymq.clock import SystemClock
from gantrymq.kernel import QueueUnit, kernel
from gantrymq.store import cold_read
from gantrymq.store.files import RESIDENT_BYTES_MAX, OsFiles
from gantrymq.store.message_store import Identity, MessageStore
from gantrymq.store.settings import read_settings
from gantrymq.store.status import GetStatus, PutStatus
from gantrymq.store.worker import InlineWorker, ThreadWorker, Workers
from gantrymq.testing.disk import Operation, SimulatedFiles
from support.queues import tag_filter
from support.small_stores import small_store, written_store
from support.store_rig import ROOT, SMALL, STORE_HOST, Rig, message

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.store.files import StrPath
    from gantrymq.store.get import Filter, Found

COUNT = 60


def filled(rig: Rig) -> Rig:
    """Put 60 messages into queue 0 of T, over several log files, tags a, b and c in turn."""
    for number in range(COUNT):
        rig.put(b"%02d" % number + bytes(200), properties={"TAGS": "abc"[number % 3]})
    rig.settle()
    rig.store.reads.cold.tail_bytes = 0
    return rig


def evict(rig: Rig) -> None:
    for file in rig.store.log.files:
        rig.disk.evict(file.region.path)


@pytest.fixture
def rig() -> Rig:
    """Return a store of which nothing is in memory."""
    made = filled(Rig())
    evict(made)
    return made


def begin(rig: Rig, offset: int, count_max: int = 32, choose: Filter | None = None) -> list[Found]:
    """Return a list that the answer will be found in."""
    out: list[Found] = []
    rig.store.begin_get("T", 0, offset, count_max, choose, out.append)
    return out


def bodies(found: Found) -> list[bytes]:
    return [kernel.decode_record(raw, 0, len(raw), True)[0].body[:2] for raw in found.records]


def numbers(begin: int, end: int) -> list[bytes]:
    return [b"%02d" % number for number in range(begin, end)]


def is_mapped(rig: Rig, record: memoryview) -> bool:
    return any(record.obj is file.region.buffer.obj for file in rig.store.log.files)


class Bodies:
    """Looks into messages; remembers on which thread."""

    def __init__(self, chosen: Callable[[int], bool]) -> None:
        self.looks = 0
        self._chosen = chosen

    def by_unit(self, unit: QueueUnit) -> bool:
        return unit.size > 0

    def by_record(self, record: memoryview) -> bool:
        self.looks += 1
        return self._chosen(int(kernel.decode_record(record, 0, len(record), False)[0].body[:2]))


class TestHot:
    """What is in memory is answered at once, without a copy."""

    def test_slices_of_the_map(self) -> None:
        rig = filled(Rig())
        (found,) = begin(rig, 0)
        assert found == rig.store.get("T", 0, 0, 32)
        assert bodies(found) == numbers(0, 32)
        assert all(is_mapped(rig, record) for record in found.records)

    def test_the_end_of_the_log_is_hot_without_asking(self, rig: Rig) -> None:
        rig.store.reads.cold.tail_bytes = 1 << 20
        (found,) = begin(rig, 0)
        assert is_mapped(rig, found.records[0])

    def test_what_lies_outside_needs_no_disk(self, rig: Rig) -> None:
        assert [one.status for one in begin(rig, COUNT)] == [GetStatus.OFFSET_OVERFLOW_ONE]
        assert [one.status for one in begin(rig, 1000)] == [GetStatus.OFFSET_OVERFLOW_BADLY]
        assert rig.cold_read.waiting_jobs == 0

    def test_tags_are_compared_without_the_messages(self, rig: Rig) -> None:
        (found,) = begin(rig, 0, choose=tag_filter("x"))
        assert (found.status, found.next_offset) == (GetStatus.NO_MATCHED_MESSAGE, COUNT)

    def test_what_is_hot_is_not_kept_waiting_by_what_is_cold(self) -> None:
        rig = filled(Rig())
        second = rig.store.log.files[1]
        rig.disk.evict(second.region.path)
        (found,) = begin(rig, 0)
        assert 0 < len(found.records) < 32
        assert bodies(found) == numbers(0, found.next_offset)
        (later,) = [begin(rig, found.next_offset)]
        assert later == []
        rig.cold_read.drain()
        assert bodies(later[0])[0] == b"%02d" % found.next_offset


class TestColdUnits:
    """The queue's own entries are not in memory either."""

    @staticmethod
    def cold(rig: Rig) -> Rig:
        """Have the units on the disk, and only there."""
        rig.tick(60.0)
        rig.settle()
        directory = ROOT / "consumequeue" / "T" / "0"
        for name in rig.disk.names(directory):
            rig.disk.evict(directory / name)
        return rig

    def test_they_are_read_by_the_worker_too(self, rig: Rig) -> None:
        self.cold(rig)
        out = begin(rig, 0)
        assert (out, rig.cold_read.waiting_jobs) == ([], 1)
        rig.cold_read.drain()
        assert bodies(out[0]) == numbers(0, 32)
        assert len(out) == 1

    def test_messages_that_are_hot_are_still_sliced(self) -> None:
        rig = self.cold(filled(Rig()))
        out = begin(rig, 3)
        assert out == []
        rig.cold_read.drain()
        assert bodies(out[0]) == numbers(3, 35)
        assert is_mapped(rig, out[0].records[0])

    def test_pulls_by_tag_wait_for_them_as_well(self) -> None:
        rig = self.cold(filled(Rig()))
        out: list[Found] = []
        rig.store.reads.begin_pull("T", 0, 0, 32, None, [], out.append)
        assert out == []
        rig.cold_read.drain()
        assert bodies(out[0])[0] == b"00"

    def test_the_newest_are_in_memory(self, rig: Rig) -> None:
        self.cold(rig)
        rig.store.reads.cold.tail_bytes = 1 << 20
        (found,) = begin(rig, COUNT - 4)
        assert bodies(found) == numbers(COUNT - 4, COUNT)

    def test_too_many_are_told_to_come_again(
        self, rig: Rig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(cold_read, "JOBS_MAX", 1)
        self.cold(rig)
        waits = begin(rig, 0)
        (refused,) = begin(rig, 0)
        assert (refused.status, refused.next_offset) == (GetStatus.NO_MATCHED_MESSAGE, 0)
        assert "wait for the disk already" in refused.trouble
        rig.cold_read.drain()
        assert bodies(waits[0])[0] == b"00"

    def test_a_disk_that_fails_is_said_and_nobody_is_left_waiting(self, rig: Rig) -> None:
        self.cold(rig)
        out = begin(rig, 7)
        rig.disk.fail(Operation.READ, errno.EIO)
        rig.cold_read.drain()
        assert (out[0].next_offset, out[0].records) == (7, [])
        assert "Input/output error" in out[0].trouble

    def test_closing_answers_them(self, rig: Rig) -> None:
        self.cold(rig)
        out = begin(rig, 7)
        assert rig.store.close()
        assert "closed" in out[0].trouble
        rig.cold_read.drain()
        assert len(out) == 1


def test_the_longest_wait_is_told() -> None:
    rig = filled(Rig())
    evict(rig)
    out = begin(rig, 0)
    rig.clock.jump(0.25)
    rig.cold_read.drain()
    assert len(out) == 1
    assert rig.store.statistics.runtime()["getMessageEntireTimeMax"] == "250"


class TestCold:
    """What is not, comes from the worker."""

    def test_it_is_the_same_answer(self, rig: Rig) -> None:
        expected = rig.store.get("T", 0, 3, 32)
        out = begin(rig, 3)
        assert (out, rig.cold_read.waiting_jobs) == ([], 1)
        rig.cold_read.run_one()
        assert out == []
        rig.cold_read.report_one()
        assert out == [expected]
        assert bodies(out[0]) == numbers(3, 35)
        assert not any(is_mapped(rig, record) for record in out[0].records)

    def test_what_was_read_is_hot(self, rig: Rig) -> None:
        begin(rig, 0, 1)
        rig.cold_read.drain()
        (found,) = begin(rig, 0, 1)
        assert bodies(found) == [b"00"]

    def test_the_limits_of_messages_on_disk(self) -> None:
        rig = filled(Rig(memory_bytes=1000))  # 40 % of it are hot
        evict(rig)
        out = begin(rig, 0)
        rig.cold_read.drain()
        assert (bodies(out[0]), out[0].from_slave) == (numbers(0, 8), True)
        small = filled(Rig({"maxTransferBytesOnMessageInDisk": "1000"}, memory_bytes=1000))
        evict(small)
        out = begin(small, 0)
        small.cold_read.drain()
        assert bodies(out[0]) == numbers(0, 3)

    @pytest.mark.parametrize(
        ("ratio", "count", "from_slave"), [("40", 8, True), ("100", 32, False)]
    )
    def test_hot_and_cold_by_the_share_of_memory(
        self, ratio: str, count: int, from_slave: bool
    ) -> None:
        rig = filled(Rig({"accessMessageInMemoryMaxRatio": ratio}, memory_bytes=20_000))
        (found,) = begin(rig, 0)
        assert (len(found.records), found.from_slave) == (count, from_slave)
        assert 20_000 > found.behind_bytes > 8_000

    def test_others_go_on_while_it_waits(self, rig: Rig) -> None:
        rig.store.reads.cold.tail_bytes = 200
        out = begin(rig, 0)
        stored = rig.put(b"60")
        assert rig.hold(stored) == [PutStatus.PUT_OK]
        (found,) = begin(rig, COUNT)
        assert bodies(found) == [b"60"]
        assert out == []
        rig.cold_read.drain()
        assert bodies(out[0]) == numbers(0, 32)

    def test_a_message_longer_than_a_chunk(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(cold_read, "CHUNK_BYTES", 100)
        rig = filled(Rig())
        evict(rig)
        out = begin(rig, 0, 5)
        rig.cold_read.drain()
        assert bodies(out[0]) == numbers(0, 5)

    def test_pages_that_are_partly_there(self) -> None:
        rig = Rig({"mappedFileSizeCommitLog": str(1 << 20)})
        rig.put(b"00" + bytes(200_000))
        rig.store.reads.cold.tail_bytes = 0
        (path,) = [file.region.path for file in rig.store.log.files]
        rig.disk.evict(path, 100_000, 100_001)
        out = begin(rig, 0)
        assert out == []
        rig.cold_read.drain()
        assert bodies(out[0]) == [b"00"]


class TestFilters:
    """Filters that look into messages."""

    def test_they_look_on_the_worker(self, rig: Rig) -> None:
        odd = Bodies(lambda number: number % 2 == 1)
        out = begin(rig, 0, 3, odd)
        assert (out, odd.looks) == ([], 0)
        rig.cold_read.drain()
        assert bodies(out[0]) == [b"01", b"03", b"05"]
        assert (out[0].status, out[0].next_offset) == (GetStatus.FOUND, 6)

    def test_a_long_look_ends_on_the_worker(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(cold_read, "LOOKS_MAX", 5)
        rig = filled(Rig({"maxTransferCountOnMessageInMemory": "4"}))
        last = Bodies(lambda number: number == 59)
        out = begin(rig, 0, 32, last)
        assert (out, last.looks) == ([], 9)
        rig.cold_read.drain()
        assert last.looks == COUNT  # it went on where it was
        assert (bodies(out[0]), out[0].next_offset) == ([b"59"], COUNT)

    def test_a_scan_is_bounded_and_goes_on(self, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(cold_read, "SCAN_READ_BYTES_MAX", 5000)
        monkeypatch.setattr(cold_read, "CHUNK_BYTES", 1000)
        offset, rounds = 0, 0
        while True:
            evict(rig)
            out = begin(rig, offset, 32, Bodies(lambda number: number == 59))
            rig.cold_read.drain()
            assert out[0].next_offset > offset
            offset, rounds = out[0].next_offset, rounds + 1
            if out[0].records:
                break
            assert out[0].status is GetStatus.NO_MATCHED_MESSAGE
        assert (bodies(out[0]), offset) == ([b"59"], COUNT)
        assert rounds > 2

    def test_one_that_raises_is_a_trouble(self, rig: Rig) -> None:
        def fail(_number: int) -> bool:
            raise ValueError("no such property")

        out = begin(rig, 2, 32, Bodies(fail))
        rig.cold_read.drain()
        assert (out[0].next_offset, out[0].records) == (2, [])
        assert "no such property" in out[0].trouble


class TestBounds:
    """Too many, too much, a disk that fails, files that go, a store that closes."""

    @pytest.mark.parametrize("bound", ["JOBS_MAX", "ANSWER_BYTES_MAX"])
    def test_one_too_many_comes_again(
        self, rig: Rig, bound: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(cold_read, bound, 2 if bound == "JOBS_MAX" else 2 * 262144)
        first, second, third = begin(rig, 0), begin(rig, 1), begin(rig, 2)
        assert (first, second) == ([], [])
        (busy,) = third
        # Every client takes this status for "again, from the next offset": none is passed over.
        assert (busy.status, busy.next_offset) == (GetStatus.NO_MATCHED_MESSAGE, 2)
        assert "wait for the disk" in busy.trouble
        assert (busy.from_slave, busy.records) == (True, [])
        rig.cold_read.drain()
        assert len(first) == len(second) == 1
        evict(rig)
        assert begin(rig, 2) == []

    def test_a_disk_that_cannot_be_read(self, rig: Rig) -> None:
        out = begin(rig, 0)
        rig.disk.fail(Operation.READ, errno.EIO)
        rig.cold_read.drain()
        assert (out[0].status, out[0].next_offset) == (GetStatus.NO_MATCHED_MESSAGE, 0)
        assert "Input/output" in out[0].trouble
        again = begin(rig, 0)
        rig.cold_read.drain()
        assert bodies(again[0]) == numbers(0, 32)

    def test_a_file_that_is_shorter_than_it_was(self, rig: Rig) -> None:
        rig.disk.place(rig.store.log.files[0].region.path, bytes(100))
        out = begin(rig, 0)
        rig.cold_read.drain()
        assert (out[0].next_offset, out[0].records) == (0, [])
        assert "ends before byte" in out[0].trouble

    def test_a_file_that_is_deleted_meanwhile(self, rig: Rig) -> None:
        out = begin(rig, 0)
        gone = rig.store.log.drop_first()
        first = rig.store.log.min_offset
        rig.disk.remove(gone.region.path)
        gone.close()
        rig.cold_read.drain()
        assert out[0].status is GetStatus.FOUND
        assert int.from_bytes(out[0].records[0][28:36]) == first

    def test_a_file_that_is_deleted_after_it_was_read(self, rig: Rig) -> None:
        out = begin(rig, 0)
        rig.cold_read.run_one()
        gone = rig.store.log.drop_first()
        rig.disk.remove(gone.region.path)
        gone.close()
        rig.cold_read.drain()
        assert bodies(out[0]) == numbers(0, 32)

    def test_closing_answers_everybody(self, rig: Rig) -> None:
        read, not_read = begin(rig, 0), begin(rig, 5)
        rig.cold_read.run_one()
        assert rig.store.close()
        assert bodies(read[0]) == numbers(0, 32)
        assert (not_read[0].next_offset, not_read[0].records) == (5, [])
        assert "closed" in not_read[0].trouble
        rig.cold_read.drain()
        assert len(read) == len(not_read) == 1
        assert rig.store.reads.cold.waiting == 0


class SlowFiles(SimulatedFiles):
    """A disk whose reads of the log wait for `go`."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.go = threading.Event(), threading.Event()

    def read_at(self, path: StrPath, position: int, count: int) -> bytes:
        """Wait, away from the disk's own lock."""
        if Path(path).parent.name == "commitlog":
            self.reached.set()
            assert self.go.wait(20)
        return super().read_at(path, position, count)


def test_a_thread_that_waits_for_the_disk_holds_nobody_up() -> None:
    disk, calls = SlowFiles(), queue.SimpleQueue[threading.Event | object]()
    inline, thread = InlineWorker(), ThreadWorker("cold_read", calls.put)
    store = MessageStore(
        read_settings(SMALL),
        Identity(STORE_HOST),
        files=disk,
        clock=SystemClock(),
        workers=Workers.made(lambda name: thread if name == "cold_read" else inline),
    )
    store.open(1)
    store.reads.cold.tail_bytes = 400
    for number in range(40):
        store.put([message(b"%02d" % number + bytes(200))])
    for file in store.log.files:
        disk.evict(file.region.path)
    out: list[tuple[Found, int]] = []

    def done(found: Found) -> None:
        out.append((found, threading.get_ident()))

    store.begin_get("T", 0, 0, 4, None, done)
    assert disk.reached.wait(20)
    # The thread sits in its read now. Puts and gets of others come and go.
    for number in range(40, 80):
        assert store.put([message(b"%02d" % number + bytes(200))]).status is PutStatus.PUT_OK
        store.begin_get("T", 0, number, 1, None, done)
    assert [bodies(found)[0] for found, _ in out] == numbers(40, 80)
    disk.go.set()
    call = calls.get(timeout=20)
    assert len(out) == 40
    assert callable(call)
    call()
    found, ident = out[-1]
    assert (bodies(found), ident) == (numbers(0, 4), threading.get_ident())
    assert store.close()


class TestResidency:
    """The kernel's own word for what is in memory."""

    PAGES = 64

    def test_nothing_of_a_hole_until_it_is_read(self, tmp_path: Path) -> None:
        size = self.PAGES * mmap.PAGESIZE
        (tmp_path / "hole").write_bytes(b"")
        os.truncate(tmp_path / "hole", size)
        region = OsFiles().open(tmp_path / "hole")
        assert region.resident_end(0, size) == 0
        assert region.resident_end(5000, size) == 5000
        assert len(bytes(region.buffer)) == size
        assert region.resident_end(0, size) == size
        assert region.resident_end(5000, 5001) == 5001
        region.close()
        assert region.resident_end(0, size) == 0  # nobody is to ask it any more

    def test_what_was_written_is_there(self, tmp_path: Path) -> None:
        size = 2 * RESIDENT_BYTES_MAX
        region = OsFiles().create(tmp_path / "file", size)
        region.buffer[:] = b"x" * size
        assert region.resident_end(0, size) == RESIDENT_BYTES_MAX
        assert region.resident_end(RESIDENT_BYTES_MAX + 1, size) == size
        region.close()

    def test_a_map_for_reading_only_cannot_be_asked_and_counts_as_cold(
        self, tmp_path: Path
    ) -> None:
        """A log may lie in part in readOnlyCommitLogStorePaths; nobody waits for those disks."""
        (tmp_path / "file").write_bytes(bytes(10))
        region = OsFiles().open(tmp_path / "file", writable=False)
        assert region.resident_end(2, 10) == 2
        region.close()

    def test_a_store_on_a_disk_answers_alike(self, tmp_path: Path) -> None:
        written_store(tmp_path)
        store = small_store(tmp_path, SystemClock())  # type: ignore[arg-type]
        store.open(1)
        store.reads.cold.tail_bytes = 0
        for file in store.log.files:
            handle = os.open(file.region.path, os.O_RDONLY)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(handle)
        out: list[Found] = []
        for offset in range(0, 100, 7):
            store.begin_get("Alpha", 0, offset, 5, None, out.append)
            expected, count = store.get("Alpha", 0, offset, 5), len(out[-1].records)
            # A batch ends where the next message must be waited for, and never before the first.
            assert count > 0
            assert out[-1].records == expected.records[:count]
            assert out[-1].next_offset == offset + count
        assert len(out) == 15
        assert store.close()
