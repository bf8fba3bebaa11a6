"""Entries by minute: files, what a crash leaves of them, and what is put further."""

from __future__ import annotations

from pathlib import Path

import pytest

from gantrymq.broker.timer.progress import Progress
from gantrymq.broker.timer.slots import HORIZON_MINUTES, TimerSlots
from gantrymq.store.errors import StoreDamaged
from gantrymq.testing.clock import VirtualClock
from gantrymq.testing.disk import SimulatedFiles
from gantrymq.testing.workers import StepWorker

ROOT = Path("/store")
FILES = ROOT / "timerslots"
NOW = 60_000
"""A second at the begin of a minute."""


class Slots:
    """Slots on a simulated disk."""

    def __init__(self, disk: SimulatedFiles | None = None) -> None:
        self.disk = disk or SimulatedFiles()
        self.disk.make_directory(ROOT)
        self.disk.make_directory(ROOT / "config")
        self.worker = StepWorker()
        self.slots = TimerSlots(
            self.disk, ROOT, ROOT / "config", self.worker, VirtualClock(NOW * 1000)
        )
        self.progress = self.slots.open() or Progress(read_offset=0, next_second=NOW)
        self.slots.begin(self.progress)

    def add(self, second: int, offset: int, *, marker: bool = False, at: int = NOW) -> None:
        self.slots.add(second, offset, at, marker=marker)

    def save(self, read_offset: int, next_second: int = NOW) -> None:
        failures: list[Exception] = []
        progress = Progress(read_offset=read_offset, next_second=next_second)
        self.slots.save(progress, b"", lambda: None, failures.append)
        self.worker.drain()
        assert not failures

    def load(self, second: int) -> None:
        done: list[bool] = []
        self.slots.load(second, lambda: done.append(True), lambda error: pytest.fail(str(error)))
        self.worker.drain()
        assert done

    def again(self, *, power_cut: bool = False) -> Slots:
        return Slots(self.disk.crash(0.0) if power_cut else self.disk.kill())


def test_a_second_gives_each_entry_once_and_in_order() -> None:
    world = Slots()
    for offset in (9, 7, 9, 8):
        world.add(NOW + 5, offset)
    world.add(NOW + 5, 3, marker=True)
    world.load(NOW)
    assert world.slots.next_second(NOW, NOW + 60) == NOW + 5
    assert world.slots.take(NOW + 5) == [7, 14, 16, 18]
    assert world.slots.take(NOW + 5) == []


def test_what_is_late_is_due_at_once() -> None:
    world = Slots()
    world.add(5, 1)
    world.load(NOW)
    assert world.slots.take(NOW) == [2]


def test_saved_entries_survive_a_power_cut_and_others_are_left_to_the_topic() -> None:
    world = Slots()
    world.add(NOW + 1, 0)
    world.add(NOW + 90, 1)
    world.save(read_offset=2)
    world.add(NOW + 1, 2)
    after = world.again(power_cut=True)
    assert after.progress.read_offset == 2
    after.load(NOW)
    assert after.slots.take(NOW + 1) == [0]
    assert after.slots.next_second(NOW, NOW + 1000) == NOW + 60
    after.load(NOW + 60)
    assert after.slots.take(NOW + 90) == [2]


def test_an_entry_behind_the_offset_that_counts_is_not_believed() -> None:
    world = Slots()
    world.add(NOW + 1, 0)
    world.add(NOW + 1, 5)
    world.save(read_offset=5)
    after = world.again()
    after.load(NOW)
    assert after.slots.take(NOW + 1) == [0]


def test_bytes_that_no_save_counts_are_written_over() -> None:
    world = Slots()
    world.add(NOW + 1, 0)
    world.save(read_offset=1)
    path = FILES / str(NOW // 60)
    world.disk.write_at(path, 16, b"\xff" * 40, 56)
    after = world.again()
    after.add(NOW + 2, 1)
    after.save(read_offset=2)
    last = after.again()
    last.load(NOW)
    assert last.slots.take(NOW + 1) == [0]
    assert last.slots.take(NOW + 2) == [2]


def test_what_is_due_much_later_is_put_further_and_comes_in_its_second() -> None:
    world = Slots()
    far = NOW + 5 * 3600 + 7
    world.add(far, 4)
    second = NOW
    visits = 0
    while not world.slots.is_loaded(far):
        second = world.slots.next_second(second, far + 1)
        world.load(second)
        world.slots.drop_before(second)
        visits += 1
        assert len(world.disk.names(FILES)) < 5
        world.save(read_offset=5, next_second=second)
        world = world.again()
        world.load(second)
    assert visits == 5
    assert world.slots.take(far) == [8]


def test_there_are_no_more_files_than_minutes_of_the_horizon() -> None:
    world = Slots()
    for offset in range(10_000):
        world.add(NOW + offset * 37, offset)
    world.save(read_offset=10_000)
    minutes = [name for name in world.disk.names(FILES) if name.isdecimal()]
    assert len(minutes) == HORIZON_MINUTES + 1


def test_files_of_minutes_that_are_over_go_with_the_next_save() -> None:
    world = Slots()
    world.add(NOW + 1, 0)
    world.save(read_offset=1)
    world.load(NOW)
    world.slots.take(NOW + 1)
    world.slots.drop_before(NOW + 60)
    assert world.slots.is_empty
    world.save(read_offset=1, next_second=NOW + 60)
    assert not [name for name in world.disk.names(FILES) if name.isdecimal()]


def test_a_save_that_fails_is_made_up_for() -> None:
    world = Slots()
    world.add(NOW + 1, 0)
    failures: list[Exception] = []
    progress = Progress(read_offset=1, next_second=NOW)
    world.slots.save(progress, b"", lambda: pytest.fail("saved"), failures.append)
    write_at, world.disk.write_at = world.disk.write_at, _refuse  # type: ignore[method-assign,assignment]
    world.worker.drain()
    world.disk.write_at = write_at  # type: ignore[method-assign]
    assert failures
    assert world.slots.has_news
    world.save(read_offset=1)
    after = world.again(power_cut=True)
    after.load(NOW)
    assert after.slots.take(NOW + 1) == [0]


def _refuse(*_: object) -> None:
    raise OSError(28, "no space")


@pytest.mark.parametrize("damage", ["changed", "cut", "gone"])
def test_a_damaged_file_is_not_believed_and_its_lowest_offset_is_told(damage: str) -> None:
    world = Slots()
    world.add(NOW + 1, 7)
    world.add(NOW + 2, 5)
    world.save(read_offset=8)
    path = FILES / str(NOW // 60)
    content = world.disk.read(path)
    if damage == "gone":
        world.disk.remove(path)
    else:
        world.disk.place(path, content[:16] if damage == "cut" else content[:-1] + b"\0")
    after = world.again()
    lost: list[int] = []
    after.slots.lost = lost.append
    after.load(NOW)
    assert lost == [5]
    assert after.slots.take(NOW + 1) == after.slots.take(NOW + 2) == []
    after.add(NOW + 2, 5)
    after.save(read_offset=8)
    last = after.again()
    last.load(NOW)
    assert last.slots.take(NOW + 2) == [10]


def test_a_save_that_failed_leaves_the_check_sum_right() -> None:
    world = Slots()
    world.add(NOW + 1, 0)
    progress = Progress(read_offset=1, next_second=NOW)
    write_at, world.disk.write_at = world.disk.write_at, _refuse  # type: ignore[method-assign,assignment]
    world.slots.save(progress, b"", lambda: pytest.fail("saved"), lambda _error: None)
    world.worker.drain()
    world.disk.write_at = write_at  # type: ignore[method-assign]
    world.add(NOW + 1, 1)
    world.save(read_offset=2)
    after = world.again()
    after.slots.lost = lambda offset: pytest.fail(str(offset))
    after.load(NOW)
    assert after.slots.take(NOW + 1) == [0, 2]


def test_a_changed_byte_of_the_progress_gives_way_to_the_one_before() -> None:
    world = Slots()
    world.add(NOW + 1, 0)
    world.save(read_offset=1)
    world.save(read_offset=2)
    content = world.disk.read(FILES / "progress")
    for position in range(len(content)):
        changed = bytearray(content)
        changed[position] ^= 1
        world.disk.place(FILES / "progress", bytes(changed))
        found = Slots(world.disk.kill()).progress
        assert (found.read_offset, found.next_second) in {(1, NOW), (2, NOW)}, position
        assert found.slots == {str(NOW // 60): (16, 0)}, position


def test_the_progress_of_an_older_release_is_read() -> None:
    world = Slots()
    world.add(NOW + 1, 0)
    world.save(read_offset=1)
    minute = NOW // 60
    old = b'{"readOffset":1,"nextSecond":%d,"slots":{"%d":[16,0]},"counts":{},"apache":""}'
    world.disk.place(FILES / "progress", old % (NOW, minute))
    after = world.again()
    after.load(NOW)
    assert after.slots.take(NOW + 1) == [0]


def test_a_progress_that_is_none_is_not_passed_over() -> None:
    world = Slots()
    world.save(read_offset=1)
    for name in world.disk.names(FILES):
        if name.startswith("progress"):
            world.disk.place(FILES / name, b"{broken")
    with pytest.raises(StoreDamaged, match="progress"):
        world.again()
