"""Dedup: topics without the messages that a producer sent twice.

A producer that gets no answer sends again, with the same unique key; an application may have a key
of its own. Of the messages with one key that come within the horizon, the first one stays. Spark
keeps the keys it has seen for that long (`dropDuplicatesWithinWatermark`), so that state has
a bound. What is kept is Parquet in OUT/kept, one directory for each batch, replaced as a whole if
the batch is done again; what was dropped is listed in OUT/dropped.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta

from gantrymq.errors import InvalidValue
from gantrymq.spark.jobs.job import Context, Job
from gantrymq.spark.jobs.sources import ReadOptions, needs_source
from gantrymq.spark.jobs.window import seconds_of
from gantrymq.spark.streams import read_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SCHEMA: Final = (
    "topic string, brokerName string, queueId int, queueOffset long, storeTimestamp timestamp, "
    "bornTimestamp timestamp, uniqKey string, tags string, keys string, body binary, "
    "properties string"
)
_PLACE: Final = ["topic", "brokerName", "queueId", "queueOffset"]


class DedupOptions(ReadOptions, kw_only=True, frozen=True):
    """What `dedup` wants to know."""

    out: Annotated[str, Meta(min_length=1, description="directory for what is kept and dropped")]
    key: Annotated[str, Meta(description="uniqKey, keys, body, or a JSON path in the body")] = (
        "uniqKey"
    )
    horizon: Annotated[str, Meta(description="how long a key is remembered: 30s, 5m, 1h")] = "1h"
    batch_rows: Annotated[int, Meta(ge=1, description="messages in one batch")] = 1_000_000


def plan(options: DedupOptions, context: Context) -> None:
    """Say what would be done."""
    needs_source(options)
    options.parsed()
    horizon = seconds_of(options.horizon, "horizon")
    if options.key not in {"uniqKey", "keys", "body"} and options.key[0] != "$":
        raise InvalidValue(f"--key {options.key!r}: uniqKey, keys, body, or a path such as $.id")
    context.report.plan.append(
        f"read what is new; of messages with the same {options.key} within {horizon} s keep the "
        f"first in {options.out}/kept"
    )


def keyed(frame: DataFrame, options: DedupOptions) -> DataFrame:
    """Return messages with the key that they are compared by; without one they are their own."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    if options.key.startswith("$"):
        key = f.get_json_object(f.col("body").cast("string"), options.key)
    elif options.key == "body":
        key = f.sha2("body", 256)
    else:
        key = f.col(options.key)
    own = f.concat_ws(":", "brokerName", "queueId", "queueOffset")
    return frame.withColumn("dedupKey", f.coalesce(key, own))


def run(options: DedupOptions, context: Context) -> None:
    """Take what is new."""
    root = Path(options.out).absolute()
    checkpoint = str(root / "checkpoint")
    settings: dict[str, Any] = options.read_dict(
        startingOffsets=options.starting_offsets or "earliest", endingOffsets=None,
        maxRowsPerTrigger=str(options.batch_rows),
    )  # fmt: skip
    stream = read_stream(context.spark, checkpoint, schema=_SCHEMA, **settings)
    horizon = f"{seconds_of(options.horizon, 'horizon')} seconds"
    unique = (
        keyed(stream, options).withWatermark("storeTimestamp", horizon)
        .dropDuplicatesWithinWatermark(["topic", "dedupKey"])
    )  # fmt: skip

    def take(frame: DataFrame, batch: int) -> None:
        frame.write.mode("overwrite").parquet(str(root / "kept" / f"batch={batch}"))

    with context.progress("dedup"):
        query = (
            unique.writeStream.option("checkpointLocation", checkpoint)
            .trigger(availableNow=True).foreachBatch(take).start()
        )  # fmt: skip
        query.awaitTermination()
    _report(options, context, root)


def _whole(options: DedupOptions, context: Context, root: Path) -> DataFrame:
    """Return all that was read so far, in one batch."""
    offsets = sorted((root / "checkpoint" / "offsets").glob("[0-9]*"),
                     key=lambda path: int(path.name))  # fmt: skip
    ending = offsets[-1].read_text().splitlines()[-1]
    frame = options.frame(context, _SCHEMA, endingOffsets=ending,
                          startingOffsets=options.starting_offsets or "earliest")  # fmt: skip
    return keyed(frame, options)


def _report(options: DedupOptions, context: Context, root: Path) -> None:
    report = context.report
    if not (root / "kept").is_dir():
        report.figures |= {"messages": 0, "kept": 0, "dropped": 0}
        return
    kept = context.spark.read.parquet(str(root / "kept"))
    whole = _whole(options, context, root).persist()
    dropped = whole.join(kept.select(*_PLACE), _PLACE, "left_anti")
    dropped.coalesce(1).write.mode("overwrite").parquet(str(root / "dropped"))
    listed = context.spark.read.parquet(str(root / "dropped"))
    report.figures |= {
        "messages": whole.count(), "kept": kept.count(), "dropped": listed.count(),
        "written to": str(root / "kept"),
    }  # fmt: skip
    rows = listed.orderBy(*_PLACE).limit(1000).collect()
    report.add_table("dropped", [
        {"topic": row.topic, "broker": row.brokerName, "queue": row.queueId,
         "offset": row.queueOffset, "key": row.dedupKey, "stored": str(row.storeTimestamp)}
        for row in rows
    ])  # fmt: skip
    whole.unpersist()


def check(options: DedupOptions, context: Context) -> None:
    """See that no key is kept twice within the horizon, and nothing dropped that was alone."""
    from pyspark.sql import Window  # noqa: PLC0415
    from pyspark.sql import functions as f  # noqa: PLC0415

    root = Path(options.out).absolute()
    report = context.report
    if not (root / "kept").is_dir():
        report.add_check("nothing read", True, "there were no messages")
        return
    kept = context.spark.read.parquet(str(root / "kept"))
    order = Window.partitionBy("topic", "dedupKey").orderBy("storeTimestamp")
    horizon = seconds_of(options.horizon, "horizon")
    gap = f.unix_millis("storeTimestamp") - f.unix_millis(f.lag("storeTimestamp").over(order))
    twice = kept.withColumn("gap", gap).where(f"gap < {horizon * 1000}").count()
    report.add_check("no key twice", twice == 0, f"{twice} messages kept behind another one")
    dropped = context.spark.read.parquet(str(root / "dropped"))
    alone = dropped.join(kept.select("topic", "dedupKey").distinct(), ["topic", "dedupKey"],
                         "left_anti").count()  # fmt: skip
    report.add_check("nothing lost", alone == 0, f"{alone} dropped messages have no twin kept")
    total = _whole(options, context, root).count()
    sums = kept.count() + dropped.count()
    report.add_check("sums", total == sums, f"{total} read, {sums} kept or dropped")


JOB: Final = Job(
    name="dedup",
    summary="a topic without the messages that were sent twice",
    text="""\
Keep the first of the messages that have the same key and come within a horizon: by the unique key
that clients give, by KEYS, by the body, or by a value in a JSON body. Run it again to add what is
new. What is kept is Parquet in OUT/kept, what was dropped in OUT/dropped.""",
    options=DedupOptions,
    plan=plan,
    run=run,
    check=check,
)

if __name__ == "__main__":
    from gantrymq.spark.jobs.command import main
    from gantrymq.spark.jobs.dedup import JOB as SELF

    main(SELF)
