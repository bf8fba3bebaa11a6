"""Stored messages as values: what pulls, queries and views return, and what the commit log holds.

The layout itself is the kernel's (`kernel.encode_record`); here its bytes get their types. A pull
returns up to 32 records of which a filter may want the tag alone, so texts, hosts and properties
are made when they are asked for, and properties are kept then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.errors import InvalidValue
from gantrymq.kernel import kernel
from gantrymq.kernel.values import BLANK_BYTES_MIN, Record
from gantrymq.model.message import Host, StoredMessage
from gantrymq.model.queue import LogOffset, QueueId, QueueOffset
from gantrymq.wire import properties as names
from gantrymq.wire.compression import plain_body
from gantrymq.wire.hosts import decode_host, encode_host
from gantrymq.wire.message_id import offset_id_text
from gantrymq.wire.properties import decode_properties, encode_properties
from gantrymq.wire.sysflag import TransactionType, transaction_type, with_host_bits

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Buffer

__all__ = [
    "Host",
    "MessageRecord",
    "Record",
    "decode_record",
    "decode_records",
    "encode_message",
]


class MessageRecord:
    """One record, seen through types. The raw one is `raw`."""

    __slots__ = ("_properties", "raw")

    def __init__(self, raw: Record) -> None:
        self.raw = raw
        self._properties: dict[str, str] | None = None

    @property
    def topic(self) -> str:
        """Return the topic; bytes that are no text are mended with U+FFFD."""
        return self.raw.topic.decode(errors="replace")

    @property
    def queue_id(self) -> QueueId:
        """Return the queue within the topic."""
        return QueueId(self.raw.queue_id)

    @property
    def queue_offset(self) -> QueueOffset:
        """Return the position in the consume queue."""
        return QueueOffset(self.raw.queue_offset)

    @property
    def log_offset(self) -> LogOffset:
        """Return the position in the commit log."""
        return LogOffset(self.raw.log_offset)

    @property
    def body(self) -> bytes:
        """Return the body as stored, compressed if it was sent so."""
        return self.raw.body

    @property
    def body_crc(self) -> int:
        """Return the check sum of the stored body."""
        return kernel.crc32(self.raw.body)

    def plain_body(self) -> bytes:
        """Return the body as the producer gave it.

        Raises ContentError if it cannot be decompressed, or is too large.
        """
        return plain_body(self.raw.body, self.raw.sys_flag)

    @property
    def born_host(self) -> Host:
        """Return the client that sent the message.

        Raises RecordError for a number that is no port.
        """
        return decode_host(self.raw.born_host, "record.bornHost")

    @property
    def store_host(self) -> Host:
        """Return the broker that stored the message.

        Raises RecordError for a number that is no port.
        """
        return decode_host(self.raw.store_host, "record.storeHost")

    @property
    def offset_id(self) -> str:
        """Return the id under which the broker finds the record again."""
        return offset_id_text(self.raw.store_host, self.raw.log_offset)

    @property
    def properties(self) -> dict[str, str]:
        """Return the properties; the same dict each time, which is not to be changed."""
        if self._properties is None:
            self._properties = decode_properties(self.raw.properties)
        return self._properties

    @property
    def tags(self) -> str | None:
        """Return the tag."""
        return self.properties.get(names.TAGS)

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys, which stand between blanks in one property."""
        text = self.properties.get(names.KEYS, "")
        return tuple(word for word in text.split(" ") if word)

    @property
    def unique_key(self) -> str | None:
        """Return the id that the client gave it."""
        return self.properties.get(names.UNIQ_KEY)

    @property
    def transaction_type(self) -> TransactionType:
        """Return what the message is in a transaction."""
        return transaction_type(self.raw.sys_flag)

    @property
    def stored_bytes(self) -> int:
        """Return the size of the record."""
        return kernel.record_bytes(self.raw)

    def to_message(self, broker_name: str | None = None) -> StoredMessage:
        """Return the record as the model's value, with everything decoded.

        Raises RecordError for a host that is none.
        """
        raw = self.raw
        return StoredMessage(
            topic=self.topic,
            body=raw.body,
            queue_id=self.queue_id,
            queue_offset=self.queue_offset,
            log_offset=self.log_offset,
            born_time_ms=raw.born_timestamp,
            born_host=self.born_host,
            store_time_ms=raw.store_timestamp,
            store_host=self.store_host,
            properties=dict(self.properties),
            tags=self.tags,
            keys=self.keys,
            unique_id=self.unique_key,
            flag=raw.flag,
            system_flags=raw.sys_flag,
            body_crc=self.body_crc,
            reconsume_times=raw.reconsume_times,
            prepared_offset=raw.prepared_offset,
            stored_bytes=self.stored_bytes,
            broker_name=broker_name,
        )


def decode_record(
    buffer: Buffer, position: int, end: int, *, verify_crc: bool = False
) -> tuple[MessageRecord, int]:
    """Return the record at `position` and the position behind it.

    Raises RecordError as `kernel.decode_record` does.
    """
    raw, behind = kernel.decode_record(buffer, position, end, verify_crc)
    return MessageRecord(raw), behind


def decode_records(body: bytes, *, verify_crc: bool = False) -> list[MessageRecord]:
    """Return the records of a response body, which stand back to back.

    Raises RecordError if anything in it is not a record.
    """
    records: list[MessageRecord] = []
    position, end, decode = 0, len(body), kernel.decode_record
    while position < end:
        raw, position = decode(body, position, end, verify_crc)
        records.append(MessageRecord(raw))
    return records


def encode_message(message: StoredMessage) -> bytes:
    """Return the record of a message; the host bits of its system flags follow from its hosts.

    `tags`, `keys` and `unique_id` are views of the properties and are not written beside them.
    Raises InvalidValue for what a record cannot hold.
    """
    try:
        topic = message.topic.encode()
    except UnicodeEncodeError as error:
        raise InvalidValue(f"topic that is not Unicode: {error}") from error
    born_host, store_host = encode_host(message.born_host), encode_host(message.store_host)
    sys_flag = with_host_bits(message.system_flags, len(born_host), len(store_host))
    record = Record(
        queue_id=message.queue_id,
        flag=message.flag,
        queue_offset=message.queue_offset,
        log_offset=message.log_offset,
        sys_flag=sys_flag,
        born_timestamp=message.born_time_ms,
        born_host=born_host,
        store_timestamp=message.store_time_ms,
        store_host=store_host,
        reconsume_times=message.reconsume_times,
        prepared_offset=message.prepared_offset,
        body=message.body,
        topic=topic,
        properties=encode_properties(message.properties),
    )
    size = kernel.record_bytes(record)
    target = bytearray(size + BLANK_BYTES_MIN)  # the kernel leaves room for a blank record
    kernel.encode_record(target, 0, len(target), record)
    return bytes(target[:size])
