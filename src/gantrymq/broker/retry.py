"""CONSUMER_SEND_MSG_BACK: a message that its consumer could not handle comes back later.

It is stored again for the group's retry topic, by way of a delay level that grows with every
attempt; after the last one, or at once if the consumer says so, it goes to the dead-letter topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.broker.answers import answer
from gantrymq.broker.questions import copied, then
from gantrymq.broker.send import RETRY_LIMIT_VERSION
from gantrymq.broker.stored_again import as_new, decode
from gantrymq.broker.storing import STORED_CODES, not_stored
from gantrymq.model.names import dlq_topic, retry_topic
from gantrymq.model.topic import UNIT_SUBSCRIPTION_FLAG, Perm
from gantrymq.store.status import PutStatus
from gantrymq.wire.codes import ResponseCode
from gantrymq.wire.headers.send import ConsumerSendMessageBackRequest
from gantrymq.wire.message_id import offset_id_text
from gantrymq.wire.properties import DELAY, ORIGIN_MESSAGE_ID, RETRY_TOPIC
from gantrymq.wire.response_errors import (
    NoPermission,
    SubscriptionGroupNotExist,
    SystemFailure,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.broker.groups import Groups
    from gantrymq.broker.settings import LiveSettings
    from gantrymq.broker.storing import Storing
    from gantrymq.broker.topics import Topics
    from gantrymq.kernel import Record
    from gantrymq.model.group import SubscriptionGroup
    from gantrymq.model.topic import TopicConfig
    from gantrymq.store.message_store import MessageStore
    from gantrymq.store.put import NewMessage
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Peer, Pending

FIRST_LEVEL: Final = 3
"""Delay level of the first attempt; each further one waits a level longer."""


class SendBack:
    """Takes messages back from consumers."""

    def __init__(
        self,
        store: MessageStore,
        storing: Storing,
        topics: Topics,
        groups: Groups,
        settings: LiveSettings,
        pick: Callable[[int], int],
        sent_back: Callable[[str, str], None] = lambda _group, _topic: None,
    ) -> None:
        """Tell `sent_back` the group and the topic of what came back, for statistics."""
        self._store = store
        self._storing = storing
        self._topics = topics
        self._groups = groups
        self._settings = settings
        self._pick = pick
        self._sent_back = sent_back

    def handle(self, request: Command, _peer: Peer) -> Pending:
        """Store a message again for its group."""
        header = ConsumerSendMessageBackRequest.decode(request.fields)
        group = self._groups.find_or_create(header.group)
        if group is None:
            raise SubscriptionGroupNotExist(f"subscription group not exist, {header.group}")
        settings = self._settings.now
        if not settings.permission & Perm.WRITE:
            raise NoPermission(
                f"the broker[{settings.shown}] sending message is forbidden (brokerPermission)"
            )
        if group.retry_queues <= 0:
            return answer(request)
        flags = UNIT_SUBSCRIPTION_FLAG if header.unit_mode else 0
        topic = self._topics.create_for_group(
            retry_topic(group.name), group.retry_queues, system_flags=flags
        )
        if not topic.writable:
            raise NoPermission(f"the topic[{topic.name}] sending message is forbidden")

        def put_again(raw: bytes | None) -> Pending:
            if raw is None:
                raise SystemFailure(f"look message by offset failed, {header.offset}")
            message = self._returned(decode(raw), header, group, topic, request.version)
            return self._put(request, message, group)

        # What was consumed late may be cold.
        return then(self._store, lambda store: copied(store.record_at(header.offset)), put_again)

    def _returned(
        self,
        record: Record,
        header: ConsumerSendMessageBackRequest,
        group: SubscriptionGroup,
        topic: TopicConfig,
        version: int,
    ) -> NewMessage:
        """Return the message as it is stored again."""
        message = as_new(record)
        own_id = offset_id_text(record.store_host, record.log_offset)
        properties = {RETRY_TOPIC: message.topic, ORIGIN_MESSAGE_ID: own_id, **message.properties}
        limit = group.retry_times_max
        if version >= RETRY_LIMIT_VERSION and header.max_reconsume_times is not None:
            limit = header.max_reconsume_times
        if message.reconsume_times >= limit or header.delay_level < 0:
            dead = self._topics.create_for_group(dlq_topic(group.name), 1)
            properties.pop(DELAY, None)
            target, queue_id = dead.name, 0
        else:
            level = header.delay_level or FIRST_LEVEL + message.reconsume_times
            properties[DELAY] = str(level)
            target, queue_id = topic.name, self._pick(group.retry_queues)
        return message._replace(
            topic=target,
            queue_id=queue_id,
            properties=properties,
            reconsume_times=message.reconsume_times + 1,
            store_host=None,
        )

    def _put(self, request: Command, message: NewMessage, group: SubscriptionGroup) -> Pending:
        self._storing.check_room()
        stored = self._store.put([message])
        if stored.status is not PutStatus.PUT_OK:
            raise not_stored(stored.status, self._store)
        self._sent_back(group.name, message.properties[RETRY_TOPIC])

        def outcome(status: PutStatus) -> Answer:
            if status in STORED_CODES:
                return answer(request, ResponseCode.SUCCESS)
            error = not_stored(status, self._store)
            return answer(request, error.code, remark=error.remark)

        return self._storing.wait(stored.end, outcome)
