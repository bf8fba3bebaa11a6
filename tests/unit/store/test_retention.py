"""Which files go, when, and why."""

from __future__ import annotations

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.store.disk import DiskLevel
from gantrymq.store.retention import (
    HOUR_MS,
    MANUAL_RUNS,
    DeletionOrder,
    Deletions,
    LogFileAge,
    Occasion,
    TopicRetention,
    decide,
    local_hour,
)
from gantrymq.store.settings import DiskSettings, RetentionSettings

NOW = 1_700_000_000_000
SIZE = 1000
DAY = 24
RETENTION = RetentionSettings()
DISK = DiskSettings()


def aged(*hours: float) -> list[LogFileAge]:
    """Return files, oldest first, that were last written so many hours ago."""
    return [
        LogFileAge(number * SIZE, NOW - round(age * HOUR_MS), SIZE)
        for number, age in enumerate(hours)
    ]


def go(
    files: list[LogFileAge],
    hour: int = 4,
    level: DiskLevel = DiskLevel.FREE,
    retention: RetentionSettings = RETENTION,
    disk: DiskSettings = DISK,
    *,
    ordered: bool = False,
) -> Deletions:
    """Decide at NOW."""
    return decide(files, NOW, hour, level, retention, disk, ordered=ordered)


def test_expired_files_go_at_the_hour() -> None:
    files = aged(100, 80, 72, 71, 1)
    found = go(files)
    assert found == Deletions(tuple(files[:3]), Occasion.HOUR)
    assert (found.size, found.min_offset) == (3 * SIZE, 3 * SIZE)


@pytest.mark.parametrize("hour", [3, 5, 16])
def test_nothing_goes_at_another_hour(hour: int) -> None:
    found = go(aged(100, 1), hour)
    assert found == Deletions((), None)
    assert (found.size, found.min_offset) == (0, None)


def test_there_may_be_several_hours() -> None:
    retention = RetentionSettings(delete_hours=(4, 16))
    assert [len(go(aged(100, 1), hour, retention=retention).files) for hour in (4, 10, 16)] == [
        1,
        0,
        1,
    ]


def test_the_last_file_never_goes() -> None:
    assert go(aged(100)).files == ()
    assert go([]).files == ()
    assert len(go(aged(100, 100), level=DiskLevel.FULL).files) == 1


def test_some_at_a_time() -> None:
    assert len(go(aged(*[100] * 30)).files) == 10
    assert len(go(aged(*[100] * 30), retention=RetentionSettings(files_per_run_max=3)).files) == 3


def test_it_stops_at_the_first_that_is_too_young() -> None:
    files = aged(100, 1, 100, 100, 1)
    assert go(files).files == (files[0],)


def test_a_tight_disk_is_an_occasion_at_any_hour() -> None:
    files = aged(100, 71, 1)
    found = go(files, hour=12, level=DiskLevel.CLEAN)
    assert found == Deletions((files[0],), Occasion.SPACE)


@pytest.mark.parametrize("level", [DiskLevel.FORCE, DiskLevel.FULL])
def test_a_tighter_one_takes_young_files_too(level: DiskLevel) -> None:
    files = aged(3, 2, 1)
    assert go(files, hour=12, level=level) == Deletions(tuple(files[:2]), Occasion.FORCED)


def test_young_files_stay_if_so_set() -> None:
    found = go(aged(100, 2, 1), 12, DiskLevel.FULL, disk=DiskSettings(may_force=False))
    assert (len(found.files), found.occasion) == (1, Occasion.SPACE)


def test_an_order_is_an_occasion() -> None:
    found = go(aged(100, 2, 1), hour=12, ordered=True)
    assert (len(found.files), found.occasion) == (1, Occasion.ORDER)


def test_nothing_reserved_means_every_whole_file() -> None:
    assert len(go(aged(0, 0, 0), retention=RetentionSettings(reserved_hours=0)).files) == 2


def test_an_order_holds_for_some_looks() -> None:
    order = DeletionOrder()
    assert not order.take()
    order.give()
    assert [order.take() for _ in range(MANUAL_RUNS + 1)] == [True] * MANUAL_RUNS + [False]


def test_hours_are_local(monkeypatch: pytest.MonkeyPatch) -> None:
    import time  # noqa: PLC0415 - only a test may set the zone

    monkeypatch.setenv("TZ", "Etc/GMT-5")
    time.tzset()
    try:
        assert local_hour(0) == 5
        assert local_hour(20 * HOUR_MS) == 1
    finally:
        monkeypatch.undo()
        time.tzset()


def test_topics_may_be_kept_shorter() -> None:
    retention = TopicRetention({"metrics": 2})
    assert retention.horizons_ms(NOW) == {"metrics": NOW - 2 * HOUR_MS}


def test_a_topic_is_kept_for_something() -> None:
    with pytest.raises(InvalidValue, match="metrics is kept for 0 hours"):
        TopicRetention({"metrics": 0})
