"""What clients say about themselves: heartbeats, leaving, who is in a group, which queues are held.

A heartbeat is how a consumer joins: its group and the group's retry topic come into being, and the
other members are told, so that they share the queues anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gantrymq.broker.answers import answer
from gantrymq.model.names import retry_topic
from gantrymq.model.topic import UNIT_SUBSCRIPTION_FLAG
from gantrymq.wire.bodies.heartbeat import (
    CLIENT_CHECK,
    CONSUMER_IDS,
    HEARTBEAT,
    ConsumerIds,
)
from gantrymq.wire.bodies.lock import LOCK_ANSWER, LOCK_REQUEST, LockAnswer
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.client import HeartbeatResponse, UnregisterClientRequest
from gantrymq.wire.headers.targets import ConsumerGroupRequest
from gantrymq.wire.response_errors import SystemFailure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gantrymq.broker.clients import Clients, GroupChange
    from gantrymq.broker.groups import Groups
    from gantrymq.broker.notices import Notices
    from gantrymq.broker.queue_locks import QueueLocks
    from gantrymq.broker.selections import Selections
    from gantrymq.broker.settings import LiveSettings
    from gantrymq.broker.topics import Topics
    from gantrymq.wire.bodies.heartbeat import ConsumerData
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Handler, Peer


class ClientRequests:
    """Answers what clients say about themselves."""

    def __init__(
        self,
        clients: Clients,
        groups: Groups,
        topics: Topics,
        locks: QueueLocks,
        selections: Selections,
        settings: LiveSettings,
        notices: Notices,
    ) -> None:
        self.notices = notices
        self._clients = clients
        self._groups = groups
        self._topics = topics
        self._locks = locks
        self._selections = selections
        self._settings = settings

    @property
    def handlers(self) -> dict[int, Handler]:
        """Return what is handled here."""
        return {
            RequestCode.HEART_BEAT: self.heartbeat,
            RequestCode.UNREGISTER_CLIENT: self.unregister,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: self.members,
            RequestCode.CHECK_CLIENT_CONFIG: self.check_config,
            RequestCode.LOCK_BATCH_MQ: self.lock,
            RequestCode.UNLOCK_BATCH_MQ: self.unlock,
        }

    # -- coming and going -----------------------------------------------------------------------

    def heartbeat(self, request: Command, peer: Peer) -> Answer:
        """Take in what a client does on this broker."""
        data = HEARTBEAT.decode(request.body)
        known: list[ConsumerData] = []
        for consumer in data.consumer_data_set:
            group = self._groups.find_or_create(consumer.group_name)
            if group is None:
                continue  # as with Apache it gets no members; its pulls are told why
            known.append(consumer)
            if group.retry_queues > 0:
                self._topics.create_for_group(
                    retry_topic(group.name),
                    group.retry_queues,
                    system_flags=UNIT_SUBSCRIPTION_FLAG if consumer.unit_mode else 0,
                )
            self._selections.register(consumer.group_name, consumer.subscription_data_set)
        if len(known) < len(data.consumer_data_set):
            data = msgspec.structs.replace(data, consumer_data_set=tuple(known))
        self.notify(
            self._clients.heartbeat(data, peer, language=request.language, version=request.version)
        )
        fields = HeartbeatResponse(
            is_support_heart_beat_v2=True,
            is_sub_change=self._clients.wants_full_heartbeat(peer),
        )
        return answer(request, fields=fields.encode())

    def unregister(self, request: Command, peer: Peer) -> Answer:
        """Let a client leave one or two groups."""
        header = UnregisterClientRequest.decode(request.fields)
        changes = self._clients.unregister(
            header.client_id, header.producer_group or None, header.consumer_group or None, peer
        )
        self.notify(changes)
        return answer(request)

    def peer_closed(self, peer: Peer) -> None:
        """Let everybody go who was behind a connection."""
        self.notify(self._clients.peer_closed(peer))

    def expire(self) -> None:
        """Let those go who have been silent for too long."""
        self.notify(self._clients.expire())

    def notify(self, changes: Iterable[GroupChange]) -> None:
        """Tell the members of a group that it has changed, so that they share queues anew."""
        for change in changes:
            if change.is_gone:
                self._selections.unregister(change.group)
            if change.notify and self._settings.now.notifies_members:
                self.notices.changed(change.group)

    # -- groups ---------------------------------------------------------------------------------

    def members(self, request: Command, _peer: Peer) -> Answer:
        """Answer the client ids of a group."""
        header = ConsumerGroupRequest.decode(request.fields)
        ids = tuple(member.client_id for member in self._clients.members(header.consumer_group))
        if not ids:
            raise SystemFailure(f"no consumer for this group, {header.consumer_group}")
        return answer(request, body=CONSUMER_IDS.encode(ConsumerIds(consumer_id_list=ids)))

    def check_config(self, request: Command, _peer: Peer) -> Answer:
        """Answer whether a subscription can be used, before a client starts with it."""
        asked = CLIENT_CHECK.decode(request.body)
        if asked.subscription_data is not None:
            self._selections.check(asked.subscription_data)
        return answer(request)

    # -- ordered consumption --------------------------------------------------------------------

    def lock(self, request: Command, _peer: Peer) -> Answer:
        """Give a member the queues that nobody else holds."""
        asked = LOCK_REQUEST.decode(request.body)
        held = self._locks.lock(asked.consumer_group, asked.client_id, asked.mq_set)
        return answer(request, body=LOCK_ANSWER.encode(LockAnswer(lock_ok_mq_set=tuple(held))))

    def unlock(self, request: Command, _peer: Peer) -> Answer:
        """Take queues back from a member."""
        asked = LOCK_REQUEST.decode(request.body)
        self._locks.unlock(asked.consumer_group, asked.client_id, asked.mq_set)
        return answer(request)
