"""Rebuild-index: index files made again from the commit log, by all cores.

Keys go into the index in log order, and a file holds a fixed number of them, so that a running sum
over the slices says which keys belong to which file. Files are then made at the same time; each
begins, as in a broker, with the time and offset of the last key of the file before it.

Names are times of making and differ; everything in the files is byte for byte the broker's. Apache
5.x indexes tags beside keys; `--tag-keys` does so too.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from msgspec import Meta

from gantrymq.errors import InvalidValue
from gantrymq.kernel import kernel
from gantrymq.spark.jobs.job import Context, Job
from gantrymq.spark.jobs.log_scan import arrow_schema, edge_row, record_batch, scan
from gantrymq.spark.jobs.log_slices import (
    LogSlice,
    Store,
    open_store,
    plan_slices,
    recovered_end,
)
from gantrymq.spark.jobs.rebuild_cq import RebuildOptions, target_of
from gantrymq.spark.jobs.slice_walk import SliceWalk, dispatching
from gantrymq.spark.jobs.tag_keys import with_tag_keys
from gantrymq.store.files import OsFiles
from gantrymq.store.index import INDEX_DIRECTORY
from gantrymq.store.index_file import IndexFile, IndexHeader, index_file_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from gantrymq.spark.report.values import Row

COLUMNS: Final = "kind string, slice int, payload binary, part int"
CHUNK_COLUMNS: Final = "file int, position long, keys binary"
MADE_COLUMNS: Final = "file int, entries long"
KEY_BYTES: Final = 20
_KEY: Final = struct.Struct(">iqq")


class RebuildIndexOptions(RebuildOptions, kw_only=True, frozen=True):
    """What `rebuild-index` wants to know."""

    tag_keys: Annotated[bool, Meta(description="index tags too, as Apache RocketMQ 5.x does")] = (
        False
    )


@dataclass(frozen=True)
class KeyTask:
    """Gives the index keys of a slice."""

    tag_keys: bool

    def __call__(self, piece: LogSlice) -> Iterator[tuple[object, ...]]:
        """Yield the keys part by part, then the edge."""
        walk = SliceWalk(piece, dispatching(()))
        for number, part in enumerate(walk.parts()):
            keys = part.keys
            if self.tag_keys:
                keys = with_tag_keys(piece, part, walk.part_begin)
            if keys:
                yield "keys", piece.number, keys, number
        yield edge_row(walk.edge, 4)


class IndexPlan(NamedTuple):
    """How keys are shared among files."""

    entries: int
    """Keys in a file."""
    slots: int
    entries_max: int
    before: dict[tuple[int, int], int]
    """(slice, part) -> keys before it."""


def plan(options: RebuildIndexOptions, context: Context) -> None:
    """Say what would be made."""
    store = open_store(options.path, options.config)
    target, index = target_of(options, store), _index_settings(store)
    slices = plan_slices(store, recovered_end(store), options.slice_bytes)
    context.report.plan.append(
        f"walk the log of {store.root} in {len(slices)} tasks, and write index files with "
        f"{index[0]} slots and {index[1]} entries to {target / INDEX_DIRECTORY}"
    )


def _index_settings(store: Store) -> tuple[int, int]:
    index = store.settings.index
    if not index.enabled:
        raise InvalidValue(
            f"{store.root}: the index files do not show how they are divided; give the broker's "
            "configuration with --config"
        )
    return index.slots, index.entries


def run(options: RebuildIndexOptions, context: Context) -> None:
    """Make the files."""
    store = open_store(options.path, options.config)
    target, (slots, entries_max) = target_of(options, store), _index_settings(store)
    slices = plan_slices(store, recovered_end(store), options.slice_bytes)
    (target / INDEX_DIRECTORY).mkdir(parents=True, exist_ok=True)
    with context.progress("rebuild-index"):
        scanned = scan(context, slices, KeyTask(options.tag_keys), COLUMNS)
        keys = scanned.rows.where("kind = 'keys'")
        counted = keys.selectExpr("slice", "part", "length(payload) size").collect()
        counts = sorted((row.slice, row.part, row.size // KEY_BYTES) for row in counted)
        total = sum(count for _slice, _part, count in counts)
        starts = accumulate((count for _slice, _part, count in counts), initial=0)
        before = {(one, part): at for (one, part, _n), at in zip(counts, starts, strict=False)}
        made = IndexPlan(entries_max - 1, slots, entries_max, before)
        files = -(-total // made.entries)
        if files:
            _write(keys, made, files, target)
    scanned.rows.unpersist()
    rows = name_files(target / INDEX_DIRECTORY, slots, entries_max)
    report = context.report
    report.add_table("index files", rows)
    entries = sum(int(row["entries"] or 0) for row in rows)
    report.add_check("every key is in a file", entries == total, f"{entries} of {total}")
    report.figures |= {
        "keys": total, "index files": len(rows), "log ends at": scanned.joined.end,
        "written to": str(target / INDEX_DIRECTORY),
    }  # fmt: skip
    for one in scanned.joined.damages:
        report.add_problem(
            f"no good record at log offset {one.log_offset} ({one.stop}), {one.size} bytes"
        )


def _write(keys: DataFrame, made: IndexPlan, files: int, target: Path) -> None:
    keys.select("slice", "part", "payload").mapInArrow(
        partial(share_keys, made), CHUNK_COLUMNS
    ).repartition(files, "file").sortWithinPartitions("file", "position").mapInArrow(
        partial(write_files, str(target), made), MADE_COLUMNS
    ).collect()


def share_keys(made: IndexPlan, batches: Iterable[Any]) -> Iterator[Any]:
    """Cut keys at the borders of files; the last key of a file also goes to the next one."""
    schema = arrow_schema(CHUNK_COLUMNS)
    for batch in batches:
        rows: list[tuple[object, ...]] = []
        for row in batch.to_pylist():
            number, keys = made.before[row["slice"], row["part"]], row["payload"]
            while keys:
                file, used = divmod(number, made.entries)
                part = keys[: (made.entries - used) * KEY_BYTES]
                rows.append((file, number, part))
                number += len(part) // KEY_BYTES
                keys = keys[len(part) :]
                if number % made.entries == 0:
                    rows.append((file + 1, -1, part[-KEY_BYTES:]))
        if rows:
            yield record_batch(rows, schema)


def write_files(target: str, made: IndexPlan, batches: Iterable[Any]) -> Iterator[Any]:
    """Write the index files of one task; rows of a file come together and in order."""
    schema, rows = arrow_schema(MADE_COLUMNS), list[tuple[object, ...]]()
    image: FileImage | None = None
    for batch in batches:
        for row in batch.to_pylist():
            if image is not None and image.number != row["file"]:
                rows += image.finish(Path(target))
                image = None
            if image is None:
                image = FileImage(row["file"], made)
            image.take(row["position"], row["keys"])
    if image is not None:
        rows += image.finish(Path(target))
    if rows:
        yield record_batch(rows, schema)


class FileImage:
    """One index file in memory, some hundred megabytes at most."""

    def __init__(self, number: int, made: IndexPlan) -> None:
        self.number = number
        self._made = made
        self._image = bytearray(index_file_bytes(made.slots, made.entries_max))
        self._count = 0

    def take(self, position: int, keys: bytes) -> None:
        """Insert keys; a position of -1 is the last key of the file before."""
        if position < 0:
            _hash, offset, store_ms = _KEY.unpack(keys)
            header = struct.pack(">qqqqii", store_ms, store_ms, offset, offset, 0, 1)
            self._image[: len(header)] = header
            return
        taken = kernel.insert_keys(self._image, self._made.slots, self._made.entries_max, keys, 0)
        if taken != len(keys):
            raise InvalidValue(
                f"index file {self.number}: {len(keys) - taken} bytes of keys too many"
            )
        self._count += len(keys) // KEY_BYTES

    def finish(self, target: Path) -> list[tuple[object, ...]]:
        """Write the file under its number; nothing if it got no key of its own."""
        if not self._count:
            return []
        path = target / INDEX_DIRECTORY / f"{self.number:017d}"
        work = path.with_suffix(".making")
        work.write_bytes(self._image)
        work.replace(path)
        return [(self.number, self._count)]


def name_files(directory: Path, slots: int, entries_max: int) -> list[Row]:
    """Give the files names as a broker does, by the time of their first entry; return them."""
    rows: list[Row] = []
    last = 0
    for path in sorted(path for path in directory.iterdir() if path.name.isdecimal()):
        header = _header(path, slots, entries_max)
        moment = datetime.fromtimestamp(header.begin_timestamp / 1000, UTC)
        name = int(f"{moment:%Y%m%d%H%M%S}{header.begin_timestamp % 1000:03d}")
        last = max(name, last + 1)
        path.rename(directory / f"{last}")
        rows.append({
            "file": str(last), "entries": header.next_number - 1,
            "begin offset": header.begin_log_offset, "end offset": header.end_log_offset,
        })  # fmt: skip
    return rows


def _header(path: Path, slots: int, entries_max: int) -> IndexHeader:
    region = OsFiles().open(path, writable=False)
    try:
        return IndexFile(region, slots, entries_max).header
    finally:
        region.close()


def check(options: RebuildIndexOptions, context: Context) -> None:
    """See that the files follow one another; compare them with the store's own."""
    store = open_store(options.path, options.config)
    slots, entries_max = _index_settings(store)
    directory = Path(options.to).absolute() / INDEX_DIRECTORY
    if not directory.is_dir():
        raise InvalidValue(f"--to {options.to} has no {INDEX_DIRECTORY}: nothing was made there")
    made, own = _files(directory), _files(store.root / INDEX_DIRECTORY)
    headers = [_header(path, slots, entries_max) for path in made]
    follows = all(
        before.end_log_offset <= after.begin_log_offset and before.next_number == entries_max
        for before, after in pairwise(headers)
    )
    report = context.report
    report.add_check(
        "files follow one another", follows,
        f"{len(made)} files, {sum(one.next_number - 1 for one in headers)} entries",
    )  # fmt: skip
    same = sum(
        one.read_bytes() == other.read_bytes() for one, other in zip(made, own, strict=False)
    )
    report.figures |= {
        "identical to the store's": same,
        "differ from the store's": min(len(made), len(own)) - same,
        "not in the store": max(len(made) - len(own), 0),
    }


def _files(directory: Path) -> list[Path]:
    if not directory.is_dir():
        return []
    names = (path for path in directory.iterdir() if path.name.isdecimal())
    return sorted(names, key=lambda path: int(path.name))


JOB: Final = Job(
    name="rebuild-index",
    summary="index files made again from the commit log",
    text="""\
Make the index files again from the commit log, by all cores, in a directory of their own: byte for
byte what the broker makes, under other names, which are times. Put them into the store with the
broker stopped. Apache RocketMQ 5.x indexes tags too: give --tag-keys for its stores.""",
    options=RebuildIndexOptions,
    plan=plan,
    run=run,
    check=check,
)

if __name__ == "__main__":
    from gantrymq.spark.jobs.command import main
    from gantrymq.spark.jobs.rebuild_index import JOB as SELF

    main(SELF)
