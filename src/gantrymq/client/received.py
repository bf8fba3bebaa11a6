"""A message as an application gets it: what it wants to know, made when it is asked for.

It wraps the record that the broker sent. Tags, keys, times and the body are made from it on demand,
so a handler that looks at the body alone pays for nothing else.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gantrymq.model.queue import MessageQueue, QueueId, QueueOffset
from gantrymq.wire import properties as names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.model.message import Host
    from gantrymq.wire.record import MessageRecord


class ReceivedMessage:
    """One message that came from a broker. Not to be changed; two are equal if they are one."""

    __slots__ = ("_body", "_broker_name", "_topic", "record")

    def __init__(self, record: MessageRecord, broker_name: str, topic: str | None = None) -> None:
        """Wrap a record; `topic` is what the user calls it, the record's own unless given."""
        self.record = record
        """All that the broker sent: for what has no attribute here."""
        self._broker_name = broker_name
        self._topic = topic
        self._body: bytes | None = None

    @property
    def topic(self) -> str:
        """Return the topic, without the client's namespace."""
        if self._topic is None:
            self._topic = self.record.topic
        return self._topic

    @property
    def body(self) -> bytes:
        """Return the body as the producer gave it.

        Raises:
            ContentError: it is compressed and cannot be decompressed, or is too large.
        """
        if self._body is None:
            self._body = self.record.plain_body()
        return self._body

    @property
    def properties(self) -> Mapping[str, str]:
        """Return everything that was stored with it, the system's own properties included."""
        return self.record.properties

    @property
    def tags(self) -> str | None:
        """Return the tag."""
        return self.record.tags

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys that it can be looked up by."""
        return self.record.keys

    @property
    def message_id(self) -> str:
        """Return the id that its producer gave it; without one, the broker's."""
        return self.record.unique_key or self.record.offset_id

    @property
    def offset_id(self) -> str:
        """Return the id under which the broker finds this record."""
        return self.record.offset_id

    @property
    def queue(self) -> MessageQueue:
        """Return the queue it came from, by the topic's full name."""
        return MessageQueue(self.record.topic, self._broker_name, self.record.queue_id)

    @property
    def broker_name(self) -> str:
        """Return the name of the broker it came from."""
        return self._broker_name

    @property
    def queue_id(self) -> QueueId:
        """Return the number of its queue."""
        return self.record.queue_id

    @property
    def offset(self) -> QueueOffset:
        """Return its position in the queue."""
        return self.record.queue_offset

    @property
    def flag(self) -> int:
        """Return the application's own 32 bits."""
        return self.record.raw.flag

    @property
    def born_ms(self) -> int:
        """Return when the producer made it, in milliseconds since 1970."""
        return self.record.raw.born_timestamp

    @property
    def born_at(self) -> datetime:
        """Return when the producer made it."""
        return _time(self.record.raw.born_timestamp)

    @property
    def stored_ms(self) -> int:
        """Return when the broker stored it, in milliseconds since 1970."""
        return self.record.raw.store_timestamp

    @property
    def stored_at(self) -> datetime:
        """Return when the broker stored it."""
        return _time(self.record.raw.store_timestamp)

    @property
    def born_host(self) -> Host:
        """Return the address of the producer, as the broker saw it."""
        return self.record.born_host

    @property
    def store_host(self) -> Host:
        """Return the address of the broker that stored it."""
        return self.record.store_host

    @property
    def reconsume_times(self) -> int:
        """Return how often it was delivered before."""
        return self.record.raw.reconsume_times

    @property
    def attempt(self) -> int:
        """Return the number of this delivery; the first is 1."""
        return self.record.raw.reconsume_times + 1

    @property
    def sharding_key(self) -> str | None:
        """Return the key that put it into its queue."""
        found = self.record.properties
        return found.get(names.SHARDING_KEY) or found.get(names.SHARDING_KEY_NODE)

    @property
    def transaction_id(self) -> str | None:
        """Return the id of the transaction it was sent in."""
        found = self.record.properties
        return found.get(names.TRANSACTION_ID) or found.get(names.UNIQ_KEY)

    @property
    def correlation_id(self) -> str | None:
        """Return the id that ties a reply to its request; None for an ordinary message."""
        return self.record.properties.get(names.CORRELATION_ID)

    @property
    def reply_to(self) -> str | None:
        """Return the client id of who waits for a reply; None for an ordinary message."""
        return self.record.properties.get(names.REPLY_TO_CLIENT)

    def __repr__(self) -> str:
        """Say which message it is, for logs."""
        return (
            f"<ReceivedMessage {self.message_id} of {self.topic}@{self._broker_name}:"
            f"{self.queue_id} at {self.offset}, {len(self.record.body)} bytes>"
        )


def _time(milliseconds: int) -> datetime:
    """Return a moment; a producer may say any, and one that no calendar has is its first or last.

    Whoever looks at it must not fail for that, again and again.
    """
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        if milliseconds < 0:
            return datetime.min.replace(tzinfo=UTC)
        return datetime.max.replace(tzinfo=UTC)
