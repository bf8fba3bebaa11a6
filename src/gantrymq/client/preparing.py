"""What happens to a message before it is sent: names made full, arguments checked, frames filled.

Everything that can be wrong with a message is said here, before anything is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.client import outgoing as shape
from gantrymq.client.outgoing import Outgoing
from gantrymq.client.selection import by_key, chosen
from gantrymq.errors import InvalidValue, shown
from gantrymq.model.message import Message
from gantrymq.model.names import check_topic
from gantrymq.model.queue import MessageQueue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from gantrymq.client.lanes import Target
    from gantrymq.client.namespace import Namespace
    from gantrymq.client.selection import Selector
    from gantrymq.client.sending import Sending
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
    ) -> Message:
        """Return the message that the arguments of a send are about.

        Raises:
            InvalidValue: one of them cannot be.
        """
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
        sending: Sending,
        message: Message,
        queue: MessageQueue | None,
        key: str | None,
        selector: Selector | None,
        argument: object,
    ) -> Target | None:
        """Return the queue that the caller wants, if it wants one.

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
        if queue is None:
            lane = await sending.lane(topic)
            queues = [target.queue for target in lane.targets]
            if selector is not None:
                queue = chosen(selector, queues, message, argument)
            else:
                queue = by_key(queues, message, str(key))
        wanted = MessageQueue(self.full_name(queue.topic), queue.broker_name, queue.queue_id)
        if wanted.topic != topic:
            raise InvalidValue(f"{queue} is no queue of topic {message.topic!r}")
        return await sending.target(wanted)


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


def seconds(name: str, value: float) -> float:
    """Return an argument that is a time to wait.

    Raises:
        InvalidValue: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 86_400:
        raise InvalidValue(f"{name} is {shown(repr(value))}: give seconds above 0, up to a day")
    return float(value)


def at_least(name: str, value: int, least: int) -> int:
    """Return an argument that is a number with a lower bound.

    Raises:
        InvalidValue: it is less, or none.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidValue(f"{name} is {shown(repr(value))}: give a number of at least {least}")
    return value
