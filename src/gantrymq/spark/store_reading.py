"""Reading slices out of store directories: units lead to records, records become batches.

A process keeps the stores that it has looked at: mapping a file and recovering a store is done once
for all of a worker's tasks.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.errors import GantryError
from gantrymq.kernel import UNIT_BYTES, kernel
from gantrymq.model.names import SCHEDULE_TOPIC
from gantrymq.spark.batches import BadRecord
from gantrymq.spark.sequence import Sequence
from gantrymq.store.snapshot import Snapshot, open_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gantrymq.kernel import Gathered
    from gantrymq.spark.batches import Batches
    from gantrymq.spark.filters import RowFilter
    from gantrymq.spark.losses import Losses
    from gantrymq.spark.options import StorePath
    from gantrymq.spark.slices import Slice

logger = logging.getLogger(__name__)

UNITS_MAX: Final = 8192
BYTES_MAX: Final = 4 << 20
_PRE_BLANK: Final = 0x7FFFFFFF
_opened: Final[dict[tuple[str, bool], Snapshot]] = {}
"""Path, whether recovered -> store; of this process."""
STORES_MAX: Final = 64


def store_at(store: StorePath, *, recovered: bool) -> Snapshot:
    """Return a store as its planner saw it; opened once in a process."""
    key = store.path, recovered
    found = _opened.get(key)
    if found is None:
        while len(_opened) >= STORES_MAX:
            _opened.pop(next(iter(_opened))).close()
        configuration = Path(store.configuration) if store.configuration else None
        found = open_snapshot(Path(store.path), configuration, recover=recovered)
        _opened[key] = found
    return found


class StoreSlice:
    """One slice of a queue in a store."""

    def __init__(self, part: Slice, store: Snapshot, batches: Batches, losses: Losses) -> None:
        self._part = part
        self._store = store
        self._batches = batches
        self._losses = losses

    def read(self, row_filter: RowFilter) -> Iterator[object]:
        """Yield the batches of the slice.

        Raises:
            DataLoss: something is not there, or no message, and that matters.
        """
        part, offset = self._part, self._part.begin
        sequence = Sequence(part.queue, offset, self._losses, is_dense=row_filter.is_all)
        # Entries of delayed messages have the time of delivery where others have the tag's hash.
        hashes = () if self._part.wire_topic == SCHEDULE_TOPIC else tuple(row_filter.hashes)
        while offset < part.end:
            units = self._units(offset)
            if not units:
                sequence.pass_over(offset, part.end, "the queue has no entries for them any more")
                return
            count = len(units) // UNIT_BYTES
            yield from self._run(units, offset, hashes, sequence)
            offset += count
        sequence.finish(part.end)

    def _units(self, offset: int) -> bytes:
        part = self._part
        wanted = min(UNITS_MAX, part.end - offset)
        try:
            units = self._store.units(part.wire_topic, part.queue_id, offset, wanted)
        except (FileNotFoundError, GantryError) as error:
            logger.info("the units of %s from %d on: %s", part.queue, offset, error)
            return b""
        return units[: len(units) // UNIT_BYTES * UNIT_BYTES]

    def _run(
        self, units: bytes, first: int, hashes: tuple[int, ...], sequence: Sequence
    ) -> Iterator[object]:
        """Yield the batches that some units lead to."""
        position, size = 0, len(units)
        while position < size:
            found = self._gathered(units, position, size, hashes)
            if found is not None and found.end == position and hashes:
                # Its tag's hash is in the extension; the rows are looked at anyway.
                found = self._gathered(units, position, size, ())
            if found is None or found.end == position:
                offset = first + position // UNIT_BYTES
                sequence.pass_over(offset, offset + 1, self._why(units, position))
                position += UNIT_BYTES
                continue
            try:
                yield from self._decoded(found.records, sequence)
            except BadRecord:
                yield from self._one_by_one(units, position, found.end, first, sequence)
            position = found.end

    def _gathered(
        self, units: bytes, position: int, size: int, hashes: tuple[int, ...]
    ) -> Gathered | None:
        """Return the records that units lead to, as far as one log file has them."""
        log_offset, unit_bytes = _unit(units, position)
        if unit_bytes == _PRE_BLANK or (span := self._store.span_at(log_offset)) is None:
            return None
        return kernel.gather_records(
            units, position, size, span.buffer, span.start, span.end, span.log_base, hashes,
            UNITS_MAX, BYTES_MAX,
        )  # fmt: skip

    def _decoded(self, records: bytes, sequence: Sequence) -> Iterator[object]:
        for batch, rows in self._batches.of(records, self._part, self._part.end):
            sequence.take(rows)
            yield batch

    def _one_by_one(
        self, units: bytes, position: int, stop: int, first: int, sequence: Sequence
    ) -> Iterator[object]:
        """Yield what is good among records of which one is not."""
        for at in range(position, stop, UNIT_BYTES):
            offset = first + at // UNIT_BYTES
            if offset < sequence.next:
                continue
            found = self._gathered(units, at, at + UNIT_BYTES, ())
            try:
                if found is not None and found.records:
                    yield from self._decoded(found.records, sequence)
                    continue
                why = self._why(units, at)
            except BadRecord as error:
                why = f"its record at {_unit(units, at)[0]} in the log is damaged ({error.why})"
            sequence.pass_over(offset, offset + 1, why)

    def _why(self, units: bytes, position: int) -> str:
        """Say why a unit leads to no record."""
        log_offset, unit_bytes = _unit(units, position)
        if unit_bytes == _PRE_BLANK:
            return "the queue has a blank entry there"
        if self._store.span_at(log_offset) is None:
            return f"the log file with the record at {log_offset} is gone"
        return f"its entry says {unit_bytes} bytes at {log_offset}, and the log has no such record"


def _unit(units: bytes, position: int) -> tuple[int, int]:
    """Return log offset and size of a unit."""
    return (
        int.from_bytes(units[position : position + 8], signed=True),
        int.from_bytes(units[position + 8 : position + 12], signed=True),
    )
