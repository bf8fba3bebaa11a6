"""Which header schemas belong to which request code: the one table of them.

`request` and `response` are None where Apache's brokers do not handle the code, or where its
fields are not known here (the LITE family); such a request is answered with
REQUEST_CODE_NOT_SUPPORTED. `NoFields` says that there are no ext fields, which is different.

A response has all its required fields only with the codes in `full_on`; with another code it may
have some of them, or none.
"""

from typing import Final, NamedTuple

from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.fields import Header
from gantrymq.wire.headers import (
    acl,
    admin,
    client,
    controller,
    group,
    ha,
    namesrv,
    offset,
    pop,
    pull,
    query,
    send,
    targets,
    topic,
    transaction,
)
from gantrymq.wire.headers.envelope import NoFields

_SUCCESS: Final = frozenset({ResponseCode.SUCCESS})
_STORED: Final = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.FLUSH_DISK_TIMEOUT,
        ResponseCode.FLUSH_SLAVE_TIMEOUT,
        ResponseCode.SLAVE_NOT_AVAILABLE,
    }
)
_PULLED: Final = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        ResponseCode.PULL_OFFSET_MOVED,
    }
)
_QUERIED: Final = frozenset({ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND})


class Schemas(NamedTuple):
    """The headers of one request code."""

    request: type[Header] | None
    response: type[Header] | None = NoFields
    full_on: frozenset[ResponseCode] = _SUCCESS
    """Response codes with which the response has all its required fields."""


_NOTHING: Final = Schemas(NoFields)
_NOT_HANDLED: Final = Schemas(None, None)
_SEND: Final = Schemas(send.SendMessageRequest, send.SendMessageResponse, _STORED)
_SEND_V2: Final = Schemas(send.SendMessageV2Request, send.SendMessageResponse, _STORED)
_PULL: Final = Schemas(pull.PullMessageRequest, pull.PullMessageResponse, _PULLED)
_TOPIC: Final = Schemas(targets.TopicRequest)
_GROUP: Final = Schemas(targets.GroupRequest)
_CONSUMER_GROUP: Final = Schemas(targets.ConsumerGroupRequest)
_QUEUE_OFFSET: Final = Schemas(targets.QueueRequest, offset.OffsetResponse)
_USER: Final = Schemas(acl.UserRequest)
_SUBJECT: Final = Schemas(acl.SubjectRequest)

_CODE = RequestCode

_MESSAGES: Final = {
    _CODE.SEND_MESSAGE: _SEND,
    _CODE.SEND_MESSAGE_V2: _SEND_V2,
    _CODE.SEND_BATCH_MESSAGE: _SEND_V2,
    _CODE.SEND_REPLY_MESSAGE: _SEND,
    _CODE.SEND_REPLY_MESSAGE_V2: _SEND_V2,
    _CODE.PUSH_REPLY_MESSAGE_TO_CLIENT: Schemas(send.PushReplyMessageRequest),
    _CODE.CONSUMER_SEND_MSG_BACK: Schemas(send.ConsumerSendMessageBackRequest),
    _CODE.RECALL_MESSAGE: Schemas(send.RecallMessageRequest, send.RecallMessageResponse),
    _CODE.PULL_MESSAGE: _PULL,
    _CODE.LITE_PULL_MESSAGE: _PULL,
    _CODE.QUERY_MESSAGE: Schemas(query.QueryMessageRequest, query.QueryMessageResponse, _QUERIED),
    _CODE.VIEW_MESSAGE_BY_ID: Schemas(query.ViewMessageRequest),
    _CODE.QUERY_CONSUME_QUEUE: Schemas(query.QueryConsumeQueueRequest),
    _CODE.END_TRANSACTION: Schemas(transaction.EndTransactionRequest),
    _CODE.CHECK_TRANSACTION_STATE: Schemas(transaction.CheckTransactionStateRequest),
    _CODE.RESUME_CHECK_HALF_MESSAGE: Schemas(transaction.ResumeCheckHalfMessageRequest),
    _CODE.POP_MESSAGE: Schemas(pop.PopMessageRequest, pop.PopMessageResponse),
    _CODE.PEEK_MESSAGE: Schemas(pop.PeekMessageRequest, pop.PopMessageResponse),
    _CODE.ACK_MESSAGE: Schemas(pop.AckMessageRequest),
    _CODE.BATCH_ACK_MESSAGE: _NOTHING,
    _CODE.CHANGE_MESSAGE_INVISIBLETIME: Schemas(
        pop.ChangeInvisibleTimeRequest, pop.ChangeInvisibleTimeResponse
    ),
    _CODE.NOTIFICATION: Schemas(pop.NotificationRequest, pop.NotificationResponse),
    _CODE.POLLING_INFO: Schemas(pop.PollingInfoRequest, pop.PollingInfoResponse),
    _CODE.POP_ROLLBACK: _NOTHING,
    _CODE.QUERY_ASSIGNMENT: _NOTHING,
    _CODE.SET_MESSAGE_REQUEST_MODE: _NOTHING,
    _CODE.GET_ALL_MESSAGE_REQUEST_MODE: _NOTHING,
}

_OFFSETS: Final = {
    _CODE.QUERY_CONSUMER_OFFSET: Schemas(offset.QueryConsumerOffsetRequest, offset.OffsetResponse),
    _CODE.UPDATE_CONSUMER_OFFSET: Schemas(offset.UpdateConsumerOffsetRequest),
    _CODE.SEARCH_OFFSET_BY_TIMESTAMP: Schemas(offset.SearchOffsetRequest, offset.OffsetResponse),
    _CODE.GET_MAX_OFFSET: Schemas(offset.GetMaxOffsetRequest, offset.OffsetResponse),
    _CODE.GET_MIN_OFFSET: _QUEUE_OFFSET,
    _CODE.GET_EARLIEST_MSG_STORETIME: Schemas(
        targets.QueueRequest, offset.EarliestStoreTimeResponse
    ),
    _CODE.RESET_CONSUMER_CLIENT_OFFSET: Schemas(offset.ResetOffsetRequest),
    _CODE.GET_CONSUMER_STATUS_FROM_CLIENT: Schemas(offset.ConsumerStatusRequest),
    _CODE.INVOKE_BROKER_TO_RESET_OFFSET: Schemas(offset.ResetOffsetRequest),
    _CODE.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: Schemas(offset.ConsumerStatusRequest),
    _CODE.QUERY_CORRECTION_OFFSET: Schemas(offset.QueryCorrectionOffsetRequest),
    _CODE.CLONE_GROUP_OFFSET: Schemas(offset.CloneGroupOffsetRequest),
    _CODE.GET_ALL_CONSUMER_OFFSET: _NOTHING,
    _CODE.GET_ALL_DELAY_OFFSET: _NOTHING,
    _CODE.GET_TIMER_CHECK_POINT: _NOTHING,
    _CODE.GET_TIMER_METRICS: _NOTHING,
}

_CLIENTS: Final = {
    _CODE.HEART_BEAT: Schemas(NoFields, client.HeartbeatResponse),
    _CODE.UNREGISTER_CLIENT: Schemas(client.UnregisterClientRequest),
    _CODE.GET_CONSUMER_LIST_BY_GROUP: _CONSUMER_GROUP,
    _CODE.NOTIFY_CONSUMER_IDS_CHANGED: _CONSUMER_GROUP,
    _CODE.LOCK_BATCH_MQ: _NOTHING,
    _CODE.UNLOCK_BATCH_MQ: _NOTHING,
    _CODE.CHECK_CLIENT_CONFIG: _NOTHING,
    _CODE.GET_CONSUMER_CONNECTION_LIST: _CONSUMER_GROUP,
    _CODE.GET_PRODUCER_CONNECTION_LIST: Schemas(client.ProducerGroupRequest),
    _CODE.GET_ALL_PRODUCER_INFO: _NOTHING,
    _CODE.GET_CONSUMER_RUNNING_INFO: Schemas(client.ConsumerRunningInfoRequest),
    _CODE.CONSUME_MESSAGE_DIRECTLY: Schemas(client.ConsumeMessageDirectlyRequest),
}

_TOPICS_AND_GROUPS: Final = {
    _CODE.UPDATE_AND_CREATE_TOPIC: Schemas(topic.CreateTopicRequest),
    _CODE.UPDATE_AND_CREATE_TOPIC_LIST: _NOTHING,
    _CODE.UPDATE_AND_CREATE_STATIC_TOPIC: Schemas(topic.CreateTopicRequest),
    _CODE.DELETE_TOPIC_IN_BROKER: _TOPIC,
    _CODE.GET_TOPIC_CONFIG: Schemas(topic.GetTopicConfigRequest),
    _CODE.GET_ALL_TOPIC_CONFIG: Schemas(
        topic.GetAllTopicConfigRequest, topic.GetAllTopicConfigResponse
    ),
    _CODE.GET_TOPIC_STATS_INFO: _TOPIC,
    _CODE.QUERY_TOPIC_CONSUME_BY_WHO: _TOPIC,
    _CODE.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: _NOTHING,
    _CODE.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: _NOTHING,
    _CODE.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: _NOTHING,
    _CODE.DELETE_SUBSCRIPTIONGROUP: Schemas(group.DeleteSubscriptionGroupRequest),
    _CODE.GET_SUBSCRIPTIONGROUP_CONFIG: _GROUP,
    _CODE.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: Schemas(
        group.GetAllSubscriptionGroupRequest, group.GetAllSubscriptionGroupResponse
    ),
    _CODE.UPDATE_AND_GET_GROUP_FORBIDDEN: Schemas(group.GroupForbiddenRequest),
    _CODE.QUERY_TOPICS_BY_CONSUMER: _GROUP,
    _CODE.QUERY_SUBSCRIPTION_BY_CONSUMER: Schemas(query.QuerySubscriptionByConsumerRequest),
    _CODE.GET_CONSUME_STATS: Schemas(query.GetConsumeStatsRequest),
    _CODE.GET_BROKER_CONSUME_STATS: Schemas(query.GetBrokerConsumeStatsRequest),
    _CODE.QUERY_CONSUME_TIME_SPAN: Schemas(query.QueryConsumeTimeSpanRequest),
    _CODE.VIEW_BROKER_STATS_DATA: Schemas(query.ViewBrokerStatsRequest),
}

_BROKERS: Final = {
    _CODE.UPDATE_BROKER_CONFIG: _NOTHING,
    _CODE.GET_BROKER_CONFIG: Schemas(NoFields, admin.BrokerConfigResponse),
    _CODE.GET_BROKER_RUNTIME_INFO: _NOTHING,
    _CODE.CLEAN_EXPIRED_CONSUMEQUEUE: _NOTHING,
    _CODE.CLEAN_UNUSED_TOPIC: _NOTHING,
    _CODE.DELETE_EXPIRED_COMMITLOG: _NOTHING,
    _CODE.CHECK_ROCKSDB_CQ_WRITE_PROGRESS: Schemas(topic.CheckRocksDbProgressRequest),
    _CODE.EXPORT_ROCKSDB_CONFIG_TO_JSON: Schemas(admin.ExportRocksDbConfigRequest),
    _CODE.ADD_BROKER: Schemas(admin.AddBrokerRequest),
    _CODE.REMOVE_BROKER: Schemas(admin.RemoveBrokerRequest),
    _CODE.UPDATE_COLD_DATA_FLOW_CTR_CONFIG: _NOTHING,
    _CODE.REMOVE_COLD_DATA_FLOW_CTR_CONFIG: _NOTHING,
    _CODE.GET_COLD_DATA_FLOW_CTR_INFO: _NOTHING,
    _CODE.SET_COMMITLOG_READ_MODE: Schemas(admin.CommitLogReadModeRequest),
    _CODE.SWITCH_TIMER_ENGINE: Schemas(admin.SwitchTimerEngineRequest),
    _CODE.EXCHANGE_BROKER_HA_INFO: Schemas(ha.ExchangeHaInfo, ha.ExchangeHaInfo),
    _CODE.GET_BROKER_HA_STATUS: _NOTHING,
    _CODE.RESET_MASTER_FLUSH_OFFSET: Schemas(ha.ResetMasterFlushOffsetRequest),
    _CODE.NOTIFY_MIN_BROKER_ID_CHANGE: Schemas(ha.NotifyMinBrokerIdChangeRequest),
}

_ACCESS: Final = {
    _CODE.UPDATE_AND_CREATE_ACL_CONFIG: Schemas(acl.UpdateAclConfigRequest),
    _CODE.DELETE_ACL_CONFIG: Schemas(acl.DeleteAclConfigRequest),
    _CODE.GET_BROKER_CLUSTER_ACL_INFO: Schemas(NoFields, acl.AclVersionResponse),
    _CODE.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: Schemas(acl.UpdateGlobalWhiteAddressesRequest),
    _CODE.GET_BROKER_CLUSTER_ACL_CONFIG: _NOTHING,
    _CODE.AUTH_CREATE_USER: _USER,
    _CODE.AUTH_UPDATE_USER: _USER,
    _CODE.AUTH_DELETE_USER: _USER,
    _CODE.AUTH_GET_USER: _USER,
    _CODE.AUTH_LIST_USER: Schemas(acl.ListUsersRequest),
    _CODE.AUTH_CREATE_ACL: _SUBJECT,
    _CODE.AUTH_UPDATE_ACL: _SUBJECT,
    _CODE.AUTH_DELETE_ACL: Schemas(acl.DeleteAclRequest),
    _CODE.AUTH_GET_ACL: _SUBJECT,
    _CODE.AUTH_LIST_ACL: Schemas(acl.ListAclsRequest),
}

_NAME_SERVER: Final = {
    _CODE.PUT_KV_CONFIG: Schemas(namesrv.PutKvConfigRequest),
    _CODE.GET_KV_CONFIG: Schemas(namesrv.KvConfigRequest, namesrv.GetKvConfigResponse),
    _CODE.DELETE_KV_CONFIG: Schemas(namesrv.KvConfigRequest),
    _CODE.GET_KVLIST_BY_NAMESPACE: Schemas(namesrv.KvNamespaceRequest),
    _CODE.REGISTER_BROKER: Schemas(namesrv.RegisterBrokerRequest, namesrv.RegisterBrokerResponse),
    _CODE.UNREGISTER_BROKER: Schemas(namesrv.BrokerIdentityRequest),
    _CODE.QUERY_DATA_VERSION: Schemas(
        namesrv.BrokerIdentityRequest, namesrv.QueryDataVersionResponse
    ),
    _CODE.GET_ROUTEINFO_BY_TOPIC: Schemas(namesrv.GetRouteInfoRequest),
    _CODE.GET_BROKER_CLUSTER_INFO: _NOTHING,
    _CODE.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: _NOTHING,
    _CODE.GET_TOPICS_BY_CLUSTER: Schemas(namesrv.GetTopicsByClusterRequest),
    _CODE.GET_SYSTEM_TOPIC_LIST_FROM_NS: _NOTHING,
    _CODE.GET_UNIT_TOPIC_LIST: _NOTHING,
    _CODE.GET_HAS_UNIT_SUB_TOPIC_LIST: _NOTHING,
    _CODE.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: _NOTHING,
    _CODE.DELETE_TOPIC_IN_NAMESRV: Schemas(namesrv.DeleteTopicFromNamesrvRequest),
    _CODE.REGISTER_TOPIC_IN_NAMESRV: _TOPIC,
    _CODE.WIPE_WRITE_PERM_OF_BROKER: Schemas(
        targets.BrokerNameRequest, namesrv.WipeWritePermResponse
    ),
    _CODE.ADD_WRITE_PERM_OF_BROKER: Schemas(
        targets.BrokerNameRequest, namesrv.AddWritePermResponse
    ),
    _CODE.UPDATE_NAMESRV_CONFIG: _NOTHING,
    _CODE.GET_NAMESRV_CONFIG: _NOTHING,
    _CODE.BROKER_HEARTBEAT: Schemas(namesrv.BrokerHeartbeatRequest),
    _CODE.GET_BROKER_MEMBER_GROUP: Schemas(namesrv.GetBrokerMemberGroupRequest),
}

_CONTROLLER: Final = {
    _CODE.CONTROLLER_ALTER_SYNC_STATE_SET: Schemas(
        controller.AlterSyncStateSetRequest, controller.AlterSyncStateSetResponse
    ),
    _CODE.CONTROLLER_ELECT_MASTER: Schemas(
        controller.ElectMasterRequest, controller.MasterResponse
    ),
    _CODE.CONTROLLER_REGISTER_BROKER: Schemas(
        controller.RegisterToControllerRequest, controller.RegisterToControllerResponse
    ),
    _CODE.CONTROLLER_GET_REPLICA_INFO: Schemas(
        controller.ReplicaInfoRequest, controller.MasterResponse
    ),
    _CODE.CONTROLLER_GET_METADATA_INFO: Schemas(NoFields, controller.MetadataResponse),
    _CODE.CONTROLLER_GET_SYNC_STATE_DATA: _NOTHING,
    _CODE.GET_BROKER_EPOCH_CACHE: _NOTHING,
    _CODE.NOTIFY_BROKER_ROLE_CHANGED: Schemas(controller.NotifyRoleChangedRequest),
    _CODE.UPDATE_CONTROLLER_CONFIG: _NOTHING,
    _CODE.GET_CONTROLLER_CONFIG: _NOTHING,
    _CODE.CLEAN_BROKER_DATA: Schemas(controller.CleanBrokerDataRequest),
    _CODE.CONTROLLER_GET_NEXT_BROKER_ID: Schemas(
        controller.NextBrokerIdRequest, controller.NextBrokerIdResponse
    ),
    _CODE.CONTROLLER_APPLY_BROKER_ID: Schemas(
        controller.ApplyBrokerIdRequest, controller.ApplyBrokerIdResponse
    ),
}

HEADERS: Final[dict[RequestCode, Schemas]] = {
    **dict.fromkeys(RequestCode, _NOT_HANDLED),
    **_MESSAGES,
    **_OFFSETS,
    **_CLIENTS,
    **_TOPICS_AND_GROUPS,
    **_BROKERS,
    **_ACCESS,
    **_NAME_SERVER,
    **_CONTROLLER,
}
"""The schemas of every request code."""
