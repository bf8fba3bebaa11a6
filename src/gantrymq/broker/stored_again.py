"""Messages that the broker itself stores a second time: delivered later, tried again, committed.

A record of the log becomes a new message. Who made it, when, with which body and flags stays as it
was; where it goes and a few properties change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.kernel import kernel
from gantrymq.store.put import NewMessage
from gantrymq.wire.properties import decode_properties

if TYPE_CHECKING:
    from gantrymq.kernel import Record
    from gantrymq.kernel.interface import Buffer

HOST_FLAGS = 0x30
"""Bits that tell the length of the two hosts; the store sets them itself."""


def decode(record: Buffer) -> Record:
    """Return the one record that a buffer holds."""
    return kernel.decode_record(record, 0, len(record), False)[0]


def as_new(record: Record) -> NewMessage:
    """Return the message of a record, to be changed and stored again."""
    return NewMessage(
        topic=record.topic.decode(errors="replace"),
        queue_id=record.queue_id,
        body=bytes(record.body),
        properties=decode_properties(record.properties),
        born_timestamp=record.born_timestamp,
        born_host=record.born_host,
        flag=record.flag,
        sys_flag=record.sys_flag & ~HOST_FLAGS,
        reconsume_times=record.reconsume_times,
        prepared_offset=record.prepared_offset,
        store_host=record.store_host,
    )
