"""Delay: messages that wait for their time, and how punctual those were that have left.

A message with a delay level waits in SCHEDULE_TOPIC_XXXX, in the queue of its level, and is stored
again under its own topic when it is due. Both records have the same unique key, so that a join says
which were delivered, when, and how late.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from gantrymq.errors import InvalidValue
from gantrymq.model.names import SCHEDULE_TOPIC
from gantrymq.spark.backend import open_backend
from gantrymq.spark.jobs.job import Context, Job
from gantrymq.spark.jobs.sources import ReadOptions, needs_source
from gantrymq.spark.report.values import Plot, Series
from gantrymq.wire.properties import REAL_TOPIC

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LEVELS: Final = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
EARLY_MS: Final = 1000
"""A broker looks at its levels every 100 ms, and Apache's store time is that of the put."""
_UNITS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SCHEMA: Final = (
    "topic string, queueId int, queueOffset long, storeTimestamp timestamp, uniqKey string, "
    "reconsumeTimes int, propertiesMap map<string,string>"
)


class DelayOptions(ReadOptions, kw_only=True, frozen=True):
    """What `delay` wants to know."""

    levels: Annotated[str, Meta(description="messageDelayLevel of the broker")] = LEVELS
    now: Annotated[
        int | None, Meta(description="milliseconds since 1970 to take for now, to try things out")
    ] = None


def level_ms(text: str) -> list[int]:
    """Return the levels in milliseconds.

    Raises:
        InvalidValue: one is no time.
    """
    found = []
    for word in text.split():
        parts = re.fullmatch(r"(\d+)([smhd])", word)
        if parts is None:
            raise InvalidValue(f"--levels: {word!r} is no time such as 10s, 5m or 2h")
        found.append(int(parts[1]) * _UNITS[parts[2]])
    if not found:
        raise InvalidValue("--levels names none")
    return found


def plan(options: DelayOptions, context: Context) -> None:
    """Say what would be read."""
    needs_source(options)
    levels = level_ms(options.levels)
    context.report.plan.append(
        f"read {SCHEDULE_TOPIC} with {len(levels)} levels, and the topics that its messages go to"
    )


def waiting(options: DelayOptions, context: Context) -> DataFrame:
    """Return the delayed messages and when they are due."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    levels = level_ms(options.levels)
    chosen = msgspec.structs.replace(options, topic=(SCHEDULE_TOPIC,), topic_pattern=None)
    delays = f.array(*(f.lit(ms) for ms in levels))
    number = f.least(f.col("queueId") + 1, f.lit(len(levels)))
    return chosen.frame(context, _SCHEMA).select(
        (f.col("queueId") + 1).alias("level"), "uniqKey", "reconsumeTimes",
        f.col("propertiesMap")[REAL_TOPIC].alias("topic"),
        (f.unix_millis("storeTimestamp") + f.element_at(delays, number)).alias("due"),
    )  # fmt: skip


def delivered(options: DelayOptions, context: Context, topics: list[str]) -> DataFrame:
    """Return the messages of some topics, as they were stored when they were due."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    chosen = msgspec.structs.replace(options, topic=tuple(topics), topic_pattern=None)
    return chosen.frame(context, _SCHEMA).select(
        "topic", "uniqKey", "reconsumeTimes", f.unix_millis("storeTimestamp").alias("stored")
    )


def run(options: DelayOptions, context: Context) -> None:
    """Join, and report."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    report = context.report
    now_ms = options.now if options.now is not None else context.clock.now_ms()
    with context.progress("delay"):
        messages = waiting(options, context).persist()
        topics = [row.topic for row in messages.select("topic").distinct().collect() if row.topic]
        there = _existing(options, topics)
        if there:
            arrived = delivered(options, context, there)
            joined = messages.join(arrived, ["topic", "uniqKey", "reconsumeTimes"], "left")
        else:
            joined = messages.withColumn("stored", f.lit(None).cast("long"))
        # A topic may have had a message of that key before the delay; that is no delivery.
        on_time = f.when(f.col("stored") >= f.col("due") - EARLY_MS, f.col("stored"))
        one = joined.groupBy("topic", "uniqKey", "reconsumeTimes", "level", "due").agg(
            f.min(on_time).alias("stored"), f.count(on_time).alias("times"),
        ).persist()  # fmt: skip
        late = f.col("stored") - f.col("due")
        is_waiting = f.col("stored").isNull()
        rows = one.groupBy("topic", "level").agg(
            f.count("*").alias("messages"),
            f.sum(f.when(is_waiting, 0).otherwise(1)).alias("delivered"),
            f.sum(f.when(is_waiting & (f.col("due") > now_ms), 1).otherwise(0)).alias("waiting"),
            f.sum(f.when(is_waiting & (f.col("due") <= now_ms), 1).otherwise(0)).alias("overdue"),
            f.sum(f.when(f.col("times") > 1, 1).otherwise(0)).alias("delivered twice"),
            f.expr("percentile_approx(stored - due, 0.5)").alias("late ms p50"),
            f.expr("percentile_approx(stored - due, 0.99)").alias("late ms p99"),
            f.max(late).alias("late ms max"), f.min(late).alias("late ms min"),
        ).orderBy("topic", "level").collect()  # fmt: skip
        minute = f.date_format(f.timestamp_millis(f.floor(f.col("due") / 60_000) * 60_000),
                               "yyyy-MM-dd HH:mm")  # fmt: skip
        due = one.groupBy(minute.alias("minute")).count().orderBy("minute").collect()
        messages.unpersist()
        one.unpersist()
    report.add_table("levels", [row.asDict() for row in rows])
    report.add_table("due by minute", [row.asDict() for row in due])
    for name in ("messages", "delivered", "waiting", "overdue", "delivered twice"):
        report.figures[name] = sum(row[name] for row in rows)
    report.plots.append(
        Plot("messages due, by minute", "bars", [row.minute[11:] for row in due],
             [Series("messages", [float(row["count"]) for row in due])])
    )  # fmt: skip
    if report.figures["overdue"]:
        report.add_problem(f"{report.figures['overdue']} messages are overdue and not delivered")


def _existing(options: DelayOptions, topics: list[str]) -> list[str]:
    """Return those topics that can be read."""
    found = []
    for topic in topics:
        chosen = msgspec.structs.replace(options, topic=(topic,), topic_pattern=None)
        try:
            backend = open_backend(chosen.parsed())
            try:
                backend.bounds()
            finally:
                backend.close()
        except InvalidValue:
            continue
        found.append(topic)
    return found


def check(options: DelayOptions, context: Context) -> None:
    """See that the sums add up, that none came twice, and none before its time."""
    report = context.report
    if "levels" not in report.tables:
        plan(options, context)
        run(options, context)
    figures = {name: int(report.figures[name] or 0) for name in
               ("messages", "delivered", "waiting", "overdue", "delivered twice")}  # fmt: skip
    report.add_check(
        "sums",
        figures["messages"] == figures["delivered"] + figures["waiting"] + figures["overdue"],
        f"{figures['messages']} delayed: {figures['delivered']} delivered, "
        f"{figures['waiting']} waiting, {figures['overdue']} overdue",
    )
    report.add_check(
        "delivered once", not figures["delivered twice"],
        f"{figures['delivered twice']} of {figures['delivered']} came more than once",
    )  # fmt: skip


JOB: Final = Job(
    name="delay",
    summary="delayed messages: what is due when, what is overdue",
    text="""\
Messages with a delay level: how many wait, when they are due, which are overdue, and how late those
were that have been delivered, by topic and level. Give --levels if the broker has its own.""",
    options=DelayOptions,
    plan=plan,
    run=run,
    check=check,
)

if __name__ == "__main__":
    from gantrymq.spark.jobs.command import main
    from gantrymq.spark.jobs.delay import JOB as SELF

    main(SELF)
