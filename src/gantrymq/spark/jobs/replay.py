"""Replay: the messages of a lake, or some of them, to a topic, in the order of their queues.

All messages of a source queue go to one queue of the target, one behind the other, so their order
stays. Where they came from and when goes along as properties (`origin.py`). With a state directory
a replay that was killed goes on where it was; nothing is sent twice (`outbox.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from gantrymq.errors import InvalidValue
from gantrymq.kernel import kernel
from gantrymq.spark.backend import open_backend
from gantrymq.spark.jobs.job import Context, Job
from gantrymq.spark.jobs.lake import Lake, LakeFile
from gantrymq.spark.jobs.lake_read import chosen_files, time_ms
from gantrymq.spark.jobs.log_scan import answers
from gantrymq.spark.jobs.origin import (
    ORIGIN_OFFSET,
    ORIGIN_QUEUE,
    ORIGIN_TOPIC,
    origin_properties,
    sink_batch,
)
from gantrymq.spark.jobs.outbox import BATCH_ROWS, Pace, State, send_items
from gantrymq.spark.jobs.sources import ServerOptions
from gantrymq.spark.options import read_source_options
from gantrymq.spark.slices import Queue  # noqa: TC001  (msgspec reads the annotations)

if TYPE_CHECKING:
    from collections.abc import Iterator

SUM_COLUMNS: Final = "item int, count long, crcSum long, lastOffset long, back long"
PACED_ROWS: Final = 100
"""Messages that are sent at once when there is a pace."""


class ReplayOptions(ServerOptions, kw_only=True, frozen=True):
    """What `replay` wants to know."""

    lake: Annotated[str, Meta(min_length=1, description="the lake to read")]
    to: Annotated[str, Meta(min_length=1, description="the topic to send to; it must exist")]
    state: Annotated[str, Meta(min_length=1, description="directory to remember what is sent")]
    topic: Annotated[tuple[str, ...], Meta(description="topics of the lake; all unless given")] = ()
    since: Annotated[str | None, Meta(description="stored at this time or later")] = None
    until: Annotated[str | None, Meta(description="stored before this time")] = None
    key: Annotated[str | None, Meta(description="only messages with this key")] = None
    rate: (
        Annotated[float, Meta(gt=0, description="messages a second, of each source queue")] | None
    ) = None
    speed: (
        Annotated[float, Meta(gt=0, description="times the original pace; 1 is as it was")] | None
    ) = None

    @property
    def pace(self) -> Pace:
        """Return how fast to send."""
        return Pace(self.rate, self.speed)


class Item(msgspec.Struct, frozen=True):
    """The messages of one source queue, and the queue they go to."""

    queue: Queue
    files: tuple[LakeFile, ...]
    target: Queue


def items_of(options: ReplayOptions, lake: Lake) -> list[tuple[int, Item]]:
    """Return what is to be sent.

    Raises:
        InvalidValue: the target topic has no queue.
        GantryError: it does not exist.
    """
    files = chosen_files(
        lake, topics=options.topic, from_ms=time_ms(options.since, "since"),
        to_ms=time_ms(options.until, "until"), key=options.key,
    )  # fmt: skip
    targets = target_queues(options, options.to)
    queues = sorted({one.queue for one in files})
    return [
        (
            number,
            Item(
                queue,
                tuple(one for one in files if one.queue == queue),
                targets[number % len(targets)],
            ),
        )
        for number, queue in enumerate(queues)
    ]


def target_queues(options: ServerOptions, topic: str) -> list[Queue]:
    """Return the queues of a topic, in order.

    Raises:
        InvalidValue: no name server was named, or there is no queue.
    """
    if not options.name_server:
        raise InvalidValue("--name-server is needed: where is the topic to send to?")
    backend = open_backend(read_source_options({**options.connection(), "topic": topic}))
    try:
        found = sorted(backend.bounds())
    finally:
        backend.close()
    if not found:
        raise InvalidValue(f"--to {topic} has no queue")
    return found


class LakeItems(NamedTuple):
    """Reads items out of a lake."""

    root: str
    since: int | None
    until: int | None
    key: str | None
    pace: Pace

    def rows(self, item: Item) -> Iterator[dict[str, Any]]:
        """Yield the messages of an item that are wanted, in order."""
        from pyarrow import parquet  # noqa: PLC0415  (of the extra `spark`)

        for file in item.files:
            for batch in parquet.ParquetFile(Path(self.root) / file.path).iter_batches(BATCH_ROWS):
                for row in batch.to_pylist():
                    if self._is_wanted(row):
                        yield {**row, "topic": file.topic}

    def _is_wanted(self, row: dict[str, Any]) -> bool:
        stored_ms = row["storeTimestamp"].timestamp() * 1000
        return (
            (self.since is None or stored_ms >= self.since)
            and (self.until is None or stored_ms < self.until)
            and (
                self.key is None
                or self.key == row["uniqKey"]
                or self.key in (row["keys"] or "").split()
            )
        )

    def batches(self, item: Item) -> Iterator[Any]:
        """Yield the messages of an item as rows of the sink."""
        size = PACED_ROWS if self.pace != Pace() else BATCH_ROWS
        return self.pace.paced(self._batches(item, size), _stored_ms)

    def _batches(self, item: Item, size: int) -> Iterator[Any]:
        waiting: list[dict[str, Any]] = []
        for row in self.rows(item):
            waiting.append({
                "body": row["body"], "tags": row["tags"], "keys": row["keys"],
                "properties": origin_properties(row), "flag": row["flag"],
                "queueId": item.target.queue_id, "brokerName": item.target.broker,
            })  # fmt: skip
            if len(waiting) >= size:
                yield sink_batch(waiting)
                waiting = []
        if waiting:
            yield sink_batch(waiting)


def _stored_ms(batch: Any) -> int:  # noqa: ANN401
    return int(dict(batch.column("properties")[0].as_py())["ORIGIN_STORE_MS"])


def source_of(options: ReplayOptions, lake: Lake, pace: Pace) -> LakeItems:
    """Return what reads the messages that are wanted."""
    return LakeItems(
        str(lake.root), time_ms(options.since, "since"), time_ms(options.until, "until"),
        options.key, pace,
    )  # fmt: skip


def plan(options: ReplayOptions, context: Context) -> None:
    """Say what would be sent."""
    lake = Lake.open(options.lake, must_exist=True)
    items = items_of(options, lake)
    rows = sum(one.rows for _number, item in items for one in item.files)
    context.report.plan.append(
        f"send up to {rows} messages of {len(items)} queues of {lake.root} to {options.to}"
    )
    context.report.add_table("queues", [
        {"from": str(item.queue), "to": str(item.target), "files": len(item.files)}
        for _number, item in items
    ])  # fmt: skip


def run(options: ReplayOptions, context: Context) -> None:
    """Send."""
    lake = Lake.open(options.lake, must_exist=True)
    items = items_of(options, lake)
    state = State.open(
        options.state, "replay", [items, options.to, options.since, options.until, options.key],
        context.clock.now_ms(),
    )  # fmt: skip
    sink = options.connection() | {"topic": options.to}
    sent = send_items(context, state, items, sink, source_of(options, lake, options.pace))
    context.report.figures |= {
        "messages sent now": sent,
        "queues": len(items),
        "queues done": len(state.done()),
        "went on with an earlier run": state.is_resumed,
    }


@dataclass(frozen=True)
class Sums:
    """Sums up the messages of an item as the lake has them."""

    source: LakeItems

    def __call__(self, numbered: tuple[int, Item]) -> Iterator[tuple[object, ...]]:
        """Yield one row."""
        number, item = numbered
        count = crc_sum = back = 0
        last = -1
        for row in self.source.rows(item):
            count += 1
            crc_sum += kernel.crc32(row["body"] or b"")
            back += row["queueOffset"] <= last
            last = row["queueOffset"]
        yield number, count, crc_sum, last, back


def check(options: ReplayOptions, context: Context) -> None:
    """Read the target and compare it with the lake: bodies, and their order, queue by queue."""
    lake = Lake.open(options.lake, must_exist=True)
    items = items_of(options, lake)
    sums = Sums(source_of(options, lake, Pace()))
    expected = {
        str(items[row.item][1].queue): (row["count"], row.crcSum)
        for row in answers(context, items, sums, SUM_COLUMNS)
    }
    found, disorder = sent_sums(options, context, options.to)
    wrong = [
        f"{queue}: {found.get(queue, (0, 0))[0]} of {count}"
        for queue, (count, crc_sum) in expected.items()
        if count and found.get(queue, (0, 0)) != (count, crc_sum)
    ]
    context.report.add_check(
        "all of it, once", not wrong,
        "; ".join(wrong[:3])
        or f"{sum(count for count, _crc in expected.values())} messages, with their check sums",
    )  # fmt: skip
    context.report.add_check(
        "in order", disorder == 0, f"{disorder} messages stand before one of their source queue"
    )


def sent_sums(
    options: ServerOptions, context: Context, topic: str
) -> tuple[dict[str, tuple[int, int]], int]:
    """Return count and check sums of what a topic has, by source queue, and how many go back."""
    from pyspark.sql import Window  # noqa: PLC0415
    from pyspark.sql import functions as f  # noqa: PLC0415

    reader = context.spark.read.format("rocketmq").options(**options.connection(), topic=topic)
    frame = reader.schema(
        "brokerName string, queueId int, queueOffset long, body binary, "
        "propertiesMap map<string,string>"
    ).load()
    named = frame.select(
        "brokerName", "queueId", "queueOffset",
        f.concat_ws(
            "@", f.col("propertiesMap")[ORIGIN_TOPIC], f.col("propertiesMap")[ORIGIN_QUEUE]
        ).alias("source"),
        f.col("propertiesMap")[ORIGIN_OFFSET].cast("long").alias("offset"),
        f.crc32("body").bitwiseAND(0x7FFFFFFF).alias("crc"),
    ).where("offset is not null")  # fmt: skip
    window = Window.partitionBy("source", "brokerName", "queueId").orderBy("queueOffset")
    marked = named.withColumn("before", f.lag("offset").over(window))
    rows = marked.groupBy("source").agg(
        f.count("*").alias("n"), f.sum("crc").alias("crc"),
        f.sum(f.when(f.col("before") >= f.col("offset"), 1).otherwise(0)).alias("back"),
    ).collect()  # fmt: skip
    return {row.source: (row.n, row.crc) for row in rows}, sum(row.back for row in rows)


JOB: Final = Job(
    name="replay",
    summary="a lake, or a part of it, back to a topic, in order",
    text="""\
Send the messages of a lake to a topic: all, or those of some topics, a time or a key. Messages of
a source queue stay in their order; where they came from goes along as properties. As fast as it
goes, at a --rate, or at a --speed of the original pace. A replay that was killed goes on from its
--state; nothing is sent twice.""",
    options=ReplayOptions,
    plan=plan,
    run=run,
    check=check,
)

if __name__ == "__main__":
    from gantrymq.spark.jobs.command import main
    from gantrymq.spark.jobs.replay import JOB as SELF

    main(SELF)
