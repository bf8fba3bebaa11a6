"""Clients: who is there, and what the broker asks of them."""

from msgspec import field

from gantrymq.wire.fields import Header, Int32


class HeartbeatResponse(Header, frozen=True, kw_only=True):
    """HEART_BEAT; 5.x brokers only."""

    is_support_heart_beat_v2: bool | None = field(name="IS_SUPPORT_HEART_BEAT_V2", default=None)
    is_sub_change: bool | None = field(name="IS_SUB_CHANGE", default=None)


class UnregisterClientRequest(Header, frozen=True, kw_only=True):
    """UNREGISTER_CLIENT; C++ sends the group that does not apply as an empty text."""

    client_id: str = field(name="clientID")
    producer_group: str | None = None
    consumer_group: str | None = None


class ProducerGroupRequest(Header, frozen=True, kw_only=True):
    """GET_PRODUCER_CONNECTION_LIST."""

    producer_group: str


class ConsumerRunningInfoRequest(Header, frozen=True, kw_only=True):
    """GET_CONSUMER_RUNNING_INFO, from the tool to the broker and on to the consumer."""

    consumer_group: str
    client_id: str
    jstack_enable: bool | None = None


class ConsumeMessageDirectlyRequest(Header, frozen=True, kw_only=True):
    """CONSUME_MESSAGE_DIRECTLY, from the tool to the broker and on to the consumer."""

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    """Offset message id."""
    topic: str | None = None
    broker_name: str | None = None
    topic_sys_flag: Int32 | None = None
    group_sys_flag: Int32 | None = None
