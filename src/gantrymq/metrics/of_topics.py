"""Topics: messages in and out, dead letters, transactions, timers, sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.metrics.bounds import CounterTable
from gantrymq.metrics.catalogue import OTHER
from gantrymq.metrics.of_consumers import is_system_group, yes_no
from gantrymq.metrics.sizes import BOUNDS, MessageSizes
from gantrymq.model.names import DLQ_PREFIX, RETRY_PREFIX
from gantrymq.store.broker_statistics import Stat

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gantrymq.broker.broker import Broker
    from gantrymq.metrics.bounds import Counted, Counts
    from gantrymq.metrics.sheet import Page
    from gantrymq.metrics.turns import Turns

LOCAL_DISK: Final = ("local", "disk")
_MESSAGE_TYPE: Final = "message.type"
_OTHER_PAIR: Final = f"{OTHER}@{OTHER}"


class TopicSource:
    """Writes what goes through topics. What the broker has counted is read, and nothing else."""

    def __init__(self, broker: Broker, shown_max: int) -> None:
        self._broker = broker
        self._shown_max = shown_max
        self._in = CounterTable(shown_max)
        self._out = CounterTable(shown_max)
        self._dead = CounterTable(shown_max)
        self._back = CounterTable(shown_max)
        self._decided = CounterTable(shown_max)
        self._timed = CounterTable(shown_max)
        self._sizes = MessageSizes(broker.store)

    async def fill(self, page: Page, turns: Turns) -> None:
        """Write everything about topics."""
        self._broker.counting.collect()
        await turns.next()
        await self._stored(page, turns)
        await self._handed_out(page, turns)
        await self._sent_back(page, turns)
        await self._transactions(page, turns)
        await self._timers(page, turns)

    def _in_labels(self, topic: str) -> tuple[str, str, str]:
        if topic == OTHER:
            return OTHER, "normal", "false"
        config = self._broker.tables.topics.find(topic)
        told = "" if config is None else config.attributes.get(_MESSAGE_TYPE, "")
        return topic, told.lower() or "normal", yes_no(self._broker.tables.topics.is_system(topic))

    async def _stored(self, page: Page, turns: Turns) -> None:
        topics = self._broker.counting.store.topics
        names = list(topics)
        counted = await self._in.look(names, _pairs_of(topics), turns)
        for topic, (messages, size) in _rows(counted, OTHER):
            labels = self._in_labels(topic)
            page.put("rocketmq_messages_in_total", messages, *labels)
            page.put("rocketmq_throughput_in_total", size, *labels)
        page.put("gantrymq_metrics_left_out", counted.left_out, "topics")
        await self._sizes.look([topic for topic, _ in counted.shown], turns)
        for topic, sizes in self._sizes.by_topic.items():
            labels = self._in_labels(topic)
            page.spread("rocketmq_message_size", BOUNDS, sizes.below, sizes.total, *labels)
        dead = [topic for topic in names if topic.startswith(DLQ_PREFIX)]
        counted = await self._dead.look(dead, _pairs_of(topics), turns)
        for topic, counts in _rows(counted, OTHER):
            group = topic.removeprefix(DLQ_PREFIX)
            labels = topic, group, yes_no(is_system_group(group))
            page.put("rocketmq_send_to_dlq_messages_total", counts[0], *labels)

    async def _handed_out(self, page: Page, turns: Turns) -> None:
        statistics = self._broker.counting.broker

        def counts(key: str) -> tuple[int, int] | None:
            messages = statistics.total(Stat.GROUP_GET_NUMS, key)
            size = statistics.total(Stat.GROUP_GET_SIZE, key)
            return None if messages is None else (messages, size or 0)

        counted = await self._out.look(statistics.keys(Stat.GROUP_GET_NUMS), counts, turns)
        for key, (messages, size) in _rows(counted, _OTHER_PAIR):
            topic, _, group = key.partition("@")
            is_system = self._broker.tables.topics.is_system(topic) or is_system_group(group)
            labels = group, topic, yes_no(topic.startswith(RETRY_PREFIX)), yes_no(is_system)
            page.put("rocketmq_messages_out_total", messages, *labels)
            page.put("rocketmq_throughput_out_total", size, *labels)

    async def _sent_back(self, page: Page, turns: Turns) -> None:
        statistics, stat = self._broker.counting.broker, Stat.SNDBCK_PUT_NUMS

        def counts(key: str) -> tuple[int] | None:
            total = statistics.total(stat, key)
            return None if total is None else (total,)

        counted = await self._back.look(statistics.keys(stat), counts, turns)
        for key, (count,) in _rows(counted, _OTHER_PAIR):
            topic, _, group = key.partition("@")
            page.put("gantrymq_sent_back_total", count, topic, group)

    async def _transactions(self, page: Page, turns: Turns) -> None:
        decided = self._broker.counting.decided
        counted = await self._decided.look(list(decided), _pairs_of(decided), turns)
        for topic, (committed, rolled_back) in _rows(counted, OTHER):
            page.put("rocketmq_commit_messages_total", committed, topic)
            page.put("rocketmq_rollback_messages_total", rolled_back, topic)

    async def _timers(self, page: Page, turns: Turns) -> None:
        counts = self._broker.timed.timers.counts
        counted = await self._timed.look(list(counts.moved), _pairs_of(counts.moved), turns)
        for topic, (came, gone) in _rows(counted, OTHER):
            page.put("rocketmq_timer_enqueue_total", came, topic, *LOCAL_DISK)
            page.put("rocketmq_timer_dequeue_total", gone, topic, *LOCAL_DISK)
        most = counts.most_common(self._shown_max)
        for topic, count in most:
            page.put("rocketmq_timing_messages", count, topic, *LOCAL_DISK)
        rest = counts.total() - sum(count for _, count in most)
        if rest:
            page.put("rocketmq_timing_messages", rest, OTHER, *LOCAL_DISK)


def _pairs_of(
    table: Mapping[str, Sequence[int]],
) -> Callable[[str], tuple[int, int] | None]:
    """Return what reads two counts of a key, as they are when it is asked."""

    def counts(key: str) -> tuple[int, int] | None:
        found = table.get(key)
        return None if found is None else (found[0], found[1])

    return counts


def _rows(counted: Counted, other: str) -> list[tuple[str, Counts]]:
    """Return what is shown, and the sum of the rest under a name of its own."""
    return [*counted.shown, (other, counted.other)] if counted.other else counted.shown
