"""What happens to a message before it is sent: names made full, arguments checked, frames filled.

Everything that can be wrong with a message is said here, before anything is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.client import outgoing as shape
from gantrymq.client.arguments import at_least, check_queue, text
from gantrymq.client.outgoing import Outgoing
from gantrymq.client.selection import by_key, chosen
from gantrymq.errors import InvalidValue, shown
from gantrymq.model.message import Message
from gantrymq.model.names import check_topic
from gantrymq.model.queue import MessageQueue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from gantrymq.client.lane_table import LaneTable
    from gantrymq.client.lanes import Target
    from gantrymq.client.namespace import Namespace
    from gantrymq.client.selection import Selector
    from gantrymq.wire.sysflag import Compression

TOPICS_KEPT_MAX: Final = 10_000
"""Names that need no second look."""
_NOTHING: Final[Mapping[str, str]] = {}


class Preparing:
    """Makes messages ready, for one producer."""

    def __init__(
        self,
        namespace: Namespace,
        *,
        bytes_max: int,
        compress_from: int,
        compression: str | None,
    ) -> None:
        self._namespace = namespace
        self._compression: Compression | None = shape.compression_kind(compression)
        self.bytes_max = at_least("message_bytes_max", bytes_max, 1)
        self._compress_from = at_least("compress_from_bytes", compress_from, 0)
        self.plain_bytes_max = self.bytes_max
        """Bodies up to this size are sent as they are."""
        if self._compression is not None:
            self.plain_bytes_max = min(self.bytes_max, self._compress_from - 1)
        self.topics: dict[str, str] = {}
        """As the user says it -> full name, for those that have been checked."""

    def full_name(self, topic: str) -> str:
        """Return a topic as brokers know it.

        Raises:
            InvalidValue: it cannot be a topic.
        """
        found = self.topics.get(topic) if isinstance(topic, str) else None
        if found is None:
            if not isinstance(topic, str):
                raise InvalidValue(
                    f"message is {shown(repr(topic))}: give a Message, or a topic and a body"
                )
            found = check_topic(self._namespace.wrap(check_topic(topic)))
            if len(self.topics) < TOPICS_KEPT_MAX:
                self.topics[topic] = found
        return found

    def message(
        self,
        message: Message | str,
        body: bytes | None,
        tags: str | None,
        keys: str | Sequence[str],
        properties: Mapping[str, str] | None,
        delay_level: int = 0,
        deliver_at: datetime | int | None = None,
        key: str | None = None,
    ) -> Message:
        """Return the message that the arguments of a send are about; it keeps its `key`.

        Raises:
            InvalidValue: one of them cannot be.
        """
        given = self._described(message, body, tags, keys, properties, delay_level, deliver_at)
        if not key or given.sharding_key is not None:
            return given
        return msgspec.structs.replace(given, sharding_key=text("key", key))

    def _described(
        self,
        message: Message | str,
        body: bytes | None,
        tags: str | None,
        keys: str | Sequence[str],
        properties: Mapping[str, str] | None,
        delay_level: int,
        deliver_at: datetime | int | None,
    ) -> Message:
        if isinstance(message, Message):
            described = (tags, keys, properties, delay_level, deliver_at)
            if body is not None or any(described):
                raise InvalidValue(
                    "a Message says all of it itself: leave out body, tags, keys, properties,"
                    " delay_level and deliver_at"
                )
            shape.check_body(message.body, self.bytes_max)
            return message
        self.full_name(message)
        checked = shape.check_body(body, self.bytes_max)
        return shape.make_message(message, checked, tags, keys, properties, delay_level, deliver_at)

    def is_plain(self, message: Message) -> bool:
        """Tell whether a message goes out as it is, to any queue, in a frame without flags."""
        return (
            not message.flag
            and message.sharding_key is None
            and len(message.body) <= self.plain_bytes_max
        )

    def property_text(self, message: Message, message_id: str) -> bytes:
        """Return the property string of an ordinary message.

        Raises:
            InvalidValue: the properties are too large, or the system's own.
        """
        return shape.property_text(message, message_id, self._namespace.name, _NOTHING)

    async def outgoing(
        self, message: Message, message_id: str, extra: Mapping[str, str] = _NOTHING
    ) -> Outgoing:
        """Return what is sent of a message; `extra` are the system's own properties.

        Raises:
            InvalidValue: its properties are too large, or the system's own.
        """
        text = shape.property_text(message, message_id, self._namespace.name, extra)
        body, sys_flag = message.body, 0
        if self._compression is not None and len(body) > self.plain_bytes_max:
            body, sys_flag = await shape.compressed(body, self._compression)
        topic = self.full_name(message.topic)
        return Outgoing(topic, message_id, text, body, sys_flag=sys_flag, flag=message.flag)

    async def target(
        self,
        lanes: LaneTable,
        message: Message,
        queue: MessageQueue | None,
        key: str | None,
        selector: Selector | None,
        argument: object,
        deadline: float,
    ) -> Target | None:
        """Return the queue that the caller wants, if it wants one; `deadline` is the loop's time.

        Raises:
            InvalidValue: there is no such queue, or there are two wishes.
            NoRoute: there is nobody to send to.
        """
        if queue is None and key is None and selector is None:
            key = message.sharding_key
            if key is None:
                return None
        if sum(wish is not None for wish in (queue, key, selector)) > 1:
            raise InvalidValue("queue, key and selector exclude each other: give one of them")
        topic = self.full_name(message.topic)
        if queue is not None:
            wanted = self.full_queue(queue)
            if wanted.topic != topic:
                raise InvalidValue(f"{queue} is no queue of topic {message.topic!r}")
            return await lanes.target(wanted, deadline)
        if key is not None:
            text("key", key)
        lane = await lanes.get(topic, deadline)
        queues = [target.queue for target in lane.targets]
        if selector is not None:
            found = chosen(selector, queues, message, argument)
        else:
            found = by_key(queues, message, str(key))
        return lane.target(found)

    def full_queue(self, queue: MessageQueue) -> MessageQueue:
        """Return a queue by its topic's full name.

        Raises:
            InvalidValue: it is no queue.
        """
        check_queue(queue)
        return MessageQueue(self.full_name(queue.topic), queue.broker_name, queue.queue_id)


def plain_tags(tags: str) -> str:
    """Return tags that can be a property.

    Raises:
        InvalidValue: they cannot.
    """
    if not isinstance(tags, str) or "\x01" in tags or "\x02" in tags:
        raise InvalidValue(
            f"tags is {shown(repr(tags))}: give text without the control characters 1 and 2"
        )
    return tags
