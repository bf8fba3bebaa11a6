"""Lag: how far consumer groups are behind, in messages, bytes and seconds, queue by queue.

From a store directory: every group that the broker has saved. From brokers: the groups that are
named. With `--history FILE` each run adds what it saw, and the next one has rates: how fast a group
reads, how fast the topic grows, when it will have caught up.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from gantrymq.errors import InvalidValue
from gantrymq.kernel import PRE_BLANK_SIZE, UNIT_BYTES
from gantrymq.spark.backend import open_backend
from gantrymq.spark.jobs.group_offsets import saved_offsets
from gantrymq.spark.jobs.job import Context, Job
from gantrymq.spark.jobs.log_scan import answers
from gantrymq.spark.jobs.sources import ReadOptions, needs_source
from gantrymq.spark.report.values import Plot, Row, Series
from gantrymq.spark.slices import Queue, Slice, Span
from gantrymq.spark.store_reading import store_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gantrymq.spark.backend import Backend, Bounds
    from gantrymq.spark.options import SourceOptions

COLUMNS: Final = "number int, bytes long"
UNITS_A_READ: Final = 65536
ITEM_UNITS_MAX: Final = 5_000_000
RESERVED_HOURS: Final = 72.0
HISTORY_LINES_MAX: Final = 1000
_HOUR_MS: Final = 3_600_000


class LagOptions(ReadOptions, kw_only=True, frozen=True):
    """What `lag` wants to know."""

    group: Annotated[
        tuple[str, ...], Meta(description="consumer group; of a store, all that are saved")
    ] = ()
    history: Annotated[str | None, Meta(description="file to keep what each run saw")] = None
    reserved_hours: Annotated[
        float, Meta(gt=0, description="hours that the broker keeps messages: fileReservedTime")
    ] = RESERVED_HOURS


class Position(msgspec.Struct, rename="camel"):
    """How far one group is in one queue."""

    group: str
    topic: str
    broker: str
    queue_id: int
    committed: int
    least: int
    most: int
    stored_ms: int | None = None
    """When the first message was stored that the group has not read."""
    size: int = 0

    @property
    def queue(self) -> Queue:
        """Return the queue."""
        return Queue(self.topic, self.broker, self.queue_id)

    @property
    def lag(self) -> int:
        """Return how many messages are not read, of those that there are."""
        return max(self.most - max(self.committed, self.least), 0)

    @property
    def lost(self) -> int:
        """Return how many messages expired unread."""
        return max(self.least - self.committed, 0)


class Seen(msgspec.Struct, rename="camel"):
    """A line of the history."""

    at_ms: int
    positions: list[Position]


def plan(options: LagOptions, context: Context) -> None:
    """Say what would be asked."""
    needs_source(options)
    wanted = _reading(options)
    groups = ", ".join(options.group) or "all groups that are saved"
    context.report.plan.append(
        f"compare what {groups} committed with the ends of "
        f"{len(wanted.topic) or 'the matching'} topics"
    )


def _reading(options: LagOptions) -> LagOptions:
    """Return the options with topics: those of the groups, where none was named."""
    if options.topic or options.topic_pattern:
        if not options.group and not options.path:
            raise InvalidValue("brokers do not list groups here: name them with --group")
        return options
    if not options.path:
        raise InvalidValue("name topics with --topic or --topic-pattern")
    topics = sorted(
        {one.topic for path in options.path for one in saved_offsets(_root(path), options.group)}
    )
    if not topics:
        raise InvalidValue(
            f"no group has saved offsets in {', '.join(options.path)}"
            + (f" under the name {', '.join(options.group)}" if options.group else "")
        )
    return msgspec.structs.replace(options, topic=tuple(topics))


def _root(path: str) -> Path:
    name, equals, rest = path.partition("=")
    return Path(rest if equals and "/" not in name else path)


def positions(options: LagOptions, backend: Backend, bounds: dict[Queue, Bounds]) -> list[Position]:
    """Return where every group is, in the queues that it has committed for."""
    groups = set(options.group)
    for path in options.path if not groups else ():
        groups |= {one.group for one in saved_offsets(_root(path))}
    found = []
    for group in sorted(groups):
        for queue, offset in sorted(backend.committed(group, list(bounds)).items()):
            least, most = bounds[queue]
            found.append(
                Position(group, queue.topic, queue.broker, queue.queue_id, offset, least, most)
            )
    return found


def run(options: LagOptions, context: Context) -> None:
    """Ask, sum up, report."""
    options = _reading(options)
    existing = _existing_topics(options)
    options = msgspec.structs.replace(options, topic=existing) if options.topic else options
    source = options.parsed(startingOffsets=None, endingOffsets=None)
    backend = open_backend(source)
    try:
        bounds = backend.bounds()
        found = positions(options, backend, bounds)
        for one in found:
            if one.lag:
                one.stored_ms = backend.stored_at(one.queue, max(one.committed, one.least))
        _sizes(context, source, backend, found)
    finally:
        backend.close()
    now_ms = context.clock.now_ms()
    before = _history(options, Seen(now_ms, found))
    _report(options, context, found, before, now_ms)


def _existing_topics(options: LagOptions) -> tuple[str, ...]:
    """Return the topics that are there: groups keep offsets of topics that were deleted."""
    if not options.path or options.name_server:
        return options.topic
    pattern = msgspec.structs.replace(options, topic=(), topic_pattern="%?.*")
    backend = open_backend(pattern.parsed(startingOffsets=None, endingOffsets=None))
    try:
        there = {queue.topic for queue in backend.bounds()}
    finally:
        backend.close()
    chosen = tuple(topic for topic in options.topic if topic in there)
    if not chosen:
        raise InvalidValue(f"none of the topics {', '.join(options.topic)} is there")
    return chosen


def _sizes(
    context: Context, source: SourceOptions, backend: Backend, found: list[Position]
) -> None:
    """Fill in how many bytes are not read: exactly from a store, about from a broker."""
    behind = [one for one in found if one.lag]
    if source.reads_broker:
        for one in behind:
            span = Span(max(one.committed, one.least), one.most)
            one.size = backend.record_bytes(one.queue, span) * one.lag
        return
    items: list[tuple[int, Slice]] = []
    for number, one in enumerate(behind):
        begin = max(one.committed, one.least)
        parts = [
            (one.queue, Span(at, min(at + ITEM_UNITS_MAX, one.most)))
            for at in range(begin, one.most, ITEM_UNITS_MAX)
        ]
        items += [(number, part) for part in backend.slices(parts)]
    if not items:
        return
    with context.progress("lag"):
        for row in answers(context, items, SizeTask(source), COLUMNS):
            behind[row.number].size += row.bytes


@dataclass(frozen=True)
class SizeTask:
    """Sums up the sizes that queue entries say."""

    source: SourceOptions

    def __call__(self, item: tuple[int, Slice]) -> Iterator[tuple[object, ...]]:
        """Yield one row."""
        number, part = item
        (path,) = (store for store in self.source.stores if store.broker == part.broker)
        store = store_at(path, recovered=part.is_recovered)
        total, offset = 0, part.begin
        while offset < part.end:
            wanted = min(UNITS_A_READ, part.end - offset)
            units = store.units(part.wire_topic, part.queue_id, offset, wanted)
            if len(units) < UNIT_BYTES:
                break
            sizes = (int.from_bytes(units[at + 8 : at + 12]) for at in
                     range(0, len(units) - UNIT_BYTES + 1, UNIT_BYTES))  # fmt: skip
            total += sum(size for size in sizes if size != PRE_BLANK_SIZE)
            offset += len(units) // UNIT_BYTES
        yield number, total


def _history(options: LagOptions, seen: Seen) -> Seen | None:
    """Return what the run before saw, and add this one."""
    if options.history is None:
        return None
    path = Path(options.history)
    lines = path.read_bytes().splitlines() if path.exists() else []
    try:
        before = msgspec.json.decode(lines[-1], type=Seen) if lines else None
    except msgspec.MsgspecError as error:
        raise InvalidValue(f"--history {path}: no history of ours ({error})") from None
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = [*lines[-(HISTORY_LINES_MAX - 1) :], msgspec.json.encode(seen)]
    work = path.with_name(f".{path.name}.making")
    work.write_bytes(b"\n".join(kept) + b"\n")
    work.replace(path)
    return before


def _report(
    options: LagOptions, context: Context, found: list[Position], before: Seen | None, now_ms: int
) -> None:
    report = context.report
    known = {} if before is None else {(one.group, one.queue): one for one in before.positions}
    seconds = 0.0 if before is None else (now_ms - before.at_ms) / 1000
    rows = [
        _row(one, known.get((one.group, one.queue)), seconds, now_ms, options.reserved_hours)
        for one in found
    ]
    report.add_table("queues", rows)
    groups: dict[tuple[str, str], Row] = {}
    for row in rows:
        key = str(row["group"]), str(row["topic"])
        whole = groups.setdefault(
            key, {"group": key[0], "topic": key[1], "lag": 0, "bytes": 0, "seconds": 0.0}
        )
        whole["lag"] = int(whole["lag"] or 0) + int(row["lag"] or 0)
        whole["bytes"] = int(whole["bytes"] or 0) + int(row["bytes"] or 0)
        whole["seconds"] = max(float(whole["seconds"] or 0), float(row["seconds"] or 0))
        if row["lost"]:
            report.add_problem(
                f"{key[0]} lost {row['lost']} messages of {key[1]}/{row['queue']}: they expired "
                "before they were read"
            )
    worst = sorted(groups.values(), key=lambda row: -int(row["lag"] or 0))
    report.add_table("groups", worst)
    report.figures |= {
        "groups": len({one.group for one in found}),
        "queues": len(found),
        "messages behind": sum(one.lag for one in found),
        "bytes behind": sum(one.size for one in found),
        "bytes are": "about" if options.name_server and not options.path else "exact",
    }
    names = [f"{row['group']}/{row['topic']}" for row in worst[:12]]
    for title, column, unit in (
        ("messages behind", "lag", ""), ("bytes behind", "bytes", "B"),
        ("age of the first unread message", "seconds", "s"),
    ):  # fmt: skip
        values = [float(row[column] or 0) for row in worst[:12]]
        report.plots.append(Plot(title, "bars", names, [Series(column, values)], unit))


def _row(
    one: Position, before: Position | None, seconds: float, now_ms: int, reserved_hours: float
) -> Row:
    age_ms = None if one.stored_ms is None else max(now_ms - one.stored_ms, 0)
    row: Row = {
        "group": one.group, "topic": one.topic, "broker": one.broker, "queue": one.queue_id,
        "committed": one.committed, "end": one.most, "lag": one.lag, "bytes": one.size,
        "lost": one.lost,
        "seconds": None if age_ms is None else age_ms / 1000,
        "expires in hours": None if age_ms is None else reserved_hours - age_ms / _HOUR_MS,
        "reads a second": None, "grows a second": None, "caught up in seconds": None,
    }  # fmt: skip
    if before is not None and seconds > 0:
        reads = (one.committed - before.committed) / seconds
        grows = (one.most - before.most) / seconds
        row |= {"reads a second": reads, "grows a second": grows}
        if one.lag and reads > grows:
            row["caught up in seconds"] = one.lag / (reads - grows)
    return row


def check(options: LagOptions, context: Context) -> None:
    """Ask again in another way, and compare: ends may only have grown."""
    report = context.report
    if "queues" not in report.tables:
        run(options, context)
    options = _reading(options)
    wrong = []
    rows = report.tables["queues"]
    by_group: dict[str, list[Row]] = {}
    for row in rows:
        by_group.setdefault(str(row["group"]), []).append(row)
    asked = _asked_again(options, by_group)
    for row in rows:
        key = row["group"], Queue(str(row["topic"]), str(row["broker"]), int(row["queue"] or 0))
        committed, most = asked[key[0], key[1]]
        if committed < int(row["committed"] or 0) or most < int(row["end"] or 0):
            wrong.append(f"{key[0]} {key[1]}: {committed} of {most}")
        elif options.path and not options.name_server and committed != row["committed"]:
            wrong.append(f"{key[0]} {key[1]}: the file says {committed}")
    report.add_check(
        "asked again", not wrong,
        "; ".join(wrong[:3]) or f"{len(rows)} positions are what groups and queues say",
    )  # fmt: skip


def _asked_again(
    options: LagOptions, by_group: dict[str, list[Row]]
) -> dict[tuple[object, Queue], tuple[int, int]]:
    """Return committed offset and end of each row, from the files or from a consumer's calls."""
    found: dict[tuple[object, Queue], tuple[int, int]] = {}
    if options.path and not options.name_server:
        from gantrymq.store.reader import StoreReader  # noqa: PLC0415

        for path in options.path:
            with StoreReader.open(_root(path)) as reader:
                ends = {(one.topic, one.queue_id): one.max_offset for one in reader.queues()}
            saved = {(one.group, one.topic, one.queue_id): one.offset
                     for one in saved_offsets(_root(path))}  # fmt: skip
            for group, rows in by_group.items():
                for row in rows:
                    topic, queue_id = str(row["topic"]), int(row["queue"] or 0)
                    queue = Queue(topic, str(row["broker"]), queue_id)
                    found[group, queue] = (
                        saved.get((group, topic, queue_id), -1), ends.get((topic, queue_id), 0),
                    )  # fmt: skip
        return found
    from gantrymq.blocking import PullConsumer  # noqa: PLC0415
    from gantrymq.model.queue import MessageQueue, QueueId  # noqa: PLC0415

    for group, rows in by_group.items():
        with PullConsumer(options.name_server or "", group) as consumer:
            for row in rows:
                queue = Queue(str(row["topic"]), str(row["broker"]), int(row["queue"] or 0))
                asked = MessageQueue(queue.topic, queue.broker, QueueId(queue.queue_id))
                committed = consumer.committed(asked)
                found[group, queue] = (
                    -1 if committed is None else committed, consumer.max_offset(asked),
                )  # fmt: skip
    return found


JOB: Final = Job(
    name="lag",
    summary="how far groups are behind, in messages, bytes and seconds",
    text="""\
How far consumer groups are behind, queue by queue: messages, bytes, age of the first unread one,
hours until it expires, and what has expired unread. From a store directory (all groups that the
broker has saved) or from brokers (--group). With --history, rates and the time to catch up.""",
    options=LagOptions,
    plan=plan,
    run=run,
    check=check,
)

if __name__ == "__main__":
    from gantrymq.spark.jobs.command import main
    from gantrymq.spark.jobs.lag import JOB as SELF

    main(SELF)
