"""What an archive's task does with its slice of a queue: messages to Parquet files, forced.

Rows do not go through Spark: the task reads Arrow batches and writes them. A slice becomes one file
for each day of store time in it. A file is made under a name of its own and renamed, so that two
attempts of one task, or a task that outlived its driver, cannot spoil each other's.
"""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gantrymq.spark.jobs.key_filter import key_filter
from gantrymq.spark.jobs.lake import KEYS, LAKE_COLUMNS, LakeFile, file_path, sync_directory
from gantrymq.spark.reading import read_slice
from gantrymq.spark.schema import WantedColumn
from gantrymq.spark.slices import Pack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.datasource import InputPartition

    from gantrymq.spark.options import SourceOptions
    from gantrymq.spark.slices import Slice

COLUMNS: Final = "payload binary"
WANTED: Final = tuple(WantedColumn(name, nullable=True) for name in LAKE_COLUMNS)
ROW_GROUP_ROWS: Final = 131_072
ROW_GROUP_BYTES: Final = 64 << 20
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_US: Final = 86_400_000_000


@dataclass(frozen=True)
class ArchiveTask:
    """Archives slices of one batch."""

    root: str
    batch: int
    options: SourceOptions
    compression: str
    key_filters: bool

    def __call__(self, packed: InputPartition) -> Iterator[tuple[object, ...]]:
        """Yield a row for each range that was written."""
        if isinstance(packed, Pack):
            for part in packed.slices:
                yield from self._slice(part)

    def _slice(self, part: Slice) -> Iterator[tuple[object, ...]]:
        writer = SliceWriter(self, part)
        try:
            for batch in read_slice(self.options, WANTED, part):
                writer.take(batch)
            files = writer.finish()
        except BaseException:
            writer.abandon()
            raise
        for one in files:
            yield (msgspec.json.encode(one),)


class SliceWriter:
    """Writes one slice."""

    def __init__(self, task: ArchiveTask, part: Slice) -> None:
        self._task = task
        self._part = part
        self._next = part.begin
        self._file: LakeFileWriter | None = None
        self._done: list[LakeFileWriter] = []

    def take(self, batch: Any) -> None:  # noqa: ANN401  (pyarrow has no types)
        """Write a batch, cut where a day begins."""
        start, days = 0, day_numbers(batch)
        while start < batch.num_rows:
            end = run_end(days, start)
            piece = batch.slice(start, end - start)
            self._file_of(days[start], piece).write(piece)
            start = end

    def _file_of(self, day: int, piece: Any) -> LakeFileWriter:  # noqa: ANN401
        if self._file is None or self._file.day != day:
            first = piece.column("queueOffset")[0].as_py()
            if self._file is not None:
                self._end_file(first)
            self._file = LakeFileWriter(self._task, self._part, day, self._next)
        return self._file

    def _end_file(self, end: int) -> None:
        if self._file is not None:
            self._file.close(end)
            self._done.append(self._file)
            self._file, self._next = None, end

    def finish(self) -> list[LakeFile]:
        """Give the files their names; return all ranges of the slice, which is covered."""
        part = self._part
        self._end_file(part.end)
        if not self._done:
            return [LakeFile(part.topic, part.broker, part.queue_id, part.begin, part.end, 0, 0)]
        return [file.publish() for file in self._done]

    def abandon(self) -> None:
        """Remove what was begun."""
        for file in (*self._done, self._file):
            if file is not None:
                file.abandon()


class LakeFileWriter:
    """One file: rows of one queue, of one day, one behind the other."""

    def __init__(self, task: ArchiveTask, part: Slice, day: int, begin: int) -> None:
        self.day = day
        self._task = task
        self._part = part
        self._begin = begin
        self._end = begin
        self._rows = self._crc_sum = 0
        self._min_us: int | None = None
        self._max_us = 0
        self._keys: set[str] = set()
        self._waiting: list[Any] = []
        self._waiting_rows = self._waiting_bytes = 0
        work = Path(task.root) / "data" / ".making"
        work.mkdir(parents=True, exist_ok=True)
        self._work = work / f"{uuid.uuid4().hex}.parquet"
        self._writer: Any = None

    def write(self, piece: Any) -> None:  # noqa: ANN401
        """Add rows; they reach the file in groups."""
        import pyarrow.compute as pc  # noqa: PLC0415  (of the extra `spark`)

        self._rows += piece.num_rows
        self._crc_sum += pc.sum(piece.column("bodyCrc")).as_py()
        times = pc.min_max(piece.column("storeTimestamp").cast("int64"))
        low, high = times["min"].as_py(), times["max"].as_py()
        self._min_us = low if self._min_us is None else min(self._min_us, low)
        self._max_us = max(self._max_us, high)
        if self._task.key_filters:
            self._note_keys(piece)
        self._waiting.append(piece)
        self._waiting_rows += piece.num_rows
        self._waiting_bytes += piece.nbytes
        if self._waiting_rows >= ROW_GROUP_ROWS or self._waiting_bytes >= ROW_GROUP_BYTES:
            self._flush()

    def _note_keys(self, piece: Any) -> None:  # noqa: ANN401
        self._keys.update(filter(None, piece.column("uniqKey").to_pylist()))
        for keys in piece.column("keys").to_pylist():
            if keys:
                self._keys.update(keys.split())

    def _flush(self) -> None:
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import parquet  # noqa: PLC0415

        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting)
        if self._writer is None:
            self._writer = parquet.ParquetWriter(
                self._work, table.schema, compression=self._task.compression
            )
        self._writer.write_table(table, row_group_size=self._waiting_rows)
        self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0

    def close(self, end: int) -> None:
        """End the file; it holds the range up to `end`, which may have no more messages."""
        self._flush()
        self._writer.close()
        self._end = end
        force(self._work)

    def publish(self) -> LakeFile:
        """Give the file its name; it counts when a manifest names it."""
        part, task = self._part, self._task
        day = day_name(self.day)
        path = file_path(task.batch, part.queue, self._begin, self._end, day)
        place = Path(task.root) / path
        place.parent.mkdir(parents=True, exist_ok=True)
        size = self._work.stat().st_size
        if task.key_filters:
            write_key_filter(Path(task.root), place.stem, self._keys)
        self._work.replace(place)
        sync_directory(place.parent)
        return LakeFile(
            part.topic, part.broker, part.queue_id, self._begin, self._end, self._rows,
            self._crc_sum, path, day, size, (self._min_us or 0) // 1000, self._max_us // 1000,
        )  # fmt: skip

    def abandon(self) -> None:
        """Remove the unfinished file."""
        if self._writer is not None:
            self._writer.close()
        self._work.unlink(missing_ok=True)


def write_key_filter(root: Path, stem: str, keys: set[str]) -> None:
    """Write the key filter of a file, whole or not at all."""
    folder = root / KEYS
    folder.mkdir(parents=True, exist_ok=True)
    work = folder / f".{uuid.uuid4().hex}.making"
    work.write_bytes(key_filter(keys))
    work.replace(folder / f"{stem}.bloom")


def force(path: Path) -> None:
    """Force a file to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def day_numbers(batch: Any) -> list[int]:  # noqa: ANN401
    """Return the day of store time of each row, counted from 1970."""
    import pyarrow.compute as pc  # noqa: PLC0415

    stored = batch.column("storeTimestamp").cast("int64")
    days: list[int] = pc.divide(stored, _DAY_US).to_pylist()
    return days


def run_end(days: list[int], start: int) -> int:
    """Return where the run of one day ends that begins at an index."""
    day = days[start]
    return next((at for at in range(start, len(days)) if days[at] != day), len(days))


def day_name(day: int) -> str:
    """Return a day as directories have it."""
    return f"{_EPOCH + timedelta(days=day):%Y-%m-%d}"
