"""Archive: topics to a lake of Parquet files, each message exactly once.

The manifest of the lake is the only memory of the job (`lake.py`): a batch begins where the last
one that was committed ends, and is there when its manifest is. A job may be killed anywhere: what
was not committed is done again, what was is not. Spark only carries the tasks; each reads a slice
of a queue and writes its files (`archive_task.py`), no row goes through the JVM.
"""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from msgspec import Meta

from gantrymq.errors import InvalidValue
from gantrymq.spark.backend import open_backend
from gantrymq.spark.jobs.archive_check import check_files, check_log, check_manifest
from gantrymq.spark.jobs.archive_task import COLUMNS, ArchiveTask
from gantrymq.spark.jobs.job import Context, Job
from gantrymq.spark.jobs.lake import Batch, Lake, LakeFile, joined_ranges, offsets_json
from gantrymq.spark.jobs.log_scan import answers
from gantrymq.spark.jobs.progress_back import commit_group
from gantrymq.spark.jobs.sources import ReadOptions, needs_source
from gantrymq.spark.options import Positions
from gantrymq.spark.planning import checked_begin, losses_of, slices_of
from gantrymq.spark.positions import resolve
from gantrymq.spark.slices import Queue, Span, pack

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.spark.backend import Backend, Bounds
    from gantrymq.spark.offsets import Offsets
    from gantrymq.spark.options import SourceOptions
    from gantrymq.spark.report.values import Row
    from gantrymq.spark.slices import Slice


class ArchiveOptions(ReadOptions, kw_only=True, frozen=True):
    """What `archive` wants to know."""

    to: Annotated[str, Meta(min_length=1, description="the lake; made if it is not there")]
    group: Annotated[
        str | None, Meta(description="consumer group to show progress as, on the broker")
    ] = None
    batch_rows: Annotated[
        int, Meta(ge=1, description="messages in one batch, which is one manifest")
    ] = 5_000_000
    slice_rows: (
        Annotated[int, Meta(ge=1, description="messages of one task, which is one file a day")]
        | None
    ) = None
    follow: Annotated[bool, Meta(description="go on with what comes, until interrupted")] = False
    interval: Annotated[
        float, Meta(ge=0.1, le=86_400, description="seconds between batches with --follow")
    ] = 10.0
    compression: Annotated[
        Literal["zstd", "snappy", "gzip", "none"], Meta(description="of the Parquet files")
    ] = "zstd"
    key_filters: Annotated[bool, Meta(description="write filters for searches by key")] = True
    decompress: Annotated[bool, Meta(description="bodies as they were sent")] = True

    def source(self) -> SourceOptions:
        """Return what to read; the range is planned batch by batch."""
        return self.parsed(
            endingOffsets=None,
            decompress=str(self.decompress).lower(),
            maxRecordsPerPartition=None if self.slice_rows is None else str(self.slice_rows),
        )


class Planned(msgspec.Struct):
    """One batch before it is made."""

    starts: Offsets
    ends: Offsets
    slices: list[Slice]

    @property
    def rows(self) -> int:
        """Return how many offsets it covers."""
        return sum(end - self.starts[queue] for queue, end in self.ends.items())


class Planner:
    """Says what the next batch holds."""

    def __init__(self, options: ArchiveOptions) -> None:
        self._options = options
        self.source = options.source()
        self._until: Offsets | None = None

    def plan(self, lake: Lake) -> Planned:
        """Return the next batch of a lake; it may be empty.

        Raises:
            DataLoss: what comes next is gone, and that matters.
        """
        backend = open_backend(self.source)
        try:
            bounds = backend.bounds()
            starts = self._starts(lake, bounds, backend)
            ends = shared_ends(starts, self._ends(bounds, backend), self._options.batch_rows)
            losses = losses_of(self.source)
            spans = {
                queue: Span(checked_begin(queue, starts[queue], end, bounds[queue], losses), end)
                for queue, end in ends.items()
            }
            return Planned(starts, ends, slices_of(self.source, backend, spans))
        finally:
            backend.close()

    def _starts(self, lake: Lake, bounds: Mapping[Queue, Bounds], backend: Backend) -> Offsets:
        """Begin where the lake ends; queues that it does not know begin as the options say."""
        known = lake.ends()
        self._check_names(known, bounds)
        new = {queue: one for queue, one in bounds.items() if queue not in known}
        starting = self.source.starting or Positions("earliest")
        if known and starting.kind in {"latest", "time"}:
            starting = Positions("earliest")  # a queue that came later is read from its beginning
        fresh = resolve(starting, bounds, backend, "startingOffsets") if new else {}
        return {queue: known[queue] if queue in known else fresh[queue] for queue in bounds}

    def _check_names(self, known: Offsets, bounds: Mapping[Queue, Bounds]) -> None:
        """Refuse a store whose broker nobody named, if the lake has the topic from another one.

        Raises:
            InvalidValue: the same messages would be archived again, under another name.
        """
        if self.source.reads_broker or any("=" in path for path in self._options.path):
            return
        brokers = {(queue.topic, queue.broker) for queue in known}
        for queue in bounds:
            others = sorted(name for topic, name in brokers if topic == queue.topic)
            if others and queue.broker not in others:
                raise InvalidValue(
                    f"the lake has {queue.topic} of {', '.join(others)}: say whose store this is, "
                    f"as --path {others[0]}={self._options.path[0]}"
                )

    def _ends(self, bounds: Mapping[Queue, Bounds], backend: Backend) -> Offsets:
        ending = self._options.ending_offsets
        if ending is None:
            return {queue: one.most for queue, one in bounds.items()}
        if self._until is None:
            positions = self._options.parsed().ending
            self._until = resolve(positions, bounds, backend, "endingOffsets")
        return {
            queue: min(one.most, self._until.get(queue, one.most)) for queue, one in bounds.items()
        }


def shared_ends(starts: Offsets, ends: Offsets, rows_max: int) -> Offsets:
    """Return ends so that a batch has about `rows_max` messages, each queue its share."""
    waiting = {queue: max(end - starts[queue], 0) for queue, end in ends.items()}
    total = sum(waiting.values())
    if total <= rows_max:
        return {queue: max(end, starts[queue]) for queue, end in ends.items()}
    return {
        queue: starts[queue] + (-(-count * rows_max // total) if count else 0)
        for queue, count in waiting.items()
    }


def plan(options: ArchiveOptions, context: Context) -> None:
    """Say what the next batch would hold."""
    needs_source(options)
    lake = Lake.open(options.to)
    planned = Planner(options).plan(lake)
    context.report.plan.append(
        f"archive {planned.rows} messages of {len(planned.ends)} queues in {len(planned.slices)} "
        f"tasks as batch {lake.next_number} of {lake.root}"
        + (", then go on with what comes" if options.follow else "")
    )
    context.report.add_table("next batch", [
        {"topic": queue.topic, "broker": queue.broker, "queue": queue.queue_id,
         "from": planned.starts[queue], "to": planned.ends[queue]}
        for queue in sorted(planned.ends)
    ])  # fmt: skip


def run(options: ArchiveOptions, context: Context) -> None:
    """Archive what there is, batch by batch; with `--follow` until interrupted."""
    context.report.tables.pop("next batch", None)
    lake = Lake.open(options.to)
    with lake.writing():
        _run(options, context, lake)


def _run(options: ArchiveOptions, context: Context, lake: Lake) -> None:
    planner, removed = Planner(options), lake.remove_orphans()
    stopped = threading.Event()
    if options.follow and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_signal: stopped.set())
    made: list[Batch] = []
    try:
        while not stopped.is_set():
            batch = archive_batch(options, context, planner, lake)
            if batch is not None:
                made.append(batch)
            elif not options.follow:
                break
            else:
                stopped.wait(options.interval)
    except KeyboardInterrupt:
        if not options.follow:
            raise
    _report(context, lake, made, removed)


def archive_batch(
    options: ArchiveOptions, context: Context, planner: Planner, lake: Lake
) -> Batch | None:
    """Make and commit one batch; None if there is nothing new."""
    planned = planner.plan(lake)
    if planned.starts == planned.ends and lake.batches:
        return None
    task = ArchiveTask(
        str(lake.root), lake.next_number, planner.source, options.compression, options.key_filters
    )
    with context.progress(f"archive, batch {lake.next_number}"):
        packs = pack(planned.slices, slices_min=None)
        rows = answers(context, packs, task, COLUMNS)
    files = [msgspec.json.decode(bytes(row[0]), type=LakeFile) for row in rows]
    files = covered(files, planned)
    lake.commit(
        Batch(
            number=lake.next_number,
            kind="archive",
            made_ms=context.clock.now_ms(),
            starts=offsets_json(planned.starts),
            ends=offsets_json(planned.ends),
            files=files,
        )
    )
    if options.group is not None:
        commit_group(options, options.group, planned.ends)
    return lake.batches[-1]


def covered(files: list[LakeFile], planned: Planned) -> list[LakeFile]:
    """Return the ranges in order, with those before the first slice that the log has lost.

    Raises:
        InvalidValue: tasks have not written what was planned: nothing may be committed then.
    """
    begins: dict[Queue, int] = {}
    for part in planned.slices:
        begins[part.queue] = min(begins.get(part.queue, part.begin), part.begin)
    lost = [
        LakeFile(queue.topic, queue.broker, queue.queue_id, start, begin, 0, 0)
        for queue, start in planned.starts.items()
        if start < (begin := begins.get(queue, planned.ends[queue]))
    ]
    whole = {one.queue: one for one in joined_ranges(sorted([*files, *lost], key=_place))}
    for queue, end in planned.ends.items():
        start, found = planned.starts[queue], whole.get(queue)
        if start == end and found is None:
            continue
        if found is None or found.seams or (found.begin, found.end) != (start, end):
            raise InvalidValue(f"{queue}: tasks wrote {found}, {start} to {end} was planned")
    return sorted([*files, *lost], key=_place)


def _place(one: LakeFile) -> tuple[Queue, int, int]:
    return one.queue, one.begin, one.end


def _report(context: Context, lake: Lake, made: list[Batch], removed: int) -> None:
    report = context.report
    files = [one for batch in made for one in batch.files]
    report.figures |= {
        "messages archived": sum(one.rows for one in files),
        "batches": len(made),
        "files": sum(bool(one.path) for one in files),
        "bytes": sum(one.size for one in files),
        "unfinished files removed": removed,
        "messages in the lake": sum(one.rows for one in lake.files()),
    }
    rows: list[Row] = [
        {"topic": one.queue.topic, "broker": one.queue.broker, "queue": one.queue.queue_id,
         "begin": one.begin, "end": one.end, "messages": one.rows, "crc sum": one.crc_sum}
        for one in joined_ranges(lake.files())
    ]  # fmt: skip
    report.add_table("queues", rows)


def check(options: ArchiveOptions, context: Context) -> None:
    """See that every message is there once, and is the one that the log has."""
    lake = Lake.open(options.to, must_exist=True)
    check_manifest(context.report, lake)
    check_files(context, lake)
    if options.has_source:
        check_log(context, lake, options.source())


JOB: Final = Job(
    name="archive",
    summary="topics to a Parquet lake, exactly once, with a manifest",
    text="""\
Write topics to a lake: Parquet files by topic and day of store time, and a manifest that says which
queue offsets they hold. Every message is there exactly once, whatever is killed and whenever. Run
it again to add what is new, or let it --follow. From brokers (--name-server) or from store
directories without a broker (--path); one lake may be filled from both.""",
    options=ArchiveOptions,
    plan=plan,
    run=run,
    check=check,
)

if __name__ == "__main__":
    from gantrymq.spark.jobs.archive import JOB as SELF
    from gantrymq.spark.jobs.command import main

    main(SELF)
