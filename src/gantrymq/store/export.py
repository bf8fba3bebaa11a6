"""Every message that a store serves, as JSON: one object for each, in commit-log order.

A message is served when a queue entry leads to it. Records that none leads to are left out: those
of a deleted topic, prepared and rolled-back ones, and whatever recovery has cut off. The fields
and their forms are those of the golden stores' `messages.jsonl.gz`; `bodyLen` and `bodySha256` are
there only for a body that is stored compressed.

The log is taken a thousand records at a time, as columns of the kernel, and put together and
encoded by columns as well: there is next to no Python for a single message.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from itertools import accumulate, compress, pairwise
from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.errors import ProtocolError
from gantrymq.kernel import RECORD_MAGIC_V1, RECORD_MAGIC_V2, UNIT_BYTES, Stop, kernel
from gantrymq.store.columns import integers, slices, texts
from gantrymq.store.get import units_of
from gantrymq.wire.compression import plain_body
from gantrymq.wire.properties import KEYS, TAGS, UNIQ_KEY, decode_properties
from gantrymq.wire.sysflag import SystemFlag

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Iterable, Iterator

    from gantrymq.kernel import Columns, Dispatch, QueueRun
    from gantrymq.store.queue_table import QueueTable
    from gantrymq.store.reader import Span, StoreReader

RECORDS_MAX: Final = 1024
"""Records that are looked up in the queues, and encoded, at once."""
BYTES_MAX: Final = 1 << 24
"""Record bytes that are copied out of the log at once; a single record may have more."""
_NAMES: Final = (
    "queue_id", "queue_offset", "log_offset", "store_size", "body_crc", "flag", "sys_flag",
    "reconsume_times", "born_timestamp", "store_timestamp", "prepared_offset", "body", "topic",
    "properties", "born_host", "store_host", "message_id",
)  # fmt: skip
_MAGICS: Final = {magic & 0xFF: f"{magic:08x}" for magic in (RECORD_MAGIC_V1, RECORD_MAGIC_V2)}
"""By the last byte, in which they differ."""
_COMPRESSED: Final = SystemFlag.COMPRESSED.value
_Served = frozenset[int] | None
"""Log offsets that the queues lead to; None if they lead to every record of the range."""


class ExportedMessage(msgspec.Struct, rename="camel", gc=False):
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
    body_len: int | msgspec.UnsetType
    body_sha256: str | msgspec.UnsetType
    sys_flag: int
    flag: int
    born_timestamp: int
    born_host: str
    store_timestamp: int
    store_host: str
    reconsume_times: int
    prepared_transaction_offset: int
    record_sha256: str


_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


def export_lines(
    reader: StoreReader, progress: Callable[[int], None] | None = None
) -> Iterator[bytes]:
    """Yield a JSON object for each message that is served, without a line end.

    `progress` is told how far the log was walked.
    """
    for messages in exported(reader, progress):
        yield from map(_ENCODER.encode, messages)


def export_blocks(
    reader: StoreReader, progress: Callable[[int], None] | None = None
) -> Iterator[bytes]:
    """Yield the same objects, many at once; each ends its line."""
    return map(_ENCODER.encode_lines, exported(reader, progress))


def exported(
    reader: StoreReader, progress: Callable[[int], None] | None = None
) -> Iterator[list[ExportedMessage]]:
    """Yield what the export says of the messages, a thousand at a time."""
    for span in reader.spans():
        position = span.start
        while position < span.end:
            found = kernel.dispatch_records(
                span.buffer, position, span.end, span.log_base, False, RECORDS_MAX, ()
            )
            served = _served_offsets(reader.queue_table, found)
            yield from _messages(span, position, found.end, served)
            position = found.end
            if progress is not None:
                progress(span.log_base + position)
            if found.stop is not Stop.LIMIT:
                break


# -- which are served ----------------------------------------------------------------------------


def _served_offsets(queues: QueueTable, found: Dispatch) -> _Served:
    """Return the log offsets of a range that the queues lead to."""
    runs = [_served_units(queues, run) for run in found.runs]
    if sum(map(len, runs)) == found.records * UNIT_BYTES:
        return None
    return frozenset(unit.log_offset for units in runs for unit in units_of(units))


def _served_units(queues: QueueTable, run: QueueRun) -> bytes:
    """Return the units of a run that stand in its queue as well."""
    queue = queues.find(run.topic.decode(errors="replace"), run.queue_id)
    if queue is None:
        return b""
    first = max(run.first_queue_offset, queue.min_offset)
    expected = run.units[(first - run.first_queue_offset) * UNIT_BYTES :]
    units = queue.read(first, len(expected) // UNIT_BYTES)
    if units == expected:
        return units
    pairs = zip(units_of(expected), units_of(units), strict=False)
    # The tags code says nothing here: it may be an address, or a time of delivery.
    is_there = [ours[:2] == theirs[:2] for ours, theirs in pairs]
    return b"".join(
        compress(
            (expected[at : at + UNIT_BYTES] for at in range(0, len(expected), UNIT_BYTES)), is_there
        )
    )


# -- columns -------------------------------------------------------------------------------------


def _messages(
    span: Span, position: int, end: int, served: _Served
) -> Iterator[list[ExportedMessage]]:
    """Yield the served messages of a range, in portions that memory can hold."""
    while position < end:
        rows = kernel.scan_columns(
            span.buffer, position, end, span.log_base, False, _NAMES, (), RECORDS_MAX, BYTES_MAX
        )
        messages = _portion(span, position, rows)
        if served is not None:
            is_served = map(served.__contains__, integers(rows, "log_offset"))
            messages = list(compress(messages, is_served))
        if messages:
            yield messages
        position = rows.end


def _portion(span: Span, position: int, rows: Columns) -> list[ExportedMessage]:
    """Return what is said of all records of a portion, served or not."""
    sizes, sys_flags = integers(rows, "store_size"), integers(rows, "sys_flag")
    properties = list(map(decode_properties, texts(rows, "properties")))
    bodies, records = slices(rows, "body"), _records(span, position, sizes)
    plain = _plain_bodies(bodies, sys_flags)
    values: tuple[Iterable[object], ...] = (
        texts(rows, "topic"),
        integers(rows, "queue_id"),
        integers(rows, "queue_offset"),
        integers(rows, "log_offset"),
        sizes,
        [_MAGICS[record[7]] for record in records],
        texts(rows, "message_id"),
        *([one.get(name) for one in properties] for name in (UNIQ_KEY, TAGS, KEYS)),
        properties,
        integers(rows, "body_crc"),
        map(len, bodies),
        _digests(bodies),
        *plain,
        sys_flags,
        integers(rows, "flag"),
        integers(rows, "born_timestamp"),
        texts(rows, "born_host"),
        integers(rows, "store_timestamp"),
        texts(rows, "store_host"),
        integers(rows, "reconsume_times"),
        integers(rows, "prepared_offset"),
        _digests(records),
    )
    return list(map(ExportedMessage, *values))


def _records(span: Span, position: int, sizes: array[int]) -> list[memoryview]:
    ends = accumulate(sizes, initial=position)
    return [span.buffer[begin:end] for begin, end in pairwise(ends)]


def _digests(pieces: Iterable[bytes | memoryview]) -> list[str]:
    return [sha256(piece).hexdigest() for piece in pieces]


def _plain_bodies(
    bodies: list[bytes], sys_flags: array[int]
) -> tuple[Iterable[object], Iterable[object]]:
    """Return lengths and digests of the bodies as sent; unset where they are stored as sent."""
    lengths: list[int | msgspec.UnsetType] = [msgspec.UNSET] * len(bodies)
    digests: list[str | msgspec.UnsetType] = [msgspec.UNSET] * len(bodies)
    for row, sys_flag in enumerate(sys_flags):
        if sys_flag & _COMPRESSED:
            # A producer may set the bit and compress nothing; the message is served all the same.
            with suppress(ProtocolError):
                body = plain_body(bodies[row], sys_flag)
                lengths[row], digests[row] = len(body), sha256(body).hexdigest()
    return lengths, digests
