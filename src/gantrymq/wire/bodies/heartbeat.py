"""What clients tell a broker about themselves, and who else is there."""

from typing import Final

from msgspec import field

from gantrymq.model.group import ConsumeFromWhere, ConsumeType, MessageModel, Subscription
from gantrymq.model.widths import Int32
from gantrymq.wire.bodies.codec import JsonBody
from gantrymq.wire.bodies.schema import Body


class ProducerData(Body, frozen=True, kw_only=True):
    """A producer group of the client."""

    group_name: str


class ConsumerData(Body, frozen=True, kw_only=True):
    """A consumer group that the client is a member of."""

    group_name: str
    consume_type: ConsumeType = ConsumeType.CONSUME_PASSIVELY
    message_model: MessageModel = MessageModel.CLUSTERING
    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    subscription_data_set: tuple[Subscription, ...] = ()
    unit_mode: bool = False


class Heartbeat(Body, frozen=True, kw_only=True):
    """Everything a client does on this broker (34)."""

    client_id: str = field(name="clientID")
    producer_data_set: tuple[ProducerData, ...] = ()
    consumer_data_set: tuple[ConsumerData, ...] = ()
    heartbeat_fingerprint: Int32 = 0
    """5.x: 0 is the classic form; else a hash of the subscriptions."""
    without_sub: bool = False
    """5.x: the subscriptions were left out; the stored ones hold."""


class ClientCheck(Body, frozen=True, kw_only=True):
    """A subscription that a client wants checked before it starts (46)."""

    client_id: str = ""
    group: str = ""
    subscription_data: Subscription | None = None
    namespace: str | None = None


class ConsumerIds(Body, frozen=True, kw_only=True):
    """The members of a group (38)."""

    consumer_id_list: tuple[str, ...] = ()


HEARTBEAT: Final = JsonBody(Heartbeat)
CLIENT_CHECK: Final = JsonBody(ClientCheck)
CONSUMER_IDS: Final = JsonBody(ConsumerIds)
