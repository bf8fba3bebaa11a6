"""Every message that a store serves, as JSON: one object for each, in commit-log order.

A message is served when a queue entry leads to it. Records that none leads to are left out: those
of a deleted topic, prepared and rolled-back ones, and whatever recovery has cut off. The fields
and their forms are those of the golden stores' `messages.jsonl.gz`; `bodyLen` and `bodySha256` are
there only for a body that is stored compressed.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.errors import ProtocolError
from gantrymq.kernel import UNIT_BYTES, Dispatch, Stop, kernel
from gantrymq.store.get import units_of
from gantrymq.wire.properties import KEYS
from gantrymq.wire.record import MessageRecord, decode_record
from gantrymq.wire.sysflag import SystemFlag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gantrymq.store.queue_table import QueueTable
    from gantrymq.store.reader import Span, StoreReader

RECORDS_MAX: Final = 4096
"""Records whose queue entries are looked up at once."""


class ExportedMessage(msgspec.Struct, kw_only=True, rename="camel"):
    """A line of the export."""

    topic: str
    queue_id: int
    queue_offset: int
    commit_log_offset: int
    store_size: int
    magic: str
    msg_id: str
    uniq_key: str | None
    tags: str | None
    keys: str | None
    properties: dict[str, str]
    body_crc: int = msgspec.field(name="bodyCRC")
    stored_body_len: int
    stored_body_sha256: str
    body_len: int | msgspec.UnsetType = msgspec.UNSET
    body_sha256: str | msgspec.UnsetType = msgspec.UNSET
    sys_flag: int
    flag: int
    born_timestamp: int
    born_host: str
    store_timestamp: int
    store_host: str
    reconsume_times: int
    prepared_transaction_offset: int
    record_sha256: str


_ENCODER: Final = msgspec.json.Encoder()


def export_lines(
    reader: StoreReader, progress: Callable[[int], None] | None = None
) -> Iterator[bytes]:
    """Yield a JSON object for each message that is served, without a line end.

    `progress` is told how far the log was walked.
    """
    for raw in served_records(reader, progress):
        yield _ENCODER.encode(exported(raw))


def served_records(
    reader: StoreReader, progress: Callable[[int], None] | None = None
) -> Iterator[memoryview]:
    """Yield the records that queue entries lead to, in the order of the log."""
    for span in reader.spans():
        position = span.start
        while position < span.end:
            found = kernel.dispatch_records(
                span.buffer, position, span.end, span.log_base, False, RECORDS_MAX, ()
            )
            served = _served_offsets(reader.queue_table, found)
            yield from _records(span, position, found.end, served)
            position = found.end
            if progress is not None:
                progress(span.log_base + position)
            if found.stop is not Stop.LIMIT:
                break


def _served_offsets(queues: QueueTable, found: Dispatch) -> set[int]:
    """Return the log offsets of a range that the queues lead to."""
    served: set[int] = set()
    for run in found.runs:
        queue = queues.find(run.topic.decode(errors="replace"), run.queue_id)
        if queue is None:
            continue
        first = max(run.first_queue_offset, queue.min_offset)
        expected = run.units[(first - run.first_queue_offset) * UNIT_BYTES :]
        units = queue.read(first, len(expected) // UNIT_BYTES)
        # The tags code says nothing here: it may be an address, or a time of delivery.
        for ours, theirs in zip(units_of(expected), units_of(units), strict=False):
            if ours[:2] == theirs[:2]:
                served.add(ours.log_offset)
    return served


def _records(span: Span, position: int, end: int, served: set[int]) -> Iterator[memoryview]:
    while position < end:
        size = int.from_bytes(span.buffer[position : position + 4])
        if span.log_base + position in served:
            yield span.buffer[position : position + size]
        position += size


def exported(raw: memoryview) -> ExportedMessage:
    """Return what the export says of a record."""
    record = decode_record(raw, 0, len(raw))[0]
    stored, properties = record.raw, record.properties
    line = ExportedMessage(
        topic=record.topic,
        queue_id=stored.queue_id,
        queue_offset=stored.queue_offset,
        commit_log_offset=stored.log_offset,
        store_size=len(raw),
        magic=raw[4:8].hex(),
        msg_id=record.offset_id,
        uniq_key=record.unique_key,
        tags=record.tags,
        keys=properties.get(KEYS),
        properties=dict(sorted(properties.items())),
        body_crc=int.from_bytes(raw[8:12], signed=True),
        stored_body_len=len(stored.body),
        stored_body_sha256=sha256(stored.body).hexdigest(),
        sys_flag=stored.sys_flag,
        flag=stored.flag,
        born_timestamp=stored.born_timestamp,
        born_host=host_text(stored.born_host),
        store_timestamp=stored.store_timestamp,
        store_host=host_text(stored.store_host),
        reconsume_times=stored.reconsume_times,
        prepared_transaction_offset=stored.prepared_offset,
        record_sha256=sha256(raw).hexdigest(),
    )
    if stored.sys_flag & SystemFlag.COMPRESSED.value:
        _add_plain_body(line, record)
    return line


def _add_plain_body(line: ExportedMessage, record: MessageRecord) -> None:
    try:
        body = record.plain_body()
    except ProtocolError:
        # A producer may set the bit and compress nothing; the message is served all the same.
        return
    line.body_len = len(body)
    line.body_sha256 = sha256(body).hexdigest()


def host_text(host: bytes) -> str:
    """Return a host as Java prints it: an IPv6 address in eight groups, without brackets."""
    address, port = host[:-4], int.from_bytes(host[-4:], signed=True)
    if len(address) == 4:
        return f"{'.'.join(map(str, address))}:{port}"
    groups = (f"{int.from_bytes(address[at : at + 2]):x}" for at in range(0, 16, 2))
    return f"{':'.join(groups)}:{port}"
