"""Which permissions a request needs: the one table, for brokers and name servers.

    nothing named    a code that is not here needs an administrator: new codes are closed
    ACCOUNT          any account will do: routes, and what every client asks
    topic and group  the permissions of Apache's PlainAccessValidator, for all codes of producers
                     and consumers

4.9.7 looks at nine codes and lets any account do the rest, batches, accounts and settings of the
broker included. Here a code that touches a topic or a group needs a permission for it, whichever
form of the request it is, and what touches everything needs an administrator.

A request is read here as its handler reads it: by the same schemas and the same field names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import ContentError
from gantrymq.model.names import retry_topic
from gantrymq.security.accounts import LOOKING, Permission, is_group
from gantrymq.wire.bodies.assignment import ASSIGNMENT_QUERY, BATCH_ACK
from gantrymq.wire.bodies.group import GROUP_CONFIG
from gantrymq.wire.bodies.heartbeat import HEARTBEAT
from gantrymq.wire.bodies.lock import LOCK_REQUEST
from gantrymq.wire.codes import RequestCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gantrymq.wire.command import Command

PUB: Final = Permission.PUB
SUB: Final = Permission.SUB
MANAGE: Final = Permission.MANAGE
REPLY_SUFFIX: Final = "_REPLY_TOPIC"
POP_RETRY_SEPARATOR: Final = "+"


class Need(NamedTuple):
    """A topic, or a group by its retry topic, and what it takes: any of these permissions."""

    resource: str
    wanted: Permission


class Needs(NamedTuple):
    """What a request needs."""

    admin: bool = False
    resources: tuple[Need, ...] = ()


ACCOUNT: Final = Needs()
ADMIN: Final = Needs(admin=True)


def topic_need(topic: str, wanted: Permission) -> Need:
    """Return what a topic takes; a retry topic is its group's, who must be a consumer."""
    if not is_group(topic):
        return Need(topic, wanted)
    return Need(topic.partition(POP_RETRY_SEPARATOR)[0], SUB)


def group_need(group: str, wanted: Permission = SUB) -> Need:
    """Return what a consumer group takes."""
    return Need(retry_topic(group), wanted)


def _field(request: Command, name: str) -> str:
    text = request.fields.get(name)
    if text is None:
        raise ContentError(f"header.extFields.{name}", "is missing")
    return text


def _topic(name: str, wanted: Permission) -> Callable[[Command], Iterator[Need]]:
    def needs(request: Command) -> Iterator[Need]:
        yield topic_need(_field(request, name), wanted)

    return needs


def _group(name: str, wanted: Permission = SUB) -> Callable[[Command], Iterator[Need]]:
    def needs(request: Command) -> Iterator[Need]:
        yield group_need(_field(request, name), wanted)

    return needs


def _both(
    group: str, topic: str = "topic", wanted: Permission = SUB
) -> Callable[[Command], Iterator[Need]]:
    def needs(request: Command) -> Iterator[Need]:
        yield group_need(_field(request, group), wanted)
        yield topic_need(_field(request, topic), wanted)

    return needs


def _reply(name: str) -> Callable[[Command], Iterator[Need]]:
    """Answers of request-reply: whoever was asked may answer, and into no other topic."""

    def needs(request: Command) -> Iterator[Need]:
        topic = _field(request, name)
        if not topic.endswith(REPLY_SUFFIX):
            yield topic_need(topic, PUB)

    return needs


def _heartbeat(request: Command) -> Iterator[Need]:
    for consumer in HEARTBEAT.decode(request.body).consumer_data_set:
        yield group_need(consumer.group_name)
        for subscription in consumer.subscription_data_set:
            yield topic_need(subscription.topic, SUB)


def _leaving(request: Command) -> Iterator[Need]:
    if group := request.fields.get("consumerGroup"):
        yield group_need(group)


def _locks(request: Command) -> Iterator[Need]:
    asked = LOCK_REQUEST.decode(request.body)
    yield group_need(asked.consumer_group)
    for queue in asked.mq_set:
        yield topic_need(queue.topic, SUB)


def _assignment(request: Command) -> Iterator[Need]:
    asked = ASSIGNMENT_QUERY.decode(request.body)
    yield group_need(asked.consumer_group)
    yield topic_need(asked.topic, SUB)


def _batch_ack(request: Command) -> Iterator[Need]:
    for ack in BATCH_ACK.decode(request.body).acks:
        yield group_need(ack.group)
        yield topic_need(ack.topic, SUB)


def _subscription(request: Command) -> Iterator[Need]:
    yield group_need(_field(request, "group"), LOOKING)
    if topic := request.fields.get("topic"):
        yield topic_need(topic, LOOKING)


_CODE: Final = RequestCode
OF_ACCOUNTS: Final = frozenset(
    {
        _CODE.CHECK_CLIENT_CONFIG,
        _CODE.GET_ROUTEINFO_BY_TOPIC,
        _CODE.GET_BROKER_CLUSTER_INFO,
        _CODE.GET_BROKER_MEMBER_GROUP,
        _CODE.GET_KV_CONFIG,
        # These two name a place in the log; `broker.protection` asks about the topic found there.
        _CODE.VIEW_MESSAGE_BY_ID,
        _CODE.END_TRANSACTION,
    }
)
"""Any account will do."""

OF_RESOURCES: Final[dict[int, Callable[[Command], Iterator[Need]]]] = {
    _CODE.SEND_MESSAGE: _topic("topic", PUB),
    _CODE.SEND_MESSAGE_V2: _topic("b", PUB),
    _CODE.SEND_BATCH_MESSAGE: _topic("b", PUB),
    _CODE.RECALL_MESSAGE: _topic("topic", PUB),
    _CODE.SEND_REPLY_MESSAGE: _reply("topic"),
    _CODE.SEND_REPLY_MESSAGE_V2: _reply("b"),
    _CODE.PULL_MESSAGE: _both("consumerGroup"),
    _CODE.LITE_PULL_MESSAGE: _both("consumerGroup"),
    _CODE.CONSUMER_SEND_MSG_BACK: _group("group"),
    _CODE.QUERY_MESSAGE: _topic("topic", SUB),
    _CODE.QUERY_CONSUME_QUEUE: _topic("topic", SUB),
    _CODE.HEART_BEAT: _heartbeat,
    _CODE.UNREGISTER_CLIENT: _leaving,
    _CODE.GET_CONSUMER_LIST_BY_GROUP: _group("consumerGroup"),
    _CODE.QUERY_CONSUMER_OFFSET: _both("consumerGroup"),
    _CODE.UPDATE_CONSUMER_OFFSET: _both("consumerGroup"),
    _CODE.LOCK_BATCH_MQ: _locks,
    _CODE.UNLOCK_BATCH_MQ: _locks,
    _CODE.QUERY_ASSIGNMENT: _assignment,
    _CODE.POP_MESSAGE: _both("consumerGroup"),
    _CODE.ACK_MESSAGE: _both("consumerGroup"),
    _CODE.BATCH_ACK_MESSAGE: _batch_ack,
    _CODE.PEEK_MESSAGE: _both("consumerGroup"),
    _CODE.CHANGE_MESSAGE_INVISIBLETIME: _both("consumerGroup"),
    _CODE.NOTIFICATION: _both("consumerGroup"),
    _CODE.POLLING_INFO: _both("consumerGroup"),
    # Looking: whoever writes or reads a topic, or consumes as a group, may look at it.
    _CODE.SEARCH_OFFSET_BY_TIMESTAMP: _topic("topic", LOOKING),
    _CODE.GET_MAX_OFFSET: _topic("topic", LOOKING),
    _CODE.GET_MIN_OFFSET: _topic("topic", LOOKING),
    _CODE.GET_EARLIEST_MSG_STORETIME: _topic("topic", LOOKING),
    _CODE.GET_TOPIC_STATS_INFO: _topic("topic", LOOKING),
    _CODE.GET_TOPIC_CONFIG: _topic("topic", LOOKING),
    _CODE.QUERY_TOPIC_CONSUME_BY_WHO: _topic("topic", LOOKING),
    _CODE.GET_CONSUMER_CONNECTION_LIST: _group("consumerGroup", LOOKING),
    _CODE.GET_CONSUME_STATS: _group("consumerGroup", LOOKING),
    _CODE.GET_SUBSCRIPTIONGROUP_CONFIG: _group("group", LOOKING),
    _CODE.QUERY_TOPICS_BY_CONSUMER: _group("group", LOOKING),
    _CODE.QUERY_SUBSCRIPTION_BY_CONSUMER: _subscription,
    _CODE.QUERY_CONSUME_TIME_SPAN: _both("group", wanted=LOOKING),
}
"""What is needed of topics and groups."""


def needs_of(code: int, request: Command) -> Needs:
    """Return what a request needs; `code` is the whole one, where a binary header cuts it.

    Raises:
        ContentError: what it is about cannot be read.
    """
    found = OF_RESOURCES.get(code)
    if found is not None:
        return Needs(resources=tuple(dict.fromkeys(found(request))))
    return ACCOUNT if code in OF_ACCOUNTS else ADMIN


def _managed_topic(name: str) -> Callable[[Command], Iterator[Need]]:
    def needs(request: Command) -> Iterator[Need]:
        topic = _field(request, name)
        yield Need(topic_need(topic, MANAGE).resource, MANAGE)

    return needs


def _managed_group(request: Command) -> Iterator[Need]:
    yield group_need(GROUP_CONFIG.decode(request.body).name, MANAGE)


OF_MANAGERS: Final[dict[int, Callable[[Command], Iterator[Need]]]] = {
    _CODE.UPDATE_AND_CREATE_TOPIC: _managed_topic("topic"),
    _CODE.DELETE_TOPIC_IN_BROKER: _managed_topic("topic"),
    _CODE.DELETE_TOPIC_IN_NAMESRV: _managed_topic("topic"),
    _CODE.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: _managed_group,
    _CODE.DELETE_SUBSCRIPTIONGROUP: _group("groupName", MANAGE),
    _CODE.INVOKE_BROKER_TO_RESET_OFFSET: _group("group", MANAGE),
}
"""What those may do, among the requests for operators, who may manage a topic or group by name."""


def managed_by(code: int, request: Command) -> tuple[Need, ...]:
    """Return what it takes to make a request without being an operator; nothing: it cannot be.

    Raises:
        ContentError: what it is about cannot be read.
    """
    found = OF_MANAGERS.get(code)
    return () if found is None else tuple(dict.fromkeys(found(request)))
