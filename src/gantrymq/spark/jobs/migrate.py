"""Migrate: topics and group offsets from an Apache store or broker, or from Kafka, to our brokers.

All messages of a source queue go to one queue of the target that has no other, in their order, and
say where they came from (`origin.py`). From that the map is made, by reading the target: which
offset there each source offset has. A group's next message is looked up in it and committed, so
that a consumer that is started on the new side goes on with the first message it has not read.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from gantrymq.errors import InvalidValue
from gantrymq.spark.backend import open_backend
from gantrymq.spark.jobs.job import Context, Job
from gantrymq.spark.jobs.kafka_source import KafkaItems, kafka_committed, kafka_items
from gantrymq.spark.jobs.lag import LagOptions, positions
from gantrymq.spark.jobs.log_scan import NotAnswered
from gantrymq.spark.jobs.origin import (
    ORIGIN_OFFSET,
    ORIGIN_QUEUE,
    ORIGIN_TOPIC,
    origin_properties,
    sink_batch,
)
from gantrymq.spark.jobs.outbox import State, send_items, write_whole
from gantrymq.spark.jobs.progress_back import commit_group
from gantrymq.spark.jobs.replay import target_queues
from gantrymq.spark.jobs.sources import ReadOptions, ServerOptions
from gantrymq.spark.reading import read_slice
from gantrymq.spark.schema import WantedColumn
from gantrymq.spark.slices import Queue, Slice, Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from gantrymq.spark.options import SourceOptions
    from gantrymq.spark.report.values import Row

RANGES: Final = "ranges.json"
_NAMES: Final = (
    "topic", "brokerName", "queueId", "queueOffset", "bornTimestamp", "storeTimestamp", "body",
    "tags", "keys", "flag", "properties",
)  # fmt: skip


class MigrateOptions(ReadOptions, kw_only=True, frozen=True):
    """What `migrate` wants to know."""

    target: Annotated[str, Meta(min_length=1, description="HOST:PORT of the new name server")]
    state: Annotated[str, Meta(min_length=1, description="directory to remember what is sent")]
    group: Annotated[
        tuple[str, ...], Meta(description="groups to translate; of a store, all that are saved")
    ] = ()
    groups: Annotated[bool, Meta(description="translate and commit group offsets")] = True
    kafka: Annotated[str | None, Meta(description="bootstrap servers of Kafka, as the source")] = (
        None
    )
    map_out: Annotated[str | None, Meta(description="write the map of offsets as Parquet here")] = (
        None
    )

    def new_side(self) -> ServerOptions:
        """Return how the new side is reached."""
        return ServerOptions(
            name_server=self.target, access_key=self.access_key, secret_key=self.secret_key,
            tls=self.tls, tls_ca_file=self.tls_ca_file,
        )  # fmt: skip


class Moved(msgspec.Struct, frozen=True):
    """A source queue, its range, and the queue that it goes to."""

    source: Queue
    begin: int
    end: int
    target: Queue


def moves_of(options: MigrateOptions) -> list[Moved]:
    """Return which queue goes where.

    Raises:
        InvalidValue: a target topic has too few queues, or messages of others.
    """
    bounds = _bounds(options)
    moves: list[Moved] = []
    for topic in sorted({queue.topic for queue in bounds}):
        sources = sorted(queue for queue in bounds if queue.topic == topic)
        targets = target_queues(options.new_side(), topic)
        if len(targets) < len(sources):
            raise InvalidValue(
                f"{topic} has {len(sources)} queues and {len(targets)} on the new side: give it as "
                "many there, or group offsets cannot be translated"
            )
        moves += [
            Moved(source, *bounds[source], target)
            for source, target in zip(sources, targets, strict=False)
        ]
    return moves


def _bounds(options: MigrateOptions) -> dict[Queue, tuple[int, int]]:
    if options.kafka:
        return kafka_items(options.kafka, options.topic)
    backend = open_backend(options.parsed())
    try:
        return {queue: (one.least, one.most) for queue, one in backend.bounds().items()}
    finally:
        backend.close()


def plan(options: MigrateOptions, context: Context) -> None:
    """Say what would be moved."""
    if not options.kafka and not options.has_source:
        raise InvalidValue("no source: --name-server, --path or --kafka")
    moves = moves_of(options)
    context.report.plan.append(
        f"send {sum(one.end - one.begin for one in moves)} messages of {len(moves)} queues to "
        f"{options.target}" + (", then translate group offsets" if options.groups else "")
    )
    context.report.add_table("queues", [
        {"from": str(one.source), "begin": one.begin, "end": one.end, "to": str(one.target)}
        for one in moves
    ])  # fmt: skip


def run(options: MigrateOptions, context: Context) -> None:
    """Send, make the map, translate."""
    moves = moves_of(options)
    # The end may have grown since a first run; what it had planned is what it goes on with.
    fixed = [(str(one.source), str(one.target)) for one in moves]
    state = State.open(options.state, "migrate", [fixed, options.target], context.clock.now_ms())
    moves = _frozen(state, moves)
    sink = options.new_side().connection()
    if options.kafka:
        items: list[Any] = [(n, (one.source, one.begin, one.end, one.target))
                            for n, one in enumerate(moves)]  # fmt: skip
        sent = send_items(context, state, items, sink, KafkaItems(options.kafka))
    else:
        source = options.parsed(startingOffsets=None, endingOffsets=None)
        items = _items(source, moves)
        sent = send_items(context, state, items, sink, QueueItems(source))
    report = context.report
    report.figures |= {
        "messages sent now": sent, "queues": len(moves),
        "messages": sum(one.end - one.begin for one in moves),
        "went on with an earlier run": state.is_resumed,
    }  # fmt: skip
    with context.progress("migrate, the map"):
        mapped = offset_map(options, context, moves).persist()
        if options.map_out:
            mapped.write.mode("overwrite").parquet(options.map_out)
        if options.groups:
            _translate(options, context, moves, mapped)
        mapped.unpersist()


def _frozen(state: State, moves: list[Moved]) -> list[Moved]:
    """Return the ranges that the first run of this state has planned."""
    path = state.path / RANGES
    if path.exists():
        return msgspec.json.decode(path.read_bytes(), type=list[Moved])
    write_whole(path, msgspec.json.encode(moves))
    return moves


def _items(source: SourceOptions, moves: list[Moved]) -> list[Any]:
    backend = open_backend(source)
    try:
        backend.bounds()
        full = [one for one in moves if one.begin < one.end]
        slices = backend.slices((one.source, Span(one.begin, one.end)) for one in full)
    finally:
        backend.close()
    return [(n, (part, one.target)) for n, (part, one) in enumerate(zip(slices, full, strict=True))]


class QueueItems(NamedTuple):
    """Reads source queues."""

    options: SourceOptions

    def batches(self, item: tuple[Slice, Queue]) -> Iterator[Any]:
        """Yield the messages of a queue as rows of the sink."""
        part, target = item
        wanted = tuple(WantedColumn(name, nullable=True) for name in _NAMES)
        for batch in read_slice(self.options, wanted, part):
            yield sink_batch([
                {"topic": target.topic, "body": row["body"], "tags": row["tags"],
                 "keys": row["keys"], "flag": row["flag"], "properties": origin_properties(row),
                 "queueId": target.queue_id, "brokerName": target.broker}
                for row in batch.to_pylist()
            ])  # fmt: skip


def offset_map(options: MigrateOptions, context: Context, moves: list[Moved]) -> DataFrame:
    """Return source queue, source offset and target offset of everything that was moved."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    topics = ",".join(sorted({one.target.topic for one in moves}))
    reader = context.spark.read.format("rocketmq").options(
        **options.new_side().connection(), topics=topics
    )
    known = f.col("propertiesMap")
    return (
        reader.schema("topic string, brokerName string, queueId int, queueOffset long, "
                      "propertiesMap map<string,string>").load()
        .select(known[ORIGIN_TOPIC].alias("sourceTopic"), known[ORIGIN_QUEUE].alias("sourceQueue"),
                known[ORIGIN_OFFSET].cast("long").alias("sourceOffset"),
                "topic", "brokerName", "queueId", f.col("queueOffset").alias("offset"))
        .where("sourceOffset is not null")
    )  # fmt: skip


def _translate(
    options: MigrateOptions, context: Context, moves: list[Moved], mapped: DataFrame
) -> None:
    """Commit for each group the target offset of its next message."""
    by_source = {one.source: one for one in moves}
    rows: list[Row] = []
    commits: dict[str, dict[Queue, int]] = {}
    for group, queue, committed in committed_offsets(options, list(by_source)):
        moved = by_source[queue]
        name = f"{queue.broker}:{queue.queue_id}"
        hits = mapped.where(
            (mapped.sourceTopic == queue.topic) & (mapped.sourceQueue == name)
            & (mapped.sourceOffset >= committed)
        ).agg({"offset": "min"}).collect()  # fmt: skip
        if len(hits) != 1:
            raise NotAnswered(f"{queue}: Spark has not looked up {committed}; run it again")
        target = hits[0][0] if hits[0][0] is not None else _end(options, moved.target)
        commits.setdefault(group, {})[moved.target] = target
        rows.append({
            "group": group, "from": str(queue), "committed": committed,
            "to": str(moved.target), "translated": target,
        })  # fmt: skip
    for group, offsets in sorted(commits.items()):
        commit_group(options.new_side(), group, offsets)
    context.report.add_table("groups", rows)
    context.report.figures["group offsets translated"] = len(rows)


def committed_offsets(options: MigrateOptions, queues: list[Queue]) -> list[tuple[str, Queue, int]]:
    """Return group, queue and committed offset of all groups that are to be translated."""
    if options.kafka:
        return [
            (group, queue, offset)
            for group in options.group
            for queue, offset in kafka_committed(options.kafka, group, queues).items()
        ]
    asked = LagOptions(
        **{name: getattr(options, name) for name in ReadOptions.__struct_fields__},
        group=options.group,
    )
    backend = open_backend(options.parsed(startingOffsets=None, endingOffsets=None))
    try:
        found = positions(asked, backend, backend.bounds())
    finally:
        backend.close()
    return [(one.group, one.queue, one.committed) for one in found if one.queue in set(queues)]


def _end(options: MigrateOptions, queue: Queue) -> int:
    from gantrymq.spark.options import read_source_options  # noqa: PLC0415

    backend = open_backend(
        read_source_options({**options.new_side().connection(), "topic": queue.topic})
    )
    try:
        return backend.bounds()[queue].most
    finally:
        backend.close()


def check(options: MigrateOptions, context: Context) -> None:
    """Compare queue by queue: count, order, and where groups go on."""
    from pyspark.sql import Window  # noqa: PLC0415
    from pyspark.sql import functions as f  # noqa: PLC0415

    path = Path(options.state).absolute() / RANGES
    if not path.exists():
        raise InvalidValue(f"--state {options.state} knows of no migration: run it first")
    moves = msgspec.json.decode(path.read_bytes(), type=list[Moved])
    mapped = offset_map(options, context, moves)
    order = Window.partitionBy("sourceTopic", "sourceQueue").orderBy("offset")
    rows = mapped.withColumn("before", f.lag("sourceOffset").over(order)).groupBy(
        "sourceTopic", "sourceQueue"
    ).agg(
        f.count("*").alias("n"), f.countDistinct("sourceOffset").alias("d"),
        f.sum(f.when(f.col("before") >= f.col("sourceOffset"), 1).otherwise(0)).alias("back"),
    ).collect()  # fmt: skip
    found = {(row.sourceTopic, row.sourceQueue): row for row in rows}
    wrong = []
    for one in moves:
        row = found.get((one.source.topic, f"{one.source.broker}:{one.source.queue_id}"))
        count = one.end - one.begin
        have = (0, 0, 0) if row is None else (row.n, row.d, row.back)
        if have[0] > count or have[0] != have[1] or have[2] or (count and not have[0]):
            wrong.append(f"{one.source}: {have[0]} of {count}, {have[2]} out of order")
        elif have[0] < count:
            context.report.figures[f"holes in {one.source}"] = count - have[0]
    context.report.add_check(
        "every queue, once, in order", not wrong,
        "; ".join(wrong[:3]) or f"{len(moves)} queues, {sum(row.n for row in rows)} messages",
    )  # fmt: skip


JOB: Final = Job(
    name="migrate",
    summary="topics and group offsets from another system",
    text="""\
Move topics to other brokers: from an Apache RocketMQ store directory (--path), its brokers
(--name-server), or Kafka (--kafka). Topics must exist on the new side with as many queues. Order
within a queue stays; a map of offsets is made, and what groups had committed is translated, so
that consumers go on with the first message they have not read. A run that was killed goes on from
its --state.""",
    options=MigrateOptions,
    plan=plan,
    run=run,
    check=check,
)

if __name__ == "__main__":
    from gantrymq.spark.jobs.command import main
    from gantrymq.spark.jobs.migrate import JOB as SELF

    main(SELF)
