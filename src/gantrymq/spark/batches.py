"""Records, one behind the other, as Arrow batches: what both modes do with the bytes they got.

The kernel lays columns out as Arrow does, so its bytes become arrays without being copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from gantrymq.errors import GantryError, ProtocolError
from gantrymq.kernel import Stop, kernel
from gantrymq.kernel.values import BINARY_COLUMNS, INT32_COLUMNS, INT64_COLUMNS
from gantrymq.model.names import is_light_queue
from gantrymq.spark.schema import COLUMNS
from gantrymq.wire.compression import plain_body
from gantrymq.wire.properties import decode_properties
from gantrymq.wire.sysflag import SystemFlag

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gantrymq.kernel import Columns
    from gantrymq.kernel.interface import Buffer
    from gantrymq.spark.filters import RowFilter
    from gantrymq.spark.schema import WantedColumn
    from gantrymq.spark.slices import Slice

ROWS_MAX: Final = 8192
BYTES_MAX: Final = 4 << 20
"""Record bytes in a batch; a single record may have more."""
_COMPRESSED: Final = SystemFlag.COMPRESSED.value
_TYPES: Final = {
    "string": pa.string(),
    "binary": pa.binary(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
}


class BadRecord(GantryError):
    """A record that is none; says where, and what is wrong with it."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(f"no good record {position} bytes on ({why})")
        self.position = position
        self.why = why

    def __reduce__(self) -> tuple[type[BadRecord], tuple[int, str]]:
        """Let the error cross a process border."""
        return type(self), (self.position, self.why)


class Batches:
    """Makes batches of one query's columns; belongs to one task."""

    def __init__(
        self,
        columns: tuple[WantedColumn, ...],
        row_filter: RowFilter,
        *,
        decompress: bool,
        verify_crc: bool,
    ) -> None:
        self._columns = columns
        self._filter = row_filter
        self._verify_crc = verify_crc
        sources = [COLUMNS[column.name].source for column in columns]
        self._decompress = decompress and "body" in sources
        needed = ["queue_offset", *filter(None, sources), *row_filter.sources]
        if self._decompress:
            needed.append("sys_flag")
        self._names = tuple(dict.fromkeys(needed))
        self.schema = pa.schema(
            [
                pa.field(column.name, _TYPES[COLUMNS[column.name].spark_type], column.nullable)
                for column in columns
            ]
        )

    def of(self, records: Buffer, part: Slice, end: int) -> Iterator[tuple[object, Columns]]:
        """Yield the batches of all records, and what the kernel said of each.

        Rows at or behind the queue offset `end` are left out.

        Raises:
            BadRecord: the bytes are not records of the slice's topic.
        """
        position, size = 0, len(records)
        # A light queue's messages have the topic that they were sent to.
        topics = () if is_light_queue(part.wire_topic) else (part.wire_topic.encode(),)
        while position < size:
            rows = kernel.scan_columns(
                records, position, size, -1, self._verify_crc, self._names, topics, ROWS_MAX,
                BYTES_MAX,
            )  # fmt: skip
            if rows.rows != rows.scanned:
                raise BadRecord(rows.end, "another topic's")
            if rows.rows:
                yield self._batch(rows, part, end), rows
            if rows.stop not in {Stop.LIMIT, Stop.END}:
                raise BadRecord(rows.end, rows.stop.name)
            position = rows.end

    def _batch(self, rows: Columns, part: Slice, end: int) -> object:
        arrays = {name: _array(rows, name) for name in self._names}
        if self._decompress:
            arrays["body"] = _plain_bodies(arrays["body"], arrays["sys_flag"])
        made = [self._made(column.name, arrays, rows.rows, part) for column in self._columns]
        batch = pa.RecordBatch.from_arrays(made, schema=self.schema)
        mask = self._filter.mask(arrays)
        if arrays["queue_offset"][-1].as_py() >= end:
            below = pc.less(arrays["queue_offset"], end)
            mask = below if mask is None else pc.and_(mask, below)
        return batch if mask is None else batch.filter(mask)

    @staticmethod
    def _made(name: str, arrays: dict[str, pa.Array], count: int, part: Slice) -> pa.Array:
        kind = COLUMNS[name]
        if kind.source is None:
            value = {"topic": part.topic, "brokerName": part.broker, "queueId": part.queue_id}[name]
            return pa.repeat(pa.scalar(value, _TYPES[kind.spark_type]), count)
        array = arrays[kind.source]
        if kind.spark_type == "timestamp":
            return pc.multiply(array, 1000).view(_TYPES["timestamp"])
        if name == "propertiesMap":
            entries = [list(decode_properties(text).items()) for text in array.to_pylist()]
            return pa.array(entries, _TYPES[kind.spark_type])
        return array


def _array(rows: Columns, name: str) -> pa.Array:
    """Return a column of the kernel as an array over the same bytes."""
    column = rows.columns[name]
    buffers = [None if column.validity is None else pa.py_buffer(column.validity)]
    if column.offsets is not None:
        buffers.append(pa.py_buffer(column.offsets))
    buffers.append(pa.py_buffer(column.values))
    return pa.Array.from_buffers(_kernel_type(name), rows.rows, buffers)


def _kernel_type(name: str) -> pa.DataType:
    if name in INT32_COLUMNS:
        return pa.int32()
    if name in INT64_COLUMNS:
        return pa.int64()
    return pa.binary() if name in BINARY_COLUMNS else pa.string()


def _plain_bodies(bodies: pa.Array, sys_flags: pa.Array) -> pa.Array:
    """Return bodies as they were sent; most batches have none that was compressed."""
    marked = pc.bit_wise_and(sys_flags, _COMPRESSED)
    if not pc.any(pc.not_equal(marked, 0)).as_py():
        return bodies
    plain = []
    for body, sys_flag in zip(bodies.to_pylist(), sys_flags.to_pylist(), strict=True):
        try:
            plain.append(plain_body(body, sys_flag))
        except ProtocolError:
            # A producer may set the bit and compress nothing; the message is served all the same.
            plain.append(body)
    return pa.array(plain, pa.binary())
