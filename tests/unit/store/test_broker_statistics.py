"""Counts by topic, group and queue, against a model that samples everything each time."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.model.names import SCHEDULE_TOPIC
from gantrymq.store import broker_statistics
from gantrymq.store.broker_statistics import WINDOWS, BrokerStatistics, Stat
from gantrymq.testing.clock import VirtualClock
from gantrymq.wire.bodies.stats import BrokerStats, StatsItem


def started(*, with_queues: bool = True) -> tuple[BrokerStatistics, VirtualClock]:
    """Return statistics and their clock."""
    clock = VirtualClock()
    return BrokerStatistics(clock, "C", with_queues=with_queues), clock


def found(stats: BrokerStatistics, stat: Stat, key: str) -> BrokerStats:
    """Return a count that must be there."""
    data = stats.view(stat.name, key)
    assert data is not None
    return data


def test_a_put_is_counted_everywhere() -> None:
    stats, clock = started()
    stats.put("t", 3, 5, 500)
    clock.jump(10)
    stats.sample()
    expected = {
        (Stat.TOPIC_PUT_NUMS, "t"): (5, 0.5, 5.0),
        (Stat.TOPIC_PUT_SIZE, "t"): (500, 50.0, 500.0),
        (Stat.BROKER_PUT_NUMS, "C"): (5, 0.5, 0.0),
    }
    for (stat, key), (total, tps, average) in expected.items():
        minute = found(stats, stat, key).stats_minute
        assert (minute.sum, minute.tps, minute.avgpt) == (total, tps, average)


def test_what_waits_is_counted_by_queue_too() -> None:
    stats, clock = started()
    stats.put(SCHEDULE_TOPIC, 3, 5, 500)
    without, _ = started(with_queues=False)
    without.put(SCHEDULE_TOPIC, 3, 5, 500)
    clock.jump(10)
    stats.sample()
    key = f"{SCHEDULE_TOPIC}@3"
    for stat, wanted in ((Stat.QUEUE_PUT_NUMS, 5), (Stat.QUEUE_PUT_SIZE, 500)):
        assert found(stats, stat, key).stats_minute.sum == wanted
        assert without.view(stat.name, key) is None
    stats.forget_topic(SCHEDULE_TOPIC)
    assert stats.view("QUEUE_PUT_SIZE", key) is None


def test_runs_of_the_lane_are_counted_at_once() -> None:
    stats, clock = started()
    stats.put_topics([(b"t", 6, 1200), (b"u", 1, 100)])
    clock.jump(10)
    stats.sample()
    expected = {
        (Stat.TOPIC_PUT_NUMS, "t"): (6, 0.6, 1.0),
        (Stat.TOPIC_PUT_SIZE, "t"): (1200, 120.0, 200.0),
        (Stat.TOPIC_PUT_NUMS, "u"): (1, 0.1, 1.0),
        (Stat.BROKER_PUT_NUMS, "C"): (7, 0.7, 0.0),
    }
    for (stat, key), (total, tps, average) in expected.items():
        minute = found(stats, stat, key).stats_minute
        assert (minute.sum, minute.tps, minute.avgpt) == (total, tps, average)


def test_a_get_is_counted_everywhere() -> None:
    stats, clock = started()
    stats.got("g", "t", 3, 32, 640)
    stats.got("g", "t", 3, 8, 160)
    stats.get_took("g", "t", 3, 20)
    stats.sent_back("g", "t")
    clock.jump(10)
    stats.sample()
    expected = {
        (Stat.GROUP_GET_NUMS, "t@g"): (40, 20.0),
        (Stat.GROUP_GET_SIZE, "t@g"): (800, 400.0),
        (Stat.QUEUE_GET_NUMS, "t@3@g"): (40, 20.0),
        (Stat.QUEUE_GET_SIZE, "t@3@g"): (800, 400.0),
        (Stat.BROKER_GET_NUMS, "C"): (40, 0.0),
        (Stat.GROUP_GET_LATENCY, "3@t@g"): (20, 20.0),
        (Stat.SNDBCK_PUT_NUMS, "t@g"): (1, 1.0),
    }
    for (stat, key), (total, average) in expected.items():
        minute = found(stats, stat, key).stats_minute
        assert (minute.sum, minute.avgpt) == (total, average)
    assert stats.group_get_tps("g", "t") == 4.0
    assert stats.group_get_tps("g", "x") == 0.0


def test_without_queues_there_are_fewer_keys() -> None:
    stats, _ = started(with_queues=False)
    stats.put("t", 0, 1, 1)
    stats.got("g", "t", 0, 1, 1)
    stats.get_took("g", "t", 0, 5)
    assert stats.view("QUEUE_GET_NUMS", "t@0@g") is None
    assert stats.view("GROUP_GET_LATENCY", "t@g") is not None


@pytest.mark.parametrize(("name", "key"), [("TOPIC_PUT_NUMS", "x"), ("NO_SUCH", "t"), ("", "")])
def test_what_was_never_counted(name: str, key: str) -> None:
    stats, _ = started()
    stats.put("t", 0, 1, 1)
    assert stats.view(name, key) is None


def test_before_the_first_sample_there_is_nothing() -> None:
    stats, _ = started()
    stats.put("t", 0, 1, 1)
    assert found(stats, Stat.TOPIC_PUT_NUMS, "t") == BrokerStats()


def test_minutes_hours_and_days() -> None:
    stats, clock = started()
    stats.sample()
    for _ in range(6 * 60 * 24):
        stats.put("t", 0, 1, 10)
        clock.jump(10)
        stats.sample()
    data = found(stats, Stat.TOPIC_PUT_NUMS, "t")
    assert [item.sum for item in (data.stats_minute, data.stats_hour, data.stats_day)] == [
        6, 360, 8640,
    ]  # fmt: skip
    assert {item.tps for item in (data.stats_minute, data.stats_hour, data.stats_day)} == {0.1}
    for _ in range(6):
        clock.jump(10)
        stats.sample()
    data = found(stats, Stat.TOPIC_PUT_NUMS, "t")
    assert data.stats_minute.sum == 0
    assert data.stats_hour.sum == 360


def test_a_late_sample_counts_once() -> None:
    stats, clock = started()
    stats.sample()
    stats.put("t", 0, 7, 1)
    clock.jump(35)
    stats.sample()
    stats.sample()
    clock.jump(5)
    stats.sample()
    minute = found(stats, Stat.TOPIC_PUT_NUMS, "t").stats_minute
    assert (minute.sum, minute.tps) == (7, 7 / 15), "one period before its first sample, and 5 s"


def test_what_is_deleted_is_forgotten() -> None:
    stats, _ = started()
    for topic in ("t", "tt"):
        stats.put(topic, 0, 1, 1)
        for group in ("g", "gg"):
            stats.got(group, topic, 0, 1, 1)
            stats.get_took(group, topic, 0, 1)
            stats.sent_back(group, topic)
    stats.forget_topic("t")
    assert stats.view("TOPIC_PUT_NUMS", "t") is None
    assert stats.view("GROUP_GET_NUMS", "t@g") is None
    assert stats.view("GROUP_GET_LATENCY", "0@t@g") is None
    assert stats.view("TOPIC_PUT_NUMS", "tt") is not None
    stats.forget_group("g")
    assert stats.view("GROUP_GET_NUMS", "tt@g") is None
    assert stats.view("QUEUE_GET_SIZE", "tt@0@g") is None
    assert stats.view("GROUP_GET_NUMS", "tt@gg") is not None
    stats.forget_group("gg")
    stats.forget_topic("tt")
    assert stats._keys == len(stats._tables[Stat.BROKER_PUT_NUMS]) + 1


def test_a_topic_without_queues_is_forgotten_too() -> None:
    stats, _ = started(with_queues=False)
    stats.get_took("g", "t", 0, 5)
    stats.forget_topic("t")
    assert stats.view("GROUP_GET_LATENCY", "t@g") is None


def test_the_number_of_keys_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_statistics, "KEYS_MAX", 3)
    stats, _ = started(with_queues=False)
    stats.put("a", 0, 1, 1)
    stats.put("b", 0, 1, 1)
    assert stats.keys_refused == 2
    stats.forget_topic("a")
    stats.put("b", 0, 1, 1)
    assert stats.view("TOPIC_PUT_NUMS", "b") is not None


class _Sample(NamedTuple):
    now_ms: int
    value: int
    times: int


class Model:
    """StatsItem.java: three lists, each added to at each of its samples."""

    def __init__(self) -> None:
        self.value = 0
        self.times = 0
        self._lists: list[list[_Sample]] = [[], [], []]

    def sample(self, window: int, now_ms: int) -> None:
        """Take a sample of one window."""
        period_ms, size = WINDOWS[window]
        samples = self._lists[window]
        if not samples:
            samples.append(_Sample(now_ms - period_ms, 0, 0))
        samples.append(_Sample(now_ms, self.value, self.times))
        if len(samples) > size:
            del samples[0]

    def item(self, window: int) -> StatsItem:
        """Compute what is read."""
        samples = self._lists[window]
        if not samples:
            return StatsItem()
        first, last = samples[0], samples[-1]
        total, times = last.value - first.value, last.times - first.times
        return StatsItem(
            sum=total,
            tps=total * 1000 / (last.now_ms - first.now_ms),
            avgpt=total / times if times else 0.0,
        )


@given(
    st.lists(st.one_of(st.integers(1, 100), st.sampled_from(["10 s", "5 min", "1 h"])), max_size=80)
)
def test_a_count_that_sleeps_reads_like_one_that_is_sampled(steps: list[int | str]) -> None:
    stats, clock = started()
    stats.sample()
    model: Model | None = None
    ticks = 0
    for step in steps:
        if isinstance(step, int):
            model = Model() if model is None else model
            stats.add(Stat.TOPIC_PUT_NUMS, "t", step, 2)
            model.value += step
            model.times += 2
            continue
        for _ in range({"10 s": 1, "5 min": 30, "1 h": 360}[step]):
            clock.jump(10)
            stats.sample()
            ticks += 1
            for window, (period_ms, _) in enumerate(WINDOWS):
                if model is not None and ticks * 10_000 % period_ms == 0:
                    model.sample(window, clock.now_ms())
    data = stats.view("TOPIC_PUT_NUMS", "t")
    if model is None:
        assert data is None
    else:
        minute, hour, day = (model.item(window) for window in range(3))
        assert data == BrokerStats(stats_minute=minute, stats_hour=hour, stats_day=day)
