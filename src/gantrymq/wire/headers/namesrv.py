"""Requests to a name server."""

from msgspec import field

from gantrymq.wire.fields import Header, Int32, Int64


class GetRouteInfoRequest(Header, frozen=True, kw_only=True):
    """GET_ROUTEINFO_BY_TOPIC."""

    topic: str
    accept_standard_json_only: bool | None = None


class GetTopicsByClusterRequest(Header, frozen=True, kw_only=True):
    """GET_TOPICS_BY_CLUSTER."""

    cluster: str


class DeleteTopicFromNamesrvRequest(Header, frozen=True, kw_only=True):
    """DELETE_TOPIC_IN_NAMESRV."""

    topic: str
    cluster_name: str | None = None


class PutKvConfigRequest(Header, frozen=True, kw_only=True):
    """PUT_KV_CONFIG."""

    namespace: str
    key: str
    value: str


class KvConfigRequest(Header, frozen=True, kw_only=True):
    """GET_KV_CONFIG and DELETE_KV_CONFIG."""

    namespace: str
    key: str


class GetKvConfigResponse(Header, frozen=True, kw_only=True):
    """The value."""

    value: str | None = None


class KvNamespaceRequest(Header, frozen=True, kw_only=True):
    """GET_KVLIST_BY_NAMESPACE."""

    namespace: str


class WipeWritePermResponse(Header, frozen=True, kw_only=True):
    """How many topics were changed."""

    wipe_topic_count: Int32


class AddWritePermResponse(Header, frozen=True, kw_only=True):
    """How many topics were changed."""

    add_topic_count: Int32


class RegisterBrokerRequest(Header, frozen=True, kw_only=True):
    """REGISTER_BROKER."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str
    broker_id: Int64
    compressed: bool | None = None
    """5.x says false even of a compressed body; look at its first byte."""
    body_crc32: Int32 | None = None
    """0: do not check."""
    heartbeat_timeout_millis: Int64 | None = None
    enable_acting_master: bool | None = None
    zone_name: str | None = field(name="__ZONE_NAME", default=None)


class RegisterBrokerResponse(Header, frozen=True, kw_only=True):
    """Who the master is, for a slave."""

    ha_server_addr: str | None = None
    master_addr: str | None = None


class BrokerIdentityRequest(Header, frozen=True, kw_only=True):
    """UNREGISTER_BROKER and QUERY_DATA_VERSION."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Int64


class QueryDataVersionResponse(Header, frozen=True, kw_only=True):
    """Whether the broker must register again."""

    changed: bool


class BrokerHeartbeatRequest(Header, frozen=True, kw_only=True):
    """BROKER_HEARTBEAT."""

    cluster_name: str
    broker_addr: str
    broker_name: str
    broker_id: Int64 | None = None
    epoch: Int32 | None = None
    max_offset: Int64 | None = None
    confirm_offset: Int64 | None = None
    heartbeat_timeout_mills: Int64 | None = None
    election_priority: Int32 | None = None


class GetBrokerMemberGroupRequest(Header, frozen=True, kw_only=True):
    """GET_BROKER_MEMBER_GROUP."""

    cluster_name: str
    broker_name: str
