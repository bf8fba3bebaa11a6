"""How far up one must be for requests that are about the whole server: look, operate, administer.

Accounts of Apache's files know one such step, `admin`. Users have three, which are the roles of the
dashboard. What is in neither of the two lists below needs an administrator: the accounts and users,
settings, files of the store, key-value configuration, brokers that register, and every new code.
"""

from __future__ import annotations

from typing import Final

from gantrymq.model.roles import Role
from gantrymq.wire.codes import RequestCode

_CODE: Final = RequestCode
VIEWERS: Final = frozenset(
    {
        _CODE.QUERY_BROKER_OFFSET,
        _CODE.GET_ALL_TOPIC_CONFIG,
        _CODE.GET_TOPIC_CONFIG_LIST,
        _CODE.GET_TOPIC_NAME_LIST,
        _CODE.GET_BROKER_CONFIG,  # secrets among them are masked
        _CODE.GET_BROKER_RUNTIME_INFO,
        _CODE.GET_ALL_CONSUMER_OFFSET,
        _CODE.GET_ALL_DELAY_OFFSET,
        _CODE.GET_TIMER_CHECK_POINT,
        _CODE.GET_TIMER_METRICS,
        _CODE.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
        _CODE.GET_PRODUCER_CONNECTION_LIST,
        _CODE.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
        _CODE.WHO_CONSUME_THE_MESSAGE,
        _CODE.GET_KVLIST_BY_NAMESPACE,
        _CODE.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
        _CODE.GET_TOPICS_BY_CLUSTER,
        _CODE.GET_SYSTEM_TOPIC_LIST_FROM_NS,
        _CODE.GET_SYSTEM_TOPIC_LIST_FROM_BROKER,
        _CODE.GET_CONSUMER_RUNNING_INFO,
        _CODE.QUERY_CORRECTION_OFFSET,
        _CODE.GET_UNIT_TOPIC_LIST,
        _CODE.GET_HAS_UNIT_SUB_TOPIC_LIST,
        _CODE.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
        _CODE.VIEW_BROKER_STATS_DATA,
        _CODE.GET_BROKER_CONSUME_STATS,
        _CODE.GET_NAMESRV_CONFIG,
        _CODE.GET_ALL_PRODUCER_INFO,
        _CODE.GET_ALL_MESSAGE_REQUEST_MODE,
        _CODE.GET_BROKER_HA_STATUS,
        _CODE.GET_BROKER_EPOCH_CACHE,
        _CODE.GET_COLD_DATA_FLOW_CTR_INFO,
    }
)
"""They change nothing and show no message."""

OPERATORS: Final = frozenset(
    {
        _CODE.UPDATE_AND_CREATE_TOPIC,
        _CODE.UPDATE_AND_CREATE_TOPIC_LIST,
        _CODE.UPDATE_AND_CREATE_STATIC_TOPIC,
        _CODE.DELETE_TOPIC_IN_BROKER,
        _CODE.DELETE_TOPIC_IN_NAMESRV,
        _CODE.REGISTER_TOPIC_IN_NAMESRV,
        _CODE.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
        _CODE.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
        _CODE.DELETE_SUBSCRIPTIONGROUP,
        _CODE.UPDATE_AND_GET_GROUP_FORBIDDEN,
        _CODE.INVOKE_BROKER_TO_RESET_OFFSET,
        _CODE.CLONE_GROUP_OFFSET,
        _CODE.SET_MESSAGE_REQUEST_MODE,
        _CODE.CONSUME_MESSAGE_DIRECTLY,
        _CODE.RESUME_CHECK_HALF_MESSAGE,
        _CODE.WIPE_WRITE_PERM_OF_BROKER,
        _CODE.ADD_WRITE_PERM_OF_BROKER,
    }
)
"""They change topics, groups and where groups are: what a service needs from day to day."""


def level_of(code: int) -> Role:
    """Return who may make a request that is about the whole server."""
    if code in VIEWERS:
        return Role.VIEWER
    return Role.OPERATOR if code in OPERATORS else Role.ADMIN
