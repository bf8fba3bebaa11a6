"""Retention: what a broker deletes when, who would lose messages by it, and how the log grows.

Only metadata is looked at: names, sizes and times of the log's files, the first record of each, and
what groups have committed. The rules are the broker's own (`store.retention`): a file goes in the
hour of deleteWhen when it was last written fileReservedTime hours ago, oldest first, never the last
one, and sooner when the disk is full.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from msgspec import Meta

from gantrymq.kernel import kernel
from gantrymq.spark.jobs.group_offsets import saved_offsets
from gantrymq.spark.jobs.job import Context, Job, Options
from gantrymq.spark.jobs.log_slices import Store, log_files, open_store
from gantrymq.spark.report.values import Plot, Row, Series
from gantrymq.store.disk import DiskLevel
from gantrymq.store.files import OsFiles
from gantrymq.store.retention import HOUR_MS, LogFileAge, decide, local_hour
from gantrymq.store.snapshot import open_snapshot

if TYPE_CHECKING:
    from gantrymq.store.snapshot import Snapshot

_DAY_MS: Final = 24 * HOUR_MS
_HEAD_BYTES: Final = 1 << 16
GROWTH_FILES: Final = 10
"""Newest files that the growth is taken from."""


class RetentionOptions(Options, kw_only=True, frozen=True):
    """What `retention` wants to know."""

    path: Annotated[str, Meta(min_length=1, description="the store directory")]
    config: Annotated[str | None, Meta(description="the broker.conf it is served with")] = None
    horizon_hours: Annotated[
        float, Meta(gt=0, le=8760, description="groups are warned of deletions within this time")
    ] = 24.0
    forecast_days: Annotated[int, Meta(ge=1, le=365, description="days of the forecast")] = 14
    now: Annotated[
        int | None, Meta(description="milliseconds since 1970 to take for now, to try things out")
    ] = None


class Segment(NamedTuple):
    """A file of the log."""

    age: LogFileAge
    first_ms: int | None
    """When its first record was stored."""
    used: int
    """Bytes on the disk."""
    goes_ms: int | None
    """When a broker deletes it; None for the last one."""


def plan(options: RetentionOptions, context: Context) -> None:
    """Say what would be looked at."""
    store = open_store(options.path, options.config)
    keeps = store.settings.retention
    context.report.plan.append(
        f"look at {len(log_files(store))} log files of {store.root}; they are kept "
        f"{keeps.reserved_hours} hours and deleted at {', '.join(map(str, keeps.delete_hours))} "
        "o'clock. Nothing is changed."
    )


def deletion_ms(store: Store, modified_ms: int) -> int:
    """Return the first moment at which a file may be deleted that was last written then."""
    keeps = store.settings.retention
    due_ms = modified_ms + keeps.reserved_hours * HOUR_MS
    for hours in range(25):
        at_ms = due_ms if hours == 0 else (due_ms // HOUR_MS + hours) * HOUR_MS
        if local_hour(at_ms) in keeps.delete_hours:
            return at_ms
    return due_ms


def segments_of(store: Store) -> list[Segment]:
    """Return the files of the log, oldest first."""
    files, found = OsFiles(), list[Segment]()
    paths = log_files(store)
    for base, path in paths.items():
        age = LogFileAge(base, files.modified_ms(path), files.size(path))
        goes_ms = None if base == max(paths) else deletion_ms(store, age.modified_ms)
        if goes_ms is not None and found and found[-1].goes_ms is not None:
            goes_ms = max(goes_ms, found[-1].goes_ms)  # oldest first, and none before that one
        used = os.stat(path).st_blocks * 512  # noqa: PTH116  (blocks are not in Path's words)
        found.append(Segment(age, first_stored_ms(path), used, goes_ms))
    return found


def first_stored_ms(path: Path) -> int | None:
    """Return when the first record of a file was stored; None if there is none."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
        size = int.from_bytes(head[:4])
        if size > len(head):
            head += file.read(size - len(head))
    found = kernel.scan_records(head, 0, len(head), -1, False, 1)
    return found.first_store_timestamp if found.records else None


def run(options: RetentionOptions, context: Context) -> None:
    """Look and report."""
    store = open_store(options.path, options.config)
    now_ms = options.now if options.now is not None else context.clock.now_ms()
    segments = segments_of(store)
    report = context.report
    report.add_table("log files", [_segment_row(one, now_ms) for one in segments])
    groups = group_rows(store, segments, now_ms, options)
    report.add_table("groups", groups)
    for row in groups:
        if row["at risk"]:
            place, hours = f"{row['topic']}/{row['queue']}", float(row["goes in hours"] or 0)
            report.add_problem(
                f"{row['group']} has not read {place} from {row['committed']} on; messages of that "
                f"file go in {hours:.1f} hours"
            )
    size = sum(one.age.size for one in segments)
    growth = growth_a_day(segments)
    usage = os.statvfs(store.root)
    free, whole = usage.f_bavail * usage.f_frsize, usage.f_blocks * usage.f_frsize
    report.figures |= {
        "log files": len(segments),
        "log bytes": size,
        "kept hours": store.settings.retention.reserved_hours,
        "bytes a day": growth,
        "bytes when it is steady": _steady(store, growth),
        "disk free": free,
        "disk used": round(1 - free / max(whole, 1), 4),
        "files due now": sum(
            1 for one in segments if one.goes_ms is not None and one.goes_ms <= now_ms
        ),
        "groups at risk": len({row["group"] for row in groups if row["at risk"]}),
    }
    _plots(context, store, segments, options, growth, now_ms)


def _steady(store: Store, growth: int) -> int:
    keeps = store.settings.retention
    return int(growth * (keeps.reserved_hours + 24) / 24) + store.settings.files.commit_log_bytes


def _segment_row(one: Segment, now_ms: int) -> Row:
    return {
        "file": f"{one.age.start:020d}", "bytes": one.age.size, "on disk": one.used,
        "first stored": _moment(one.first_ms), "last written": _moment(one.age.modified_ms),
        "goes at": _moment(one.goes_ms),
        "goes in hours": None if one.goes_ms is None
        else round((one.goes_ms - now_ms) / HOUR_MS, 2),
    }  # fmt: skip


def _moment(at_ms: int | None) -> str | None:
    if at_ms is None:
        return None
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"


def growth_a_day(segments: list[Segment]) -> int:
    """Return how many bytes a day come, going by the store times of the newest files."""
    timed = [one for one in segments if one.first_ms][-GROWTH_FILES:]
    if len(timed) < 2:
        return 0
    first, last = timed[0], timed[-1]
    span_ms = (last.first_ms or 0) - (first.first_ms or 0)
    return int((last.age.start - first.age.start) / span_ms * _DAY_MS) if span_ms > 0 else 0


def group_rows(
    store: Store, segments: list[Segment], now_ms: int, options: RetentionOptions
) -> list[Row]:
    """Return for each group and queue in which file its next message is, and when that goes."""
    configuration = None if options.config is None else Path(options.config)
    snapshot = open_snapshot(store.root, configuration)
    try:
        ranges = {(one.topic, one.queue_id): one for one in snapshot.queues()}
        rows: list[Row] = []
        for saved in saved_offsets(store.root):
            queue = ranges.get((saved.topic, saved.queue_id))
            if queue is None or saved.offset >= queue.max_offset:
                continue
            at = _log_offset(
                snapshot, saved.topic, saved.queue_id, max(saved.offset, queue.min_offset)
            )
            segment = next(
                (one for one in reversed(segments) if at is not None and one.age.start <= at), None
            )
            goes_ms = None if segment is None else segment.goes_ms
            hours = None if goes_ms is None else (goes_ms - now_ms) / HOUR_MS
            rows.append({
                "group": saved.group, "topic": saved.topic, "queue": saved.queue_id,
                "committed": saved.offset, "unread": queue.max_offset - saved.offset,
                "expired unread": max(queue.min_offset - saved.offset, 0),
                "goes in hours": None if hours is None else round(hours, 2),
                "at risk": hours is not None and hours <= options.horizon_hours,
            })  # fmt: skip
        return rows
    finally:
        snapshot.close()


def _log_offset(snapshot: Snapshot, topic: str, queue_id: int, offset: int) -> int | None:
    unit = snapshot.units(topic, queue_id, offset, 1)
    return int.from_bytes(unit[:8]) if len(unit) >= 20 else None


def _plots(
    context: Context,
    store: Store,
    segments: list[Segment],
    options: RetentionOptions,
    growth: int,
    now_ms: int,
) -> None:
    days = range(options.forecast_days + 1)
    size = sum(one.age.size for one in segments)
    going = [
        sum(
            one.age.size
            for one in segments
            if one.goes_ms is not None and one.goes_ms <= now_ms + day * _DAY_MS
        )
        for day in days
    ]
    steady = _steady(store, growth)
    expected = [max(min(size + growth * day, max(steady, size)) - going[day], 0) for day in days]
    context.report.add_table("forecast", [
        {"day": day, "log bytes": expected[day], "deleted of today's": going[day]} for day in days
    ])  # fmt: skip
    labels = [f"+{day} d" for day in days]
    context.report.plots += [
        Plot("size of the log, expected", "lines", labels,
             [Series("log", list(map(float, expected))),
              Series("of today's, deleted", list(map(float, going)))], "B"),
        Plot("hours until a file goes", "bars", [f"{one.age.start >> 20} MiB" for one in segments],
             [Series("hours", [max(0.0, ((one.goes_ms or now_ms) - now_ms) / HOUR_MS)
                               for one in segments])], "h"),
    ]  # fmt: skip


def check(options: RetentionOptions, context: Context) -> None:
    """Let the broker's own rule decide at some moments, and compare."""
    store = open_store(options.path, options.config)
    segments, keeps = segments_of(store), store.settings.retention
    ages = [one.age for one in segments]
    moments = sorted({one.goes_ms for one in segments if one.goes_ms is not None})
    wrong = []
    for at_ms in moments:
        if local_hour(at_ms) not in keeps.delete_hours:
            continue
        gone: set[int] = set()
        for _run in ages:  # some files at a time, until nothing is left to do
            left = [age for age in ages if age.start not in gone]
            found = decide(
                left, at_ms, local_hour(at_ms), DiskLevel.FREE, keeps, store.settings.disk
            )
            gone |= {age.start for age in found.files}
            if not found.files:
                break
        ours = {
            one.age.start for one in segments if one.goes_ms is not None and one.goes_ms <= at_ms
        }
        if gone != ours:
            wrong.append(f"at {_moment(at_ms)} the broker deletes {len(gone)}, not {len(ours)}")
    context.report.add_check(
        "the broker's own rule", not wrong,
        "; ".join(wrong[:3]) or f"decides the same at {len(moments)} moments",
    )  # fmt: skip


JOB: Final = Job(
    name="retention",
    summary="what is deleted when, who would lose data, how it grows",
    text="""\
When each file of a store's log will be deleted, which groups have unread messages in files that go
soon, and how large the log will become. Only metadata is read; no Spark session is started.""",
    options=RetentionOptions,
    plan=plan,
    run=run,
    check=check,
)

if __name__ == "__main__":
    from gantrymq.spark.jobs.command import main
    from gantrymq.spark.jobs.retention import JOB as SELF

    main(SELF)
