"""How full a disk is, and what follows from it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gantrymq.store.disk import DiskGuard, DiskLevel, DiskUse, full_logs, level, measure
from gantrymq.store.files import DiskUsage, OsFiles
from gantrymq.store.settings import DiskSettings
from gantrymq.testing.disk import SimulatedFiles

A, B = Path("/a"), Path("/b")
SETTINGS = DiskSettings()


def test_a_new_file_never_has_a_length_between_nothing_and_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some file systems reserve in steps; a power cut between two leaves what is there by then."""
    path, seen = tmp_path / "file", list[int]()

    def reserve(handle: int, position: int, count: int) -> None:
        seen.append(path.stat().st_size)
        os.truncate(handle, max(position + count, seen[-1]))

    monkeypatch.setattr(os, "posix_fallocate", reserve)
    OsFiles().create(path, 65536).close()
    assert seen == [65536]


def use(log: float, queues: float = 0.0) -> DiskUse:
    """Return the use of one log directory and the queues."""
    return DiskUse({A: log}, queues)


@pytest.mark.parametrize(
    ("used", "available", "ratio"),
    [(0, 100, 0.0), (1, 999, 0.01), (750, 250, 0.75), (7501, 2499, 0.76), (5, 0, 1.0), (0, 0, 0.0)],
)
def test_the_ratio_is_rounded_up_like_df(used: int, available: int, ratio: float) -> None:
    assert DiskUsage(used, available).ratio == ratio


@pytest.mark.parametrize(
    ("log", "queues", "expected"),
    [
        (0.0, 0.0, DiskLevel.FREE),
        (0.75, 0.0, DiskLevel.FREE),
        (0.76, 0.0, DiskLevel.CLEAN),
        (0.0, 0.76, DiskLevel.CLEAN),
        (0.85, 0.85, DiskLevel.CLEAN),
        (0.86, 0.0, DiskLevel.FORCE),
        (0.0, 0.86, DiskLevel.FORCE),
        (0.90, 0.0, DiskLevel.FORCE),
        (0.91, 0.0, DiskLevel.FULL),
        (0.1, 0.91, DiskLevel.FULL),
        (-1.0, 0.0, DiskLevel.CLEAN),
        (0.0, -1.0, DiskLevel.CLEAN),
        (-1.0, 0.95, DiskLevel.FULL),
    ],
)
def test_levels(log: float, queues: float, expected: DiskLevel) -> None:
    assert level(use(log, queues), SETTINGS) is expected


def test_levels_are_settings() -> None:
    settings = DiskSettings(clean_percent=10, force_percent=20, full_percent=30)
    assert [level(use(ratio), settings) for ratio in (0.1, 0.2, 0.3, 0.31)] == [
        DiskLevel.FREE,
        DiskLevel.CLEAN,
        DiskLevel.FORCE,
        DiskLevel.FULL,
    ]


def test_of_several_log_directories_one_with_room_is_enough() -> None:
    both = DiskUse({A: 0.95, B: 0.5}, 0.0)
    assert level(both, SETTINGS) is DiskLevel.FREE
    assert full_logs(both, SETTINGS) == {A}
    assert full_logs(DiskUse({A: 0.85, B: -1.0}, 0.0), SETTINGS) == frozenset()


def is_full(guard: DiskGuard) -> bool:
    """Ask anew; a type checker would remember the last answer."""
    return guard.is_full


class TestGuard:
    def test_writes_stop_above_the_top_mark(self) -> None:
        guard = DiskGuard()
        assert not guard.checked(use(0.90), SETTINGS)
        assert not is_full(guard)
        assert guard.why() is None
        assert guard.checked(use(0.91), SETTINGS)
        assert is_full(guard)
        assert not guard.checked(use(0.95), SETTINGS), "nothing new"
        assert guard.why() == "the disk is full: 91% were used when writes were stopped"

    def test_the_regular_look_lets_them_go_on_at_the_top_mark(self) -> None:
        guard = DiskGuard()
        guard.checked(use(0.95), SETTINGS)
        assert guard.checked(use(0.90), SETTINGS)
        assert not guard.is_full

    def test_the_cleaner_waits_for_the_mark_below(self) -> None:
        guard = DiskGuard()
        assert guard.cleaned(use(0.95), SETTINGS)
        assert not guard.cleaned(use(0.90), SETTINGS)
        assert not guard.cleaned(use(0.86), SETTINGS)
        assert guard.cleaned(use(0.85), SETTINGS)
        assert not guard.is_full

    def test_the_queues_disk_counts_as_much(self) -> None:
        guard = DiskGuard()
        assert guard.checked(use(0.1, 0.91), SETTINGS)
        assert not guard.checked(use(0.1, 0.95), SETTINGS)
        assert guard.checked(use(0.1, 0.1), SETTINGS)

    def test_a_disk_that_cannot_be_asked_stops_nothing(self) -> None:
        guard = DiskGuard()
        assert not guard.checked(use(-1.0, -1.0), SETTINGS)
        assert not guard.is_full


def test_measuring() -> None:
    files = SimulatedFiles(capacity=1000)
    files.other_bytes = 751
    assert measure(files, [A, B], A) == DiskUse({A: 0.76, B: 0.76}, 0.76)


def test_measuring_the_machine(tmp_path: Path) -> None:
    found = measure(OsFiles(), [tmp_path, tmp_path / "gone"], tmp_path)
    assert 0 <= found.logs[tmp_path] <= 1
    assert found.logs[tmp_path / "gone"] == -1.0
    assert found.queues == found.logs[tmp_path]
    assert found.is_unknown
