"""Who is connected, for operators."""

from collections.abc import Mapping
from typing import Final

from msgspec import field

from gantrymq.model.group import ConsumeFromWhere, ConsumeType, MessageModel, Subscription
from gantrymq.model.widths import Int32
from gantrymq.wire.bodies.codec import JsonBody
from gantrymq.wire.bodies.schema import Body


class Connection(Body, frozen=True, kw_only=True):
    """A client's connection."""

    client_id: str
    client_addr: str = ""
    language: str = "OTHER"
    """The name of the language, as in frame headers."""
    version: Int32 = 0


class MismatchedMembers(Body, frozen=True, kw_only=True):
    """Members of a group that agree with each other, and what they take that not everyone takes."""

    client_ids: tuple[str, ...] = ()
    subscriptions: tuple[str, ...] = ()
    """Topic, kind and expression, with blanks between them."""


class ConsumerConnections(Body, frozen=True, kw_only=True):
    """The members of a consumer group and what they agreed on (203)."""

    connection_set: tuple[Connection, ...] = ()
    subscription_table: Mapping[str, Subscription] = {}
    consume_type: ConsumeType | None = None
    message_model: MessageModel | None = None
    consume_from_where: ConsumeFromWhere | None = None
    mismatch: tuple[MismatchedMembers, ...] | None = None
    """gantrymq's own: members that subscribe differently, which loses messages."""


class ProducerConnections(Body, frozen=True, kw_only=True):
    """The members of a producer group (204)."""

    connection_set: tuple[Connection, ...] = ()


class ProducerInfo(Body, frozen=True, kw_only=True):
    """A producer's connection with when it was last heard of."""

    client_id: str
    remote_ip: str = field(name="remoteIP", default="")
    language: str = "OTHER"
    version: Int32 = 0
    last_update_timestamp: int = 0


class ProducerTable(Body, frozen=True, kw_only=True):
    """All producers of a broker by group (328)."""

    data: Mapping[str, tuple[ProducerInfo, ...]] = {}


CONSUMER_CONNECTIONS: Final = JsonBody(ConsumerConnections)
PRODUCER_CONNECTIONS: Final = JsonBody(ProducerConnections)
PRODUCER_TABLE: Final = JsonBody(ProducerTable)
