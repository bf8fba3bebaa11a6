"""Consumer groups: made, changed, deleted, listed; who reads what, and who may not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.broker.admin.deletion import delete_group
from gantrymq.broker.admin.paging import page_of
from gantrymq.broker.admin.parts import body_answer
from gantrymq.broker.answers import answer
from gantrymq.errors import InvalidValue
from gantrymq.model.names import check_group
from gantrymq.wire.bodies.group import (
    GROUP_CONFIG,
    GROUP_CONFIG_LIST,
    GROUP_FORBIDDEN,
    GROUP_LIST,
    GROUP_SUBSCRIPTION,
    GroupForbidden,
    GroupList,
    GroupSubscription,
    GroupTable,
)
from gantrymq.wire.bodies.topic import TOPIC_LIST, TopicList
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.group import (
    DeleteSubscriptionGroupRequest,
    GetAllSubscriptionGroupRequest,
    GetAllSubscriptionGroupResponse,
    GroupForbiddenRequest,
)
from gantrymq.wire.headers.query import QuerySubscriptionByConsumerRequest
from gantrymq.wire.headers.targets import GroupRequest, TopicRequest
from gantrymq.wire.response_errors import InvalidParameter, SubscriptionGroupNotExist

if TYPE_CHECKING:
    from gantrymq.broker.admin.parts import AdminParts
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Handler, Peer, Pending

GROUPS_AT_ONCE_MAX: Final = 10_000
"""Groups of one request to create several."""
_HINT: Final = "; ask with groupSeq and maxGroupNum, as 5.5 tools do"


class GroupRequests:
    """Answers requests about consumer groups."""

    def __init__(self, parts: AdminParts) -> None:
        self._parts = parts
        self._groups = parts.tables.groups

    @property
    def handlers(self) -> dict[int, Handler]:
        """Return what is handled here."""
        return {
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: self.change,
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: self.change_several,
            RequestCode.DELETE_SUBSCRIPTIONGROUP: self.delete,
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: self.all,
            RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: self.one,
            RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN: self.forbid,
            RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: self.readers,
            RequestCode.QUERY_TOPICS_BY_CONSUMER: self.topics,
            RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: self.subscription,
        }

    # -- change -----------------------------------------------------------------------------------

    def change(self, request: Command, _peer: Peer) -> Pending:
        """Make a group, or change it."""
        self._parts.check_master()
        try:
            group = GROUP_CONFIG.decode(request.body)
            check_group(group.name)
            self._groups.change(group)
        except InvalidValue as error:
            raise InvalidParameter(str(error)) from None
        return self._parts.saved(request, self._groups)

    def change_several(self, request: Command, _peer: Peer) -> Pending:
        """Make or change several groups; if the name of one cannot be, none is."""
        self._parts.check_master()
        listed = GROUP_CONFIG_LIST.decode(request.body).group_config_list
        if len(listed) > GROUPS_AT_ONCE_MAX:
            raise InvalidParameter(
                f"{len(listed)} groups in one request: give at most {GROUPS_AT_ONCE_MAX}"
            )
        try:
            for group in listed:
                check_group(group.name)
            for group in listed:
                self._groups.change(group)
        except InvalidValue as error:
            raise InvalidParameter(str(error)) from None
        return self._parts.saved(request, self._groups)

    def delete(self, request: Command, _peer: Peer) -> Pending:
        """Delete a group and what belongs to it; one that is not there is gone already."""
        self._parts.check_master()
        header = DeleteSubscriptionGroupRequest.decode(request.fields)
        delete_group(
            self._parts,
            header.group_name,
            with_offsets=bool(header.clean_offset or header.remove_offset),
        )
        tables = self._parts.tables
        return self._parts.saved(
            request, self._groups, tables.offsets, tables.modes, tables.saved_filters
        )

    def forbid(self, request: Command, _peer: Peer) -> Pending:
        """Forbid a group to read a topic, or allow it; without a wish, answer what holds."""
        header = GroupForbiddenRequest.decode(request.fields)
        if header.readable is not None:
            self._parts.check_master()
            try:
                self._groups.forbid(header.group, header.topic, forbidden=not header.readable)
            except InvalidValue as error:
                raise SubscriptionGroupNotExist(str(error)) from None
        readable = not self._groups.is_forbidden(header.group, header.topic)
        holds = GroupForbidden(group=header.group, topic=header.topic, readable=readable)
        reply = answer(request, body=GROUP_FORBIDDEN.encode(holds))
        if header.readable is None:
            return reply
        return self._parts.saved(request, self._groups, reply=reply)

    # -- ask --------------------------------------------------------------------------------------

    def all(self, request: Command, _peer: Peer) -> Answer:
        """Answer all groups, or one page of them."""
        header = GetAllSubscriptionGroupRequest.decode(request.fields)
        table, version = self._groups.all(), self._groups.data_version
        page = page_of(
            table,
            version,
            start=header.group_seq,
            most=header.max_group_num,
            known=header.data_version,
        )
        forbidden = {
            group: dict(topics) for group, topics in self._groups.forbidden.items() if group in page
        }
        body = self._groups.encoded.encode(
            GroupTable(
                data_version=version, subscription_group_table=page, forbidden_table=forbidden
            )
        )
        total = GetAllSubscriptionGroupResponse(total_group_num=len(table))
        return body_answer(request, body, total.encode(), hint=_HINT)

    def one(self, request: Command, _peer: Peer) -> Answer:
        """Answer the settings of a group."""
        found = self._groups.find(GroupRequest.decode(request.fields).group)
        if found is None:
            raise SubscriptionGroupNotExist("No group in this broker")
        return answer(request, body=GROUP_CONFIG.encode(found))

    def readers(self, request: Command, _peer: Peer) -> Answer:
        """Answer which groups read a topic: those that are online, and those with offsets."""
        topic = TopicRequest.decode(request.fields).topic
        tables = self._parts.tables
        groups = tables.clients.groups_subscribed_to(topic) | tables.offsets.groups_of(topic)
        return body_answer(request, GROUP_LIST.encode(GroupList(group_list=tuple(sorted(groups)))))

    def topics(self, request: Command, _peer: Peer) -> Answer:
        """Answer which topics a group has offsets in."""
        group = GroupRequest.decode(request.fields).group
        topics = tuple(sorted(self._parts.tables.offsets.topics_of(group)))
        listed = TopicList(topic_list=topics, broker_addr=self._parts.address)
        return body_answer(request, TOPIC_LIST.encode(listed))

    def subscription(self, request: Command, _peer: Peer) -> Answer:
        """Answer what a group takes from a topic; nothing if it is not online."""
        header = QuerySubscriptionByConsumerRequest.decode(request.fields)
        topic = header.topic or ""
        found = GroupSubscription(
            group=header.group,
            topic=topic,
            subscription_data=self._parts.tables.clients.subscription(header.group, topic),
        )
        return answer(request, body=GROUP_SUBSCRIPTION.encode(found))
