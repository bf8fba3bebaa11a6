"""What is built from records: consume queue units and index keys."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue
from gantrymq.kernel.reference.bounds import check_log_base, check_range
from gantrymq.kernel.reference.integers import parse_integer, wrap
from gantrymq.kernel.reference.properties import named
from gantrymq.kernel.reference.records import (
    Found,
    check_records_max,
    read_record,
    string_hash,
)
from gantrymq.kernel.values import (
    SCHEDULE_TOPIC,
    UNIT_BYTES,
    Dispatch,
    QueueRun,
    Record,
    Stop,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.kernel.interface import Buffer

_TRANSACTION_BITS: Final = 0xC
_PREPARED: Final = 0x4
_ROLLBACK: Final = 0xC
_UNIT: Final = struct.Struct(">qiq")
_KEY: Final = struct.Struct(">iqq")
_DELAY_MS_MAX: Final = 2**62
_DELAY_MS_UNKNOWN: Final = 1000
"""What Apache's schedule service takes for a level that it does not know."""
_INT32_MIN: Final = -(2**31)


class _Runs:
    """The runs of units that grow while a range is walked over."""

    def __init__(self) -> None:
        self.runs: list[QueueRun] = []
        self._latest: dict[tuple[bytes, int], int] = {}

    def add(self, found: Found, tags_code: int) -> None:
        record = found.record
        unit = _UNIT.pack(record.log_offset, found.size, tags_code)
        queue = (record.topic, record.queue_id)
        index = self._latest.get(queue)
        if index is None or not self._continues(self.runs[index], record):
            index = self._latest[queue] = len(self.runs)
            self.runs.append(QueueRun(*queue, record.queue_offset, b"", 0, 0))
        run = self.runs[index]
        self.runs[index] = run._replace(
            units=run.units + unit,
            log_end=record.log_offset + found.size,
            last_store_timestamp=record.store_timestamp,
        )

    @staticmethod
    def _continues(run: QueueRun, record: Record) -> bool:
        return run.first_queue_offset + len(run.units) // UNIT_BYTES == record.queue_offset


def dispatch_records(
    buffer: Buffer,
    start: int,
    end: int,
    log_base: int,
    verify_crc: bool,
    records_max: int,
    delays_ms: Sequence[int],
) -> Dispatch:
    """Build consume queue units and index keys from a range, walking as `scan_records` does."""
    check_range(buffer, start, end)
    check_log_base(log_base)
    check_records_max(records_max)
    delays_ms = tuple(delays_ms)
    if not all(0 <= delay <= _DELAY_MS_MAX for delay in delays_ms):
        raise InvalidValue("dispatch: delays must be between 0 and 2**62")
    runs, keys, multi = _Runs(), bytearray(), list[int]()
    position, records, stop = start, 0, Stop.LIMIT
    while records < records_max or position == end:
        found = read_record(buffer, position, end, log_base, verify_crc)
        if isinstance(found, Stop):
            stop = found
            break
        record = found.record
        properties = named(record.properties)
        transaction = record.sys_flag & _TRANSACTION_BITS
        if transaction not in {_PREPARED, _ROLLBACK}:
            runs.add(found, _tags_code(record, properties, delays_ms))
            if b"INNER_MULTI_DISPATCH" in properties:
                multi.append(position)
        if transaction != _ROLLBACK:
            keys += _index_keys(record, properties)
        records += 1
        position = found.end
    return Dispatch(position, records, stop, runs.runs, bytes(keys), multi)


def _tags_code(record: Record, properties: dict[bytes, bytes], delays_ms: Sequence[int]) -> int:
    """Return the tag's hash or, for a message that waits, the time of its delivery."""
    if record.topic == SCHEDULE_TOPIC:
        # "replace" so that a byte that is no ASCII digit stays none.
        level = parse_integer(properties.get(b"DELAY", b"").decode("ascii", "replace"), 32)
        if level is not None and level > 0:
            delay = delays_ms[min(level, len(delays_ms)) - 1] if delays_ms else _DELAY_MS_UNKNOWN
            return wrap(record.store_timestamp + delay, 64)
    return string_hash(properties.get(b"TAGS", b""))


def _index_keys(record: Record, properties: dict[bytes, bytes]) -> bytes:
    words = [properties.get(b"UNIQ_KEY", b""), *properties.get(b"KEYS", b"").split(b" ")]
    return b"".join(
        _KEY.pack(_key_hash(record.topic, word), record.log_offset, record.store_timestamp)
        for word in words
        if word
    )


def _key_hash(topic: bytes, key: bytes) -> int:
    value = string_hash(topic + b"#" + key)
    return 0 if value == _INT32_MIN else abs(value)
