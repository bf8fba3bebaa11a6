"""Trace: one row for each message's life, from what clients write into the trace topic.

A trace message holds records, 0x02 at the end of each, fields between 0x01. `Pub` is a send,
`SubBefore` and `SubAfter` are the two ends of a delivery, joined by their request id and message
id. What has no counterpart is listed: a delivery whose end was never written, a message whose send
nobody traced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from gantrymq.errors import InvalidValue
from gantrymq.spark.jobs.job import Context, Job
from gantrymq.spark.jobs.lake import Lake
from gantrymq.spark.jobs.lake_read import chosen_files, lake_frame
from gantrymq.spark.jobs.sources import ReadOptions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"


class TraceOptions(ReadOptions, kw_only=True, frozen=True):
    """What `trace` wants to know."""

    lake: Annotated[str | None, Meta(description="a lake with the trace topic, as source")] = None
    message: Annotated[str | None, Meta(description="only the life of this message id")] = None
    limit: Annotated[int, Meta(ge=1, le=1_000_000, description="lives that are shown")] = 1000
    out: Annotated[str | None, Meta(description="write all lives as Parquet here")] = None


def plan(options: TraceOptions, context: Context) -> None:
    """Say what would be read."""
    if bool(options.lake) == options.has_source:
        raise InvalidValue("one source: --lake, or --name-server, or --path")
    topic = options.topic or (TRACE_TOPIC,)
    context.report.plan.append(f"read {', '.join(topic)} and join sends with deliveries")


def records(options: TraceOptions, context: Context) -> DataFrame:
    """Return the trace records as arrays of fields."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    topics = options.topic or (TRACE_TOPIC,)
    if options.lake:
        lake = Lake.open(options.lake, must_exist=True)
        frame = lake_frame(context.spark, lake, chosen_files(lake, topics=topics))
    else:
        chosen = msgspec.structs.replace(options, topic=topics, topic_pattern=None)
        frame = chosen.frame(context, "body binary")
    parts = f.explode(f.split(f.col("body").cast("string"), "\u0002"))
    return (
        frame.select(parts.alias("record")).where("record <> ''")
        .select(f.split("record", "\u0001").alias("x"))
        .select("x", f.col("x")[0].alias("kind"))
    )  # fmt: skip


def _field(number: int) -> Column:
    from pyspark.sql import functions as f  # noqa: PLC0415

    value = f.get(f.col("x"), f.lit(number))
    return f.when(value == "null", None).otherwise(value)


def sends(frame: DataFrame) -> DataFrame:
    """Return the sends, one row for each message id."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    rows = frame.where("kind = 'Pub'").select(
        _field(5).alias("id"), _field(4).alias("topic"), _field(3).alias("producer"),
        _field(1).cast("long").alias("sent"), _field(10).cast("long").alias("cost"),
        (_field(13) == "true").alias("ok"), _field(7).alias("keys"), _field(6).alias("tags"),
    )  # fmt: skip
    first = f.min_by
    return rows.groupBy("id").agg(
        *(first(name, "sent").alias(name) for name in ("topic", "producer", "keys", "tags")),
        f.min("sent").alias("sent"), f.max("cost").alias("send ms"),
        f.max("ok").alias("stored"), f.count("*").alias("sends"),
    )  # fmt: skip


def deliveries(frame: DataFrame) -> DataFrame:
    """Return the deliveries; without an end those that have none."""
    before = frame.where("kind = 'SubBefore'").select(
        _field(4).alias("request"), _field(5).alias("id"), _field(3).alias("group"),
        _field(1).cast("long").alias("began"), _field(6).cast("int").alias("try"),
    )  # fmt: skip
    after = frame.where("kind = 'SubAfter'").select(
        _field(1).alias("request"), _field(2).alias("id"), _field(3).cast("long").alias("took"),
        (_field(4) == "true").alias("ok"),
    )  # fmt: skip
    return before.join(after, ["request", "id"], "left")


def lives(frame: DataFrame) -> DataFrame:
    """Return one row for each message."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    consumed = deliveries(frame).groupBy("id").agg(
        f.countDistinct("group").alias("groups"), f.count("*").alias("deliveries"),
        f.sum(f.when(f.col("ok"), 1).otherwise(0)).alias("consumed"),
        f.sum(f.when(f.col("ok").isNull(), 1).otherwise(0)).alias("without end"),
        f.max("try").alias("tries"), f.min("began").alias("first delivery"),
        f.max("took").alias("slowest ms"),
    )  # fmt: skip
    joined = sends(frame).join(consumed, "id", "full_outer")
    return joined.select(
        "id", "topic", "producer", "keys", "tags", "sends", "stored", "send ms", "sent",
        *(f.coalesce(name, f.lit(0)).alias(name)
          for name in ("groups", "deliveries", "consumed", "without end")),
        "tries", "slowest ms", (f.col("first delivery") - f.col("sent")).alias("waited ms"),
        f.col("sends").isNull().alias("send not traced"),
    )  # fmt: skip


def run(options: TraceOptions, context: Context) -> None:
    """Join, and report."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    report = context.report
    with context.progress("trace"):
        frame = records(options, context).persist()
        found = lives(frame)
        if options.message is not None:
            found = found.where(f.col("id") == options.message)
        found = found.persist()
        if options.out is not None:
            found.write.mode("overwrite").parquet(options.out)
        rows = found.orderBy("sent", "id").limit(options.limit).collect()
        report.add_table("lives", [row.asDict() for row in rows])
        sums = found.groupBy("topic").agg(
            f.count("*").alias("messages"), f.sum("deliveries").alias("deliveries"),
            f.sum("consumed").alias("consumed"), f.sum("without end").alias("without end"),
            f.sum(f.when(f.col("deliveries") == 0, 1).otherwise(0)).alias("never delivered"),
            f.sum(f.when(f.col("send not traced"), 1).otherwise(0)).alias("send not traced"),
            f.expr("percentile_approx(`send ms`, 0.99)").alias("send ms p99"),
            f.expr("percentile_approx(`waited ms`, 0.99)").alias("waited ms p99"),
        ).orderBy("topic").collect()  # fmt: skip
        report.add_table("topics", [row.asDict() for row in sums])
        kinds = {row["kind"]: row["count"] for row in frame.groupBy("kind").count().collect()}
        frame.unpersist()
        found.unpersist()
    report.figures |= {
        "records": sum(kinds.values()), "sends": kinds.get("Pub", 0),
        "deliveries begun": kinds.get("SubBefore", 0), "deliveries ended": kinds.get("SubAfter", 0),
        "lives": sum(row.messages for row in sums),
        "orphans": sum(row["without end"] + row["send not traced"] for row in sums),
    }  # fmt: skip


def check(options: TraceOptions, context: Context) -> None:
    """See that every record is in one life."""
    report = context.report
    if "topics" not in report.tables:
        plan(options, context)
        run(options, context)
    begun = int(report.figures["deliveries begun"] or 0)
    summed = sum(int(row["deliveries"] or 0) for row in report.tables["topics"])
    passed = summed == begun or options.message is not None
    report.add_check("deliveries", passed, f"{summed} in lives, {begun} begun in the trace")


JOB: Final = Job(
    name="trace",
    summary="one row for each message's life, from the trace topic",
    text="""\
Put the records of the trace topic together: when each message was sent and stored, who got it, how
often, with what result and how fast. From brokers, a store directory, or a lake that holds the
trace topic for longer than a broker does.""",
    options=TraceOptions,
    plan=plan,
    run=run,
    check=check,
)

if __name__ == "__main__":
    from gantrymq.spark.jobs.command import main
    from gantrymq.spark.jobs.trace import JOB as SELF

    main(SELF)
