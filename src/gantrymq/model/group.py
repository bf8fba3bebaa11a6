"""What a consumer group is: its settings on the broker, and what its members say of themselves."""

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import Final

import msgspec

from gantrymq.errors import InvalidValue
from gantrymq.limits import QUEUES_MAX
from gantrymq.model.widths import Int32

DEFAULT_RETRY_TIMES: Final = 16
SUBSCRIBE_ALL: Final = "*"
"""The expression that takes every message."""
TAG_EXPRESSION: Final = "TAG"
SQL92_EXPRESSION: Final = "SQL92"

_SECOND_MS: Final = 1000
_MINUTE_MS: Final = 60 * _SECOND_MS
_HOUR_MS: Final = 60 * _MINUTE_MS
RETRY_DELAYS_MS: Final = (
    *(seconds * _SECOND_MS for seconds in (1, 5, 10, 30)),
    *(minutes * _MINUTE_MS for minutes in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30)),
    *(hours * _HOUR_MS for hours in (1, 2)),
)
"""The steps of a customized retry policy that names none: the eighteen delay levels."""


class ConsumeType(IntEnum):
    """How a group gets its messages; the numbers are the wire's ordinals."""

    CONSUME_ACTIVELY = 0
    """Pull: the application asks."""
    CONSUME_PASSIVELY = 1
    """Push: the client library asks and calls the application."""
    CONSUME_POP = 2
    """The broker hands out messages and waits for each one's acknowledgement."""


class MessageModel(IntEnum):
    """Whether the members of a group share a topic's messages."""

    BROADCASTING = 0
    """Every member gets every message and keeps its own offsets."""
    CLUSTERING = 1
    """Every message goes to one member; the broker keeps the offsets."""
    LITE_SELECTIVE = 2
    """5.5: each member names the light topics it wants."""


class ConsumeFromWhere(IntEnum):
    """Where a group without a stored offset begins; 1 to 3 are out of use."""

    CONSUME_FROM_LAST_OFFSET = 0
    CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST = 1
    CONSUME_FROM_MIN_OFFSET = 2
    CONSUME_FROM_MAX_OFFSET = 3
    CONSUME_FROM_FIRST_OFFSET = 4
    CONSUME_FROM_TIMESTAMP = 5


class OffsetBeyondEnd(Enum):
    """What becomes of a reader whose offset lies behind the end of the queue."""

    NEAREST = "nearest"
    """It goes on at the end."""
    EARLIEST = "earliest"
    """It reads everything again that there is."""
    STOP = "stop"
    """It gets nothing until an operator has reset its offset."""


class RetryPolicyType(IntEnum):
    """How the delay before the next attempt grows; the numbers are the wire's ordinals."""

    EXPONENTIAL = 0
    CUSTOMIZED = 1


class ExponentialRetryPolicy(msgspec.Struct, frozen=True):
    """Each wait is `multiplier` times the one before it, from `initial_ms` up to `max_ms`."""

    initial_ms: int = 5 * _SECOND_MS
    max_ms: int = 2 * _HOUR_MS
    multiplier: int = 2


class CustomizedRetryPolicy(msgspec.Struct, frozen=True):
    """The waits one after the other; the last one repeats."""

    delays_ms: tuple[int, ...] = RETRY_DELAYS_MS


class RetryPolicy(msgspec.Struct, frozen=True):
    """The policy in force, and whatever was said about either kind."""

    type: RetryPolicyType = RetryPolicyType.CUSTOMIZED
    exponential: ExponentialRetryPolicy | None = None
    customized: CustomizedRetryPolicy | None = None


class SimpleSubscription(msgspec.Struct, frozen=True):
    """5.x: one topic that a group's settings bind it to."""

    topic: str
    expression_type: str = TAG_EXPRESSION
    expression: str = SUBSCRIBE_ALL
    version: int = 0


class SubscriptionGroup(msgspec.Struct, frozen=True):
    """A group's settings on one broker group; the defaults are RocketMQ's."""

    name: str
    consume_enabled: bool = True
    consume_from_min_enabled: bool = True
    broadcast_enabled: bool = True
    orderly: bool = False
    retry_queues: Int32 = 1
    """Queues of %RETRY%group; 0 makes sending back a message a no-op."""
    retry_times_max: Int32 = DEFAULT_RETRY_TIMES
    retry_policy: RetryPolicy = RetryPolicy()
    broker_id: int = 0
    slow_reader_broker_id: int = 1
    """Where a consumer that lags behind memory is sent to read."""
    notify_members: bool = True
    """Whether members are told at once when one joins or leaves."""
    system_flags: Int32 = 0
    consume_timeout_min: Int32 = 15
    subscriptions: tuple[SimpleSubscription, ...] | None = None
    attributes: Mapping[str, str] = {}

    def __post_init__(self) -> None:
        """Refuse a retry topic that no broker can make."""
        if self.retry_queues > QUEUES_MAX:
            raise InvalidValue(
                f"group {self.name[:64]!r} cannot have {self.retry_queues} retry queues: "
                f"give at most {QUEUES_MAX}"
            )


class Subscription(msgspec.Struct, frozen=True):
    """What one member takes from one topic (`SubscriptionData`)."""

    topic: str
    expression: str = SUBSCRIBE_ALL
    tags: frozenset[str] = frozenset()
    tag_codes: frozenset[Int32] = frozenset()
    """Java hashes of the tags; the consume queue is filtered by them."""
    version: int = 0
    """When the member made it; the broker keeps the newest."""
    expression_type: str = TAG_EXPRESSION
    class_filter: bool = False
    """Obsolete: filtering by uploaded Java classes."""
