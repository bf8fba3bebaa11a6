"""Statistics of a broker: what was put and got, told to the counters that admin tools read.

The lane counts for itself, by topic; its counts are collected once a second, so that an ordinary
send costs nothing here. Pulls are added up in the same way. Sizes are those of records in the log,
as with Apache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.store.broker_statistics import BrokerStatistics
    from gantrymq.store.put import Stored
    from gantrymq.store.statistics import StoreStatistics


TOPICS_MAX: Final = 65_536
"""Topics whose transactions are counted one by one."""

TOPICS_A_SAMPLE: Final = 1000
"""For so many topics in a sample one more sample goes without collecting."""
SAMPLES_OFF_MAX: Final = 9


class _Pulls:
    """Reads of one queue by one group since the last sample."""

    __slots__ = ("hits", "messages", "misses", "size", "took_ms")

    def __init__(self) -> None:
        self.hits = self.misses = self.messages = self.size = 0
        self.took_ms = 0.0
        """Of those that found something."""


class Counting:
    """Tells both statistics what happens."""

    def __init__(
        self,
        broker: BrokerStatistics,
        store: StoreStatistics,
        take_counts: Callable[[], list[tuple[bytes, int, int]]],
    ) -> None:
        self.broker = broker
        self.store = store
        self._take_counts = take_counts
        self.lane_stored: Callable[[list[tuple[bytes, int, int]]], None] = lambda _counts: None
        """Told what the lane has counted: quotas are made of it."""
        self.was_read: Callable[[str, str, int], None] = lambda _group, _topic, _size: None
        """Told how many bytes a group has read of a topic, for the same."""
        self._pulls: dict[tuple[str, str, int], _Pulls] = {}
        self._samples_off = 0
        self.mismatches = 0
        """Times that members of a group were found to subscribe differently."""
        self.old_requests = 0
        """Requests that were refused for their age."""
        self.decided: dict[str, list[int]] = {}
        """By topic: transactions that were committed, and that were rolled back."""
        self.forwarded: Callable[[], int] = lambda: 0
        """Returns how many requests were passed on to another master."""

    def stored(self, stored: Stored) -> None:
        """Count messages that policy has put; the store has counted them for itself."""
        size = stored.end - stored.log_offset
        self.broker.put(stored.topic, stored.queue_id, stored.messages, size)

    def transaction_ended(self, topic: str, committed: bool) -> None:
        """Count a decision about a half message."""
        counts = self.decided.get(topic)
        if counts is None:
            if len(self.decided) >= TOPICS_MAX:
                return
            counts = self.decided[topic] = [0, 0]
        counts[0 if committed else 1] += 1

    def pulled(
        self, group: str, topic: str, queue_id: int, messages: int, size: int, took_ms: float = 0.0
    ) -> None:
        """Count one read; told to the statistics with the next sample."""
        key = group, topic, queue_id
        count = self._pulls.get(key)
        if count is None:
            count = self._pulls[key] = _Pulls()
        if messages:
            count.hits += 1
            count.messages += messages
            count.size += size
            count.took_ms += took_ms
        else:
            count.misses += 1
        self.was_read(group, topic, size)

    def collect_sends(self) -> int:
        """Take in what the lane counted; return how many topics that were."""
        counts = self._take_counts()
        self.lane_stored(counts)
        self.broker.put_topics(counts)
        self.store.put_topics(counts)
        return len(counts)

    def collect(self) -> int:
        """Take in what the lane counted and what was pulled; return how many counts that were."""
        topics = self.collect_sends()
        pulls, self._pulls = self._pulls, {}
        for (group, topic, queue_id), each in pulls.items():
            if each.messages:
                self.broker.got(group, topic, queue_id, each.messages, each.size)
                self.broker.get_took(group, topic, queue_id, round(each.took_ms), each.hits)
            self.store.got_many(each.hits, each.misses, each.messages)
        return topics + len(pulls)

    def sample(self) -> None:
        """Collect the counts, and move the windows on.

        Counts of many topics are collected now and then: who asks for them collects first.
        """
        self._samples_off -= 1
        if self._samples_off < 0:
            self._samples_off = min(self.collect() // TOPICS_A_SAMPLE, SAMPLES_OFF_MAX)
        self.broker.sample()
        self.store.sample()
