"""Latency: how long messages take from the producer's clock to the broker's, as percentiles.

Born and store times are of two machines: a clock that is behind makes negative times, which are
counted and shown, not hidden. Percentiles are Spark's approximate ones, with a known error of rank;
the check takes the ranks of what was found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta

from gantrymq.errors import InvalidValue
from gantrymq.spark.jobs.job import Context, Job
from gantrymq.spark.jobs.lake import Lake
from gantrymq.spark.jobs.lake_read import chosen_files, lake_frame, time_ms
from gantrymq.spark.jobs.sources import ReadOptions
from gantrymq.spark.report.values import Plot, Row, Series
from gantrymq.spark.schema import ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHARES: Final = (0.5, 0.9, 0.99, 0.999)
NAMES: Final = ("p50", "p90", "p99", "p999")
ACCURACY: Final = 10_000
_COLUMNS: Final = ("topic", "bornTimestamp", "storeTimestamp", "bornHost")


class LatencyOptions(ReadOptions, kw_only=True, frozen=True):
    """What `latency` wants to know."""

    lake: Annotated[str | None, Meta(description="a lake, in place of a source")] = None
    since: Annotated[str | None, Meta(description="stored at this time or later")] = None
    until: Annotated[str | None, Meta(description="stored before this time")] = None
    clients: Annotated[int, Meta(ge=1, le=10_000, description="clients that are listed")] = 100
    minutes: Annotated[int, Meta(ge=1, le=100_000, description="minutes that are listed")] = 1440


def plan(options: LatencyOptions, context: Context) -> None:
    """Say what would be read."""
    if bool(options.lake) == options.has_source:
        raise InvalidValue("one source: --lake, or --name-server, or --path")
    since, until = time_ms(options.since, "since"), time_ms(options.until, "until")
    if options.lake:
        lake = Lake.open(options.lake, must_exist=True)
        files = chosen_files(lake, topics=options.topic, from_ms=since, to_ms=until)
        what = f"{sum(one.rows for one in files)} messages in {len(files)} files of {lake.root}"
    else:
        options.parsed()
        what = f"topics of {options.name_server or ', '.join(options.path)}"
    context.report.plan.append(
        f"read {what}; percentiles of store time minus born time by topic, client and minute"
    )


def times(options: LatencyOptions, context: Context) -> DataFrame:
    """Return topic, client, minute and milliseconds of each message."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    since, until = time_ms(options.since, "since"), time_ms(options.until, "until")
    if options.lake:
        lake = Lake.open(options.lake, must_exist=True)
        files = chosen_files(lake, topics=options.topic, from_ms=since, to_ms=until)
        frame = lake_frame(context.spark, lake, files)
    else:
        frame = options.frame(context, ddl(_COLUMNS))
    stored = f.unix_millis("storeTimestamp")
    if since is not None:
        frame = frame.where(stored >= since)
    if until is not None:
        frame = frame.where(stored < until)
    return frame.select(
        "topic",
        f.regexp_replace("bornHost", ":-?[0-9]+$", "").alias("client"),
        f.date_trunc("minute", "storeTimestamp").alias("minute"),
        (stored - f.unix_millis("bornTimestamp")).alias("ms"),
    )


def summary(frame: DataFrame, *by: str) -> DataFrame:
    """Return count, percentiles and extremes of groups."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    marks = f.percentile_approx("ms", list(SHARES), ACCURACY).alias("marks")
    grouped = frame.groupBy(*by).agg(
        f.count("*").alias("messages"), marks, f.avg("ms").alias("mean"),
        f.min("ms").alias("min"), f.max("ms").alias("max"),
        f.sum(f.when(f.col("ms") < 0, 1).otherwise(0)).alias("negative"),
    )  # fmt: skip
    found = [f.col("marks")[number].alias(name) for number, name in enumerate(NAMES)]
    return grouped.select(*by, "messages", *found, "mean", "min", "max", "negative")


def run(options: LatencyOptions, context: Context) -> None:
    """Read and sum up."""
    report = context.report
    with context.progress("latency"):
        frame = times(options, context).persist()
        topics = summary(frame, "topic").orderBy("topic").collect()
        clients = summary(frame, "client").orderBy("p99", ascending=False)
        report.add_table("topics", [_row(one) for one in topics])
        report.add_table("clients", [_row(one) for one in clients.limit(options.clients).collect()])
        minutes = summary(frame, "minute").orderBy("minute", ascending=False)
        latest = [_row(one) for one in minutes.limit(options.minutes).collect()][::-1]
        report.add_table("minutes", latest)
        total = summary(frame).collect()
        frame.unpersist()
    figures = _row(total[0]) if total and total[0].messages else {"messages": 0}
    unit = {name: f"{name} ms" for name in (*NAMES, "mean", "min", "max")}
    report.figures |= {unit.get(name, name): value for name, value in figures.items()}
    _plots(context, latest)


def _row(row: Any) -> Row:  # noqa: ANN401
    found: Row = {}
    for name, value in row.asDict().items():
        found[name] = f"{value:%Y-%m-%d %H:%M}" if name == "minute" else value
    return found


def _plots(context: Context, minutes: list[Row]) -> None:
    labels = [str(row["minute"])[11:] for row in minutes]
    context.report.plots += [
        Plot("milliseconds from birth to store, by minute", "lines", labels,
             [Series(name, [float(row[name] or 0) for row in minutes]) for name in NAMES], "ms"),
        Plot("messages a minute", "bars", labels,
             [Series("messages", [float(row["messages"] or 0) for row in minutes])]),
        Plot("milliseconds by topic", "bars",
             [str(row["topic"]) for row in context.report.tables["topics"]],
             [Series(name, [float(row[name] or 0) for row in context.report.tables["topics"]])
              for name in ("p50", "p99")], "ms"),
    ]  # fmt: skip


def check(options: LatencyOptions, context: Context) -> None:
    """Take the true ranks of the percentiles of the topic with the most messages."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    report = context.report
    if "topics" not in report.tables:
        plan(options, context)
        run(options, context)
    rows = report.tables["topics"]
    if not rows:
        report.add_check("percentiles", True, "no message, no percentile")
        return
    largest = max(rows, key=lambda row: int(row["messages"] or 0))
    frame = times(options, context).where(f.col("topic") == f.lit(largest["topic"]))
    counts = []
    for name in NAMES:
        mark = int(largest[name] or 0)
        counts += [
            f.sum(f.when(f.col("ms") < mark, 1).otherwise(0)).alias(f"{name}_below"),
            f.sum(f.when(f.col("ms") <= mark, 1).otherwise(0)).alias(f"{name}_upto"),
        ]
    found = frame.agg(f.count("*").alias("n"), *counts).collect()[0].asDict()
    count, slack = found["n"], found["n"] / ACCURACY + 1
    wrong = [
        name
        for name, share in zip(NAMES, SHARES, strict=True)
        if not found[f"{name}_below"] - slack <= share * count <= found[f"{name}_upto"] + slack
    ]
    grew = options.ending_offsets is None and count != largest["messages"]
    report.add_check(
        "percentiles", not wrong or grew,
        f"ranks of {', '.join(NAMES)} among the {count} messages of {largest['topic']}: "
        + (f"{', '.join(wrong)} off" if wrong else "right"),
    )  # fmt: skip


JOB: Final = Job(
    name="latency",
    summary="percentiles from birth to store, by topic, client and minute",
    text="""\
Percentiles of the time from the producer's clock to the broker's, by topic, by client and by
minute, from topics (brokers or store directories) or from a lake; the --html page has plots.""",
    options=LatencyOptions,
    plan=plan,
    run=run,
    check=check,
)

if __name__ == "__main__":
    from gantrymq.spark.jobs.command import main
    from gantrymq.spark.jobs.latency import JOB as SELF

    main(SELF)
