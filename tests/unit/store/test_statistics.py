"""The counters of a store: what was done, how fast, and how long it took."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import pytest

from gantrymq.store import statistics
from gantrymq.store.statistics import DayTotals, PutTimes, StoreStatistics
from gantrymq.testing.clock import VirtualClock
from support.golden import WIRE

if TYPE_CHECKING:
    from collections.abc import Iterator

KEYS = {
    "bootTimestamp", "runtime", "putMessageEntireTimeMax", "putMessageTimesTotal",
    "putMessageFailedTimes", "putMessageSizeTotal", "putMessageDistributeTime",
    "putMessageAverageSize", "dispatchMaxBuffer", "getMessageEntireTimeMax", "putTps",
    "getFoundTps", "getMissTps", "getTotalTps", "getTransferedTps", "putLatency99",
    "putLatency999", "msgPutTotalYesterdayMorning", "msgPutTotalTodayMorning",
    "msgPutTotalTodayNow", "msgGetTotalYesterdayMorning", "msgGetTotalTodayMorning",
    "msgGetTotalTodayNow",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def seconds(stats: StoreStatistics, clock: VirtualClock, count: int, puts: int = 0) -> None:
    """Let seconds pass, with so many puts in each."""
    for _ in range(count):
        clock.jump(1)
        if puts:
            stats.put("t", puts, 100 * puts)
        stats.sample()


def test_what_the_lane_counts_is_taken_at_once() -> None:
    stats = StoreStatistics(VirtualClock())
    stats.put("a", 1, 10)
    stats.put_topics([(b"a", 1000, 250_000), (b"b", 3, 600), (b"\xff", 1, 1)])
    assert (stats.puts, stats.put_bytes) == (1005, 250_611)
    assert {topic: tuple(counts) for topic, counts in stats.topics.items()} == {
        "a": (1001, 250_010),
        "b": (3, 600),
        "\ufffd": (1, 1),
    }


def test_a_known_run_is_counted_exactly() -> None:
    stats = StoreStatistics(VirtualClock())
    stats.put("a", 3, 300)
    stats.put("b", 1, 50)
    stats.put("a", 2, 100)
    stats.put_failed()
    stats.put_failed(4)
    stats.got(10, 7)
    stats.got(0, 3)
    stats.got(5, 1)
    stats.dispatch_buffered(9)
    stats.dispatch_buffered(2)
    found = stats.runtime()
    assert set(found) == KEYS | {"getTransferredTps"}
    assert found["putMessageTimesTotal"] == "6"
    assert found["putMessageFailedTimes"] == "5"
    assert found["putMessageSizeTotal"] == "450"
    assert found["putMessageAverageSize"] == "75.0"
    assert found["getMessageEntireTimeMax"] == "7"
    assert found["dispatchMaxBuffer"] == "9"
    assert (stats.gets_found, stats.gets_missed, stats.messages_transferred) == (2, 1, 15)
    assert {topic: tuple(counts) for topic, counts in stats.topics.items()} == {
        "a": (5, 400),
        "b": (1, 50),
    }
    stats.forget_topic("a")
    stats.forget_topic("x")
    assert list(stats.topics) == ["b"]
    assert stats.puts == 6


def test_nothing_done_is_nothing_said() -> None:
    clock = VirtualClock()
    found = StoreStatistics(clock).runtime()
    assert found["bootTimestamp"] == str(clock.now_ms())
    assert found["runtime"] == "[ 0 days, 0 hours, 0 minutes, 0 seconds ]"
    assert found["putMessageTimesTotal"] == "0"
    assert found["putMessageAverageSize"] == "0.0"
    assert found["putMessageDistributeTime"] == "null"
    assert found["putTps"] == "  "
    assert found["getTotalTps"] == "0.0 0.0 0.0"
    assert found["putLatency99"] == "0.00"


def test_running_time() -> None:
    clock = VirtualClock()
    stats = StoreStatistics(clock)
    clock.jump(2 * 86_400 + 3 * 3_600 + 4 * 60 + 5.6)
    assert stats.runtime()["runtime"] == "[ 2 days, 3 hours, 4 minutes, 5 seconds ]"


def test_rates_need_their_window() -> None:
    clock = VirtualClock()
    stats = StoreStatistics(clock)
    stats.sample()
    seconds(stats, clock, 9, puts=5)
    assert stats.runtime()["putTps"] == "  "
    seconds(stats, clock, 1, puts=5)
    assert stats.runtime()["putTps"] == "5.0  "
    seconds(stats, clock, 50, puts=11)
    assert stats.runtime()["putTps"] == "11.0 10.0 "
    seconds(stats, clock, 600)
    assert stats.runtime()["putTps"] == "0.0 0.0 0.0"
    assert len(stats._samples) == 601


def test_rates_of_gets() -> None:
    clock = VirtualClock()
    stats = StoreStatistics(clock)
    stats.sample()
    for _ in range(10):
        clock.jump(2)
        stats.got(3, 0)
        stats.got(0, 0)
        stats.sample()
    found = stats.runtime()
    assert found["getFoundTps"] == "0.5  "
    assert found["getMissTps"] == "0.5  "
    assert found["getTotalTps"] == "1.0 0.0 0.0"
    assert found["getTransferedTps"] == "1.5  "


def test_a_clock_that_stands_still_gives_no_rate() -> None:
    stats = StoreStatistics(VirtualClock())
    for _ in range(20):
        stats.put("t", 1, 1)
        stats.sample()
    assert stats.runtime()["putTps"] == "0.0  "


class TestPutTimes:
    @pytest.mark.parametrize(
        ("elapsed_ms", "label"),
        [
            (-1, "[<=0ms]"), (0, "[<=0ms]"), (1, "[0~10ms]"), (9, "[0~10ms]"), (10, "[10~50ms]"),
            (50, "[50~100ms]"), (100, "[100~200ms]"), (499, "[200~500ms]"), (500, "[500ms~1s]"),
            (1000, "[1~2s]"), (2999, "[2~3s]"), (3000, "[3~4s]"), (4999, "[4~5s]"),
            (9999, "[5~10s]"), (10_000, "[10s~]"), (99_999_999, "[10s~]"),
        ],
    )  # fmt: skip
    def test_each_has_its_place(self, elapsed_ms: int, label: str) -> None:
        times = PutTimes()
        times.add(elapsed_ms)
        times.roll()
        filled = [pair for pair in times.distribution().split() if not pair.endswith(":0")]
        assert filled == [f"{label}:1"]
        assert times.distribution().count(":") == 13

    def test_a_minute_is_shown_when_it_is_over(self) -> None:
        clock = VirtualClock()
        stats = StoreStatistics(clock)
        stats.put_times.add(5, 3)
        seconds(stats, clock, 60)
        assert stats.runtime()["putMessageDistributeTime"] == "null"
        seconds(stats, clock, 1)
        assert "[0~10ms]:3 " in stats.runtime()["putMessageDistributeTime"]
        seconds(stats, clock, 61)
        assert "[0~10ms]:0 " in stats.runtime()["putMessageDistributeTime"]
        assert stats.runtime()["putMessageEntireTimeMax"] == "5"

    def test_percentiles_are_interpolated_within_a_bucket(self) -> None:
        times = PutTimes()
        times.add(1, 90)
        times.add(15, 9)
        times.add(800, 1)
        times.roll()
        assert times.percentile_ms(0.5) == pytest.approx(50 / 90)
        assert times.percentile_ms(0.99) == 15.0
        assert times.percentile_ms(1.0) == 800.0

    def test_a_percentile_beyond_the_table_is_its_end(self) -> None:
        times = PutTimes()
        times.add(60_000, 10)
        times.roll()
        assert times.percentile_ms(0.99) == 10_000.0

    def test_the_buckets_are_apaches(self) -> None:
        ends = statistics.BUCKET_ENDS_MS
        assert len(ends) == 75
        assert (ends[19], ends[34], ends[44], ends[54], ends[60], ends[65], ends[74]) == (
            20, 50, 100, 200, 500, 1000, 10_000,
        )  # fmt: skip


def test_totals_at_midnight() -> None:
    clock = VirtualClock(86_400_000 - 1_000)
    stats = StoreStatistics(clock)
    stats.put("t", 5, 5)
    stats.got(2, 0)
    stats.sample()
    assert stats.day_totals == DayTotals()
    seconds(stats, clock, 1)
    assert stats.day_totals == DayTotals(0, 5, 0, 2)
    stats.put("t", 5, 5)
    clock.jump(86_400)
    stats.sample()
    assert stats.day_totals == DayTotals(5, 10, 2, 2)


def test_the_number_of_topics_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "TOPICS_MAX", 2)
    stats = StoreStatistics(VirtualClock())
    for topic in ("a", "b", "c", "a"):
        stats.put(topic, 1, 1)
    assert list(stats.topics) == ["a", "b"]
    assert stats.puts == 4


def test_the_keys_are_those_that_an_admin_tool_prints() -> None:
    text = (WIRE / "mqadmin-4.9.7" / "brokerStatus.stdout.txt").read_text(encoding="utf-8")
    printed = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    printed = {key.strip(): value.strip() for key, value in printed.items()}
    assert set(printed) >= KEYS
    clock = VirtualClock()
    stats = StoreStatistics(clock)
    stats.put_times.add(1)
    seconds(stats, clock, 61, puts=1)
    ours = stats.runtime()
    for key in ("runtime", "putMessageDistributeTime"):
        assert re.sub(r"\d+", "N", ours[key]).strip() == re.sub(r"\d+", "N", printed[key])
