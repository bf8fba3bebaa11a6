"""Counts by topic, group and queue over the last minute, hour and day, as admin tools read them.

Agrees with BrokerStatsManager.java and StatsItem.java: every count is sampled each 10 s (7 samples
are a minute), 10 min (7 are an hour) and 1 h (25 are a day); a window's sum is its last sample less
its first. RocketMQ walks over all counts at every sample. A broker with a hundred thousand of them
would stall for that, so here `sample` only moves the number of the current sample on, and a count
writes down what it was at the samples that it slept through when it is next touched.

Driven by `sample`, at least every 10 s. Owned by one task.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import TYPE_CHECKING, Final

from gantrymq.model.names import SCHEDULE_TOPIC
from gantrymq.wire.bodies.stats import BrokerStats, StatsItem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gantrymq.clock import Clock

KEYS_MAX: Final = 65_536
"""Counts that are kept at the same time: a thousand topics of eight queues with three groups."""

WINDOWS: Final = ((10_000, 7), (600_000, 7), (3_600_000, 25))
"""Milliseconds between two samples, and samples kept: a minute, an hour, a day."""

Numbers = tuple[int, ...]
"""The number of the last sample taken, for each window."""


class Stat(Enum):
    """What is counted, under RocketMQ's names."""

    QUEUE_PUT_NUMS = "QUEUE_PUT_NUMS"
    QUEUE_PUT_SIZE = "QUEUE_PUT_SIZE"
    QUEUE_GET_NUMS = "QUEUE_GET_NUMS"
    QUEUE_GET_SIZE = "QUEUE_GET_SIZE"
    TOPIC_PUT_NUMS = "TOPIC_PUT_NUMS"
    TOPIC_PUT_SIZE = "TOPIC_PUT_SIZE"
    GROUP_GET_NUMS = "GROUP_GET_NUMS"
    GROUP_GET_SIZE = "GROUP_GET_SIZE"
    GROUP_GET_LATENCY = "GROUP_GET_LATENCY"
    SNDBCK_PUT_NUMS = "SNDBCK_PUT_NUMS"
    BROKER_PUT_NUMS = "BROKER_PUT_NUMS"
    BROKER_GET_NUMS = "BROKER_GET_NUMS"
    GROUP_GET_FROM_DISK_NUMS = "GROUP_GET_FROM_DISK_NUMS"
    GROUP_GET_FROM_DISK_SIZE = "GROUP_GET_FROM_DISK_SIZE"
    BROKER_GET_FROM_DISK_NUMS = "BROKER_GET_FROM_DISK_NUMS"
    BROKER_GET_FROM_DISK_SIZE = "BROKER_GET_FROM_DISK_SIZE"


class _Count:
    """A sum and how often it was added to, with what they were at the last samples."""

    __slots__ = ("_born", "_histories", "_seen", "times", "value")

    def __init__(self, numbers: Numbers) -> None:
        self.value = 0
        self.times = 0
        self._born = self._seen = numbers
        # An entry (n, value, times) holds from sample n until the next entry's.
        self._histories: tuple[list[tuple[int, int, int]], ...] = tuple([] for _ in numbers)

    def catch_up(self, numbers: Numbers) -> None:
        """Write down what the samples since the last touch have seen."""
        if self._seen is numbers:
            return
        for window, history in enumerate(self._histories):
            if self._seen[window] < numbers[window]:
                history.append((self._seen[window] + 1, self.value, self.times))
                oldest = numbers[window] - WINDOWS[window][1] + 1
                while len(history) > 1 and history[1][0] <= oldest:
                    del history[0]
        self._seen = numbers

    def at(self, window: int, number: int) -> tuple[int, int]:
        """Return sum and times at a sample that is still in its window."""
        for first, value, times in reversed(self._histories[window]):
            if first <= number:
                return value, times
        return 0, 0

    def born(self, window: int) -> int:
        """Return the number of the last sample before there was this count."""
        return self._born[window]


class BrokerStatistics:
    """The counts of a broker; `with_queues` keeps those of each queue too (enableDetailStat)."""

    def __init__(self, clock: Clock, cluster: str, *, with_queues: bool = True) -> None:
        self._clock = clock
        self._cluster = cluster
        self._with_queues = with_queues
        self._tables: dict[Stat, dict[str, _Count]] = {stat: {} for stat in Stat}
        self._keys = 0
        self._numbers: Numbers = (0,) * len(WINDOWS)
        self._moments: list[deque[int]] = [deque(maxlen=size) for _, size in WINDOWS]
        self._due: list[float] = [clock.monotonic()] * len(WINDOWS)
        self.keys_refused = 0
        """Adds that were dropped since there were too many keys."""

    def sample(self) -> None:
        """Take the samples that are due."""
        now = self._clock.monotonic()
        numbers = list(self._numbers)
        for window, (period_ms, _) in enumerate(WINDOWS):
            if now >= self._due[window]:
                numbers[window] += 1
                self._moments[window].append(self._clock.now_ms())
                missed = (now - self._due[window]) // (period_ms / 1000)
                self._due[window] += (missed + 1) * period_ms / 1000
        if tuple(numbers) != self._numbers:
            self._numbers = tuple(numbers)

    def add(self, stat: Stat, key: str, value: int, times: int = 1) -> None:
        """Add to a count."""
        table = self._tables[stat]
        count = table.get(key)
        if count is None:
            if self._keys >= KEYS_MAX:
                self.keys_refused += 1
                return
            self._keys += 1
            count = table[key] = _Count(self._numbers)
        count.catch_up(self._numbers)
        count.value += value
        count.times += times

    def put(self, topic: str, queue_id: int, messages: int, size: int) -> None:
        """Count messages of one send that were stored; by queue those that wait, as Apache does."""
        self.add(Stat.TOPIC_PUT_NUMS, topic, messages)
        self.add(Stat.TOPIC_PUT_SIZE, topic, size)
        self.add(Stat.BROKER_PUT_NUMS, self._cluster, messages, 0)
        if self._with_queues and topic == SCHEDULE_TOPIC:
            self.add(Stat.QUEUE_PUT_NUMS, f"{topic}@{queue_id}", messages)
            self.add(Stat.QUEUE_PUT_SIZE, f"{topic}@{queue_id}", size)

    def put_topics(self, counts: Iterable[tuple[bytes, int, int]]) -> None:
        """Count what `SendLane.take_counts` tells: once for many runs, not for each message."""
        for raw, messages, size in counts:
            topic = raw.decode(errors="replace")
            self.add(Stat.TOPIC_PUT_NUMS, topic, messages, messages)
            self.add(Stat.TOPIC_PUT_SIZE, topic, size, messages)
            self.add(Stat.BROKER_PUT_NUMS, self._cluster, messages, 0)

    def got(self, group: str, topic: str, queue_id: int, messages: int, size: int) -> None:
        """Count messages that a group took from a queue."""
        self.add(Stat.GROUP_GET_NUMS, f"{topic}@{group}", messages)
        self.add(Stat.GROUP_GET_SIZE, f"{topic}@{group}", size)
        self.add(Stat.BROKER_GET_NUMS, self._cluster, messages, 0)
        if self._with_queues:
            self.add(Stat.QUEUE_GET_NUMS, f"{topic}@{queue_id}@{group}", messages)
            self.add(Stat.QUEUE_GET_SIZE, f"{topic}@{queue_id}@{group}", size)

    def get_took(
        self, group: str, topic: str, queue_id: int, elapsed_ms: int, pulls: int = 1
    ) -> None:
        """Count how long answers to pulls took, all of them together."""
        key = f"{queue_id}@{topic}@{group}" if self._with_queues else f"{topic}@{group}"
        self.add(Stat.GROUP_GET_LATENCY, key, elapsed_ms, pulls)

    def sent_back(self, group: str, topic: str) -> None:
        """Count a message that a consumer gave back for a retry."""
        self.add(Stat.SNDBCK_PUT_NUMS, f"{topic}@{group}", 1)

    def view(self, name: str, key: str) -> BrokerStats | None:
        """Return one count as VIEW_BROKER_STATS_DATA answers it; None if there is none."""
        count = self._tables[Stat[name]].get(key) if name in Stat.__members__ else None
        if count is None:
            return None
        count.catch_up(self._numbers)
        minute, hour, day = (self._window(count, window) for window in range(len(WINDOWS)))
        return BrokerStats(stats_minute=minute, stats_hour=hour, stats_day=day)

    def keys(self, stat: Stat) -> list[str]:
        """Return the keys of all sums of one kind."""
        return list(self._tables[stat])

    def total(self, stat: Stat, key: str) -> int | None:
        """Return a sum since the start; None if there is none."""
        count = self._tables[stat].get(key)
        return None if count is None else count.value

    def group_get_tps(self, group: str, topic: str) -> float:
        """Return the messages a second that a group takes from a topic, over the last minute."""
        found = self.view(Stat.GROUP_GET_NUMS.name, f"{topic}@{group}")
        return 0.0 if found is None else found.stats_minute.tps

    def _window(self, count: _Count, window: int) -> StatsItem:
        period_ms, size = WINDOWS[window]
        last = self._numbers[window]
        if last == count.born(window):
            return StatsItem()
        first = max(last - size + 1, count.born(window))
        (begin, begin_times), (end, end_times) = count.at(window, first), count.at(window, last)
        if first == count.born(window):
            # A new count is taken to have been 0 one period before its first sample.
            begin = begin_times = 0
            begin_ms = self._moment(window, first + 1) - period_ms
        else:
            begin_ms = self._moment(window, first)
        passed_ms = self._moment(window, last) - begin_ms
        times = end_times - begin_times
        return StatsItem(
            sum=end - begin,
            tps=(end - begin) * 1000 / passed_ms if passed_ms > 0 else 0.0,
            avgpt=(end - begin) / times if times > 0 else 0.0,
        )

    def _moment(self, window: int, number: int) -> int:
        """Return when a sample was taken."""
        return self._moments[window][number - self._numbers[window] - 1]

    def forget_topic(self, topic: str) -> None:
        """Drop all counts of a topic that was deleted."""
        for stat in (Stat.TOPIC_PUT_NUMS, Stat.TOPIC_PUT_SIZE):
            self._drop(stat, lambda key: key == topic)
        for stat in (
            Stat.QUEUE_PUT_NUMS,
            Stat.QUEUE_PUT_SIZE,
            Stat.QUEUE_GET_NUMS,
            Stat.QUEUE_GET_SIZE,
            Stat.GROUP_GET_NUMS,
            Stat.GROUP_GET_SIZE,
            Stat.SNDBCK_PUT_NUMS,
        ):
            self._drop(stat, lambda key: key.startswith(f"{topic}@"))
        self._drop(
            Stat.GROUP_GET_LATENCY,
            lambda key: (
                f"@{topic}@" in key or (not self._with_queues and key.startswith(f"{topic}@"))
            ),
        )

    def forget_group(self, group: str) -> None:
        """Drop all counts of a group that was deleted."""
        for stat in (
            Stat.QUEUE_GET_NUMS,
            Stat.QUEUE_GET_SIZE,
            Stat.GROUP_GET_NUMS,
            Stat.GROUP_GET_SIZE,
            Stat.SNDBCK_PUT_NUMS,
        ):
            self._drop(stat, lambda key: key.endswith(f"@{group}"))
        self._drop(Stat.GROUP_GET_LATENCY, lambda key: key.endswith(f"@{group}"))

    def _drop(self, stat: Stat, is_gone: Callable[[str], bool]) -> None:
        table = self._tables[stat]
        for key in [key for key in table if is_gone(key)]:
            del table[key]
            self._keys -= 1
