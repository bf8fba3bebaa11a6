"""Consumer groups of a broker."""

from gantrymq.wire.fields import Header, Int32


class DeleteSubscriptionGroupRequest(Header, frozen=True, kw_only=True):
    """DELETE_SUBSCRIPTIONGROUP; the flag has two names."""

    group_name: str
    clean_offset: bool | None = None
    """5.x"""
    remove_offset: bool | None = None
    """4.9"""


class GetAllSubscriptionGroupRequest(Header, frozen=True, kw_only=True):
    """GET_ALL_SUBSCRIPTIONGROUP_CONFIG; the fields page through many groups (5.5)."""

    group_seq: Int32 | None = None
    data_version: str | None = None
    max_group_num: Int32 | None = None


class GetAllSubscriptionGroupResponse(Header, frozen=True, kw_only=True):
    """How many there are; absent when all of them are here."""

    total_group_num: Int32 | None = None


class GroupForbiddenRequest(Header, frozen=True, kw_only=True):
    """UPDATE_AND_GET_GROUP_FORBIDDEN."""

    group: str
    topic: str
    readable: bool | None = None
