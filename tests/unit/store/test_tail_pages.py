"""Pages in front of the tail are touched before an append needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gantrymq.store import tail_pages
from gantrymq.store.files import OsFiles
from gantrymq.store.mapped_file import PAGE_BYTES, MappedFile
from gantrymq.store.tail_pages import TailPages
from gantrymq.testing.clock import VirtualClock
from gantrymq.testing.workers import StepWorker
from support.store_rig import Rig

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.store.files import Region

FILE_BYTES = 64 * PAGE_BYTES
WINDOW = 8 * PAGE_BYTES


class Watched:
    """A log of two files, and which pages were touched."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tail_pages, "AHEAD_BYTES_MIN", WINDOW)
        monkeypatch.setattr(tail_pages, "AHEAD_BYTES_MAX", 4 * WINDOW)
        monkeypatch.setattr(tail_pages, "kernel", Marker)
        self.clock = VirtualClock()
        self.worker = StepWorker()
        self.pages = TailPages(self.worker, self.clock)
        files = OsFiles()
        self.tail = MappedFile(0, files.create(directory / "0", FILE_BYTES))
        self.following: Region | None = files.create(directory / "1", FILE_BYTES)

    def write(self, position: int) -> None:
        self.tail.advance(position)
        if position >= self.pages.due:
            self.pages.follow(self.tail, lambda: self.following)

    def touched(self) -> list[tuple[int, int]]:
        """Let the worker work; return how many pages it touched of each file, and the last one."""
        self.worker.drain()
        return [_marked(region) for region in (self.tail.region, self.following) if region]


def _marked(region: Region) -> tuple[int, int]:
    marks = bytes(region.buffer[::PAGE_BYTES])
    return marks.count(1), marks.rfind(1)


class Marker:
    """Stands in for the kernel: leaves a mark on every page that it would have touched."""

    @staticmethod
    def touch_pages(target: memoryview, position: int, limit: int, step: int) -> None:
        for page in range(position, limit, step):
            target[page] = 1


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(tmp_path, monkeypatch)


def test_a_first_append_has_a_small_window_touched(watched: Watched) -> None:
    watched.clock.jump(1.0)
    watched.write(PAGE_BYTES)
    assert watched.touched() == [(8, 8), (0, -1)]


def test_a_fast_writer_gets_a_wider_one(watched: Watched) -> None:
    watched.clock.jump(1.0)
    watched.write(PAGE_BYTES)
    watched.worker.drain()
    watched.clock.jump(0.01)
    watched.write(6 * PAGE_BYTES)
    (_, last), _behind = watched.touched()
    assert last == 6 + 4 * 8 - 1


def test_it_goes_on_into_the_next_file(watched: Watched) -> None:
    watched.clock.jump(100.0)
    watched.write(60 * PAGE_BYTES)
    (_, last), (count, last_behind) = watched.touched()
    assert (last, count, last_behind) == (63, 4, 3)


def test_a_file_that_is_not_there_yet_is_asked_for_again(watched: Watched) -> None:
    following, watched.following = watched.following, None
    watched.clock.jump(100.0)
    watched.write(57 * PAGE_BYTES)
    watched.worker.drain()
    watched.following = following
    watched.clock.jump(100.0)
    watched.write(62 * PAGE_BYTES)
    assert watched.touched()[1] == (6, 5)


def test_one_job_at_a_time(watched: Watched) -> None:
    for page in range(1, 40):
        watched.write(page * PAGE_BYTES)
    assert watched.worker.waiting_jobs == 1


def test_touching_leaves_every_byte_as_it_is() -> None:
    rig = Rig({"mappedFileSizeCommitLog": "65536"})
    for number in range(20):
        rig.put(b"%d" % number)
        rig.settle()
    assert rig.bodies() == [b"%d" % number for number in range(20)]
    tail = rig.store.log.files[-1]
    assert not any(tail.region.buffer[tail.wrote :])


def test_a_transient_buffer_needs_none() -> None:
    rig = Rig({"transientStorePoolEnable": "true", "transientStorePoolSize": "1"})
    rig.put(b"x")
    assert rig.store._workers.tail_pages.waiting_jobs == 0  # type: ignore[attr-defined]
