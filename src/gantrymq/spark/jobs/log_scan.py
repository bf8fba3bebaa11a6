"""Running a function over the slices of a log, in Spark's tasks, until their edges fit.

`scan` is for jobs whose rows go on to other tasks: a task for each slice, and the rows are kept by
Spark. `scan_told` is for jobs that want only sums of a slice: a task takes many slices, since one
of 64 MiB is walked in the time that Spark needs to start a task, and all that they say comes to the
driver in the one Spark job that there is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec

from gantrymq.errors import GantryError
from gantrymq.spark.jobs.log_slices import Edge, Joined, LogSlice, join_edges, realigned
from gantrymq.store.errors import StoreDamaged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame

    from gantrymq.spark.jobs.job import Context

    Row = tuple[Any, ...]
    SliceTask = Callable[[LogSlice], Iterator[Row]]

T = TypeVar("T")

ROUNDS_MAX: Final = 5
"""Walks until all slices fit; a second one is needed for logs within messages only."""
EDGE: Final = "edge"
"""Kind of the row that says where a slice begins and ends."""
TOLD_COLUMNS: Final = "kind string, slice int, payload binary"
ROWS_A_BATCH: Final = 64


TASKS_A_CORE: Final = 2
"""Of many slices each, so that a core that is slower than the others does less."""
PACK_BYTES_MAX: Final = 1 << 30
"""About how much of a log one task walks: what is lost when one fails, and how progress is seen."""


class Told(NamedTuple):
    """What tasks have said of each slice, in order, and the joined log."""

    payloads: list[bytes]
    joined: Joined
    slices: list[LogSlice]


class Scanned(NamedTuple):
    """The rows that the tasks gave, kept for as long as they are needed, and the joined log."""

    rows: DataFrame
    joined: Joined
    slices: list[LogSlice]


def edge_row(edge: Edge, width: int) -> Row:
    """Return the row that ends a slice: kind, slice number, the edge, and nothing else."""
    return (EDGE, edge.number, msgspec.json.encode(edge), *([None] * (width - 3)))


def scan(context: Context, slices: Sequence[LogSlice], task: SliceTask, columns: str) -> Scanned:
    """Give every slice to a task; `columns` are kind, slice, payload binary and more.

    Raises:
        StoreDamaged: the slices do not fit together.
    """

    def walk(pieces: Sequence[LogSlice]) -> tuple[DataFrame, list[bytes]]:
        rows = over_items(context, pieces, task, columns).persist()
        edges = rows.where(f"kind = '{EDGE}'").orderBy("slice").select("payload").collect()
        return rows, [bytes(row[0]) for row in edges]

    rows, joined, pieces = _until_they_fit(slices, walk, lambda rows: rows.unpersist())
    return Scanned(rows, joined, pieces)


def scan_told(context: Context, slices: Sequence[LogSlice], task: SliceTask) -> Told:
    """Give slices to tasks, many to each; a slice has two rows of `TOLD_COLUMNS`, one the edge.

    Raises:
        StoreDamaged: the slices do not fit together.
        NotAnswered: Spark handed over less than the tasks have said.
    """

    def walk(pieces: Sequence[LogSlice]) -> tuple[list[bytes], list[bytes]]:
        packs = packed(pieces, context.cores * TASKS_A_CORE)
        rows = answers(context, packs, PackTask(task), TOLD_COLUMNS)
        rows.sort(key=lambda row: row.slice)
        edges = [bytes(row.payload) for row in rows if row.kind == EDGE]
        return [bytes(row.payload) for row in rows if row.kind != EDGE], edges

    return Told(*_until_they_fit(slices, walk))


def packed(slices: Sequence[LogSlice], tasks: int) -> list[list[LogSlice]]:
    """Return neighbouring slices together, about the same number of bytes for every task."""
    sizes = [piece.end - piece.begin for piece in slices]
    total = sum(sizes)
    tasks = max(tasks, total // PACK_BYTES_MAX)
    packs: dict[int, list[LogSlice]] = {}
    behind = accumulate(sizes)
    for piece, size, end in zip(slices, sizes, behind, strict=True):
        middle = end - size // 2  # below the total, unless a slice were empty
        packs.setdefault(min(middle * tasks // max(total, 1), tasks - 1), []).append(piece)
    return list(packs.values())


@dataclass(frozen=True)
class PackTask:
    """A task that walks one slice behind the other."""

    task: SliceTask

    def __call__(self, pieces: Sequence[LogSlice]) -> Iterator[Row]:
        """Yield the rows of all of them."""
        for piece in pieces:
            yield from self.task(piece)


def _until_they_fit(
    slices: Sequence[LogSlice],
    walk: Callable[[Sequence[LogSlice]], tuple[T, list[bytes]]],
    give_up: Callable[[T], object] = lambda _found: None,
) -> tuple[T, Joined, list[LogSlice]]:
    """Walk, and walk again where slices began at a wrong place; `walk` also returns the edges."""
    pieces = list(slices)
    for _round in range(ROUNDS_MAX):
        found, encoded = walk(pieces)
        if len(encoded) != len(pieces):
            raise StoreDamaged(f"{len(encoded)} of {len(pieces)} slices of the log were walked")
        edges = [msgspec.json.decode(one, type=Edge) for one in encoded]
        joined = join_edges(pieces, edges)
        if not joined.misaligned:
            return found, joined, pieces
        give_up(found)
        pieces = realigned(pieces, joined.misaligned)
    raise StoreDamaged(
        f"slices {sorted(joined.misaligned)} of the log do not begin where those before them end, "
        f"after {ROUNDS_MAX} walks; is a broker writing to the store?"
    )


def over_items(
    context: Context, items: Sequence[T], task: Callable[[T], Iterator[Row]], columns: str
) -> DataFrame:
    """Return the rows that a function gives for each item, one Spark task for an item."""
    count = len(items)
    numbers = context.spark.range(0, count, 1, max(count, 1))
    return numbers.mapInArrow(partial(_run, tuple(items), task, columns), columns)


def answers(
    context: Context, items: Sequence[T], task: Callable[[T], Iterator[Row]], columns: str
) -> list[Any]:
    """Return the rows that a function gives for each item, certainly those of all items.

    PySpark reads what it collects from a socket, up to its end, and takes the end for the end also
    if the JVM has died: rows are missing then, and nothing says so. So every item ends with a row
    of its own, and all of those must be there.

    Raises:
        NotAnswered: one is not; nothing may be built on the rest.
    """
    count = len(columns.split(","))
    numbered = list(enumerate(items))
    rows = over_items(
        context, numbered, Answering(task, count), f"{columns}, answered int"
    ).collect()
    missing = set(range(len(items))) - {row.answered for row in rows}
    if missing:
        raise NotAnswered(
            f"{len(missing)} of {len(items)} tasks have not said that they are done: has Spark "
            "died meanwhile? Nothing was committed; run it again"
        )
    return [row for row in rows if row.answered is None]


class NotAnswered(GantryError):
    """Spark handed over less than its tasks have said."""


@dataclass(frozen=True)
class Answering:
    """A task that ends with a row which says that it is done."""

    task: Callable[[Any], Iterator[Row]]
    columns: int

    def __call__(self, item: tuple[int, Any]) -> Iterator[Row]:
        """Yield the rows of an item, and the last one."""
        number, what = item
        for row in self.task(what):
            yield (*row, None)
        yield (*([None] * self.columns), number)


def _run(
    items: tuple[T, ...],
    task: Callable[[T], Iterator[Row]],
    columns: str,
    batches: Iterable[Any],
) -> Iterator[Any]:
    schema = arrow_schema(columns)
    for batch in batches:
        for number in batch.column(0).to_pylist():
            rows: list[Row] = []
            for row in task(items[number]):
                rows.append(row)
                if len(rows) >= ROWS_A_BATCH:
                    yield record_batch(rows, schema)
                    rows = []
            if rows:
                yield record_batch(rows, schema)


def arrow_schema(columns: str) -> Any:  # noqa: ANN401  (pyarrow has no types)
    """Return the Arrow schema of `name type, ...` in the words of Spark."""
    import pyarrow as pa  # noqa: PLC0415  (of the extra `spark`)

    types = {
        "string": pa.string(),
        "binary": pa.binary(),
        "int": pa.int32(),
        "long": pa.int64(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
    }
    pairs = (part.split() for part in columns.split(","))
    return pa.schema([(name, types[kind]) for name, kind in pairs])


def record_batch(rows: Sequence[Row], schema: Any) -> Any:  # noqa: ANN401
    """Return rows as an Arrow batch."""
    import pyarrow as pa  # noqa: PLC0415

    columns = zip(*rows, strict=True)
    arrays = [pa.array(values, kind) for values, kind in zip(columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
