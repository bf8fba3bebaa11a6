"""Offsets: committed by groups, at the ends of queues, at a time."""

from gantrymq.wire.fields import Header, Int32, Int64


class QueryConsumerOffsetRequest(Header, frozen=True, kw_only=True):
    """QUERY_CONSUMER_OFFSET."""

    consumer_group: str
    topic: str
    queue_id: Int32
    set_zero_if_not_found: bool | None = None


class UpdateConsumerOffsetRequest(Header, frozen=True, kw_only=True):
    """UPDATE_CONSUMER_OFFSET."""

    consumer_group: str
    topic: str
    queue_id: Int32
    commit_offset: Int64


class SearchOffsetRequest(Header, frozen=True, kw_only=True):
    """SEARCH_OFFSET_BY_TIMESTAMP."""

    topic: str
    queue_id: Int32
    timestamp: Int64
    boundary_type: str | None = None
    """`lower` or `upper` (5.x), in any case."""


class GetMaxOffsetRequest(Header, frozen=True, kw_only=True):
    """GET_MAX_OFFSET."""

    topic: str
    queue_id: Int32
    committed: bool | None = None


class OffsetResponse(Header, frozen=True, kw_only=True):
    """A queue offset."""

    offset: Int64


class EarliestStoreTimeResponse(Header, frozen=True, kw_only=True):
    """GET_EARLIEST_MSG_STORETIME; -1 when there is none."""

    timestamp: Int64


class ResetOffsetRequest(Header, frozen=True, kw_only=True):
    """INVOKE_BROKER_TO_RESET_OFFSET, and RESET_CONSUMER_CLIENT_OFFSET to consumers."""

    topic: str
    group: str
    timestamp: Int64
    """-1: to the end."""
    is_force: bool | None = None
    queue_id: Int32 | None = None
    offset: Int64 | None = None


class ConsumerStatusRequest(Header, frozen=True, kw_only=True):
    """INVOKE_BROKER_TO_GET_CONSUMER_STATUS, and GET_CONSUMER_STATUS_FROM_CLIENT to consumers."""

    topic: str
    group: str
    client_addr: str | None = None
    """A client id, in spite of its name."""


class QueryCorrectionOffsetRequest(Header, frozen=True, kw_only=True):
    """QUERY_CORRECTION_OFFSET."""

    topic: str
    compare_group: str
    filter_groups: str | None = None


class CloneGroupOffsetRequest(Header, frozen=True, kw_only=True):
    """CLONE_GROUP_OFFSET."""

    src_group: str
    dest_group: str
    topic: str | None = None
    offline: bool | None = None
