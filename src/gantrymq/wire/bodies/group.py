"""Consumer groups: settings as a table or a list, who may read what, subscriptions."""

from collections.abc import Mapping
from typing import Final

from gantrymq.model.group import Subscription, SubscriptionGroup
from gantrymq.model.offsets import DataVersion
from gantrymq.model.widths import Int32
from gantrymq.wire.bodies.codec import JsonBody
from gantrymq.wire.bodies.schema import Body


class GroupTable(Body, frozen=True, kw_only=True):
    """All groups of a broker: `subscriptionGroup.json` and the answer to 201."""

    data_version: DataVersion = DataVersion()
    subscription_group_table: Mapping[str, SubscriptionGroup] = {}
    forbidden_table: Mapping[str, Mapping[str, Int32]] | None = None
    """5.x: group to topic to bits of what is forbidden."""


class GroupConfigList(Body, frozen=True, kw_only=True):
    """Groups to be created or changed together (225)."""

    group_config_list: tuple[SubscriptionGroup, ...] = ()


class GroupForbidden(Body, frozen=True, kw_only=True):
    """Whether a group may read a topic (353)."""

    group: str = ""
    topic: str = ""
    readable: bool | None = None


class GroupList(Body, frozen=True, kw_only=True):
    """Names of groups (300)."""

    group_list: tuple[str, ...] = ()


class GroupSubscription(Body, frozen=True, kw_only=True):
    """What a group takes from a topic (345)."""

    group: str = ""
    topic: str = ""
    subscription_data: Subscription | None = None


GROUP_CONFIG: Final = JsonBody(SubscriptionGroup)
GROUP_TABLE: Final = JsonBody(GroupTable)
GROUP_CONFIG_LIST: Final = JsonBody(GroupConfigList)
GROUP_FORBIDDEN: Final = JsonBody(GroupForbidden)
GROUP_LIST: Final = JsonBody(GroupList)
GROUP_SUBSCRIPTION: Final = JsonBody(GroupSubscription)
