"""Sub-commands about consumer groups, their members, and producers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.admin import groups, topics
from gantrymq.cli.mqadmin.topics import read_list
from gantrymq.cli.output import Answer, Table, moment
from gantrymq.errors import InvalidValue
from gantrymq.model.group import RetryPolicy, SubscriptionGroup
from gantrymq.model.names import dlq_topic, retry_topic
from gantrymq.wire.bodies.assignment import (
    REQUEST_MODE_SETTING,
    RequestMode,
    RequestModeSetting,
)
from gantrymq.wire.bodies.codec import JsonBody
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.response_errors import SubscriptionGroupNotExist

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given
    from gantrymq.wire.bodies.connections import Connection

CONNECTION_HEADS = ("#ClientId", "#ClientAddr", "#Language", "#Version")
_SETTINGS = (
    ("groupName", "name"),
    ("consumeEnable", "consume_enabled"),
    ("consumeFromMinEnable", "consume_from_min_enabled"),
    ("consumeBroadcastEnable", "broadcast_enabled"),
    ("consumeMessageOrderly", "orderly"),
    ("retryQueueNums", "retry_queues"),
    ("retryMaxTimes", "retry_times_max"),
    ("brokerId", "broker_id"),
    ("whichBrokerWhenConsumeSlowly", "slow_reader_broker_id"),
    ("notifyConsumerIdsChangedEnable", "notify_members"),
)


def version_text(ordinal: int) -> str:
    """Return a release by its ordinal, as Apache's tools name it: `V4_9_7`."""
    from gantrymq.admin.versions import version_name  # noqa: PLC0415

    return version_name(ordinal)


_NEWER_SETTINGS: Final = (
    ("groupRetryPolicy", "retry_policy"),
    ("groupSysFlag", "system_flags"),
    ("consumeTimeoutMinute", "consume_timeout_min"),
    ("subscriptionDataSet", "subscriptions"),
    ("attributes", "attributes"),
)
"""What mqadmin 5.5.0 prints beside them; a 4.9 broker has their defaults."""


def _java_text(value: object) -> str:
    """Return a setting as mqadmin prints it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, RetryPolicy):
        kinds = (value.exponential, value.customized)
        known = ["null" if each is None else str(msgspec.to_builtins(each)) for each in kinds]
        return (
            f"GroupRetryPolicy{{type={value.type.name}, exponentialRetryPolicy={known[0]},"
            f" customizedRetryPolicy={known[1]}}}"
        )
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}={text}' for name, text in value.items())}}}"
    return str(value)


def group_data(group: SubscriptionGroup) -> dict[str, object]:
    """Return a group's settings under their names on the wire."""
    return {name: getattr(group, attribute) for name, attribute in _SETTINGS}


def group_text(group: SubscriptionGroup) -> str:
    """Return a group's settings as mqadmin prints them."""
    shown = ", ".join(
        f"{name}={str(value).lower() if isinstance(value, bool) else value}"
        for name, value in group_data(group).items()
    )
    return f"SubscriptionGroupConfig [{shown}]"


async def update_sub_group(session: Session, given: Given) -> Answer:
    """Make a group, or change it; what is not given has mqadmin's default."""
    group = SubscriptionGroup(
        name=given.text("groupName"),
        consume_enabled=given.yes("consumeEnable", default=True),
        consume_from_min_enabled=given.yes("consumeFromMinEnable", default=False),
        broadcast_enabled=given.yes("consumeBroadcastEnable", default=False),
        orderly=given.yes("consumeMessageOrderly"),
        retry_queues=given.number("retryQueueNums", 1),
        retry_times_max=given.number("retryMaxTimes", 16),
        broker_id=given.number("brokerId", 0),
        slow_reader_broker_id=given.number("whichBrokerWhenConsumeSlowly", 1),
        notify_members=given.yes("notifyConsumerIdsChanged", default=True),
    )
    addresses = await session.targets(given.maybe("brokerAddr"), given.maybe("clusterName"))
    for address in addresses:
        await groups.create_group(session, address, group)
    lines = [f"create subscription group to {address} success." for address in addresses]
    return Answer([*lines, group_text(group)], {"group": group_data(group), "brokers": addresses})


async def update_sub_group_list(session: Session, given: Given) -> Answer:
    """Make the groups of a file."""
    listed = read_list(given.text("filename"), "groups")
    made = JsonBody(tuple[SubscriptionGroup, ...]).decode(json.dumps(listed).encode())
    addresses = await session.targets(given.maybe("brokerAddr"), given.maybe("clusterName"))
    for address in addresses:
        await groups.create_groups(session, address, made)
    lines = [
        f"submit batch of subscription group to {address} success, please check the result later."
        for address in addresses
    ]
    return Answer([*lines], {"brokers": addresses, "groups": [group_data(group) for group in made]})


async def delete_sub_group(session: Session, given: Given) -> Answer:
    """Delete a group; from a cluster also its retry and dead-letter topics."""
    group, cluster = given.text("groupName"), given.maybe("clusterName")
    broker, remove = given.maybe("brokerAddr"), given.yes("removeOffset")
    addresses = await session.targets(broker, cluster)
    answer = Answer(data={"group": group, "brokers": addresses, "offsetsRemoved": remove})
    for address in addresses:
        await groups.delete_group(session, address, group, remove_offsets=remove)
        where = f"broker [{address}]" + ("" if broker else f" in cluster [{cluster}]")
        answer.parts.append(f"delete subscription group [{group}] from {where} success.")
    if not broker:
        for topic in (retry_topic(group), dlq_topic(group)):
            for address in addresses:
                await topics.delete_topic_on_broker(session, address, topic)
            told = await topics.delete_topic_from_name_servers(session, topic, cluster)
            answer.problems += told.complaints
            answer.parts += [
                f"delete topic [{topic}] from cluster [{cluster}] success.",
                f"delete topic [{topic}] from NameServer success.",
            ]
    return answer


async def get_consumer_config(session: Session, given: Given) -> Answer:
    """Say a group's settings on every broker."""
    group = given.text("groupName")
    info = await session.cluster()
    answers = await groups.group_settings(session, group)
    found = {name: each for name, each in answers.found.items() if each is not None}
    if not found:
        answers.check()
        raise SubscriptionGroupNotExist(f"no broker has the group {group}")
    answer = Answer(data={}, problems=answers.complaints)
    data: dict[str, object] = {}
    for name, each in found.items():
        cluster = info.broker_addr_table[name].cluster
        answer.parts.append(
            f"============================={cluster}:{name}============================="
        )
        told = {**group_data(each), **{key: getattr(each, name) for key, name in _NEWER_SETTINGS}}
        answer.parts += [f"{key:<50}=  {_java_text(value)}" for key, value in told.items()]
        data[name] = msgspec.to_builtins({"cluster": cluster, **told})
    answer.data = data
    return answer


async def set_consume_mode(session: Session, given: Given) -> Answer:
    """Have a group pull or pop a topic."""
    word = given.text("mode").upper()
    if word not in RequestMode.__members__:
        raise InvalidValue(f"--mode is {word!r}: give PULL or POP")
    setting = RequestModeSetting(
        topic=given.text("topicName"),
        consumer_group=given.text("groupName"),
        mode=RequestMode[word],
        pop_share_queue_num=given.number("popShareQueueNum", 0),
    )
    addresses = await session.targets(given.maybe("brokerAddr"), given.maybe("clusterName"))
    body = REQUEST_MODE_SETTING.encode(setting)
    for address in addresses:
        await session.remote.call(address, RequestCode.SET_MESSAGE_REQUEST_MODE, None, body)
    lines = [f"set consume mode to {address} success." for address in addresses]
    told = (
        f"topic[{setting.topic}] group[{setting.consumer_group}] consume mode[{word}]"
        f" popShareQueueNum[{setting.pop_share_queue_num}]"
    )
    return Answer([*lines, told], {"brokers": addresses, "mode": word})


def connection_rows(connections: Iterable[Connection]) -> list[tuple[object, ...]]:
    """Return rows of clients."""
    return [
        (each.client_id, each.client_addr, each.language, version_text(each.version))
        for each in connections
    ]


async def consumer_connection(session: Session, given: Given) -> Answer:
    """Say who is in a group, and what they take."""
    told = await groups.members(session, given.text("consumerGroup"), given.maybe("brokerAddr"))
    taken = sorted(told.told.subscription_table.items())
    members = Table(CONNECTION_HEADS, connection_rows(told.connections))
    subscriptions = Table(
        ("#Topic", "#SubExpression"), [(topic, each.expression) for topic, each in taken]
    )
    kinds = {
        "ConsumeType": told.told.consume_type,
        "MessageModel": told.told.message_model,
        "ConsumeFromWhere": told.told.consume_from_where,
    }
    words = {name: "" if kind is None else kind.name for name, kind in kinds.items()}
    data = {
        "members": members.data(),
        "subscriptions": subscriptions.data(),
        **{name[:1].lower() + name[1:]: word for name, word in words.items()},
        "mismatch": msgspec.to_builtins(told.told.mismatch or ()),
    }
    lines = [f"{name}: {word}" for name, word in words.items()]
    problems = [f"{name}: {error}" for name, error in told.problems.items()]
    if told.told.mismatch:
        problems.append("members subscribe differently, which loses messages: see mismatch")
    parts: list[Table | str] = [
        members, "\nBelow is subscription:", subscriptions, "", *lines,
    ]  # fmt: skip
    return Answer(parts, data, problems)


async def producer_connection(session: Session, given: Given) -> Answer:
    """Say who produces, in a group for a topic."""
    found = await groups.producers_of_topic(
        session, given.text("producerGroup"), given.text("topic")
    )
    return Answer([Table(CONNECTION_HEADS, connection_rows(found))])


async def producer(session: Session, given: Given) -> Answer:
    """Say all producers of a broker."""
    table = await groups.producers(session, given.text("broker"))
    rows = [
        (
            group, each.client_id, each.remote_ip, each.language, version_text(each.version),
            moment(each.last_update_timestamp),
        )
        for group, found in sorted(table.items())
        for each in found
    ]  # fmt: skip
    heads = ("#Group", "#ClientId", "#ClientAddr", "#Language", "#Version", "#Last Heard")
    return Answer([Table(heads, rows)])
