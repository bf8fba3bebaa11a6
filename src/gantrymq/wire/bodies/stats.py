"""Figures for operators: of topics, groups, queues and the broker."""

from collections.abc import Mapping
from typing import Final

from gantrymq.model.queue import MessageQueue
from gantrymq.wire.bodies.codec import JsonBody
from gantrymq.wire.bodies.schema import Body


class TopicOffset(Body, frozen=True, kw_only=True):
    """What a queue holds."""

    min_offset: int = 0
    max_offset: int = 0
    last_update_timestamp: int = 0


class TopicStats(Body, frozen=True, kw_only=True):
    """What all queues of a topic hold on one broker (202)."""

    offset_table: Mapping[MessageQueue, TopicOffset] = {}
    topic_put_tps: float | None = None


class OffsetProgress(Body, frozen=True, kw_only=True):
    """How far a group is behind in a queue."""

    broker_offset: int = 0
    consumer_offset: int = 0
    pull_offset: int = 0
    last_timestamp: int = 0


class ConsumeStats(Body, frozen=True, kw_only=True):
    """How far a group is behind in all its queues (208)."""

    consume_tps: float = 0.0
    offset_table: Mapping[MessageQueue, OffsetProgress] = {}


class BrokerConsumeStats(Body, frozen=True, kw_only=True):
    """How far every group of a broker is behind (317)."""

    consume_stats_list: tuple[Mapping[str, tuple[ConsumeStats, ...]], ...] = ()
    broker_addr: str = ""
    total_diff: int = 0
    total_inflight_diff: int | None = None


class StatsItem(Body, frozen=True, kw_only=True):
    """A count over a span of time."""

    sum: int = 0
    tps: float = 0.0
    avgpt: float = 0.0


class BrokerStats(Body, frozen=True, kw_only=True):
    """One of the broker's counters (315)."""

    stats_minute: StatsItem = StatsItem()
    stats_hour: StatsItem = StatsItem()
    stats_day: StatsItem = StatsItem()


class QueueTimeSpan(Body, frozen=True, kw_only=True):
    """When the first, last and next message of a queue were stored."""

    message_queue: MessageQueue
    min_time_stamp: int = 0
    max_time_stamp: int = 0
    consume_time_stamp: int = 0
    delay_time: int = 0


class ConsumeTimeSpan(Body, frozen=True, kw_only=True):
    """The time spans of all queues that a group reads of a topic (303)."""

    consume_time_span_set: tuple[QueueTimeSpan, ...] = ()


TOPIC_STATS: Final = JsonBody(TopicStats)
CONSUME_STATS: Final = JsonBody(ConsumeStats)
BROKER_CONSUME_STATS: Final = JsonBody(BrokerConsumeStats)
BROKER_STATS: Final = JsonBody(BrokerStats)
CONSUME_TIME_SPAN: Final = JsonBody(ConsumeTimeSpan)
