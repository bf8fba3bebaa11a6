"""Pulling from a queue."""

from gantrymq.wire.fields import Header, Int32, Int64


class PullMessageRequest(Header, frozen=True, kw_only=True):
    """PULL_MESSAGE and LITE_PULL_MESSAGE."""

    consumer_group: str
    topic: str
    queue_id: Int32
    queue_offset: Int64
    max_msg_nums: Int32
    sys_flag: Int32
    """Bits of `sysflag.PullFlag`."""
    commit_offset: Int64
    suspend_timeout_millis: Int64
    sub_version: Int64
    subscription: str | None = None
    expression_type: str | None = None
    max_msg_bytes: Int32 | None = None
    request_source: Int32 | None = None
    proxy_froward_client_id: str | None = None
    lite_topic: str | None = None
    support_compression_type: Int32 | None = None
    """Sent by the Python client pyrocketmq alone; servers pass it over."""


class PullMessageResponse(Header, frozen=True, kw_only=True):
    """What to ask next; complete with codes 0, 19, 20 and 21."""

    suggest_which_broker_id: Int64
    next_begin_offset: Int64
    min_offset: Int64
    max_offset: Int64
    offset_delta: Int64 | None = None
    topic_sys_flag: Int32 | None = None
    group_sys_flag: Int32 | None = None
    forbidden_type: Int32 | None = None
    """With NO_PERMISSION: 1 broker, 2 group, 3 topic, 4 broadcast, 5 subscription."""
