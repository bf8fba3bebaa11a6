"""What a consumer says about itself (307) and about one message that it was made to take (309).

A broker hands these answers on as they are; they are read by whoever asked.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from msgspec import field

from gantrymq.model.group import Subscription
from gantrymq.model.queue import MessageQueue
from gantrymq.model.widths import Int32
from gantrymq.wire.bodies.codec import JsonBody
from gantrymq.wire.bodies.schema import Body


class ProcessQueue(Body, frozen=True, kw_only=True):
    """A queue that the consumer pulls from; `droped` is spelled as on the wire."""

    commit_offset: int = 0
    cached_msg_min_offset: int = 0
    cached_msg_max_offset: int = 0
    cached_msg_count: Int32 = 0
    cached_msg_size_in_mib: Int32 = field(name="cachedMsgSizeInMiB", default=0)
    transaction_msg_min_offset: int = 0
    transaction_msg_max_offset: int = 0
    transaction_msg_count: Int32 = 0
    locked: bool = False
    try_unlock_times: int = 0
    last_lock_timestamp: int = 0
    droped: bool = False
    last_pull_timestamp: int = 0
    last_consume_timestamp: int = 0


class PopProcessQueue(Body, frozen=True, kw_only=True):
    """5.x: a queue that the consumer pops from."""

    wait_ack_count: Int32 = 0
    droped: bool = False
    last_pop_timestamp: int = 0


class ConsumeStatus(Body, frozen=True, kw_only=True):
    """How fast a topic is pulled and consumed."""

    pull_rt: float = field(name="pullRT", default=0.0)
    pull_tps: float = field(name="pullTPS", default=0.0)
    consume_rt: float = field(name="consumeRT", default=0.0)
    consume_ok_tps: float = field(name="consumeOKTPS", default=0.0)
    consume_failed_tps: float = field(name="consumeFailedTPS", default=0.0)
    consume_failed_msgs: int = 0


class ConsumerRunningInfo(Body, frozen=True, kw_only=True):
    """The inside of a consumer (307)."""

    properties: Mapping[str, str] = {}
    subscription_set: tuple[Subscription, ...] = ()
    mq_table: Mapping[MessageQueue, ProcessQueue] = {}
    mq_pop_table: Mapping[MessageQueue, PopProcessQueue] | None = None
    status_table: Mapping[str, ConsumeStatus] = {}
    user_consumer_info: Mapping[str, str] | None = None
    jstack: str | None = None


class ConsumeResult(IntEnum):
    """How the application took the message."""

    CR_SUCCESS = 0
    CR_LATER = 1
    CR_ROLLBACK = 2
    CR_COMMIT = 3
    CR_THROW_EXCEPTION = 4
    CR_RETURN_NULL = 5


class DirectConsumption(Body, frozen=True, kw_only=True):
    """The outcome for one message (309)."""

    order: bool = False
    auto_commit: bool = True
    consume_result: ConsumeResult | None = None
    remark: str | None = None
    spent_time_mills: int = 0


CONSUMER_RUNNING_INFO: Final = JsonBody(ConsumerRunningInfo)
DIRECT_CONSUMPTION: Final = JsonBody(DirectConsumption)
