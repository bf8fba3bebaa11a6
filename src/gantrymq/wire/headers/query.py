"""Finding messages and looking into queues."""

from msgspec import field

from gantrymq.wire.fields import Header, Int32, Int64


class QueryMessageRequest(Header, frozen=True, kw_only=True):
    """QUERY_MESSAGE."""

    topic: str
    key: str
    max_num: Int32
    begin_timestamp: Int64
    end_timestamp: Int64
    unique_key_query: bool | None = field(name="_UNIQUE_KEY_QUERY", default=None)
    index_type: str | None = None
    """`K` key, `U` unique key, `T` tag (5.x)."""
    last_key: str | None = None


class QueryMessageResponse(Header, frozen=True, kw_only=True):
    """How new the index is; also with QUERY_NOT_FOUND."""

    index_last_update_timestamp: Int64
    index_last_update_phyoffset: Int64


class ViewMessageRequest(Header, frozen=True, kw_only=True):
    """VIEW_MESSAGE_BY_ID."""

    offset: Int64
    """Log offset."""
    topic: str | None = None


class QueryConsumeQueueRequest(Header, frozen=True, kw_only=True):
    """QUERY_CONSUME_QUEUE."""

    topic: str | None = None
    queue_id: Int32 | None = None
    index: Int64 | None = None
    count: Int32 | None = None
    consumer_group: str | None = None


class QueryConsumeTimeSpanRequest(Header, frozen=True, kw_only=True):
    """QUERY_CONSUME_TIME_SPAN."""

    topic: str
    group: str


class QuerySubscriptionByConsumerRequest(Header, frozen=True, kw_only=True):
    """QUERY_SUBSCRIPTION_BY_CONSUMER."""

    group: str
    topic: str | None = None


class GetConsumeStatsRequest(Header, frozen=True, kw_only=True):
    """GET_CONSUME_STATS."""

    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None
    """Names joined by `;` (5.x)."""


class GetBrokerConsumeStatsRequest(Header, frozen=True, kw_only=True):
    """GET_BROKER_CONSUME_STATS."""

    is_order: bool


class ViewBrokerStatsRequest(Header, frozen=True, kw_only=True):
    """VIEW_BROKER_STATS_DATA."""

    stats_name: str
    stats_key: str
