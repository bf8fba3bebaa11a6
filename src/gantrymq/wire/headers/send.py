"""Sending: ordinary messages, batches, replies, messages sent back, recalls."""

from msgspec import field

from gantrymq.wire.fields import Header, Int32, Int64


class SendMessageRequest(Header, frozen=True, kw_only=True):
    """SEND_MESSAGE and SEND_REPLY_MESSAGE: the long names."""

    producer_group: str
    topic: str
    default_topic: str
    """Template for a topic that is created by sending to it."""
    default_topic_queue_nums: Int32
    queue_id: Int32
    """Negative: the broker chooses."""
    sys_flag: Int32
    born_timestamp: Int64
    flag: Int32
    properties: str | None = None
    reconsume_times: Int32 | None = None
    unit_mode: bool | None = None
    max_reconsume_times: Int32 | None = None
    batch: bool | None = None
    """True: the body is a batch, whatever the request code says."""
    broker_name: str | None = field(name="bname", default=None)


class SendMessageV2Request(Header, frozen=True, kw_only=True):
    """SEND_MESSAGE_V2, SEND_BATCH_MESSAGE and SEND_REPLY_MESSAGE_V2: one letter each."""

    producer_group: str = field(name="a")
    topic: str = field(name="b")
    default_topic: str = field(name="c")
    default_topic_queue_nums: Int32 = field(name="d")
    queue_id: Int32 = field(name="e")
    sys_flag: Int32 = field(name="f")
    born_timestamp: Int64 = field(name="g")
    flag: Int32 = field(name="h")
    properties: str | None = field(name="i", default=None)
    reconsume_times: Int32 | None = field(name="j", default=None)
    unit_mode: bool | None = field(name="k", default=None)
    max_reconsume_times: Int32 | None = field(name="l", default=None)
    batch: bool | None = field(name="m", default=None)
    broker_name: str | None = field(name="n", default=None)

    def long_form(self) -> SendMessageRequest:
        """Return the same header under the long names, so that a handler sees one type."""
        return SendMessageRequest(
            producer_group=self.producer_group,
            topic=self.topic,
            default_topic=self.default_topic,
            default_topic_queue_nums=self.default_topic_queue_nums,
            queue_id=self.queue_id,
            sys_flag=self.sys_flag,
            born_timestamp=self.born_timestamp,
            flag=self.flag,
            properties=self.properties,
            reconsume_times=self.reconsume_times,
            unit_mode=self.unit_mode,
            max_reconsume_times=self.max_reconsume_times,
            batch=self.batch,
            broker_name=self.broker_name,
        )


class SendMessageResponse(Header, frozen=True, kw_only=True):
    """Where a message was stored; an error carries the last two fields only."""

    msg_id: str
    """Offset message id; those of a batch joined by commas."""
    queue_id: Int32
    queue_offset: Int64
    """Of a batch the first; of a half message its offset in the half queue."""
    transaction_id: str | None = None
    batch_uniq_id: str | None = None
    recall_handle: str | None = None
    region: str | None = field(name="MSG_REGION", default=None)
    trace_on: str | None = field(name="TRACE_ON", default=None)


class ConsumerSendMessageBackRequest(Header, frozen=True, kw_only=True):
    """CONSUMER_SEND_MSG_BACK: deliver this message again later."""

    offset: Int64
    """Log offset of the message."""
    group: str
    delay_level: Int32
    """0: the broker decides; negative: straight to the dead letters."""
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool | None = None
    max_reconsume_times: Int32 | None = None


class PushReplyMessageRequest(Header, frozen=True, kw_only=True):
    """PUSH_REPLY_MESSAGE_TO_CLIENT: the broker hands a reply to the one who asked."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int32
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: Int64
    flag: Int32
    born_host: str
    store_host: str
    store_timestamp: Int64
    properties: str | None = None
    reconsume_times: Int32 | None = None
    unit_mode: bool | None = None


class RecallMessageRequest(Header, frozen=True, kw_only=True):
    """RECALL_MESSAGE: take a timer message back."""

    topic: str
    recall_handle: str
    producer_group: str | None = None


class RecallMessageResponse(Header, frozen=True, kw_only=True):
    """Which message was taken back."""

    msg_id: str
    region: str | None = field(name="MSG_REGION", default=None)
