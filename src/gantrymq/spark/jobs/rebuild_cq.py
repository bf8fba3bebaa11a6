"""Rebuild-cq: consume queues made again from the commit log, by all cores, in a place of their own.

Tasks walk slices of the log and give the units that dispatch makes of them, 20 bytes a message. A
shuffle brings all units of a queue together, in log order, and there the store's own consume queue
takes them, as it does in a broker: what is made is byte for byte what a broker makes.

Nothing is written into the store. Put the new `consumequeue` into the place of the old one with the
broker stopped.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta

from gantrymq.errors import InvalidValue
from gantrymq.kernel import UNIT_BYTES, QueueRun
from gantrymq.spark.jobs.job import Context, Job, Options
from gantrymq.spark.jobs.log_scan import NotAnswered, arrow_schema, edge_row, record_batch, scan
from gantrymq.spark.jobs.log_slices import (
    SLICE_BYTES,
    LogSlice,
    Store,
    open_store,
    plan_slices,
    recovered_end,
)
from gantrymq.spark.jobs.queue_compare import compare_queues, look_up_units
from gantrymq.spark.jobs.slice_walk import SliceWalk, dispatching
from gantrymq.store.errors import StoreDamaged
from gantrymq.store.files import OsFiles
from gantrymq.store.queue_table import QUEUES_DIRECTORY, QueueTable
from gantrymq.store.verify import known_topics

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

COLUMNS: Final = (
    "kind string, slice int, payload binary, topic string, queueId int, firstOffset long, "
    "logStart long, logEnd long, storeMs long"
)
MADE_COLUMNS: Final = (
    "topic string, queueId int, firstOffset long, endOffset long, messages long, filledIn long, "
    "trouble string"
)
RUNS_A_FLUSH: Final = 16
"""Runs of up to 1.3 MB each that wait in memory."""
PARTS_NAME: Final = "_parts"


class RebuildOptions(Options, kw_only=True, frozen=True):
    """What `rebuild-cq` and `rebuild-index` want to know."""

    path: Annotated[str, Meta(min_length=1, description="the store directory; it is only read")]
    to: Annotated[str, Meta(min_length=1, description="an empty directory for what is made")]
    config: Annotated[str | None, Meta(description="the broker.conf it was written with")] = None
    slice_bytes: Annotated[
        int, Meta(ge=4096, le=1 << 30, description="bytes of the log for one task")
    ] = SLICE_BYTES


class RebuildCqOptions(RebuildOptions, kw_only=True, frozen=True):
    """What `rebuild-cq` wants to know."""

    known_topics: Annotated[
        bool, Meta(description="leave out topics that config/topics.json does not name")
    ] = False
    parallelism: Annotated[int, Meta(ge=1, le=10_000, description="tasks that write queues")] = 8


@dataclass(frozen=True)
class ScanTask:
    """Gives the units of a slice as runs."""

    delays_ms: tuple[int, ...]

    def __call__(self, piece: LogSlice) -> Iterator[tuple[object, ...]]:
        """Yield a row for each run, then the edge."""
        walk = SliceWalk(piece, dispatching(self.delays_ms))
        for part in walk.parts():
            for run in part.runs:
                yield (
                    "run", piece.number, run.units, run.topic.decode(errors="replace"),
                    run.queue_id, run.first_queue_offset, int.from_bytes(run.units[:8]),
                    run.log_end, run.last_store_timestamp,
                )  # fmt: skip
        yield edge_row(walk.edge, 9)


def target_of(options: RebuildOptions, store: Store) -> Path:
    """Return the directory to write to.

    Raises:
        InvalidValue: it lies in the store, or is not empty.
    """
    target = Path(options.to).absolute()
    if target.is_relative_to(store.root) or store.root.is_relative_to(target):
        raise InvalidValue(f"--to {target} and the store {store.root} lie in each other; choose")
    if target.is_dir() and any(target.iterdir()):
        raise InvalidValue(f"--to {target} is not empty; name a directory that is, or is not there")
    return target


def plan(options: RebuildCqOptions, context: Context) -> None:
    """Say what would be made."""
    store = open_store(options.path, options.config)
    target = target_of(options, store)
    end = recovered_end(store)
    slices = plan_slices(store, end, options.slice_bytes)
    context.report.plan.append(
        f"walk the log of {store.root} to {end} in {len(slices)} tasks, and write consume queues "
        f"with files of {store.settings.files.consume_queue_bytes} bytes to "
        f"{target / QUEUES_DIRECTORY}"
    )


def run(options: RebuildCqOptions, context: Context) -> None:
    """Make the queues."""
    store = open_store(options.path, options.config)
    target = target_of(options, store)
    slices = plan_slices(store, recovered_end(store), options.slice_bytes)
    topics = known_topics(store.settings, OsFiles()) if options.known_topics else None
    if options.known_topics and topics is None:
        raise StoreDamaged(f"{store.root}: no config/topics.json that can be read")
    target.mkdir(parents=True, exist_ok=True)
    with context.progress("rebuild-cq"):
        scanned = scan(context, slices, ScanTask(tuple(store.settings.schedule.delays_ms)), COLUMNS)
        runs = scanned.rows.where("kind = 'run'").drop("kind", "slice")
        total = _sum(runs.selectExpr("sum(length(payload))"))
        if topics is not None:
            from pyspark.sql.functions import col  # noqa: PLC0415

            runs = runs.where(col("topic").isin(sorted(topics)))
        wanted = _sum(runs.selectExpr("sum(length(payload))")) // UNIT_BYTES
        write = partial(write_queues, str(target), store.settings.files.consume_queue_bytes)
        made = (
            runs.repartition(options.parallelism, "topic", "queueId")
            .sortWithinPartitions("topic", "queueId", "logStart")
            .mapInArrow(write, MADE_COLUMNS)
            .collect()
        )
    scanned.rows.unpersist()
    shutil.rmtree(target / PARTS_NAME, ignore_errors=True)
    report = context.report
    report.add_table("queues", [row.asDict() for row in sorted(made)])
    for row in made:
        if row.trouble:
            report.add_problem(f"{row.topic}/{row.queueId}: {row.trouble}")
    for one in scanned.joined.damages:
        report.add_problem(
            f"no good record at log offset {one.log_offset} ({one.stop}), {one.size} bytes"
        )
    messages = sum(row.messages for row in made)
    report.add_check(
        "every unit is in a queue",
        messages == wanted or any(row.trouble for row in made),
        f"{messages} of {wanted}",
    )
    report.figures |= {
        "queues": len(made),
        "messages": messages,
        "left out": total // UNIT_BYTES - messages,
        "filled in": sum(row.filledIn for row in made),
        "log ends at": scanned.joined.end,
        "written to": str(target / QUEUES_DIRECTORY),
    }


def _sum(frame: Any) -> int:  # noqa: ANN401  (a DataFrame)
    rows = frame.collect()
    if len(rows) != 1:
        raise NotAnswered("Spark has not summed up the units of the log; run it again")
    return int(rows[0][0] or 0)


def write_queues(target: str, file_bytes: int, batches: Iterable[Any]) -> Iterator[Any]:
    """Write the queues of one task: rows of a queue come together and in log order.

    All of it goes to a directory of this attempt first; a whole queue is moved from there, so that
    an attempt that died leaves nothing that looks made.
    """
    from pyspark import TaskContext  # noqa: PLC0415

    task = TaskContext.get()
    name = "0" if task is None else f"{task.partitionId()}-{task.taskAttemptId()}"
    writer = QueueWriter(Path(target), Path(target) / PARTS_NAME / name, file_bytes)
    schema, rows = arrow_schema(MADE_COLUMNS), list[tuple[object, ...]]()
    for batch in batches:
        for row in batch.to_pylist():
            if (done := writer.turn_to(row["topic"], row["queueId"])) is not None:
                rows.append(done)
            writer.append(row)
    if (done := writer.turn_to(None, 0)) is not None:
        rows.append(done)
    shutil.rmtree(writer.work, ignore_errors=True)
    if rows:
        yield record_batch(rows, schema)


class QueueWriter:
    """Writes one queue after the other, with the store's own consume queue."""

    def __init__(self, target: Path, work: Path, file_bytes: int) -> None:
        self.work = work
        self._target = target
        self._files = OsFiles()
        self._file_bytes = file_bytes
        self._queue: tuple[str, int] | None = None
        self._table = QueueTable(work, file_bytes, self._files)
        self._first = self._messages = self._filled = self._waiting = 0
        self._trouble: list[str] = []
        shutil.rmtree(work, ignore_errors=True)

    def turn_to(self, topic: str | None, queue_id: int) -> tuple[object, ...] | None:
        """End the queue that was written if another follows; return what there is to say of it."""
        if self._queue == (None if topic is None else (topic, queue_id)):
            return None
        done = self._finish()
        self._queue = None if topic is None else (topic, queue_id)
        self._table = QueueTable(self.work, self._file_bytes, self._files)
        self._first, self._messages, self._filled, self._waiting = -1, 0, 0, 0
        self._trouble = []
        return done

    def append(self, row: dict[str, Any]) -> None:
        """Take the next run of the queue."""
        run = QueueRun(
            row["topic"].encode(), row["queueId"], row["firstOffset"], row["payload"],
            row["logEnd"], row["storeMs"],
        )  # fmt: skip
        count = len(run.units) // UNIT_BYTES
        try:
            queue = self._table.queue(row["topic"], row["queueId"])
            if run.first_queue_offset == 0 or self._first < 0:
                self._first = run.first_queue_offset
            self._filled += queue.append(run)
        except (InvalidValue, StoreDamaged) as error:
            self._trouble.append(f"{count} messages: {error}")
            return
        self._messages += count
        self._waiting += 1
        if self._waiting >= RUNS_A_FLUSH:
            self._flush(thorough=False)

    def _flush(self, *, thorough: bool) -> None:
        flush = self._table.begin_flush(thorough=thorough)
        flush.perform(self._files)
        self._table.end_flush(flush)
        self._waiting = 0

    def _finish(self) -> tuple[object, ...] | None:
        if self._queue is None:
            return None
        topic, queue_id = self._queue
        self._flush(thorough=True)
        queue = self._table.find(topic, queue_id)
        end = 0 if queue is None else queue.max_offset
        part = Path(QUEUES_DIRECTORY, topic, str(queue_id))
        if queue is not None and (self.work / part).is_dir():
            place = self._target / part
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(place, ignore_errors=True)
            (self.work / part).replace(place)
        trouble = "; ".join(self._trouble) or None
        return topic, queue_id, self._first, end, self._messages, self._filled, trouble


def check(options: RebuildCqOptions, context: Context) -> None:
    """Look units up in the log, and compare with the store's own queues."""
    store = open_store(options.path, options.config)
    target = Path(options.to).absolute()
    if not (target / QUEUES_DIRECTORY).is_dir():
        raise InvalidValue(f"--to {target} has no {QUEUES_DIRECTORY}: nothing was made there yet")
    report = context.report
    looked, wrong = look_up_units(store, target)
    report.add_check(
        "units lead to their messages", not wrong,
        f"{looked} units looked up in the log, {len(wrong)} wrong{': ' if wrong else ''}"
        + "; ".join(wrong[:3]),
    )  # fmt: skip
    compared = compare_queues(store, target)
    report.add_table("compared with the store", compared)
    counts = {
        state: sum(row["state"] == state for row in compared)
        for state in ("identical", "differs", "not in the store")
    }
    report.figures |= {f"queues {state}": count for state, count in counts.items()}


JOB: Final = Job(
    name="rebuild-cq",
    summary="consume queues made again from the commit log",
    text="""\
Make the consume queues again from the commit log, by all cores, in a directory of their own: byte
for byte what the broker makes. Compare, then put them into the store with the broker stopped.
Damaged records are passed over and named. Bitmaps of the queue extension cannot be made again.""",
    options=RebuildCqOptions,
    plan=plan,
    run=run,
    check=check,
)

if __name__ == "__main__":
    from gantrymq.spark.jobs.command import main
    from gantrymq.spark.jobs.rebuild_cq import JOB as SELF

    main(SELF)
