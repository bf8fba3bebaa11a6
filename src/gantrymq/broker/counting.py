"""Statistics of a broker: what was put and got, told to the counters that admin tools read.

The lane counts for itself, by topic; its counts are collected once a second, so that an ordinary
send costs nothing here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gantrymq.store.broker_statistics import BrokerStatistics
    from gantrymq.store.get import Found
    from gantrymq.store.put import NewMessage, Stored
    from gantrymq.store.statistics import StoreStatistics


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

    def stored(self, stored: Stored, messages: Sequence[NewMessage]) -> None:
        """Count messages that policy has put."""
        size = sum(len(message.body) for message in messages)
        topic, queue_id = messages[0].topic, messages[0].queue_id
        self.broker.put(topic, queue_id, stored.messages, size)
        self.store.put(topic, stored.messages, size)

    def pulled(self, group: str, topic: str, queue_id: int, found: Found) -> None:
        """Count one read."""
        if found.records:
            self.broker.got(group, topic, queue_id, found.messages, found.record_bytes)
        self.store.got(found.messages, 0)

    def collect(self) -> None:
        """Take over what the lane counted, so that whoever asks is told of all sends so far."""
        counts = self._take_counts()
        self.broker.put_topics(counts)
        self.store.put_topics(counts)

    def sample(self) -> None:
        """Collect what the lane counted, and move the windows on."""
        self.collect()
        self.broker.sample()
        self.store.sample()
