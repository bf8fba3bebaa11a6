"""A look into the broker's files: consume queue entries (321), SQL filters, RocksDB checks."""

from collections.abc import Mapping
from typing import Final

from gantrymq.model.group import Subscription
from gantrymq.model.widths import Int32
from gantrymq.wire.bodies.codec import JsonBody
from gantrymq.wire.bodies.schema import Body


class QueueEntry(Body, frozen=True, kw_only=True):
    """One entry of a consume queue."""

    physic_offset: int = 0
    physic_size: Int32 = 0
    tags_code: int = 0
    extend_data_json: str | None = None
    bit_map: str | None = None
    eval: bool = False
    """Whether the group's filter takes the message."""
    msg: str | None = None


class QueueEntries(Body, frozen=True, kw_only=True):
    """A stretch of a consume queue (321)."""

    max_queue_index: int = 0
    min_queue_index: int = 0
    queue_data: tuple[QueueEntry, ...] | None = None
    subscription_data: Subscription | None = None
    filter_data: str | None = None


class BloomFilterData(Body, frozen=True, kw_only=True):
    """The bits of a group in consume queue extensions."""

    bit_num: Int32 = 0
    bit_pos: tuple[Int32, ...] = ()


class ConsumerFilter(Body, frozen=True, kw_only=True):
    """The SQL filter of a group on a topic."""

    consumer_group: str
    topic: str
    expression: str = ""
    expression_type: str = ""
    born_time: int = 0
    dead_time: int = 0
    dead: bool | None = None
    """Derived from `dead_time`; written for its readers."""
    client_version: int = 0
    bloom_filter_data: BloomFilterData | None = None


class TopicFilters(Body, frozen=True, kw_only=True):
    """The SQL filters of all groups on a topic."""

    topic: str = ""
    group_filter_data: Mapping[str, ConsumerFilter] = {}


class ConsumerFilters(Body, frozen=True, kw_only=True):
    """`consumerFilter.json`: all SQL filters of a broker."""

    filter_data_by_topic: Mapping[str, TopicFilters] = {}


class RocksDbCheck(Body, frozen=True, kw_only=True):
    """5.x: whether consume queues in RocksDB agree with the files (354)."""

    check_result: str | None = None
    check_status: Int32 = 0


QUEUE_ENTRIES: Final = JsonBody(QueueEntries)
CONSUMER_FILTERS: Final = JsonBody(ConsumerFilters)
ROCKSDB_CHECK: Final = JsonBody(RocksDbCheck)
