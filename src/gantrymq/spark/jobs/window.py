"""Window: counts and sums of messages in windows of time, with those that came late kept apart.

Messages are read as a stream, batch by batch. A watermark follows the latest time seen, some way
behind; a message before it is late: its window may have been used already. Late messages are
written apart, with all their columns, and never change a window. What a batch adds to each window
is written under the batch's number, so that a batch that is done again after a crash replaces what
it wrote; windows are the sums over all batches. The watermark that a batch starts with is written
down with it, so that the same messages are late the second time.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta

from gantrymq.errors import InvalidValue
from gantrymq.spark.jobs.job import Context, Job
from gantrymq.spark.jobs.outbox import write_whole
from gantrymq.spark.jobs.sources import ReadOptions, needs_source
from gantrymq.spark.report.values import Plot, Series
from gantrymq.spark.streams import read_stream

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SCHEMA: Final = (
    "topic string, brokerName string, queueId int, queueOffset long, bornTimestamp timestamp, "
    "storeTimestamp timestamp, tags string, keys string, body binary"
)
_DURATION: Final = re.compile(r"(\d+) ?(s|m|h|d)")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class WindowOptions(ReadOptions, kw_only=True, frozen=True):
    """What `window` wants to know."""

    out: Annotated[str, Meta(min_length=1, description="directory for windows and late messages")]
    size: Annotated[str, Meta(description="length of a window: 30s, 5m, 1h")] = "1m"
    slide: Annotated[str | None, Meta(description="distance of windows; their size if not")] = None
    lateness: Annotated[str, Meta(description="how far the watermark is behind")] = "1m"
    time: Annotated[
        str, Meta(description="born, store, or a JSON path to milliseconds or an ISO time")
    ] = "born"
    by: Annotated[str, Meta(description="topic, tags, keys, or a JSON path")] = "topic"
    value: Annotated[str | None, Meta(description="JSON path of a number to sum up")] = None
    batch_rows: Annotated[int, Meta(ge=1, description="messages in one batch")] = 1_000_000


def seconds_of(text: str, option: str) -> int:
    """Return a duration in seconds.

    Raises:
        InvalidValue: it is none.
    """
    found = _DURATION.fullmatch(text)
    if found is None or int(found[1]) == 0:
        raise InvalidValue(f"--{option} {text!r}: a time such as 30s, 5m, 1h is wanted")
    return int(found[1]) * _SECONDS[found[2]]


def plan(options: WindowOptions, context: Context) -> None:
    """Say what would be made."""
    needs_source(options)
    options.parsed()
    size, late = seconds_of(options.size, "size"), seconds_of(options.lateness, "lateness")
    slide = seconds_of(options.slide or options.size, "slide")
    if slide > size:
        raise InvalidValue(f"--slide {options.slide} is longer than --size: messages fall between")
    for name in (options.time, options.by, options.value):
        if name and name not in {"born", "store", "topic", "tags", "keys"} and name[0] != "$":
            raise InvalidValue(f"{name!r} is no JSON path: it begins with $, as $.order.at")
    context.report.plan.append(
        f"read what is new and add it to windows of {size} s, every {slide} s, by {options.by}, "
        f"in {options.out}; messages more than {late} s behind are kept apart"
    )


def timed(frame: DataFrame, options: WindowOptions) -> DataFrame:
    """Return messages with their time `at`, their group and their value."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    body = f.col("body").cast("string")

    def chosen(name: str) -> Column:
        return f.get_json_object(body, name) if name.startswith("$") else f.col(name)

    if options.time in {"born", "store"}:
        at = f.col(f"{options.time}Timestamp")
    else:
        said = chosen(options.time)
        at = f.coalesce(
            f.timestamp_millis(f.expr("try_cast(said as bigint)")),
            f.expr("try_cast(said as timestamp)"),
        )
        frame = frame.withColumn("said", said)
    value = f.lit(None) if options.value is None else chosen(options.value).try_cast("double")
    return (
        frame.withColumn("at", at)
        .withColumn("by", chosen(options.by))
        .withColumn("value", value.cast("double"))
        .drop("said")
    )


def summed(frame: DataFrame, options: WindowOptions) -> DataFrame:
    """Return what messages add to each window."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    size = f"{seconds_of(options.size, 'size')} seconds"
    slide = f"{seconds_of(options.slide or options.size, 'slide')} seconds"
    return frame.groupBy(f.window("at", size, slide).alias("w"), "by").agg(
        f.count("*").alias("messages"), f.sum("value").alias("total"),
        f.min("value").alias("least"), f.max("value").alias("most"),
    ).select(f.col("w.start").alias("begin"), f.col("w.end").alias("end"), "by", "messages",
             "total", "least", "most")  # fmt: skip


class Windows:
    """The output directory, and what a batch does to it."""

    def __init__(self, options: WindowOptions) -> None:
        self.root = Path(options.out).absolute()
        self._options = options
        self._late_s = seconds_of(options.lateness, "lateness")
        (self.root / "watermarks").mkdir(parents=True, exist_ok=True)

    def watermark(self, batch: int) -> float | None:
        """Return the watermark before a batch, in seconds since 1970; None before the first."""
        path = self.root / "watermarks" / f"{batch}.json"
        return msgspec.json.decode(path.read_bytes(), type=float | None) if path.exists() else None

    def take(self, frame: DataFrame, batch: int) -> None:
        """Add a batch; the same batch again changes nothing."""
        from pyspark.sql import functions as f  # noqa: PLC0415

        mark = self.watermark(batch)
        rows = timed(frame, self._options).persist()
        line = f.lit(None).cast("timestamp") if mark is None else f.timestamp_seconds(f.lit(mark))
        is_late = f.coalesce(f.col("at") < line, f.lit(False)) | f.col("at").isNull()
        summed(rows.where(~is_late), self._options).coalesce(1).write.mode("overwrite").parquet(
            str(self.root / "parts" / f"batch={batch}")
        )
        rows.where(is_late).coalesce(1).write.mode("overwrite").parquet(
            str(self.root / "late" / f"batch={batch}")
        )
        newest = rows.agg(f.max(f.unix_micros("at")).alias("m")).collect()[0].m
        rows.unpersist()
        if newest is not None:
            mark = max(mark or 0.0, newest / 1e6 - self._late_s)
        write_whole(self.root / "watermarks" / f"{batch + 1}.json", msgspec.json.encode(mark))

    def frame(self, context: Context) -> DataFrame:
        """Return the windows: the sums over all batches."""
        from pyspark.sql import functions as f  # noqa: PLC0415

        parts = context.spark.read.parquet(str(self.root / "parts"))
        return parts.groupBy("begin", "end", "by").agg(
            f.sum("messages").alias("messages"), f.sum("total").alias("total"),
            f.min("least").alias("least"), f.max("most").alias("most"),
        )  # fmt: skip


def run(options: WindowOptions, context: Context) -> None:
    """Take what is new."""
    windows = Windows(options)
    checkpoint = str(windows.root / "checkpoint")
    settings: dict[str, Any] = options.read_dict(
        startingOffsets=options.starting_offsets or "earliest", endingOffsets=None,
        maxRowsPerTrigger=str(options.batch_rows),
    )  # fmt: skip
    stream = read_stream(context.spark, checkpoint, schema=_SCHEMA, **settings)
    with context.progress("window"):
        query = (
            stream.writeStream.option("checkpointLocation", checkpoint)
            .trigger(availableNow=True).foreachBatch(windows.take).start()
        )  # fmt: skip
        query.awaitTermination()
    _report(windows, context)


def _report(windows: Windows, context: Context) -> None:
    report = context.report
    if not (windows.root / "parts").is_dir():
        report.figures |= {"windows": 0, "messages": 0, "late messages": 0}
        report.add_table("windows", [])
        return
    frame = windows.frame(context)
    frame.coalesce(1).write.mode("overwrite").parquet(str(windows.root / "windows"))
    rows = frame.orderBy("begin", "by").limit(10_000).collect()
    report.add_table("windows", [
        {"begin": str(row.begin), "end": str(row.end), "by": row.by, "messages": row.messages,
         "total": row.total, "least": row.least, "most": row.most}
        for row in rows
    ])  # fmt: skip
    late = context.spark.read.parquet(str(windows.root / "late")).count()
    sums = frame.agg({"messages": "sum"}).collect()[0][0] or 0
    report.figures |= {
        "windows": frame.count(), "messages": int(sums), "late messages": late,
        "written to": str(windows.root / "windows"),
    }  # fmt: skip
    counts: dict[str, float] = {}
    for row in rows:
        counts[f"{row.begin:%H:%M:%S}"] = counts.get(f"{row.begin:%H:%M:%S}", 0.0) + row.messages
    report.plots.append(
        Plot("messages in each window", "bars", list(counts),
             [Series("messages", list(counts.values()))])
    )  # fmt: skip


def check(options: WindowOptions, context: Context) -> None:
    """Sum up in one batch what was read in many, without what was late, and compare."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    windows = Windows(options)
    if not (windows.root / "parts").is_dir():
        context.report.add_check("nothing read", True, "there were no messages")
        return
    ends = sorted((windows.root / "checkpoint" / "offsets").glob("[0-9]*"),
                  key=lambda path: int(path.name))  # fmt: skip
    ending = ends[-1].read_text().splitlines()[-1]
    late = context.spark.read.parquet(str(windows.root / "late"))
    place = ["topic", "brokerName", "queueId", "queueOffset"]
    whole = options.frame(context, _SCHEMA, endingOffsets=ending,
                          startingOffsets=options.starting_offsets or "earliest")  # fmt: skip
    batch = summed(timed(whole, options).join(late.select(*place), place, "left_anti"), options)
    names = ["begin", "end", "by", "messages"]
    ours, theirs = windows.frame(context).select(*names), batch.select(*names)
    differ = ours.exceptAll(theirs).count() + theirs.exceptAll(ours).count()
    totals = [
        frame.agg(f.round(f.sum("total"), 6)).collect()[0][0]
        for frame in (windows.frame(context), batch)
    ]
    context.report.add_check(
        "the same as one batch", differ == 0 and totals[0] == totals[1],
        f"{differ} windows differ; sums {totals[0]} and {totals[1]}",
    )  # fmt: skip


JOB: Final = Job(
    name="window",
    summary="counts and sums in windows of time, with late messages",
    text="""\
Count messages and sum up a value in windows of time, by topic, tag, key or a value in a JSON body.
Run it again to add what is new. Messages that come too late change no window; they are written
apart, whole. Windows are Parquet in OUT/windows, late messages in OUT/late.""",
    options=WindowOptions,
    plan=plan,
    run=run,
    check=check,
)

if __name__ == "__main__":
    from gantrymq.spark.jobs.command import main
    from gantrymq.spark.jobs.window import JOB as SELF

    main(SELF)
