"""Tables reach their files: on a timer, when asked, at the end; late, perhaps, but never lost."""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING

import pytest

from gantrymq.broker.config_saving import SOON_S, ConfigSaver, SaveFailed
from gantrymq.broker.consumer_offsets import ConsumerOffsets
from gantrymq.broker.groups import Groups
from gantrymq.store.errors import StoreDamaged
from gantrymq.store.files import OsFiles
from gantrymq.store.worker import InlineWorker, ThreadWorker
from gantrymq.testing.clock import VirtualClock
from gantrymq.testing.workers import StepWorker

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gantrymq.store.files import StrPath


class FailingFiles(OsFiles):
    """A disk that can be full."""

    is_full = False

    def write_at(self, path: StrPath, position: int, data: bytes, size: int) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "no space")
        super().write_at(path, position, data, size)


class World:
    """A saver with two tables, and a worker that waits to be told."""

    def __init__(self, directory: Path, worker: StepWorker | InlineWorker | None = None) -> None:
        self.directory = directory
        self.clock = VirtualClock()
        self.files = FailingFiles()
        self.worker = StepWorker()
        self.failures: list[SaveFailed] = []
        self.saver = ConfigSaver(
            self.files, directory, worker or self.worker, self.clock, self.failures.append
        )
        self.offsets = ConsumerOffsets(self.clock)
        self.groups = Groups(self.clock)
        self.saver.add(self.offsets, 5_000)
        self.saver.add(self.groups, 1_000)

    def after(self, seconds: float) -> float:
        self.clock.jump(seconds)
        return self.saver.tick(self.clock.monotonic())

    def on_disk(self) -> int:
        """Return the offset that a restarted broker would find."""
        saved = World(self.directory)
        return saved.offsets.find("g", "T", 0)


def test_a_change_is_saved_when_its_interval_is_over(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.offsets.commit("g", "T", 0, 7)
    assert world.after(4.9) == pytest.approx(5.0)
    assert world.worker.waiting_jobs == 0
    world.after(0.1)
    assert world.worker.waiting_jobs == 1
    world.worker.drain()
    assert world.on_disk() == 7
    assert not world.offsets.is_dirty
    world.after(5)
    assert world.worker.waiting_jobs == 0


def test_a_change_while_a_save_is_under_way_is_saved_by_the_next(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.offsets.commit("g", "T", 0, 7)
    world.after(5)
    world.offsets.commit("g", "T", 0, 8)
    world.worker.run_one()
    world.offsets.commit("g", "T", 0, 9)
    world.worker.report_one()
    assert world.offsets.is_dirty
    assert world.on_disk() == 7
    world.after(5)
    world.worker.drain()
    assert world.on_disk() == 9
    assert not world.offsets.is_dirty


def test_one_job_of_a_table_at_a_time(tmp_path: Path) -> None:
    world = World(tmp_path)
    for number in range(20):
        world.offsets.commit("g", "T", 0, number)
        world.groups.find_or_create(f"g{number}")
        world.after(5)
    assert world.worker.waiting_jobs == 2


def test_a_failed_save_is_told_and_tried_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.offsets.commit("g", "T", 0, 7)
    world.files.is_full = True
    for failures in (1, 2):
        world.after(5)
        world.worker.drain()
        assert [failure.file_name for failure in world.failures] == [
            "consumerOffset.json"
        ] * failures
    assert world.offsets.is_dirty
    world.files.is_full = False
    world.after(5)
    world.worker.drain()
    assert len(world.failures) == 2
    assert world.on_disk() == 7


def test_who_asks_is_told_when_all_up_to_then_is_saved(tmp_path: Path) -> None:
    world = World(tmp_path)
    answers: list[tuple[str, Exception | None]] = []
    world.saver.save(world.groups, lambda error: answers.append(("clean", error)))
    assert answers == [("clean", None)]
    world.groups.find_or_create("a")
    world.saver.save(world.groups, lambda error: answers.append(("a", error)))
    world.groups.find_or_create("b")
    world.saver.save(world.groups, lambda error: answers.append(("b", error)))
    world.worker.run_one()
    world.worker.report_one()
    assert answers[1:] == [("a", None)]
    assert World(tmp_path).groups.find("b") is None
    world.worker.drain()
    assert answers[1:] == [("a", None), ("b", None)]
    assert World(tmp_path).groups.find("b") is not None


def test_who_asks_is_told_that_it_failed(tmp_path: Path) -> None:
    world = World(tmp_path)
    answers: list[Exception | None] = []
    world.groups.find_or_create("a")
    world.files.is_full = True
    world.saver.save(world.groups, answers.append)
    world.worker.drain()
    assert [type(answer) for answer in answers] == [OSError]
    assert world.groups.is_dirty


def test_the_end_saves_everything_whatever_is_under_way(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.offsets.commit("g", "T", 0, 7)
    world.after(5)
    world.offsets.commit("g", "T", 0, 8)
    world.groups.find_or_create("late")
    assert world.saver.finish() == []
    assert world.on_disk() == 8
    assert World(tmp_path).groups.find("late") is not None
    assert not world.offsets.is_dirty
    world.worker.drain()
    assert not world.offsets.is_dirty
    assert world.on_disk() == 8


def test_the_end_tells_what_could_not_be_saved(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.offsets.commit("g", "T", 0, 7)
    world.files.is_full = True
    (failure,) = world.saver.finish()
    assert failure.file_name == "consumerOffset.json"
    assert world.failures == [failure]
    assert world.offsets.is_dirty


def test_a_thread_saves_while_commits_go_on(tmp_path: Path) -> None:
    clock = VirtualClock()
    posted: list[Callable[[], None]] = []
    worker = ThreadWorker("config", posted.append)
    offsets = ConsumerOffsets(clock)
    saver = ConfigSaver(
        OsFiles(), tmp_path, worker, clock, lambda failure: pytest.fail(str(failure))
    )
    saver.add(offsets, 1)
    for number in range(20_000):
        offsets.commit(f"g{number % 50}", "T", number % 7, number)
        if number % 500 == 0:
            clock.jump(1)
            saver.tick(clock.monotonic())
        while posted:
            posted.pop(0)()
    assert saver.finish() == []
    worker.close()
    again = ConsumerOffsets(clock)
    again.load((tmp_path / "consumerOffset.json").read_bytes())
    assert again.encode() == offsets.encode()


def test_a_damaged_file_gives_way_to_its_backup_and_says_so(tmp_path: Path) -> None:
    world = World(tmp_path, InlineWorker())
    for offset in (7, 8):
        world.offsets.commit("g", "T", 0, offset)
        world.after(5)
    (tmp_path / "consumerOffset.json").write_bytes(b'{"offsetTable":{"T@g":{0:')
    saver = ConfigSaver(OsFiles(), tmp_path, InlineWorker(), world.clock, world.failures.append)
    again = ConsumerOffsets(world.clock)
    trouble = saver.add(again)
    assert trouble is not None
    assert "consumerOffset.json" in trouble
    assert again.find("g", "T", 0) == 7
    (tmp_path / "consumerOffset.json.bak").write_bytes(b"no")
    with pytest.raises(StoreDamaged, match="mend the file"):
        saver.add(ConsumerOffsets(world.clock))


def test_a_changed_byte_of_offsets_gives_way_to_the_backup(tmp_path: Path) -> None:
    world = World(tmp_path, InlineWorker())
    for offset in (7, 8):
        world.offsets.commit("g", "T", 0, offset)
        world.after(5)
    path = tmp_path / "consumerOffset.json"
    content = path.read_bytes()
    assert b'"gantrymqCheck":"' in content
    for position in range(len(content)):
        changed = bytearray(content)
        changed[position] ^= 1
        path.write_bytes(changed)
        saver = ConfigSaver(OsFiles(), tmp_path, InlineWorker(), world.clock)
        again = ConsumerOffsets(world.clock)
        trouble = saver.add(again)
        assert again.find("g", "T", 0) == (8 if trouble is None else 7), (position, trouble)
    path.write_bytes(content.replace(b":8}", b":500}"))
    trouble = ConfigSaver(OsFiles(), tmp_path, InlineWorker(), world.clock).add(
        ConsumerOffsets(world.clock)
    )
    assert trouble is not None
    assert "changed by hand" in trouble


def test_what_was_changed_by_hand_holds_without_the_check_sum(tmp_path: Path) -> None:
    world = World(tmp_path, InlineWorker())
    world.offsets.commit("g", "T", 0, 7)
    world.after(5)
    path = tmp_path / "consumerOffset.json"
    text = path.read_text(encoding="ascii").replace(":7}", ":500}")
    path.write_text(re.sub(r',"gantrymqCheck":"\w+"', "", text), encoding="ascii")
    again = ConsumerOffsets(world.clock)
    assert ConfigSaver(OsFiles(), tmp_path, InlineWorker(), world.clock).add(again) is None
    assert again.find("g", "T", 0) == 500


def test_a_change_that_nobody_waits_for_is_saved_at_once_and_many_together(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.offsets.commit("g", "T", 0, 1)
    world.saver.soon(world.offsets)
    assert world.worker.waiting_jobs == 1, "at once"
    world.worker.drain()
    assert world.on_disk() == 1
    for offset in range(2, 50):
        world.clock.jump(SOON_S / 100)
        world.offsets.commit("g", "T", 0, offset)
        assert world.saver.soon(world.offsets) == pytest.approx(SOON_S)
    assert world.worker.waiting_jobs == 0
    world.after(SOON_S)
    world.worker.drain()
    assert world.on_disk() == 49
    world.after(SOON_S)
    assert world.worker.waiting_jobs == 0, "one save for all of them"


def test_a_change_during_a_save_is_saved_right_after_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.offsets.commit("g", "T", 0, 1)
    world.saver.soon(world.offsets)
    world.offsets.commit("g", "T", 0, 2)
    world.saver.soon(world.offsets)
    world.after(2 * SOON_S)  # a slow disk has not written the first
    assert world.worker.run_one()
    assert world.on_disk() == 1
    world.worker.drain()
    assert world.on_disk() == 2, "without another look at the clock"


def test_who_waits_for_a_save_does_not_wait_for_the_next_interval(tmp_path: Path) -> None:
    world = World(tmp_path)
    told: list[Exception | None] = []
    world.offsets.commit("g", "T", 0, 1)
    world.saver.soon(world.offsets)
    world.worker.drain()
    world.offsets.commit("g", "T", 0, 2)
    world.saver.soon(world.offsets)
    world.saver.save(world.offsets, told.append)
    assert told == []
    world.worker.drain()
    assert told == [None]
    assert world.on_disk() == 2
