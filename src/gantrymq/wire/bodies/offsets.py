"""How far groups have read, delays are delivered and timers are set, as tables."""

import struct
from collections.abc import Mapping
from typing import Final

from msgspec import field

from gantrymq.errors import ContentError, InvalidValue
from gantrymq.model.offsets import DataVersion
from gantrymq.model.queue import MessageQueue, QueueId, QueueOffset
from gantrymq.model.widths import Int32
from gantrymq.wire.bodies.codec import JsonBody
from gantrymq.wire.bodies.schema import Body

QueueOffsets = Mapping[QueueId, QueueOffset]
"""Queue to offset in it."""


class ConsumerOffsets(Body, frozen=True, kw_only=True):
    """All committed offsets of a broker: `consumerOffset.json` and the answer to 43."""

    offset_table: Mapping[str, QueueOffsets] = {}
    """`topic@group` to queue to the next offset the group wants."""
    data_version: DataVersion | None = None
    group_topic_map: Mapping[str, tuple[str, ...]] | None = None
    """5.x: group to its topics; derived, written for its readers."""
    pull_offset_table: Mapping[str, QueueOffsets] | None = None
    """5.x: how far groups have pulled, beside what they have consumed."""
    lmq_offset_table: Mapping[str, QueueOffset] | None = None
    """`lmqConsumerOffset.json` only: light queues have one offset each."""


class DelayOffsets(Body, frozen=True, kw_only=True):
    """How far each delay level is delivered: `delayOffset.json` and the answer to 45."""

    offset_table: Mapping[Int32, QueueOffset] = {}
    data_version: DataVersion | None = None


class CorrectionOffsets(Body, frozen=True, kw_only=True):
    """Where the slowest of several groups is, by queue (308)."""

    correction_offsets: Mapping[QueueId, QueueOffset] = {}


class ConsumerStatus(Body, frozen=True, kw_only=True):
    """Where members of a group are: one member's answer (221), or all of them (223)."""

    message_queue_table: Mapping[MessageQueue, QueueOffset] = {}
    consumer_table: Mapping[str, Mapping[MessageQueue, QueueOffset]] = {}


class TopicCount(Body, frozen=True, kw_only=True):
    """How many messages of a topic wait, and since when that has not changed."""

    count: int = 0
    time_stamp: int = 0


class TimerMetrics(Body, frozen=True, kw_only=True):
    """5.x `timermetrics` and the answer to 61: pending timers by topic."""

    data_version: DataVersion = DataVersion()
    timing_count: Mapping[str, TopicCount] = {}


class TransactionMetrics(Body, frozen=True, kw_only=True):
    """5.x `transactionMetrics`: pending half messages by topic."""

    data_version: DataVersion = DataVersion()
    transaction_count: Mapping[str, TopicCount] = {}


class OrderInfo(Body, frozen=True, kw_only=True):
    """5.x: what of a queue a pop consumer holds in order."""

    pop_time: int = 0
    invisible_time: int | None = field(name="i", default=None)
    offset_list: tuple[int, ...] = field(name="o", default=())
    next_visible_times: Mapping[int, int] | None = field(name="ot", default=None)
    consumed_counts: Mapping[int, Int32] | None = field(name="oc", default=None)
    last_consume_timestamp: int = field(name="l", default=0)
    commit_offset_bits: int = field(name="cm", default=0)
    attempt_id: str | None = field(name="a", default=None)


class OrderInfoTable(Body, frozen=True, kw_only=True):
    """5.x `consumerOrderInfo.json`: `topic@group` to queue to what is held."""

    table: Mapping[str, Mapping[QueueId, OrderInfo]] = {}
    order_info_count: Int32 | None = None
    ordered_consumption_level: str | None = None


class TimerCheckpoint(Body, frozen=True, kw_only=True):
    """5.x `timercheck` and the answer to 60: where timer processing stands."""

    last_read_time_ms: int
    timer_log_flush_position: int
    timer_queue_offset: int
    master_timer_queue_offset: int
    data_version: DataVersion = DataVersion()


class TimerCheckpointBody:
    """Seven numbers of 64 bits; brokers before 5.1 send the first four."""

    __slots__ = ()
    _SHORT: Final = struct.Struct(">4q")
    _LONG: Final = struct.Struct(">7q")

    def decode(self, body: bytes) -> TimerCheckpoint:
        """Return the check point; the file has zeros behind it.

        Raises:
            ContentError: it has a length that neither form has.
        """
        if len(body) == self._SHORT.size:
            read, flushed, queue, master = self._SHORT.unpack(body)
            version = DataVersion()
        elif len(body) >= self._LONG.size:
            numbers = self._LONG.unpack_from(body)
            read, flushed, queue, master = numbers[:4]
            version = DataVersion(*numbers[4:])
        else:
            raise ContentError("body", f"a timer check point has 32 or 56 bytes, not {len(body)}")
        return TimerCheckpoint(
            last_read_time_ms=read,
            timer_log_flush_position=flushed,
            timer_queue_offset=queue,
            master_timer_queue_offset=master,
            data_version=version,
        )

    def encode(self, value: TimerCheckpoint) -> bytes:
        """Return the long form.

        Raises:
            InvalidValue: a number does not fit in 64 bits.
        """
        version = value.data_version
        try:
            return self._LONG.pack(
                value.last_read_time_ms,
                value.timer_log_flush_position,
                value.timer_queue_offset,
                value.master_timer_queue_offset,
                version.state_version,
                version.timestamp_ms,
                version.counter,
            )
        except struct.error as error:
            raise InvalidValue(f"a timer check point cannot hold this: {error}") from None


CONSUMER_OFFSETS: Final = JsonBody(ConsumerOffsets)
DELAY_OFFSETS: Final = JsonBody(DelayOffsets)
CORRECTION_OFFSETS: Final = JsonBody(CorrectionOffsets)
CONSUMER_STATUS: Final = JsonBody(ConsumerStatus)
TIMER_METRICS: Final = JsonBody(TimerMetrics)
TRANSACTION_METRICS: Final = JsonBody(TransactionMetrics)
ORDER_INFO_TABLE: Final = JsonBody(OrderInfoTable)
TIMER_CHECKPOINT: Final = TimerCheckpointBody()
