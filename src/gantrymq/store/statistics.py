"""What a store has done: counts since the start, rates, and how long puts took.

Agrees with StoreStatsService.java and BrokerStats.java, from whose keys the admin tools read. Three
things are said as they are and not as there: no message put is 0 (there 1), an interval of no
length has the rate 0.0 (there NaN), and a percentile beyond the last bucket is 10 s (there 2**63).

Driven by `sample`, once a second; it has no thread and asks no clock between two calls. Owned by
one task.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from datetime import UTC, datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.store.durations import Durations

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gantrymq.clock import Clock
    from gantrymq.store.status import PutStatus

SAMPLES_MAX: Final = 600
WINDOWS_S: Final = (10, 60, 600)
ROLL_INTERVAL_MS: Final = 60_000
QUICK_S: Final = 0.001
TOPICS_MAX: Final = 65_536
"""Topics that are counted one by one; what comes beyond is in the totals alone."""
BUSY_CAUSES: Final = (
    "TIMEOUT_CLEAN_QUEUE", "PCBUSY_CLEAN_QUEUE", "PC_SYNCHRONIZED", "OVERLOAD", "REJECTREQUEST",
    "COLD_QUESTIONS", "COLD_READS", "QUOTA_USER", "QUOTA_TOPIC", "QUOTA_GROUP",
    "CONNECTIONS_USER",
)  # fmt: skip
"""Why a request is refused as busy: the words that a remark begins with, and reads that wait."""

_TIME_LABELS: Final = (
    "[<=0ms]", "[0~10ms]", "[10~50ms]", "[50~100ms]", "[100~200ms]", "[200~500ms]", "[500ms~1s]",
    "[1~2s]", "[2~3s]", "[3~4s]", "[4~5s]", "[5~10s]", "[10s~]",
)  # fmt: skip
_TIME_ENDS: Final = (0, 9, 49, 99, 199, 499, 999, 1999, 2999, 3999, 4999, 9999)
"""The last millisecond of each label but the last."""

_STEPS: Final = ((1, 20), (2, 15), (5, 10), (10, 10), (50, 6), (100, 5), (1000, 9))
BUCKET_ENDS_MS: Final = tuple(accumulate(step for step, times in _STEPS for _ in range(times)))
"""The last millisecond of each latency bucket: 1 to 20 by 1, to 50 by 2, ... to 10 s by 1 s."""


class PutTimes:
    """How long puts took: a coarse table for people, a fine one for percentiles."""

    def __init__(self) -> None:
        self.longest_ms = 0
        self._table = [0] * len(_TIME_LABELS)
        self._buckets = [0] * (len(BUCKET_ENDS_MS) + 1)
        self._last_table: list[int] | None = None
        self._last_buckets: list[int] = []
        self._rolled = [0] * len(self._buckets)
        """What was counted in all minutes that are over."""
        self.quick = 0
        """Puts that took less than `QUICK_S`, nearly all of them; in no table yet."""
        self.total_ms = 0
        """How long all others took together."""

    def add_s(self, elapsed_s: float, times: int = 1) -> None:
        """Count puts that took so many seconds."""
        if elapsed_s < QUICK_S:
            self.quick += times
        else:
            self.add(int(elapsed_s * 1000), times)

    def add(self, elapsed_ms: int, times: int = 1) -> None:
        """Count puts that took so long."""
        self._table[bisect_left(_TIME_ENDS, elapsed_ms)] += times
        self._buckets[bisect_left(BUCKET_ENDS_MS, elapsed_ms)] += times
        self.total_ms += elapsed_ms * times
        self.longest_ms = max(self.longest_ms, elapsed_ms)

    def roll(self) -> None:
        """End a minute: what was counted in it is what is shown from now on."""
        self.add(0, self.quick)
        self.quick = 0
        self._rolled = self._sums()
        self._last_table, self._table = self._table, [0] * len(_TIME_LABELS)
        self._last_buckets, self._buckets = self._buckets, [0] * (len(BUCKET_ENDS_MS) + 1)

    def _sums(self) -> list[int]:
        return [old + new for old, new in zip(self._rolled, self._buckets, strict=True)]

    def since_start(self) -> list[int]:
        """Return how many puts fell into each bucket of `BUCKET_ENDS_MS`, and beyond the last."""
        sums = self._sums()
        sums[0] += self.quick
        return sums

    def distribution(self) -> str:
        """Return the coarse table of the last whole minute; `null` before there is one."""
        if self._last_table is None:
            return "null"
        pairs = zip(_TIME_LABELS, self._last_table, strict=True)
        return "".join(f"{label}:{count} " for label, count in pairs)

    def percentile_ms(self, part: float) -> float:
        """Return what `part` of the last whole minute's puts stayed within, by interpolation."""
        rank = int(sum(self._last_buckets) * part)
        below, begin = 0, 0
        for end, count in zip(BUCKET_ENDS_MS, self._last_buckets, strict=False):
            if rank <= below + count:
                return begin + ((end - begin) * (rank - below) / count if count else 0.0)
            below, begin = below + count, end
        return float(begin)


class _Sample(NamedTuple):
    now_ms: int
    puts: int
    found: int
    missed: int
    transferred: int


class DayTotals(NamedTuple):
    """Messages put and got since the start, as counted at the last two local midnights."""

    puts_yesterday_morning: int = 0
    puts_this_morning: int = 0
    gets_yesterday_morning: int = 0
    gets_this_morning: int = 0


class StoreStatistics:
    """The counters of a store."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.boot_ms = clock.now_ms()
        self.put_times = PutTimes()
        self.puts = 0
        self.put_bytes = 0
        self.puts_failed = 0
        self.gets_found = 0
        self.gets_missed = 0
        self.messages_transferred = 0
        self.longest_get_ms = 0
        self.dispatch_buffer_max = 0
        self.appends = Durations()
        """Appends to the log, one for all messages of a turn."""
        self.gate_waits = Durations()
        """From the append of what an answer is about until the gate let the answer out."""
        self.gate_outcomes: dict[PutStatus, int] = {}
        """Puts that waited at the gate, by how they left it."""
        self.busy: dict[str, int] = dict.fromkeys(BUSY_CAUSES, 0)
        """Requests that were refused by a busy broker, by cause."""
        self.day_totals = DayTotals()
        self._topics: dict[str, list[int]] = {}
        self._samples: deque[_Sample] = deque(maxlen=SAMPLES_MAX + 1)
        self._rolled_ms = self.boot_ms
        self._day = _local_day(self.boot_ms)

    def put(self, topic: str, messages: int, size: int) -> None:
        """Count messages that were stored."""
        self.puts += messages
        self.put_bytes += size
        counts = self._topics.get(topic)
        if counts is None:
            if len(self._topics) >= TOPICS_MAX:
                return
            counts = self._topics[topic] = [0, 0]
        counts[0] += messages
        counts[1] += size

    def put_topics(self, counts: Iterable[tuple[bytes, int, int]]) -> None:
        """Count what `SendLane.take_counts` tells: once for many runs, not for each message."""
        for topic, messages, size in counts:
            self.put(topic.decode(errors="replace"), messages, size)

    def refused(self, cause: str, requests: int = 1) -> None:
        """Count requests that a busy broker refused, for one of `BUSY_CAUSES`."""
        self.busy[cause] += requests

    def put_failed(self, messages: int = 1) -> None:
        """Count messages that were refused."""
        self.puts_failed += messages

    def got(self, messages: int, elapsed_ms: int) -> None:
        """Count an answer to a pull, with messages or without."""
        if messages:
            self.gets_found += 1
            self.messages_transferred += messages
        else:
            self.gets_missed += 1
        self.longest_get_ms = max(self.longest_get_ms, elapsed_ms)

    def get_took(self, elapsed_s: float) -> None:
        """Note how long a get waited for the disk; one from memory takes less than counts here."""
        self.longest_get_ms = max(self.longest_get_ms, int(elapsed_s * 1000))

    def got_many(self, found: int, missed: int, messages: int) -> None:
        """Count answers to pulls that were added up elsewhere."""
        self.gets_found += found
        self.gets_missed += missed
        self.messages_transferred += messages

    def dispatch_buffered(self, count: int) -> None:
        """Note how many messages wait for dispatch."""
        self.dispatch_buffer_max = max(self.dispatch_buffer_max, count)

    @property
    def topics(self) -> Mapping[str, Sequence[int]]:
        """Return messages and bytes put, by topic."""
        return self._topics

    def forget_topic(self, topic: str) -> None:
        """Drop the counts of a topic that was deleted; the totals keep them."""
        self._topics.pop(topic, None)

    def sample(self) -> None:
        """Take the second's sample; call it once a second."""
        now_ms = self._clock.now_ms()
        self._samples.append(
            _Sample(now_ms, self.puts, self.gets_found, self.gets_missed, self.messages_transferred)
        )
        if abs(now_ms - self._rolled_ms) > ROLL_INTERVAL_MS:
            self._rolled_ms = now_ms
            self.put_times.roll()
        day = _local_day(now_ms)
        if day != self._day:
            self._day = day
            before = self.day_totals
            self.day_totals = DayTotals(
                before.puts_this_morning,
                self.puts,
                before.gets_this_morning,
                self.messages_transferred,
            )

    def _rate(self, column: str, seconds: int) -> float | None:
        """Return the rate over the last samples, None while there are too few."""
        if len(self._samples) <= seconds:
            return None
        first, last = self._samples[-seconds - 1], self._samples[-1]
        passed_ms = last.now_ms - first.now_ms
        counted: int = getattr(last, column) - getattr(first, column)
        return counted * 1000 / passed_ms if passed_ms > 0 else 0.0

    def _rates(self, column: str) -> str:
        rates = (self._rate(column, seconds) for seconds in WINDOWS_S)
        return " ".join("" if rate is None else repr(rate) for rate in rates)

    def _total_rates(self) -> str:
        sums = (
            (self._rate("found", seconds) or 0.0) + (self._rate("missed", seconds) or 0.0)
            for seconds in WINDOWS_S
        )
        return " ".join(repr(total) for total in sums)

    def runtime(self) -> dict[str, str]:
        """Return the figures under the names that admin tools know."""
        times, days = self.put_times, self.day_totals
        return {
            "msgPutTotalYesterdayMorning": str(days.puts_yesterday_morning),
            "msgPutTotalTodayMorning": str(days.puts_this_morning),
            "msgPutTotalTodayNow": str(self.puts),
            "msgGetTotalYesterdayMorning": str(days.gets_yesterday_morning),
            "msgGetTotalTodayMorning": str(days.gets_this_morning),
            "msgGetTotalTodayNow": str(self.messages_transferred),
            "bootTimestamp": str(self.boot_ms),
            "runtime": _runtime_text(self._clock.now_ms() - self.boot_ms),
            "putMessageEntireTimeMax": str(times.longest_ms),
            "putMessageTimesTotal": str(self.puts),
            "putMessageFailedTimes": str(self.puts_failed),
            "putMessageSizeTotal": str(self.put_bytes),
            "putMessageDistributeTime": times.distribution(),
            "putMessageAverageSize": repr(self.put_bytes / max(self.puts, 1)),
            "dispatchMaxBuffer": str(self.dispatch_buffer_max),
            "getMessageEntireTimeMax": str(self.longest_get_ms),
            "putTps": self._rates("puts"),
            "getFoundTps": self._rates("found"),
            "getMissTps": self._rates("missed"),
            "getTotalTps": self._total_rates(),
            "getTransferedTps": self._rates("transferred"),
            # 4.9 tools read the one, 5.x tools the other.
            "getTransferredTps": self._rates("transferred"),
            "putLatency99": f"{times.percentile_ms(0.99):.2f}",
            "putLatency999": f"{times.percentile_ms(0.999):.2f}",
        }


def _local_day(now_ms: int) -> int:
    """Return the number of the local day."""
    return datetime.fromtimestamp(now_ms / 1000, UTC).astimezone().toordinal()


def _runtime_text(passed_ms: int) -> str:
    minutes, seconds = divmod(max(passed_ms, 0) // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"[ {days} days, {hours} hours, {minutes} minutes, {seconds} seconds ]"
