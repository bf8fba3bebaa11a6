"""Log files made ahead of need, and what happens when they cannot be."""

from __future__ import annotations

import errno
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

import pytest

from gantrymq.store import allocation
from gantrymq.store.allocation import FileNotMade, LogFiles
from gantrymq.store.log_directories import LogDirectories
from gantrymq.store.status import PutStatus
from gantrymq.testing.disk import Names, Operation, SimulatedFiles
from gantrymq.testing.workers import StepWorker
from support.store_rig import LOG, Rig

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")
SIZE = 4096
DIRECTORY = Path("/log")


def made(disk: SimulatedFiles | None = None) -> tuple[LogFiles, StepWorker, SimulatedFiles]:
    disk = SimulatedFiles() if disk is None else disk
    worker = StepWorker()
    return LogFiles(LogDirectories((DIRECTORY,)), SIZE, disk, worker), worker, disk


def names(disk: SimulatedFiles, directory: Path = DIRECTORY) -> list[int]:
    return [int(name) for name in disk.names(directory)]


def test_the_next_file_is_made_before_it_is_asked_for() -> None:
    files, worker, disk = made()
    first = files.take(0)
    assert (first.start, first.size, first.wrote) == (0, SIZE, 0)
    assert names(disk) == [0]
    worker.drain()
    assert names(disk) == [0, SIZE]
    assert files.take(SIZE).start == SIZE
    assert worker.waiting_jobs == 1  # it was there: nobody had to work for it


def test_with_an_event_loop_the_next_file_is_begun_when_the_turn_is_over() -> None:
    disk, worker = SimulatedFiles(), StepWorker()
    turn: list[Callable[[], None]] = []
    files = LogFiles(LogDirectories((DIRECTORY,)), SIZE, disk, worker, soon=turn.append)
    files.take(0)
    worker.drain()
    assert names(disk) == [0], "whoever took it has not waited for the next one's beginning"
    turn.pop()()
    worker.drain()
    assert names(disk) == [0, SIZE]
    # Two rolls in one turn: only the file behind the last one is wanted.
    files.take(SIZE)
    files.take(2 * SIZE)
    for call in turn:
        call()
    worker.drain()
    assert names(disk) == [0, SIZE, 2 * SIZE, 3 * SIZE]
    turn.clear()
    files.take(3 * SIZE)
    files.close()
    turn.pop()()
    worker.drain()
    assert names(disk)[-1] == 3 * SIZE, "nothing is made for a log that is being closed"


def test_a_new_file_has_its_first_pages_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    touched = []

    class Watched:
        @staticmethod
        def touch_pages(_target: memoryview, position: int, limit: int, _step: int) -> None:
            touched.append((position, limit))

    monkeypatch.setattr(allocation, "kernel", Watched)
    files, worker, _disk = made()
    files.take(0)
    worker.drain()
    assert touched == [(0, SIZE)] * 2, "the one that is used, and the one behind it"


def test_who_comes_too_early_waits_for_it() -> None:
    files, worker, disk = made()
    files.take(0)
    assert files.take(SIZE).start == SIZE
    assert names(disk) == [0, SIZE]
    assert worker.waiting_jobs == 1


def test_a_file_is_on_the_disk_with_its_length_and_name_before_it_is_used() -> None:
    files, _worker, disk = made(SimulatedFiles(names=Names.STRICT))
    disk.make_directory(DIRECTORY)
    disk.sync_directory(DIRECTORY.parent)
    files.take(0)
    after = disk.crash(0.0)
    assert names(after) == [0]
    assert after.size(files.path(0)) == SIZE


def test_a_disk_that_refuses() -> None:
    files, _worker, disk = made()
    disk.fail(Operation.CREATE, errno.EROFS)
    with pytest.raises(FileNotMade, match=r"00000000000000000000 cannot be made.*Read-only"):
        files.take(0)
    assert files.take(0).start == 0


def test_a_failure_ahead_of_need_is_tried_again_when_it_is_needed() -> None:
    files, worker, disk = made()
    files.take(0)
    disk.fail(Operation.CREATE, errno.ENOSPC)
    worker.drain()
    assert names(disk) == [0]
    assert files.take(SIZE).start == SIZE


@pytest.mark.parametrize("operation", [Operation.SYNC, Operation.SYNC_DIRECTORY])
def test_a_file_half_made_does_not_stand_in_the_way(operation: Operation) -> None:
    files, _worker, disk = made()
    disk.fail(operation, errno.EIO)
    with pytest.raises(FileNotMade):
        files.take(0)
    assert names(disk) == []
    assert files.take(0).start == 0


def test_whatever_ends_the_making_leaves_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    files, _worker, disk = made()

    def no_memory(_directory: Path) -> None:
        raise MemoryError("no memory")

    with monkeypatch.context() as patch:
        patch.setattr(disk, "sync_directory", no_memory)
        with pytest.raises(FileNotMade, match="no memory"):
            files.take(0)
    assert names(disk) == []
    assert files.take(0).start == 0


class _Late(Future[Result]):
    """A result that nobody gets by waiting."""

    waited: ClassVar[list[float | None]] = []

    def result(self, timeout: float | None = None) -> Result:
        self.waited.append(timeout)
        if not self.done():
            raise TimeoutError(f"not within {timeout} s")
        return super().result()


class _Slow(StepWorker):
    """Works, but not in time."""

    def begin(self, job: Callable[[], Result]) -> Future[Result]:
        future: _Late[Result] = _Late()
        self.submit(job, future.set_result, future.set_exception)
        return future


def test_a_file_that_comes_too_late_is_the_next_ones() -> None:
    disk, worker = SimulatedFiles(), _Slow()
    files = LogFiles(LogDirectories((DIRECTORY,)), SIZE, disk, worker)
    _Late.waited.clear()
    with pytest.raises(FileNotMade, match="not there within 5"):
        files.take(0)
    for _ in range(3):
        with pytest.raises(FileNotMade, match="not there within 5"):
            files.take(0)
    assert _Late.waited == [5.0, 0.0, 0.0, 0.0], "the owner waits for a slow disk once"
    worker.drain()
    assert files.take(0).start == 0, "it must not fail because the file exists"


def test_a_disk_that_timed_out_is_asked_again() -> None:
    """ETIMEDOUT is a TimeoutError to Python, as a wait is that was too long."""
    files, worker, disk = made()
    files.take(0)
    disk.fail(Operation.CREATE, errno.ETIMEDOUT, times=None)
    worker.drain()
    with pytest.raises(FileNotMade, match="timed out"):
        files.take(SIZE)
    disk.heal()
    assert files.take(SIZE).start == SIZE


def test_what_was_made_and_not_used_is_removed() -> None:
    files, worker, disk = made()
    files.take(0)
    worker.drain()
    files.close()
    assert names(disk) == [0, SIZE], "the owner does not wait for it"
    worker.drain()
    assert names(disk) == [0]
    files.close()
    worker.drain()
    assert names(disk) == [0]


def test_a_file_that_is_not_the_one_wanted_goes_behind_the_owners_back() -> None:
    """A slave that jumps: the disk may be slow with what was made for nothing."""
    files, worker, disk = made()
    files.take(0)
    worker.drain()
    files._discard()
    assert names(disk) == [0, SIZE]
    assert files.take(8 * SIZE).start == 8 * SIZE
    worker.drain()
    assert names(disk) == [0, 8 * SIZE, 9 * SIZE]


def test_what_could_not_be_made_need_not_be_removed() -> None:
    files, worker, disk = made()
    files.take(0)
    disk.fail(Operation.CREATE, errno.ENOSPC)
    files.close()
    worker.drain()
    assert names(disk) == [0]


def test_warming_touches_every_page_and_changes_nothing() -> None:
    disk = SimulatedFiles()
    files = LogFiles(
        LogDirectories((DIRECTORY,)), 3 * SIZE + 1, disk, StepWorker(), warm_step=2 * SIZE
    )
    assert not any(files.take(0).region.buffer)


def test_a_put_says_what_it_could_not_have_and_goes_on_when_there_is_room() -> None:
    rig = Rig()
    rig.put(bytes(3000))
    rig.allocation.drain()
    rig.disk.other_bytes = rig.disk.usage(LOG).available
    assert rig.put(bytes(3000)).status is PutStatus.PUT_OK  # into the file made ahead
    failed = rig.put(bytes(3000))
    assert failed.status is PutStatus.CREATE_MAPPED_FILE_FAILED
    assert rig.put(bytes(3000)).status is PutStatus.CREATE_MAPPED_FILE_FAILED
    assert [len(body) for body in rig.bodies()] == [3000, 3000]
    rig.disk.other_bytes = 0
    stored = rig.put(bytes(2999))
    assert (stored.status, stored.queue_offset) == (PutStatus.PUT_OK, 2)
    assert [len(body) for body in rig.bodies()] == [3000, 3000, 2999]


def test_a_clean_stop_leaves_no_empty_file() -> None:
    rig = Rig()
    rig.put(b"x")
    rig.allocation.drain()
    assert names(rig.disk, LOG) == [0, 4096]
    assert rig.store.close()
    assert names(rig.disk, LOG) == [0]


def test_warming_forces_in_steps() -> None:
    disk = SimulatedFiles()
    files = LogFiles(LogDirectories((DIRECTORY,)), 4 * SIZE, disk, StepWorker(), warm_step=SIZE)
    disk.fail(Operation.SYNC, errno.EIO, after=3)
    with pytest.raises(FileNotMade):
        files.take(0)
    assert names(disk) == []


def test_a_stop_does_not_wait_for_warming_and_leaves_nothing() -> None:
    disk, worker = SimulatedFiles(), StepWorker()
    files = LogFiles(LogDirectories((DIRECTORY,)), 4 * SIZE, disk, worker, warm_step=SIZE)
    first = files.take(0)
    disk.fail(Operation.SYNC, errno.EIO)
    files.close()
    assert names(disk) == [0]
    with pytest.raises(OSError, match="Input/output"):
        first.region.sync()  # nothing was forced before


def test_a_file_begun_for_another_place_is_not_left_behind() -> None:
    files, worker, disk = made()
    files.prepare(SIZE)
    worker.drain()
    assert files.take(5 * SIZE).start == 5 * SIZE
    assert names(disk) == [5 * SIZE]


class TestAfterAStart:
    """The first roll finds its file as any other does."""

    def test_a_log_more_than_half_full_has_the_next_file_made_at_once(self) -> None:
        rig = Rig()
        rig.put(bytes(3000))
        rig.store.close()
        again = rig.again(rig.disk)
        assert again.allocation.waiting_jobs == 1
        again.allocation.drain()
        assert names(again.disk, LOG) == [0, 4096]
        assert again.put(bytes(3000)).status is PutStatus.PUT_OK
        assert again.allocation.waiting_jobs == 1  # the one behind it: nobody had to work for it
        again.allocation.drain()
        assert again.store.close()
        assert names(again.disk, LOG) == [0, 4096]

    def test_one_less_than_half_full_when_it_passes_the_middle(self) -> None:
        rig = Rig()
        rig.put(bytes(1000))
        rig.store.close()
        again = rig.again(rig.disk)
        again.put(bytes(500))
        assert again.allocation.waiting_jobs == 0
        again.put(bytes(500))
        assert again.allocation.waiting_jobs == 1
        again.put(bytes(500))
        assert again.allocation.waiting_jobs == 1
        assert again.store.close()
        assert names(again.disk, LOG) == [0]
