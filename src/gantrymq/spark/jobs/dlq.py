"""Dead letters: why they are there, what would be sent again, and sending it, once.

The causes are what the messages themselves say: group, topic, how often they were tried, and any
property that the application puts an exception into. `--send` sends them to the topics they came
from, at a rate; a ledger in `--state` has which ranges of which dead letter queue were sent, so
that a second run sends only what has come since (`outbox.py` for a run that was killed).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from gantrymq.errors import InvalidValue
from gantrymq.spark.backend import open_backend
from gantrymq.spark.jobs.job import Context, Job
from gantrymq.spark.jobs.origin import (
    ORIGIN_OFFSET,
    ORIGIN_QUEUE,
    ORIGIN_TOPIC,
    origin_properties,
    sink_batch,
)
from gantrymq.spark.jobs.outbox import BATCH_ROWS, Pace, State, send_items, write_whole
from gantrymq.spark.jobs.sources import ReadOptions, needs_source
from gantrymq.spark.reading import read_slice
from gantrymq.spark.schema import WantedColumn
from gantrymq.spark.slices import Queue, Slice, Span
from gantrymq.wire.properties import DLQ_ORIGIN_TOPIC, RETRY_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from gantrymq.spark.offsets import Offsets
    from gantrymq.spark.options import SourceOptions

PREFIX: Final = "%DLQ%"
REDRIVES: Final = "REDRIVE_COUNT"
LEDGER: Final = "ledger.json"
RUN_NAME: Final = "run-{number:06d}"
_NAMES: Final = (
    "topic", "brokerName", "queueId", "queueOffset", "bornTimestamp", "storeTimestamp", "body",
    "tags", "keys", "flag", "properties",
)  # fmt: skip
_SCHEMA: Final = (
    "topic string, brokerName string, queueId int, queueOffset long, storeTimestamp timestamp, "
    "reconsumeTimes int, keys string, msgId string, propertiesMap map<string,string>"
)


class DlqOptions(ReadOptions, kw_only=True, frozen=True):
    """What `dlq` wants to know."""

    group: Annotated[tuple[str, ...], Meta(description="consumer group; all unless given")] = ()
    cause_property: Annotated[
        tuple[str, ...], Meta(description="property that says why, for the table of causes")
    ] = ()
    max_redrives: Annotated[
        int, Meta(ge=1, description="messages sent again this often stay where they are")
    ] = 3
    send: Annotated[bool, Meta(description="send them again; else only a plan is made")] = False
    state: Annotated[str | None, Meta(description="directory of the ledger, for --send")] = None
    rate: Annotated[
        float, Meta(gt=0, description="messages a second, of each dead letter queue")
    ] = 100.0


class Range(msgspec.Struct, frozen=True):
    """Dead letters of one queue."""

    topic: str
    broker: str
    queue_id: int
    begin: int
    end: int

    @property
    def queue(self) -> Queue:
        """Return the queue."""
        return Queue(self.topic, self.broker, self.queue_id)


class Ledger(msgspec.Struct, rename="camel"):
    """What was sent, run by run; the last run may not be over."""

    runs: list[list[Range]] = msgspec.field(default_factory=list)
    is_over: bool = True

    def ends(self) -> Offsets:
        """Return up to where each queue was sent."""
        return {one.queue: one.end for run in self.runs for one in run}


def reading(options: DlqOptions) -> DlqOptions:
    """Return the options with the dead letter topics that they mean."""
    needs_source(options)
    if options.send and not options.state:
        raise InvalidValue("--send needs --state DIR: it remembers what was sent")
    if options.send and not options.name_server:
        raise InvalidValue("--send needs --name-server: where to?")
    if options.topic or options.topic_pattern:
        return options
    if options.group:
        return msgspec.structs.replace(
            options, topic=tuple(PREFIX + group for group in options.group)
        )
    return msgspec.structs.replace(options, topic_pattern=f"{PREFIX}.*")


def ranges_of(options: DlqOptions, sent: Offsets) -> list[Range]:
    """Return the dead letters that were not sent yet."""
    backend = open_backend(options.parsed())
    try:
        bounds = backend.bounds()
    finally:
        backend.close()
    return [
        Range(queue.topic, queue.broker, queue.queue_id, max(sent.get(queue, 0), least), most)
        for queue, (least, most) in sorted(bounds.items())
        if max(sent.get(queue, 0), least) < most
    ]


def open_ledger(options: DlqOptions) -> Ledger:
    """Return the ledger of the state directory; an empty one without it."""
    if options.state is None or not (Path(options.state) / LEDGER).exists():
        return Ledger()
    return msgspec.json.decode((Path(options.state) / LEDGER).read_bytes(), type=Ledger)


def save_ledger(options: DlqOptions, ledger: Ledger) -> None:
    """Write the ledger."""
    folder = Path(options.state or ".")
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / LEDGER, msgspec.json.encode(ledger))


def plan(options: DlqOptions, context: Context) -> None:
    """Say what is there and what would be sent."""
    options = reading(options)
    ledger = open_ledger(options)
    ranges = ledger.runs[-1] if not ledger.is_over else ranges_of(options, ledger.ends())
    count = sum(one.end - one.begin for one in ranges)
    what = "send" if options.send else "analyse; with --send one would send"
    context.report.plan.append(
        f"{what} {count} dead letters of {len({one.topic for one in ranges})} groups"
        + ("" if ledger.is_over else ", as an earlier run has begun to")
    )
    context.report.add_table("redrive plan", [
        {"dead letters of": one.topic.removeprefix(PREFIX), "broker": one.broker,
         "queue": one.queue_id, "from": one.begin, "to": one.end, "messages": one.end - one.begin}
        for one in ranges
    ])  # fmt: skip


def run(options: DlqOptions, context: Context) -> None:
    """Analyse, and send if that is asked for."""
    options = reading(options)
    with context.progress("dlq"):
        _analyse(options, context)
    if not options.send:
        return
    ledger = open_ledger(options)
    resumed = not ledger.is_over
    if ledger.is_over:
        ranges = ranges_of(options, ledger.ends())
        if not ranges:
            context.report.figures["messages sent now"] = 0
            return
        ledger.runs.append(ranges)
        ledger.is_over = False
        save_ledger(options, ledger)
    ranges = ledger.runs[-1]
    place = Path(options.state or ".") / RUN_NAME.format(number=len(ledger.runs))
    state = State.open(str(place), "dlq", ranges, context.clock.now_ms())
    source = DeadLetters(
        options.parsed(startingOffsets=None, endingOffsets=None), options.max_redrives,
        Pace(rate=options.rate),
    )  # fmt: skip
    items = _items(options, ranges)
    sent = send_items(context, state, items, options.connection(), source)
    ledger.is_over = True
    save_ledger(options, ledger)
    context.report.figures |= {
        "messages sent now": sent, "went on with an earlier run": resumed,
    }  # fmt: skip


def _items(options: DlqOptions, ranges: list[Range]) -> list[tuple[int, Slice]]:
    backend = open_backend(options.parsed(startingOffsets=None, endingOffsets=None))
    try:
        backend.bounds()
        slices = backend.slices((one.queue, Span(one.begin, one.end)) for one in ranges)
    finally:
        backend.close()
    return list(enumerate(slices))


class DeadLetters(NamedTuple):
    """Reads dead letters and makes them messages for the topics they came from."""

    options: SourceOptions
    redrives_max: int
    pace: Pace

    def batches(self, item: Slice) -> Iterator[Any]:
        """Yield the rows of one dead letter queue."""
        return self.pace.paced(self._batches(item), lambda _batch: 0)

    def _batches(self, item: Slice) -> Iterator[Any]:
        wanted = tuple(WantedColumn(name, nullable=True) for name in _NAMES)
        size = max(min(int(self.pace.rate or BATCH_ROWS), BATCH_ROWS), 1)
        for batch in read_slice(self.options, wanted, item):
            rows = [row for one in batch.to_pylist() if (row := self._row(one)) is not None]
            for at in range(0, len(rows), size):
                yield sink_batch(rows[at : at + size])

    def _row(self, row: dict[str, Any]) -> dict[str, Any] | None:
        properties = origin_properties(row)
        topic = origin_topic(properties)
        redrives = int(properties.get(REDRIVES, "0")) + 1
        if topic is None or redrives > self.redrives_max:
            return None
        return {
            "topic": topic, "body": row["body"], "tags": row["tags"], "keys": row["keys"],
            "flag": row["flag"], "properties": {**properties, REDRIVES: str(redrives)},
        }  # fmt: skip


def origin_topic(properties: dict[str, str]) -> str | None:
    """Return the topic that a dead letter was first sent to."""
    return properties.get(DLQ_ORIGIN_TOPIC) or properties.get(RETRY_TOPIC)


def _letters(options: DlqOptions, context: Context) -> DataFrame:
    from pyspark.sql import functions as f  # noqa: PLC0415

    known = f.col("propertiesMap")
    causes = [known[name] for name in options.cause_property]
    return options.frame(context, _SCHEMA).select(
        "brokerName", "queueId", "queueOffset", "msgId", "keys", "reconsumeTimes",
        f.col("storeTimestamp").alias("dead"), f.col("topic").alias("dlq"),
        f.regexp_replace("topic", "^%DLQ%", "").alias("group"),
        f.coalesce(known[DLQ_ORIGIN_TOPIC], known[RETRY_TOPIC]).alias("topic"),
        f.coalesce(*causes, f.lit("not said")).alias("cause"),
        f.coalesce(known[REDRIVES].cast("int"), f.lit(0)).alias("redrives"),
    )  # fmt: skip


def _analyse(options: DlqOptions, context: Context) -> None:
    from pyspark.sql import functions as f  # noqa: PLC0415

    report = context.report
    letters = _letters(options, context).persist()
    now = f.timestamp_millis(f.lit(context.clock.now_ms()))
    grouped = letters.groupBy("group", "topic", "cause").agg(
        f.count("*").alias("messages"), f.max("reconsumeTimes").alias("tries"),
        f.min("dead").cast("string").alias("oldest"),
        f.max("dead").cast("string").alias("newest"),
    )  # fmt: skip
    rows = grouped.orderBy(f.desc("messages"), "group", "topic").collect()
    report.add_table("causes", [row.asDict() for row in rows])
    age = (f.unix_timestamp(now) - f.unix_timestamp("dead")) / 3600
    buckets = (
        f.when(age < 1, "under an hour").when(age < 24, "under a day")
        .when(age < 168, "under a week").otherwise("a week and more")
    )  # fmt: skip
    ages = letters.groupBy("group", buckets.alias("age")).count().orderBy("group", "age")
    report.add_table("ages", [row.asDict() for row in ages.collect()])
    total = letters.count()
    homeless = letters.where("topic is null").count()
    tired = letters.where(f"redrives >= {options.max_redrives}").count()
    letters.unpersist()
    if homeless:
        report.add_problem(f"{homeless} dead letters do not say which topic they came from")
    report.figures |= {
        "dead letters": total, "groups": len({row["group"] for row in rows}),
        "sent again too often": tired,
    }  # fmt: skip


def check(options: DlqOptions, context: Context) -> None:
    """See that everything that the ledger has was sent once."""
    options = reading(options)
    report = context.report
    ledger = open_ledger(options)
    if not ledger.runs:
        total = sum(int(row["messages"] or 0) for row in report.tables.get("causes", []))
        report.add_check(
            "counted", total == report.figures.get("dead letters", total), f"{total} by cause"
        )
        return
    expected, topics = _expected(options, ledger)
    counts = _sent_counts(options, context, topics)
    twice = [place for place, count in counts.items() if count > 1]
    missing = [place for place in expected if place not in counts]
    report.add_check(
        "each was sent once", not twice and not missing and ledger.is_over,
        f"{len(expected)} in the ledger, {len(missing)} not sent, {len(twice)} sent twice",
    )  # fmt: skip


def _expected(options: DlqOptions, ledger: Ledger) -> tuple[set[str], set[str]]:
    """Return the places of all dead letters that should have been sent, and the topics."""
    ranges = [one for run_ in ledger.runs for one in run_]
    source = options.parsed(startingOffsets=None, endingOffsets=None)
    letters = DeadLetters(source, options.max_redrives, Pace())
    places: set[str] = set()
    topics: set[str] = set()
    for _number, part in _items(options, ranges):
        for batch in letters.batches(part):
            for row in batch.to_pylist():
                known = dict(row["properties"])
                places.add(_place(known[ORIGIN_TOPIC], known[ORIGIN_QUEUE], known[ORIGIN_OFFSET]))
                topics.add(row["topic"])
    return places, topics


def _place(topic: str, queue: str, offset: str) -> str:
    return f"{topic}@{queue}:{offset}"


def _sent_counts(options: DlqOptions, context: Context, topics: set[str]) -> dict[str, int]:
    from pyspark.sql import functions as f  # noqa: PLC0415

    if not topics:
        return {}
    reader = context.spark.read.format("rocketmq").options(
        **options.connection(), topics=",".join(sorted(topics))
    )
    known = f.col("propertiesMap")
    rows = (
        reader.schema("topic string, propertiesMap map<string,string>").load()
        .select(known[ORIGIN_TOPIC].alias("t"), known[ORIGIN_QUEUE].alias("q"),
                known[ORIGIN_OFFSET].alias("o"))
        .where(f.col("t").startswith(PREFIX)).groupBy("t", "q", "o").count().collect()
    )  # fmt: skip
    return {_place(row.t, row.q, row.o): row["count"] for row in rows}


JOB: Final = Job(
    name="dlq",
    summary="dead letters: causes, a redrive plan, and sending them again",
    text="""\
Analyse dead letter topics: causes by group, topic and a property of yours, ages, how often they
were tried. Without --send it ends with a plan; with it, dead letters go to the topics they came
from, at a rate, each once: the ledger in --state remembers, also when the job was killed.""",
    options=DlqOptions,
    plan=plan,
    run=run,
    check=check,
)

if __name__ == "__main__":
    from gantrymq.spark.jobs.command import main
    from gantrymq.spark.jobs.dlq import JOB as SELF

    main(SELF)
