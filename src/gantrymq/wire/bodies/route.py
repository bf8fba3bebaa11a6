"""What the name server answers: routes, the members of clusters, key-value tables."""

from collections.abc import Mapping
from typing import Final

from gantrymq.model.route import BrokerData, TopicRoute
from gantrymq.wire.bodies.codec import JsonBody
from gantrymq.wire.bodies.schema import Body


class ClusterInfo(Body, frozen=True, kw_only=True):
    """Every broker group and which cluster it is in (106)."""

    broker_addr_table: Mapping[str, BrokerData] = {}
    cluster_addr_table: Mapping[str, tuple[str, ...]] = {}


class KvTable(Body, frozen=True, kw_only=True):
    """Texts by name: a namespace of the name server (103, 219), run-time figures (28)."""

    table: Mapping[str, str] = {}


class BrokerMembers(Body, frozen=True, kw_only=True):
    """5.x: one broker group as its members see it."""

    cluster: str = ""
    broker_name: str = ""
    broker_addrs: Mapping[int, str] = {}


class BrokerMemberGroup(Body, frozen=True, kw_only=True):
    """5.x: the answer to 901."""

    broker_member_group: BrokerMembers | None = None


class KvConfig(Body, frozen=True, kw_only=True):
    """The name server's `kvConfig.json`: tables by namespace."""

    config_table: Mapping[str, Mapping[str, str]] = {}


TOPIC_ROUTE: Final = JsonBody(TopicRoute)
CLUSTER_INFO: Final = JsonBody(ClusterInfo)
KV_TABLE: Final = JsonBody(KvTable)
BROKER_MEMBER_GROUP: Final = JsonBody(BrokerMemberGroup)
KV_CONFIG: Final = JsonBody(KvConfig)
