"""How the attributes of a value are called on the wire.

Body types spell their names themselves: camel case by rule, exceptions with `field(name=..)`.
Values of `model` know nothing of the wire: the names that are not their attributes' camel case are
here.
"""

from functools import cache
from typing import Final, NamedTuple

import msgspec

from gantrymq.model.group import (
    CustomizedRetryPolicy,
    ExponentialRetryPolicy,
    RetryPolicy,
    Subscription,
    SubscriptionGroup,
)
from gantrymq.model.offsets import DataVersion
from gantrymq.model.route import BrokerData, QueueData, QueueMapping, TopicRoute
from gantrymq.model.topic import TopicConfig


class Body(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What all JSON bodies that are not model values derive from."""


class WireField(NamedTuple):
    """One attribute of a value."""

    attribute: str
    name: str
    hint: object
    required: bool
    only_if_true: bool
    """Left out when false, which every reader takes for the same."""


_QUEUES: Final = {
    "read_queues": "readQueueNums",
    "write_queues": "writeQueueNums",
    "system_flags": "topicSysFlag",
}
_MODEL_NAMES: Final[dict[type, dict[str, str]]] = {
    DataVersion: {"timestamp_ms": "timestamp"},
    TopicConfig: {**_QUEUES, "name": "topicName", "filter_type": "topicFilterType"},
    QueueData: _QUEUES,
    BrokerData: {
        "name": "brokerName",
        "addresses": "brokerAddrs",
        "zone": "zoneName",
        "acting_master": "enableActingMaster",
    },
    QueueMapping: {"broker_name": "bname", "current_ids": "currIdMap"},
    TopicRoute: {
        "queues": "queueDatas",
        "brokers": "brokerDatas",
        "order_conf": "orderTopicConf",
        "filter_servers": "filterServerTable",
        "mappings": "topicQueueMappingByBroker",
    },
    ExponentialRetryPolicy: {"initial_ms": "initial", "max_ms": "max"},
    CustomizedRetryPolicy: {"delays_ms": "next"},
    RetryPolicy: {
        "exponential": "exponentialRetryPolicy",
        "customized": "customizedRetryPolicy",
    },
    SubscriptionGroup: {
        "name": "groupName",
        "consume_enabled": "consumeEnable",
        "consume_from_min_enabled": "consumeFromMinEnable",
        "broadcast_enabled": "consumeBroadcastEnable",
        "orderly": "consumeMessageOrderly",
        "retry_queues": "retryQueueNums",
        "retry_times_max": "retryMaxTimes",
        "retry_policy": "groupRetryPolicy",
        "slow_reader_broker_id": "whichBrokerWhenConsumeSlowly",
        "notify_members": "notifyConsumerIdsChangedEnable",
        "system_flags": "groupSysFlag",
        "consume_timeout_min": "consumeTimeoutMinute",
        "subscriptions": "subscriptionDataSet",
    },
    Subscription: {
        "expression": "subString",
        "tags": "tagsSet",
        "tag_codes": "codeSet",
        "version": "subVersion",
        "class_filter": "classFilterMode",
    },
}


_ONLY_IF_TRUE: Final = frozenset({(BrokerData, "acting_master")})
"""pyrocketmq reads routes as Python literals and knows no `false`; 4.9 never sends it one."""


@cache
def wire_fields(kind: type[msgspec.Struct]) -> tuple[WireField, ...]:
    """Return the fields of a value in the order of their names on the wire."""
    names = {
        attribute: name
        for parent in reversed(kind.__mro__)
        for attribute, name in _MODEL_NAMES.get(parent, {}).items()
    }
    fields = [
        WireField(
            info.name,
            names.get(info.name) or _camel(info.name, info.encode_name),
            info.type,
            info.required,
            (kind, info.name) in _ONLY_IF_TRUE,
        )
        for info in msgspec.structs.fields(kind)
    ]
    return tuple(sorted(fields, key=lambda field: field.name))


def _camel(attribute: str, spelled: str) -> str:
    """Return the name that a body type gave, or the camel case of a model value's attribute."""
    if spelled != attribute:
        return spelled
    first, *others = attribute.split("_")
    return first + "".join(word.capitalize() for word in others)
