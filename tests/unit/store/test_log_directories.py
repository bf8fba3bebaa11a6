"""A log in several directories: where files go, how they are found, and what is refused."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from gantrymq.kernel import Record, kernel
from gantrymq.store.allocation import LogFiles
from gantrymq.store.errors import StoreDamaged
from gantrymq.store.log_directories import LogDirectories, log_directories
from gantrymq.store.reader import StoreReader
from gantrymq.store.settings import read_settings
from gantrymq.store.verify import verify
from gantrymq.testing.clock import VirtualClock
from gantrymq.testing.disk import Names, Operation, SimulatedFiles
from gantrymq.testing.workers import StepWorker
from support.small_stores import put, small_store
from support.store_rig import ROOT, Rig

SIZE = 4096
A, B, C = (Path(f"/disk-{letter}") for letter in "abc")
EVERY_HOUR = ";".join(f"{hour:02d}" for hour in range(24))
SEVERAL = {"storePathCommitLog": f"{A},{B}"}


def starts(disk: SimulatedFiles, directory: Path) -> list[int]:
    return [int(name) // SIZE for name in disk.names(directory)]


def written(count: int, disk: SimulatedFiles | None = None, **settings: str) -> Rig:
    """Return a store with so many messages, several of which fill a file."""
    rig = Rig(SEVERAL | settings, SimulatedFiles() if disk is None else disk)
    for number in range(count):
        rig.put(b"%03d" % number + bytes(900))
        rig.allocation.drain()
    return rig


def numbers(rig: Rig) -> list[int]:
    return [int(body[:3]) for body in rig.bodies()]


def found(rig: Rig, offset: int) -> list[Record]:
    """Return the messages of a queue from an offset on."""
    raws = rig.store.get("T", 0, offset, 32).records
    return [kernel.decode_record(raw, 0, len(raw), True)[0] for raw in raws]


def clean(rig: Rig, age_s: float, seconds: float = 90.0) -> None:
    """Let all that is there grow old, and the cleaner see it."""
    for _ in range(2):
        rig.tick(61.0)
        rig.settle()
    rig.clock.jump(age_s)
    for _ in range(round(seconds / 0.5)):
        rig.tick(0.5)
        rig.settle()


class TestNames:
    """Which directory a file goes to."""

    def test_files_take_turns(self) -> None:
        directories = LogDirectories((A, B, C))
        chosen = [directories.choose(number) for number in range(7)]
        assert chosen == [A, B, C, A, B, C, A]

    def test_full_directories_are_avoided_while_another_is_left(self) -> None:
        directories = LogDirectories((A, B, C))
        assert [directories.choose(n, frozenset({B})) for n in range(4)] == [A, C, A, C]
        assert [directories.choose(n, frozenset({A, B, C})) for n in range(4)] == [A, B, C, A]

    def test_the_settings_name_them(self) -> None:
        paths = read_settings(
            {
                "storePathRootDir": "/base",
                "storePathCommitLog": "/d2, /d1,/d3 ,/d1",
                "readOnlyCommitLogStorePaths": "/old,/d3",
            }
        ).paths
        found = log_directories(paths)
        assert found.writable == (Path("/d1"), Path("/d2"))
        assert found.read_only == (Path("/old"), Path("/d3"))
        alone = log_directories(read_settings({"storePathRootDir": "/base"}).paths)
        assert alone.all == (Path("/base/commitlog"),)

    def test_a_new_file_avoids_what_is_full_by_then(self) -> None:
        disk, worker = SimulatedFiles(), StepWorker()
        files = LogFiles(LogDirectories((A, B)), SIZE, disk, worker)
        files.take(0)
        files.avoid = frozenset({A})
        assert files.take(SIZE).region.path.parent == B
        assert files.take(2 * SIZE).region.path.parent == B
        files.avoid = frozenset()
        worker.drain()  # the next one was begun while A was full
        assert files.take(3 * SIZE).region.path.parent == B
        assert files.take(4 * SIZE).region.path.parent == A
        files.close()
        assert (starts(disk, A), starts(disk, B)) == ([0, 4], [1, 2, 3])


class TestStores:
    """A store over several directories does what one over a single directory does."""

    def test_files_lie_where_they_should_and_everything_is_found_again(self) -> None:
        rig = written(20)
        assert rig.store.close()
        assert (starts(rig.disk, A), starts(rig.disk, B)) == ([0, 2, 4], [1, 3])
        again = rig.again(rig.disk)
        assert again.report.clean
        assert numbers(again) == list(range(20))
        assert not rig.disk.exists(ROOT / "commitlog")

    @pytest.mark.parametrize("keep", [0.0, 0.5, 1.0])
    def test_after_a_power_cut_what_was_forced_is_there(self, keep: float) -> None:
        rig = written(17, SimulatedFiles(names=Names.STRICT), flushDiskType="SYNC_FLUSH")
        rig.settle()
        again = rig.again(rig.disk.crash(keep))
        assert not again.report.clean
        assert numbers(again) == list(range(17))
        again.put(b"017" + bytes(900))
        assert numbers(again.again()) == list(range(18))

    def test_what_a_crash_leaves_is_removed_wherever_it_lies(self) -> None:
        rig = written(10)
        assert (starts(rig.disk, A), starts(rig.disk, B)) == ([0, 2], [1, 3])
        disk = rig.disk.kill()
        disk.truncate(B / f"{3 * SIZE:020d}", 0)
        again = rig.again(disk)
        assert starts(again.disk, B) == [1]
        assert numbers(again) == list(range(10))

    def test_damage_cuts_the_files_of_all_directories(self) -> None:
        rig = written(20)
        disk = rig.disk.kill()
        disk.write_at(B / f"{SIZE:020d}", 200, b"X", 0)
        again = rig.again(disk)
        assert numbers(again) == [0, 1, 2, 3]
        assert (starts(again.disk, A), starts(again.disk, B)) == ([0], [])

    def test_another_directory_may_come_later(self) -> None:
        rig = written(6)
        rig.store.close()
        again = written(0, rig.disk, storePathCommitLog=f"{A},{B},{C}")
        for number in range(6, 20):
            again.put(b"%03d" % number + bytes(900))
        assert again.store.close()
        assert [starts(rig.disk, one) for one in (A, B, C)] == [[0, 3], [1, 4], [2]]
        assert numbers(again.again(rig.disk)) == list(range(20))

    def test_a_directory_that_refuses_is_named(self) -> None:
        rig = written(3)
        rig.disk.fail(Operation.CREATE, errno.EROFS, where=lambda path: path.parent == B)
        rig.store.log_files.close()
        assert rig.put(bytes(3900)).status.name == "CREATE_MAPPED_FILE_FAILED"


class TestReadOnly:
    """Directories that keep what they have."""

    def test_they_are_read_and_get_no_new_file(self) -> None:
        rig = written(12)
        rig.store.close()
        again = written(0, rig.disk, readOnlyCommitLogStorePaths=str(A))
        assert numbers(again) == list(range(12))
        before = starts(rig.disk, A)
        for number in range(12, 24):
            again.put(b"%03d" % number + bytes(900))
        assert again.store.close()
        assert starts(rig.disk, A) == before
        assert starts(rig.disk, B)[-1] == 5
        assert numbers(again.again(rig.disk)) == list(range(24))

    def test_its_files_are_not_opened_for_writing(self) -> None:
        rig = written(12)
        rig.store.close()
        again = written(0, rig.disk, readOnlyCommitLogStorePaths=str(A))
        first, second, last = again.store.log.files
        assert first.region.path.parent == A
        assert first.region.buffer.readonly
        assert not second.region.buffer.readonly
        # The last file is finished where it lies: a record may be half way in it.
        assert last.region.path.parent == A
        assert not last.region.buffer.readonly

    def test_a_disk_that_can_only_be_read_does_not_stop_retention(self) -> None:
        rig = written(24, deleteWhen=EVERY_HOUR)
        rig.store.close()
        again = written(0, rig.disk, deleteWhen=EVERY_HOUR, readOnlyCommitLogStorePaths=str(A))
        disk = rig.disk
        disk.fail(Operation.REMOVE, errno.EROFS, times=None, where=lambda path: path.parent == A)
        clean(again, 4 * 86400)
        assert (starts(disk, A), starts(disk, B)[0]) == ([0, 2, 4], 5)
        assert (again.store.log.min_offset, numbers(again)) == (5 * SIZE, [])
        queue = again.store.queues.find("T", 0)
        assert queue is not None
        assert (queue.min_offset, queue.max_offset) == (20, 24), "queues follow the log"
        assert again.store.cleaner.last_error is None
        for disk_after in (disk.kill(), disk.crash(0.0)):
            later = again.again(disk_after, readOnlyCommitLogStorePaths=str(A))
            assert later.store.log.min_offset == 5 * SIZE
            assert [int(record.body[:3]) for record in found(later, 20)] == [20, 21, 22, 23]

    def test_what_is_missing_elsewhere_is_missed_all_the_same(self) -> None:
        rig = written(24)
        rig.store.close()
        slowly = {"deleteWhen": EVERY_HOUR, "deleteFileBatchMax": "2"}
        again = written(0, rig.disk, readOnlyCommitLogStorePaths=str(A), **slowly)
        rig.disk.fail(Operation.REMOVE, errno.EROFS, where=lambda path: path.parent == A)
        clean(again, 4 * 86400, seconds=9.0)
        assert again.store.log.min_offset == 2 * SIZE
        disk = rig.disk.kill()
        disk.remove(B / f"{3 * SIZE:020d}")
        with pytest.raises(StoreDamaged, match=f"{3 * SIZE:020d} should be there"):
            again.again(disk, readOnlyCommitLogStorePaths=str(A))

    def test_a_disk_that_was_to_be_written_is_no_such_disk(self) -> None:
        rig = written(24, deleteWhen=EVERY_HOUR)
        rig.disk.fail(
            Operation.REMOVE, errno.EROFS, times=None, where=lambda path: path.parent == A
        )
        clean(rig, 4 * 86400)
        assert rig.store.log.min_offset == 0
        assert "Read-only file system" in str(rig.store.cleaner.last_error)

    def test_one_that_is_not_there_is_not_passed_over(self) -> None:
        with pytest.raises(StoreDamaged, match=r"/gone of readOnlyCommitLogStorePaths is not"):
            written(0, readOnlyCommitLogStorePaths="/gone")


class TestRefusals:
    """Files that are not those of one log."""

    def test_one_file_in_two_directories(self) -> None:
        rig = written(6)
        disk = rig.disk.kill()
        disk.place(B / f"{0:020d}", disk.read(A / f"{0:020d}"))
        with pytest.raises(StoreDamaged, match=r"disk-a/0{20} and /disk-b/0{20} are one file"):
            rig.again(disk)

    def test_a_disk_in_the_middle_that_is_not_mounted(self) -> None:
        rig = written(12)
        rig.store.close()
        with pytest.raises(StoreDamaged, match=f"{SIZE:020d} should be there"):
            written(0, rig.disk, storePathCommitLog=f"{A},{C}")

    @pytest.mark.parametrize("clean", [True, False])
    def test_a_disk_with_the_end_that_is_not_mounted(self, *, clean: bool) -> None:
        rig = written(6)
        rig.store.flush_queues(thorough=True)
        rig.settle()
        if clean:
            rig.store.close()
        disk = rig.disk if clean else rig.disk.kill()
        there = {B / name: disk.read(B / name) for name in disk.names(B)}
        for path in [*there, *(A / name for name in disk.names(A)[1:])]:
            disk.remove(path)
        with pytest.raises(StoreDamaged, match="is a disk of storePathCommitLog not mounted"):
            rig.again(disk)
        for path, content in there.items():
            disk.place(path, content)
        assert numbers(rig.again(disk)) == list(range(6)), "nothing was cut meanwhile"


def test_offline_tools_find_all_of_it(tmp_path: Path) -> None:
    root, clock = tmp_path / "store", VirtualClock()
    where = f"{tmp_path / 'one'},{tmp_path / 'two'}"
    store = small_store(root, clock, storePathCommitLog=where)
    store.open(1)
    offsets = [put(store, number, clock) for number in range(200)]
    assert store.close()
    assert len(list((tmp_path / "one").iterdir())) > 1
    assert len(list((tmp_path / "two").iterdir())) > 1
    config = tmp_path / "broker.conf"
    config.write_text(
        "mappedFileSizeCommitLog=8192\nmappedFileSizeConsumeQueue=200\n"
        f"maxHashSlotNum=10\nmaxIndexNum=40\nstorePathCommitLog={where}\n"
    )
    with StoreReader.open(root, config) as reader:
        assert [record.log_offset for record in reader.records()] == offsets
        report = verify(reader)
        assert (report.problems, report.records) == ([], 200)
