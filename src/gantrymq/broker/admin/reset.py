"""Setting a group back or forward (222), and asking its members where they are (223).

As 5.x brokers do, the new place is kept here until the group's next pull of the queue, which is
answered with it; members that hold a pull are answered at once. It reaches every kind of client,
and groups that are offline. With `useServerSideResetOffset=false` members are told (220) as by a
4.9 broker, and a group without members is refused, for which 4.9 tools have a way of their own.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from gantrymq.broker.admin.parts import body_answer
from gantrymq.broker.questions import then
from gantrymq.errors import GantryError, InvalidValue
from gantrymq.store.search import Boundary
from gantrymq.wire.bodies.offsets import CONSUMER_STATUS, ConsumerStatus
from gantrymq.wire.bodies.reset import RESET_OFFSETS, ResetOffsets
from gantrymq.wire.codes import LanguageCode, RequestCode, ResponseCode, Version
from gantrymq.wire.command import Command
from gantrymq.wire.headers.offset import ConsumerStatusRequest, ResetOffsetRequest
from gantrymq.wire.response_errors import (
    ConsumerNotOnline,
    InvalidParameter,
    SubscriptionGroupNotExist,
    SystemFailure,
    TopicNotExist,
)

if TYPE_CHECKING:
    from gantrymq.broker.admin.parts import AdminParts
    from gantrymq.broker.client_records import Member
    from gantrymq.model.queue import MessageQueue, QueueOffset
    from gantrymq.model.topic import TopicConfig
    from gantrymq.store.questions import Questions
    from gantrymq.wire.peer import Answer, Handler, Peer, Pending

STATUS_TIMEOUT_S: Final = 5.0
"""How long a member may take to say where it is."""
MEMBERS_ASKED_MAX: Final = 1_000
ALL_QUEUES: Final = -1
NO_OFFSET: Final = -1


class ResetRequests:
    """Moves groups, and asks where they are."""

    def __init__(self, parts: AdminParts) -> None:
        self._parts = parts
        self._offsets = parts.tables.offsets
        self._clients = parts.tables.clients

    @property
    def handlers(self) -> dict[int, Handler]:
        """Return what is handled here."""
        return {
            RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: self.reset,
            RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: self.status,
        }

    # -- reset ------------------------------------------------------------------------------------

    def reset(self, request: Command, _peer: Peer) -> Pending:
        """Move a group to a moment, to the end, or to an offset of one queue."""
        if self._parts.is_slave():
            raise SystemFailure("Can not reset offset in slave broker")
        header = ResetOffsetRequest.decode(request.fields)
        topic = self._parts.tables.topics.find(header.topic)
        if topic is None:
            raise TopicNotExist(f"Topic {header.topic} does not exist")
        if self._parts.tables.groups.find(header.group) is None:
            raise SubscriptionGroupNotExist(f"Group {header.group} does not exist")
        if not self._parts.settings.now.resets_here:
            return self._tell_members(request, header, topic)
        return then(
            self._parts.store,
            lambda store: self._wanted(header, topic, store),
            lambda offsets: self._move(request, header, offsets),
        )

    def _move(
        self, request: Command, header: ResetOffsetRequest, offsets: dict[int, int]
    ) -> Pending:
        """Move a group to offsets, and save that."""
        if not offsets:
            raise SystemFailure("No queues to reset.")
        try:
            for queue_id, offset in offsets.items():
                self._offsets.reset(header.group, header.topic, queue_id, offset)
        except InvalidValue as error:
            raise InvalidParameter(str(error)) from None
        for queue_id in offsets:
            self._parts.held.release_queue(header.topic, queue_id)
        moved = body_answer(request, RESET_OFFSETS.encode(self._moved(header.topic, offsets)))
        return self._parts.saved(request, self._offsets, reply=moved)

    def _wanted(
        self, header: ResetOffsetRequest, topic: TopicConfig, store: Questions
    ) -> dict[int, int]:
        """Return where the group is to go, by queue."""
        queue_id = ALL_QUEUES if header.queue_id is None else header.queue_id
        if queue_id < 0:
            return {each: self._target(header, each, store) for each in range(topic.read_queues)}
        if queue_id >= topic.read_queues:
            raise InvalidParameter(
                f"queueId is {queue_id}: topic {header.topic} has queues 0 to "
                f"{topic.read_queues - 1}"
            )
        if header.offset is None or header.offset == NO_OFFSET:
            return {queue_id: self._target(header, queue_id, store)}
        least = store.min_offset(header.topic, queue_id)
        most = store.max_offset(header.topic, queue_id)
        if not least <= header.offset <= most:
            raise SystemFailure(
                f"Target offset {header.offset} not in consume queue range [{least}-{most}]"
            )
        return {queue_id: header.offset}

    def _target(self, header: ResetOffsetRequest, queue_id: int, store: Questions) -> int:
        """Return the offset of the moment; without force a group only goes back."""
        if header.timestamp < 0:
            target = store.max_offset(header.topic, queue_id)
        else:
            target = store.offset_at(header.topic, queue_id, header.timestamp, Boundary.LOWER)
        consumed = self._offsets.find(header.group, header.topic, queue_id)
        if header.is_force is False and 0 <= consumed < target:
            return consumed
        return target

    def _moved(self, topic: str, offsets: dict[int, int]) -> ResetOffsets:
        table: dict[MessageQueue, QueueOffset] = {
            self._parts.queue(topic, queue_id): offset  # type: ignore[misc]
            for queue_id, offset in offsets.items()
        }
        return ResetOffsets(offset_table=table)

    def _tell_members(
        self, request: Command, header: ResetOffsetRequest, topic: TopicConfig
    ) -> Pending:
        """Tell the members of a group where to go on, as a 4.9 broker does."""
        members = self._clients.members(header.group)
        if not members:
            raise ConsumerNotOnline(
                f"Consumer not online, so can not reset offset, Group: {header.group} "
                f"Topic: {header.topic} Timestamp: {header.timestamp}"
            )
        for member in members:
            _check_version(member, Version.V3_0_7_SNAPSHOT)
        queues = range(topic.write_queues)
        return then(
            self._parts.store,
            lambda store: {each: self._target(header, each, store) for each in queues},
            lambda offsets: self._tell(request, header, offsets),
        )

    def _tell(
        self, request: Command, header: ResetOffsetRequest, offsets: dict[int, int]
    ) -> Answer:
        """Tell the members of a group the offsets to go on from."""
        moved = self._moved(header.topic, offsets)
        members = self._clients.members(header.group)
        told = ResetOffsetRequest(
            topic=header.topic, group=header.group, timestamp=header.timestamp, is_force=False
        )
        bodies = {False: RESET_OFFSETS.encode(moved), True: RESET_OFFSETS.encode_for_cpp(moved)}
        for member in members:
            body = bodies[member.language == LanguageCode.CPP]
            member.peer.tell(
                Command.request(
                    RequestCode.RESET_CONSUMER_CLIENT_OFFSET, 0, told.encode(), body, oneway=True
                )
            )
        return body_answer(request, bodies[False])

    # -- where members are ------------------------------------------------------------------------

    async def status(self, request: Command, _peer: Peer) -> Answer:
        """Ask the members of a group, or one of them, how far they are in a topic."""
        header = ConsumerStatusRequest.decode(request.fields)
        members = self._clients.members(header.group)
        if header.client_addr and header.client_addr.strip():
            members = [one for one in members if one.client_id == header.client_addr]
        if not members:
            raise SystemFailure(f"No Any Consumer online in the consumer group: [{header.group}]")
        for member in members:
            _check_version(member, Version.V3_0_7_SNAPSHOT)
        fields = ConsumerStatusRequest(topic=header.topic, group=header.group).encode()
        asked = Command.request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, 0, fields)
        members = members[:MEMBERS_ASKED_MAX]
        told = await asyncio.gather(*(self._ask(member, asked) for member in members))
        table = {
            member.client_id: status
            for member, status in zip(members, told, strict=True)
            if status is not None
        }
        body = CONSUMER_STATUS.encode(ConsumerStatus(message_queue_table={}, consumer_table=table))
        return body_answer(request, body)

    @staticmethod
    async def _ask(member: Member, asked: Command) -> dict[MessageQueue, QueueOffset] | None:
        """Return where a member is; None if it does not say."""
        try:
            told = await member.peer.ask(asked, STATUS_TIMEOUT_S)
            if told.code != ResponseCode.SUCCESS or not told.body:
                return None
            return dict(CONSUMER_STATUS.decode(told.body).message_queue_table)
        except GantryError:
            return None


def _check_version(member: Member, least: Version) -> None:
    if member.version < least:
        raise SystemFailure(
            f"the client {member.client_id} does not support this feature: its version is "
            f"{member.version}, below {least.name}"
        )
