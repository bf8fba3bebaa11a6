"""The values that both twins of the kernel take and return. No logic lives here.

Positions are indexes into the caller's buffer; log offsets are positions in the endless commit log.
A host is its wire form: 4 or 16 address bytes and a 4-byte port.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from gantrymq.kernel.lanes import PullWay

JSON_HEADER: Final = 0
"""Serialize type of a JSON header."""
BINARY_HEADER: Final = 1
"""Serialize type of a binary (ROCKETMQ) header."""

RECORD_MAGIC_V1: Final = 0xDAA320A7
RECORD_MAGIC_V2: Final = 0xDAA320AB
"""As version 1, with a two-byte topic length; written for topics over 127 bytes."""
BLANK_MAGIC: Final = 0xCBD43194
"""End-of-file filler."""
BLANK_BYTES_MIN: Final = 8
UNIT_BYTES: Final = 20
"""One consume queue entry."""
PRE_BLANK_SIZE: Final = 2147483647
"""Size field of a consume queue unit that holds no message."""
EXT_ADDRESS_MAX: Final = -2147483649
"""A tags code not above this is an address in the consume queue extension."""
SCHEDULE_TOPIC: Final = b"SCHEDULE_TOPIC_XXXX"


class Stop(IntEnum):
    """Why a walk over records ended. Positions before it hold good records only."""

    END = 0
    """The range is used up, at a record border."""
    BLANK = 1
    """A blank record: nothing more in this file."""
    INCOMPLETE = 2
    """The record runs past the range, or fewer than 8 bytes are left."""
    BAD_MAGIC = 3
    """Not a record; zeros mean that nothing was ever written here."""
    BAD_SIZE = 4
    """The record's own lengths do not add up to its total size."""
    BAD_OFFSET = 5
    """The record says that it belongs at another log offset."""
    BAD_CRC = 6
    """The body is not the one that was stored."""
    LIMIT = 7
    """As many records, or bytes, as were asked for."""


class LaneStop(IntEnum):
    """Why a run of sends ended."""

    DRAINED = 0
    """Every complete frame was taken; what is left, if anything, is the beginning of one."""
    POLICY = 1
    """The next frame is complete and not an ordinary send: Python decides."""
    LOG_FULL = 2
    """The next send does not fit into this file; roll and call again."""


class Frame(NamedTuple):
    """Where one frame lies in a receive buffer; `buffer[start:end]` is all of it."""

    start: int
    header: int
    body: int
    end: int
    serialize_type: int


class SendRequest(NamedTuple):
    """SEND_MESSAGE, SEND_MESSAGE_V2 or SEND_BATCH_MESSAGE, decoded without a dict."""

    code: int
    version: int
    opaque: int
    oneway: bool
    serialize_type: int
    producer_group: str
    topic: str
    default_topic: str
    default_topic_queues: int
    queue_id: int
    sys_flag: int
    born_timestamp: int
    flag: int
    properties: bytes
    reconsume_times: int
    unit_mode: bool
    max_reconsume_times: int | None
    batch: bool
    broker_name: str | None
    extra_fields: bool
    """The header has fields beside these (a signature, a namespace…)."""
    body_start: int
    body_end: int


class PullRequest(NamedTuple):
    """PULL_MESSAGE, decoded without a dict."""

    version: int
    opaque: int
    oneway: bool
    serialize_type: int
    consumer_group: str
    topic: str
    queue_id: int
    queue_offset: int
    max_messages: int
    sys_flag: int
    commit_offset: int
    suspend_timeout_ms: int
    subscription: str | None
    sub_version: int
    expression_type: str | None
    max_bytes: int | None
    broker_name: str | None
    extra_fields: bool


class Refused(NamedTuple):
    """What became of sends that were refused together."""

    end: int
    """Behind the last of them."""
    requests: int
    replies: bytes
    """Whole frames; a oneway send has none."""


class SendAnswer(NamedTuple):
    """A broker's plain answer to a send: stored, and where."""

    opaque: int
    queue_id: int
    queue_offset: int
    message_id: str
    """Offset message id; those of a batch joined by commas."""
    transaction_id: str | None
    region: str | None
    trace_on: bool
    """False only where the broker says so."""


class Record(NamedTuple):
    """A stored message. The CRC, the total size and the magic follow from these."""

    queue_id: int
    flag: int
    queue_offset: int
    log_offset: int
    sys_flag: int
    born_timestamp: int
    born_host: bytes
    store_timestamp: int
    store_host: bytes
    reconsume_times: int
    prepared_offset: int
    body: bytes
    topic: bytes
    properties: bytes


class Scan(NamedTuple):
    """What a walk over a range of the commit log found."""

    end: int
    """Position behind the last good record."""
    records: int
    stop: Stop
    first_store_timestamp: int
    """0 when there is no record."""
    last_store_timestamp: int


class QueueRun(NamedTuple):
    """Consecutive consume queue units of one queue."""

    topic: bytes
    queue_id: int
    first_queue_offset: int
    units: bytes
    """20 bytes each, as they stand on disk."""
    log_end: int
    """Log offset behind the last of these records."""
    last_store_timestamp: int


class FileWrite(NamedTuple):
    """Bytes that belong at a position of a file, which is made of `size` zeros first."""

    path: str
    position: int
    data: bytes
    size: int


class Dispatch(NamedTuple):
    """All that dispatch needs to know of a range of the commit log."""

    end: int
    records: int
    stop: Stop
    runs: list[QueueRun]
    """In order of first appearance; a gap in a queue's offsets begins a new run."""
    keys: bytes
    """Index entries in log order, 20 bytes each, big-endian: i32 hash, i64 log offset, i64 store
    time.
    """
    multi: list[int]
    """Positions of dispatched records with INNER_MULTI_DISPATCH, whose further queues Python must
    serve.
    """


class AuditRun(NamedTuple):
    """Consecutive messages of one queue, as an audit counts them."""

    topic: bytes
    queue_id: int
    first_queue_offset: int
    units: bytes
    """As in a `QueueRun`."""
    record_bytes: int
    """Sizes of these records, added up."""


class Audit(NamedTuple):
    """What an audit needs to know of a range of the commit log."""

    end: int
    records: int
    stop: Stop
    runs: list[AuditRun]
    """In order of first appearance; a gap in a queue's offsets begins a new run."""
    keys: int
    """How many index entries there are."""


class QueueUnit(NamedTuple):
    """One consume queue entry."""

    log_offset: int
    size: int
    tags_code: int


class Gathered(NamedTuple):
    """Records that were copied behind one another."""

    records: bytes
    messages: int
    end: int
    """Position behind the last unit that was taken or passed over."""
    last_log_offset: int
    """Of the last record; -1 when there is none."""


class Column(NamedTuple):
    """One column as Arrow lays it out, little-endian.

    Fixed width: `values` alone. Variable width: `offsets` (i32, rows + 1) into `values`. `validity`
    is a bitmap, least significant bit first, and None where every row has a value.
    """

    values: bytes
    offsets: bytes | None
    validity: bytes | None


class Columns(NamedTuple):
    """A range of the commit log as columns."""

    end: int
    rows: int
    scanned: int
    """Records walked over, those of other topics included."""
    stop: Stop
    columns: dict[str, Column]


INT32_COLUMNS: Final = (
    "queue_id", "store_size", "body_crc", "flag", "sys_flag", "reconsume_times",
)  # fmt: skip
INT64_COLUMNS: Final = (
    "queue_offset", "log_offset", "born_timestamp", "store_timestamp", "prepared_offset",
)  # fmt: skip
BINARY_COLUMNS: Final = ("body",)
STRING_COLUMNS: Final = ("topic", "properties", "born_host", "store_host", "message_id")
NULLABLE_COLUMNS: Final = ("tags", "keys", "unique_key")
COLUMN_NAMES: Final = (
    *INT32_COLUMNS, *INT64_COLUMNS, *BINARY_COLUMNS, *STRING_COLUMNS, *NULLABLE_COLUMNS,
)  # fmt: skip


class SendRun(NamedTuple):
    """What a call of the send lane did."""

    consumed: int
    """Position in the receive buffer behind the last frame taken."""
    log_position: int
    """Position in the log buffer behind the last record written."""
    requests: int
    messages: int
    replies: bytes
    """Reply frames in the order of their requests; oneway requests have none."""
    stop: LaneStop


class SendTurn(NamedTuple):
    """What a call of the send lane did with the bytes of several connections."""

    runs: list[tuple[int, bytes]]
    """For each part that was walked: the position behind the last frame taken, and the replies."""
    log_position: int
    requests: int
    messages: int
    stop: LaneStop
    """DRAINED: all parts were walked. Otherwise why the last of those walked ended."""


class KnownPull(NamedTuple):
    """A pull that only reads on where one like it has read before."""

    way: PullWay
    end: int
    """Position behind its frame."""
    queue_offset: int
    commit_offset: int
    answer: bytes
    """A whole frame; empty if the way does not lead there."""
    messages: int
    record_bytes: int
