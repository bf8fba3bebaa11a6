"""Requests that this broker does not serve, each with a sentence that says what to do instead."""

from __future__ import annotations

from typing import Final

from gantrymq.wire.codes import RequestCode

_STATIC: Final = (
    "static topics are not supported here; make an ordinary topic with updateTopic, and add "
    "queues or brokers to it"
)
_COLD: Final = (
    "cold reads are not limited by group here: they are read on a thread of their own, and never "
    "hold up producers"
)
_ROCKSDB: Final = "there is no RocksDB here: queues and tables are plain files"
_CONTAINER: Final = "this is no broker container; start another broker with gantrymq broker"
_CONTROLLER: Final = "there is no controller here; see automatic failover in the documentation"
_LITE: Final = "light topics are not supported here; use an ordinary topic, filtered by tags"

_NAME_SERVER: Final = (
    "this is a broker, and that a question for a name server: check the addresses of name servers "
    "that the client was given (their port is 9876 as a rule, a broker's 10911)"
)
_CLIENT: Final = "brokers ask clients this, and clients answer; nobody asks a broker"
_MEMBERS: Final = "the brokers of a group do not stand in for each other here; nothing is exchanged"

REFUSED: Final[dict[int, str]] = {
    RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC: _STATIC,
    RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG: _COLD,
    RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG: _COLD,
    RequestCode.SET_COMMITLOG_READ_MODE: (
        "how the log is read ahead is not set from outside here; the machine decides"
    ),
    RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS: _ROCKSDB,
    RequestCode.EXPORT_ROCKSDB_CONFIG_TO_JSON: _ROCKSDB,
    RequestCode.SWITCH_TIMER_ENGINE: (
        "there is one way of keeping timers here, and nothing to switch to"
    ),
    RequestCode.ADD_BROKER: _CONTAINER,
    RequestCode.REMOVE_BROKER: _CONTAINER,
    RequestCode.RESET_MASTER_FLUSH_OFFSET: (
        "a slave keeps no master's flush offset here; nothing has to be reset"
    ),
    **dict.fromkeys(
        (
            RequestCode.GET_BROKER_EPOCH_CACHE,
            RequestCode.NOTIFY_BROKER_ROLE_CHANGED,
            RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET,
            RequestCode.CONTROLLER_ELECT_MASTER,
            RequestCode.CONTROLLER_REGISTER_BROKER,
            RequestCode.CONTROLLER_GET_REPLICA_INFO,
            RequestCode.CONTROLLER_GET_METADATA_INFO,
            RequestCode.CONTROLLER_GET_SYNC_STATE_DATA,
            RequestCode.UPDATE_CONTROLLER_CONFIG,
            RequestCode.GET_CONTROLLER_CONFIG,
            RequestCode.CLEAN_BROKER_DATA,
            *range(1012, 1019),
        ),
        _CONTROLLER,
    ),
    **dict.fromkeys(
        (
            RequestCode.PUT_KV_CONFIG,
            RequestCode.GET_KV_CONFIG,
            RequestCode.DELETE_KV_CONFIG,
            RequestCode.REGISTER_BROKER,
            RequestCode.UNREGISTER_BROKER,
            RequestCode.GET_ROUTEINFO_BY_TOPIC,
            RequestCode.GET_BROKER_CLUSTER_INFO,
            RequestCode.WIPE_WRITE_PERM_OF_BROKER,
            RequestCode.ADD_WRITE_PERM_OF_BROKER,
            RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
            RequestCode.DELETE_TOPIC_IN_NAMESRV,
            RequestCode.REGISTER_TOPIC_IN_NAMESRV,
            RequestCode.GET_KVLIST_BY_NAMESPACE,
            RequestCode.GET_TOPICS_BY_CLUSTER,
            RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS,
            RequestCode.GET_UNIT_TOPIC_LIST,
            RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST,
            RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
            RequestCode.UPDATE_NAMESRV_CONFIG,
            RequestCode.GET_NAMESRV_CONFIG,
            RequestCode.QUERY_DATA_VERSION,
            RequestCode.GET_BROKER_MEMBER_GROUP,
            RequestCode.BROKER_HEARTBEAT,
        ),
        _NAME_SERVER,
    ),
    **dict.fromkeys(
        (
            RequestCode.CHECK_TRANSACTION_STATE,
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
            RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT,
            RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT,
        ),
        _CLIENT,
    ),
    RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE: _MEMBERS,
    RequestCode.EXCHANGE_BROKER_HA_INFO: _MEMBERS,
    **dict.fromkeys(range(200070, 200080), _LITE),
}
"""Request code to the remark of its refusal (REQUEST_CODE_NOT_SUPPORTED)."""
