"""What is known of connected clients: connections, members of groups, and groups as they agreed.

`Clients` keeps these; everyone else reads them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import InvalidValue, shown
from gantrymq.limits import (
    CLIENT_GROUPS_MAX,
    CLIENT_SUBSCRIPTION_BYTES_MAX,
    GROUP_BYTES_MAX,
    MEMBER_SUBSCRIPTIONS_MAX,
    SUBSCRIPTION_CHARACTERS_MAX,
    SUBSCRIPTION_TAGS_MAX,
    SYSTEM_TOPIC_BYTES_MAX,
)
from gantrymq.model.group import ConsumeFromWhere, ConsumeType, MessageModel, Subscription
from gantrymq.model.names import check_client_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.wire.bodies.heartbeat import ConsumerData, Heartbeat
    from gantrymq.wire.peer import Peer

_SUBSCRIPTION_BYTES: Final = 512
"""What an empty subscription takes in memory."""
_TAG_BYTES: Final = 128


@dataclass(slots=True)
class ClientPeer:
    """A client in a group, over one connection."""

    client_id: str
    peer: Peer
    language: int | str
    version: int
    seen_ms: int
    """When it was last heard of, by the wall clock."""
    seen: float
    """The same for intervals."""


@dataclass(slots=True)
class Member(ClientPeer):
    """A member of a consumer group."""

    subscriptions: Mapping[str, Subscription] = field(default_factory=dict)
    """By topic, as it said itself."""
    fingerprint: int | None = None
    """5.x: of these subscriptions; 0 in a classic heartbeat, None while they are not known."""


@dataclass(slots=True)
class ConsumerGroupState:
    """A consumer group with members, and what they agreed on: the newest heartbeat counts."""

    name: str
    consume_type: ConsumeType = ConsumeType.CONSUME_PASSIVELY
    message_model: MessageModel = MessageModel.CLUSTERING
    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    """By topic, the newest that a member has."""
    members: dict[int, Member] = field(default_factory=dict)
    """By the number of the connection."""

    def settle(self, topic: str) -> bool:
        """Take the newest subscription that a member has to a topic; True if topics changed."""
        found = [
            subscription
            for member in self.members.values()
            if (subscription := member.subscriptions.get(topic)) is not None
        ]
        had = topic in self.subscriptions
        if found:
            self.subscriptions[topic] = max(found, key=lambda found: found.version)
        elif had:
            del self.subscriptions[topic]
        return had != bool(found)


class GroupChange(NamedTuple):
    """What happened to the members of a consumer group."""

    group: str
    notify: bool = False
    """Whether members must be told (40): not in broadcasting or where the group's settings say
    so."""
    joined: tuple[str, ...] = ()
    """Client ids."""
    left: tuple[str, ...] = ()
    topics_changed: bool = False
    is_gone: bool = False
    """Whether the last member has left."""


@dataclass(slots=True)
class Connection:
    """A connection that a client has introduced itself on."""

    peer: Peer
    client_id: str
    producer_groups: set[str] = field(default_factory=set)
    consumer_groups: dict[str, int] = field(default_factory=dict)
    """With how many bytes its subscriptions there take, about."""
    wants_full: bool = True
    """5.x: whether the next heartbeat should carry subscriptions."""


def check_heartbeat(data: Heartbeat, connection: Connection | None) -> None:
    """Refuse a heartbeat that names or brings more than a broker keeps of one connection.

    Raises:
        InvalidValue: says what is too much.
    """
    check_client_id(data.client_id)
    producer_groups = {producer.group_name for producer in data.producer_data_set}
    consumer_groups = {
        consumer.group_name: subscription_bytes(consumer) for consumer in data.consumer_data_set
    }
    for name in (*producer_groups, *consumer_groups):
        _check_length("group", name, GROUP_BYTES_MAX)
    for consumer in data.consumer_data_set:
        _check_subscriptions(consumer)
    if connection is not None and connection.client_id == data.client_id:
        producer_groups |= connection.producer_groups
        consumer_groups = {**connection.consumer_groups, **consumer_groups}
    for what, count in (("producer", len(producer_groups)), ("consumer", len(consumer_groups))):
        if count > CLIENT_GROUPS_MAX:
            raise InvalidValue(
                f"client {shown(data.client_id)!r} is in {count} {what} groups: at most "
                f"{CLIENT_GROUPS_MAX} over one connection"
            )
    if (size := sum(consumer_groups.values())) > CLIENT_SUBSCRIPTION_BYTES_MAX:
        raise InvalidValue(
            f"client {shown(data.client_id)!r} has subscriptions of {size} bytes: at most "
            f"{CLIENT_SUBSCRIPTION_BYTES_MAX} over one connection"
        )


def subscription_bytes(consumer: ConsumerData) -> int:
    """Return about how many bytes the subscriptions of a member take."""
    return sum(
        _SUBSCRIPTION_BYTES
        + len(each.topic)
        + len(each.expression)
        + _TAG_BYTES * (len(each.tags) + len(each.tag_codes))
        for each in consumer.subscription_data_set
    )


def _check_subscriptions(consumer: ConsumerData) -> None:
    count = len(consumer.subscription_data_set)
    if count > MEMBER_SUBSCRIPTIONS_MAX:
        raise InvalidValue(
            f"group {shown(consumer.group_name)!r} subscribes to {count} topics: at most "
            f"{MEMBER_SUBSCRIPTIONS_MAX}"
        )
    for subscription in consumer.subscription_data_set:
        _check_length("topic", subscription.topic, SYSTEM_TOPIC_BYTES_MAX)
        tags = max(len(subscription.tags), len(subscription.tag_codes))
        if tags > SUBSCRIPTION_TAGS_MAX:
            raise InvalidValue(
                f"the subscription to {subscription.topic!r} has {tags} tags: at most "
                f"{SUBSCRIPTION_TAGS_MAX}"
            )
        if len(subscription.expression) > SUBSCRIPTION_CHARACTERS_MAX:
            raise InvalidValue(
                f"the subscription to {subscription.topic!r} has {len(subscription.expression)} "
                f"characters: at most {SUBSCRIPTION_CHARACTERS_MAX}"
            )


def _check_length(what: str, name: str, bytes_max: int) -> None:
    """Names of peers are keys here and nothing else, so only their length matters."""
    size = len(name.encode(errors="surrogatepass"))
    if not 0 < size <= bytes_max:
        raise InvalidValue(
            f"{what} {shown(name)!r} has {size} bytes: use at least 1 and at most {bytes_max}"
        )
