"""Which body belongs to which request code, both ways.

A code that is not here carries no body in either direction. An answer carries its body with
response code 0 only, except those of 307 and 309, which a broker hands on as the client gave them.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from gantrymq.wire.bodies import (
    assignment,
    auth,
    connections,
    group,
    heartbeat,
    lock,
    offsets,
    queues,
    registration,
    replication,
    reset,
    route,
    running,
    stats,
    topic,
)
from gantrymq.wire.bodies.codec import RAW, RECORDS, TEXT, Codec
from gantrymq.wire.bodies.settings import SETTINGS


class Bodies(NamedTuple):
    """The bodies of a request code; None where there is none."""

    request: Codec[Any] | None = None
    response: Codec[Any] | None = None


_TOPIC_LIST: Final = Bodies(response=topic.TOPIC_LIST)
_SEND: Final = Bodies(RAW)
_RECORDS: Final = Bodies(response=RECORDS)

BODIES: Final[Mapping[int, Bodies]] = {
    10: _SEND,
    11: _RECORDS,
    12: _RECORDS,
    18: Bodies(topic.TOPIC_CONFIG_LIST),
    21: Bodies(response=topic.TOPIC_TABLE),
    25: Bodies(SETTINGS),
    26: Bodies(response=SETTINGS),
    28: Bodies(response=route.KV_TABLE),
    33: _RECORDS,
    34: Bodies(heartbeat.HEARTBEAT),
    38: Bodies(response=heartbeat.CONSUMER_IDS),
    39: Bodies(RECORDS),
    41: Bodies(lock.LOCK_REQUEST, lock.LOCK_ANSWER),
    42: Bodies(lock.LOCK_REQUEST),
    43: Bodies(response=offsets.CONSUMER_OFFSETS),
    45: Bodies(response=offsets.DELAY_OFFSETS),
    46: Bodies(heartbeat.CLIENT_CHECK),
    54: Bodies(response=auth.ACL_CONFIG),
    60: Bodies(response=offsets.TIMER_CHECKPOINT),
    61: Bodies(response=offsets.TIMER_METRICS),
    103: Bodies(registration.REGISTRATION, route.KV_TABLE),
    105: Bodies(response=route.TOPIC_ROUTE),
    106: Bodies(response=route.CLUSTER_INFO),
    200: Bodies(group.GROUP_CONFIG),
    201: Bodies(response=group.GROUP_TABLE),
    202: Bodies(response=stats.TOPIC_STATS),
    203: Bodies(response=connections.CONSUMER_CONNECTIONS),
    204: Bodies(response=connections.PRODUCER_CONNECTIONS),
    206: _TOPIC_LIST,
    208: Bodies(response=stats.CONSUME_STATS),
    217: Bodies(route.TOPIC_ROUTE),
    219: Bodies(response=route.KV_TABLE),
    220: Bodies(reset.RESET_OFFSETS),
    221: Bodies(response=offsets.CONSUMER_STATUS),
    222: Bodies(response=reset.RESET_OFFSETS),
    223: Bodies(response=offsets.CONSUMER_STATUS),
    224: _TOPIC_LIST,
    225: Bodies(group.GROUP_CONFIG_LIST),
    300: Bodies(response=group.GROUP_LIST),
    303: Bodies(response=stats.CONSUME_TIME_SPAN),
    304: _TOPIC_LIST,
    305: _TOPIC_LIST,
    307: Bodies(response=running.CONSUMER_RUNNING_INFO),
    308: Bodies(response=offsets.CORRECTION_OFFSETS),
    309: Bodies(RECORDS, running.DIRECT_CONSUMPTION),
    310: _SEND,
    311: _TOPIC_LIST,
    312: _TOPIC_LIST,
    313: _TOPIC_LIST,
    315: Bodies(response=stats.BROKER_STATS),
    317: Bodies(response=stats.BROKER_CONSUME_STATS),
    318: Bodies(SETTINGS),
    319: Bodies(response=SETTINGS),
    320: _SEND,
    321: Bodies(response=queues.QUEUE_ENTRIES),
    322: Bodies(topic.DATA_VERSION, topic.DATA_VERSION),
    324: _SEND,
    325: _SEND,
    326: _SEND,
    328: Bodies(response=connections.PRODUCER_TABLE),
    343: _TOPIC_LIST,
    345: Bodies(response=group.GROUP_SUBSCRIPTION),
    351: Bodies(response=topic.MAPPED_TOPIC_CONFIG),
    352: Bodies(response=group.GROUP_CONFIG),
    353: Bodies(response=group.GROUP_FORBIDDEN),
    354: Bodies(response=queues.ROCKSDB_CHECK),
    361: _RECORDS,
    400: Bodies(assignment.ASSIGNMENT_QUERY, assignment.ASSIGNMENTS),
    401: Bodies(assignment.REQUEST_MODE_SETTING),
    402: Bodies(response=assignment.REQUEST_MODE_TABLE),
    513: Bodies(topic.QUEUE_MAPPING_DETAIL),
    901: Bodies(response=route.BROKER_MEMBER_GROUP),
    907: Bodies(response=replication.HA_STATUS),
    1001: Bodies(replication.SYNC_STATE_SET, replication.SYNC_STATE_SET),
    1002: Bodies(response=replication.ELECTED_MASTER),
    1003: Bodies(response=replication.SYNC_STATE_SET),
    1004: Bodies(response=replication.SYNC_STATE_SET),
    1006: Bodies(replication.BROKER_NAMES, replication.REPLICAS_TABLE),
    1007: Bodies(response=replication.EPOCH_CACHE),
    1008: Bodies(replication.SYNC_STATE_SET),
    1009: Bodies(SETTINGS),
    1010: Bodies(response=SETTINGS),
    2001: Bodies(SETTINGS),
    2002: Bodies(TEXT),
    2003: Bodies(response=replication.COLD_READ_CONTROL),
    3001: Bodies(auth.USER),
    3002: Bodies(auth.USER),
    3004: Bodies(response=auth.USER),
    3005: Bodies(response=auth.USERS),
    3006: Bodies(auth.ACL),
    3007: Bodies(auth.ACL),
    3009: Bodies(response=auth.ACL),
    3010: Bodies(response=auth.ACLS),
    200050: _RECORDS,
    200052: _RECORDS,
    200151: Bodies(assignment.BATCH_ACK),
}
"""Request code to the bodies of the request and of its answer."""

CONFIG_FILES: Final[Mapping[str, Codec[Any]]] = {
    "topics.json": topic.TOPIC_TABLE,
    "subscriptionGroup.json": group.GROUP_TABLE,
    "consumerOffset.json": offsets.CONSUMER_OFFSETS,
    "lmqConsumerOffset.json": offsets.CONSUMER_OFFSETS,
    "delayOffset.json": offsets.DELAY_OFFSETS,
    "consumerFilter.json": queues.CONSUMER_FILTERS,
    "consumerOrderInfo.json": offsets.ORDER_INFO_TABLE,
    "messageRequestMode.json": assignment.REQUEST_MODE_TABLE,
    "topicQueueMapping.json": topic.QUEUE_MAPPING_TABLE,
    "timermetrics": offsets.TIMER_METRICS,
    "timercheck": offsets.TIMER_CHECKPOINT,
    "transactionMetrics": offsets.TRANSACTION_METRICS,
    "kvConfig.json": route.KV_CONFIG,
}
"""Name of a file in `config/` (the last one is the name server's) to what it holds."""
