"""Pop consumption: messages taken for a while, acknowledged one by one (5.x)."""

from gantrymq.wire.fields import Header, Int32, Int64


class PopMessageRequest(Header, frozen=True, kw_only=True):
    """POP_MESSAGE."""

    consumer_group: str
    topic: str
    queue_id: Int32
    """-1: any queue."""
    max_msg_nums: Int32
    invisible_time: Int64
    poll_time: Int64
    born_time: Int64
    init_mode: Int32
    """Where a new group begins: 0 at the least offset, 1 at the greatest."""
    exp_type: str | None = None
    exp: str | None = None
    order: bool | None = None
    attempt_id: str | None = None


class PopMessageResponse(Header, frozen=True, kw_only=True):
    """POP_MESSAGE and PEEK_MESSAGE: what was taken; the three texts have a form of their own."""

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32
    rest_num: Int64
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


class PeekMessageRequest(Header, frozen=True, kw_only=True):
    """PEEK_MESSAGE."""

    topic: str
    queue_id: Int32
    max_msg_nums: Int32
    consumer_group: str


class AckMessageRequest(Header, frozen=True, kw_only=True):
    """ACK_MESSAGE."""

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str
    offset: Int64


class ChangeInvisibleTimeRequest(Header, frozen=True, kw_only=True):
    """CHANGE_MESSAGE_INVISIBLETIME."""

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str
    offset: Int64
    invisible_time: Int64
    suspend: bool | None = None


class ChangeInvisibleTimeResponse(Header, frozen=True, kw_only=True):
    """The new handle of the message."""

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32


class NotificationRequest(Header, frozen=True, kw_only=True):
    """NOTIFICATION: tell me when there is something to pop."""

    consumer_group: str
    topic: str
    queue_id: Int32
    poll_time: Int64
    born_time: Int64
    order: bool | None = None
    attempt_id: str | None = None
    exp_type: str | None = None
    exp: str | None = None


class NotificationResponse(Header, frozen=True, kw_only=True):
    """Whether there is."""

    has_msg: bool
    polling_full: bool | None = None


class PollingInfoRequest(Header, frozen=True, kw_only=True):
    """POLLING_INFO."""

    consumer_group: str
    topic: str
    queue_id: Int32


class PollingInfoResponse(Header, frozen=True, kw_only=True):
    """How many requests wait on the queue."""

    polling_num: Int32
