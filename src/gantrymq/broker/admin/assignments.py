"""5.x: pull or pop by topic and group (401), and queues shared out by the broker (400)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.broker.admin.parts import body_answer
from gantrymq.broker.request_modes import assign, assign_for_pop
from gantrymq.errors import InvalidValue
from gantrymq.model.group import MessageModel
from gantrymq.model.names import is_retry_topic
from gantrymq.wire.bodies.assignment import (
    ASSIGNMENT_QUERY,
    ASSIGNMENTS,
    REQUEST_MODE_SETTING,
    Assignments,
    QueueAssignment,
    RequestMode,
    RequestModeSetting,
)
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.response_errors import (
    InvalidParameter,
    NoPermission,
    SubscriptionGroupNotExist,
)

if TYPE_CHECKING:
    from gantrymq.broker.admin.parts import AdminParts
    from gantrymq.model.queue import MessageQueue
    from gantrymq.wire.bodies.assignment import AssignmentQuery
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Handler, Peer, Pending


class AssignmentRequests:
    """Shares out queues."""

    def __init__(self, parts: AdminParts) -> None:
        self._parts = parts

    @property
    def handlers(self) -> dict[int, Handler]:
        """Return what is handled here."""
        return {
            RequestCode.QUERY_ASSIGNMENT: self.assignment,
            RequestCode.SET_MESSAGE_REQUEST_MODE: self.set_mode,
        }

    def set_mode(self, request: Command, _peer: Peer) -> Pending:
        """Have a group pull or pop a topic."""
        self._parts.check_master()
        setting = REQUEST_MODE_SETTING.decode(request.body)
        if is_retry_topic(setting.topic):
            raise NoPermission("retry topic is not allowed to set mode")
        self._parts.topic(setting.topic)
        if self._parts.tables.groups.find_or_create(setting.consumer_group) is None:
            raise SubscriptionGroupNotExist("subscription group does not exist")
        try:
            self._parts.tables.modes.put(setting)
        except InvalidValue as error:
            raise InvalidParameter(str(error)) from None
        return self._parts.saved(request, self._parts.tables.modes)

    async def assignment(self, request: Command, _peer: Peer) -> Answer:
        """Answer the queues of a member; none at all where its topic or its group is not known."""
        asked = ASSIGNMENT_QUERY.decode(request.body)
        setting = self._setting(asked)
        queues = await self._queues(asked, setting)
        found = None
        if queues is not None:
            unique = dict.fromkeys(queues)
            found = tuple(
                QueueAssignment(message_queue=queue, mode=setting.mode) for queue in unique
            )
        body = ASSIGNMENTS.encode(Assignments(message_queue_assignments=found))
        return body_answer(request, body)

    def _setting(self, asked: AssignmentQuery) -> RequestModeSetting:
        """Return how a group is to read a topic: as was set for it, else as all others."""
        found = self._parts.tables.modes.find(asked.topic, asked.consumer_group)
        if found is not None:
            return found
        settings = self._parts.settings.now
        # What a group gets again it always pulls; what was popped comes again by itself.
        may_pop = not is_retry_topic(asked.topic)
        return RequestModeSetting(
            topic=asked.topic,
            consumer_group=asked.consumer_group,
            mode=RequestMode[settings.request_mode] if may_pop else RequestMode.PULL,
            pop_share_queue_num=settings.pop_share_queues,
        )

    async def _queues(
        self, asked: AssignmentQuery, setting: RequestModeSetting
    ) -> list[MessageQueue] | None:
        """Return the queues that a member is to read.

        It asks one broker for all of them, so that the queues of the others are shared out, too.
        """
        queues = await self._parts.readable_queues(asked.topic)
        if queues is None:
            return None
        if asked.message_model is MessageModel.BROADCASTING:
            return queues
        members = {
            one.client_id for one in self._parts.tables.clients.members(asked.consumer_group)
        }
        if not members:
            return None
        try:
            if setting.mode is RequestMode.POP:
                return assign_for_pop(
                    asked.strategy_name,
                    asked.client_id,
                    queues,
                    members,
                    setting.pop_share_queue_num,
                )
            return assign(asked.strategy_name, asked.client_id, queues, members)
        except InvalidValue:
            return None
