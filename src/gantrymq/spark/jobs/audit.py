"""Audit: every record of a store's log, checked by all cores.

A slice is 64 MiB of a file. Its task finds the first record, checks length, magic, own offset and
check sum of every one, and compares what dispatch makes of it with the consume queues; one call of
the kernel does so for many records. Only sums leave a task. The driver joins the slices
(`log_slices.py`), so that damage between two tasks is seen, and the queue offsets, so that a
message that is missing is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from gantrymq.spark.jobs.audit_scan import (
    AuditTask,
    QueueSum,
    SliceSum,
    join_interval,
)
from gantrymq.spark.jobs.job import Context, Job, Options
from gantrymq.spark.jobs.log_scan import Told, scan_told
from gantrymq.spark.jobs.log_slices import SLICE_BYTES, Store, log_files, open_store, plan_slices
from gantrymq.spark.report.values import Plot, Report, Row, Series
from gantrymq.store.files import OsFiles

if TYPE_CHECKING:
    from gantrymq.spark.jobs.log_slices import Damage

TOPICS_PLOTTED_MAX: Final = 12


class AuditOptions(Options, kw_only=True, frozen=True):
    """What `audit` wants to know."""

    path: Annotated[str, Meta(min_length=1, description="the store directory")]
    config: Annotated[str | None, Meta(description="the broker.conf it was written with")] = None
    queues: Annotated[bool, Meta(description="compare with the consume queues")] = True
    slice_bytes: Annotated[
        int, Meta(ge=4096, le=1 << 30, description="bytes of the log for one task")
    ] = SLICE_BYTES


def plan(options: AuditOptions, context: Context) -> None:
    """Say what there is to walk."""
    store = open_store(options.path, options.config)
    slices = plan_slices(store, slice_bytes=options.slice_bytes)
    size = sum(piece.end - piece.begin for piece in slices)
    context.report.plan.append(
        f"audit {store.root}: {len(log_files(store))} log files, {size:,} bytes, in {len(slices)} "
        f"tasks; every check sum, every offset{', every queue entry' if options.queues else ''}. "
        "Nothing is written to the store."
    )


def run(options: AuditOptions, context: Context) -> None:
    """Walk the log and report."""
    store = open_store(options.path, options.config)
    slices = plan_slices(store, slice_bytes=options.slice_bytes)
    task = AuditTask(
        str(store.root),
        store.settings.files.consume_queue_bytes,
        tuple(store.settings.schedule.delays_ms),
        compares=options.queues,
        exact=not store.settings.files.consume_queue_ext_enabled,
        knows_delays=options.config is not None,
    )
    with context.progress("audit"):
        told = scan_told(context, slices, task)
    sums = [msgspec.json.decode(one, type=SliceSum) for one in told.payloads]
    Finding(context.report, store, options).report_on(told, sums)


class Finding:
    """Turns what tasks found into a report."""

    def __init__(self, report: Report, store: Store, options: AuditOptions) -> None:
        self._report = report
        self._store = store
        self._options = options

    def report_on(self, told: Told, sums: list[SliceSum]) -> None:
        """Fill the report."""
        report, joined = self._report, told.joined
        queues = joined_queues(sums)
        self._files(joined.end)
        self._damages(joined.damages, joined.tail)
        self._queues(queues)
        report.figures |= {
            "records": sum(one.records for one in sums),
            "messages in queues": sum(one.queued for one in sums),
            "index keys": sum(one.keys for one in sums),
            "record bytes": sum(one.size for one in sums),
            "log begins at": told.slices[0].log_base if told.slices else 0,
            "log ends at": joined.end,
            "topics": len({one.topic for one in queues}),
            "queues": len(queues),
            "damaged places": len(joined.damages),
            "damaged bytes": sum(one.size for one in joined.damages),
        }
        self._plots(queues, told, sums)

    def _files(self, log_end: int) -> None:
        files, rows = OsFiles(), list[Row]()
        length = self._store.settings.files.commit_log_bytes
        expected: int | None = None
        for base, path in log_files(self._store).items():
            size = files.size(path)
            if expected is not None and base != expected:
                self._report.add_problem(
                    f"{path.name}: the file before it ends at {expected}; "
                    f"{base - expected} bytes of the log are missing"
                )
            if size != length and base < log_end:
                self._report.add_problem(f"{path.name}: {size} bytes, a file has {length}")
            expected = base + length
            rows.append({"file": path.name, "bytes": size, "modified": files.modified_ms(path)})
        self._report.add_table("files", rows)

    def _damages(self, damages: list[Damage], tail: Damage | None) -> None:
        rows: list[Row] = []
        for one in damages:
            what = "zeros" if one.is_zeros else "bytes"
            self._report.add_problem(
                f"no good record at log offset {one.log_offset} ({one.stop}): "
                f"{one.size} {what} passed over"
            )
            rows.append(
                {"log offset": one.log_offset, "why": one.stop, "bytes": one.size,
                 "zeros": one.is_zeros}
            )  # fmt: skip
        self._report.add_table("damage", rows)
        if tail is not None and self._store.was_aborted:
            self._report.figures["unfinished bytes behind the end"] = tail.size
            self._report.add_problem(
                f"behind the end of the log at {tail.log_offset} something unfinished follows "
                f"({tail.stop}); a broker's recovery cuts it off"
            )
        elif tail is not None:
            self._report.figures["stale bytes behind the end"] = tail.size

    def _queues(self, queues: list[QueueSum]) -> None:
        rows: list[Row] = []
        for one in queues:
            gaps, missing, restarts = gaps_of(one.intervals)
            if missing:
                self._report.add_problem(
                    f"{one.topic}/{one.queue_id}: {missing} messages are missing in {gaps} gaps "
                    "of queue offsets"
                )
            for what in one.differences:
                self._report.add_problem(what)
            if one.lacking and not self._store.was_aborted:
                self._report.add_problem(
                    f"{one.topic}/{one.queue_id}: the queue lacks {one.lacking} messages that the "
                    "log has; `gantrymq pipeline run rebuild-cq` makes it again"
                )
            rows.append({
                "topic": one.topic, "queue": one.queue_id, "messages": one.messages,
                "bytes": one.size, "first": one.intervals[0][0], "end": sum(one.intervals[-1]),
                "gaps": gaps, "missing": missing, "restarts": restarts,
                "differing": one.differing, "lacking": one.lacking, "has queue": one.is_known,
            })  # fmt: skip
        self._report.add_table("queues", rows)

    def _plots(self, queues: list[QueueSum], told: Told, sums: list[SliceSum]) -> None:
        sizes: dict[str, list[float]] = {}
        for one in queues:
            total = sizes.setdefault(one.topic, [0.0, 0.0])
            total[0] += one.size
            total[1] += one.messages
        largest = sorted(sizes.items(), key=lambda pair: -pair[1][0])[:TOPICS_PLOTTED_MAX]
        names = [topic for topic, _total in largest]
        self._report.plots += [
            Plot("bytes of each topic", "bars", names,
                 [Series("bytes", [total[0] for _t, total in largest])], "B"),
            Plot("messages of each topic", "bars", names,
                 [Series("messages", [total[1] for _t, total in largest])]),
            Plot("records along the log", "lines",
                 [f"{(piece.log_base + piece.begin) >> 20} MiB" for piece in told.slices],
                 [Series("records", [float(one.records) for one in sums])]),
        ]  # fmt: skip


def joined_queues(sums: list[SliceSum]) -> list[QueueSum]:
    """Return the queues of all slices, by topic and queue id; slices are in log order."""
    queues: dict[tuple[str, int], QueueSum] = {}
    for found in sums:
        for one in found.queues:
            whole = queues.setdefault((one.topic, one.queue_id), QueueSum(one.topic, one.queue_id))
            whole.messages += one.messages
            whole.size += one.size
            whole.differing += one.differing
            whole.lacking += one.lacking
            whole.is_known = whole.is_known or one.is_known
            whole.differences += one.differences
            for first, count in one.intervals:
                join_interval(whole.intervals, first, count)
    return [queues[key] for key in sorted(queues)]


def gaps_of(intervals: list[list[int]]) -> tuple[int, int, int]:
    """Return gaps, messages missing in them, and how often a queue began anew.

    A queue begins anew with offset 0 when its topic was deleted and made again.
    """
    gaps = missing = restarts = 0
    end: int | None = None
    for first, count in intervals:
        if first == 0 and end is not None:
            restarts += 1
        elif end is not None and first > end:
            gaps += 1
            missing += first - end
        end = max(first + count, 0 if first == 0 or end is None else end)
    return gaps, missing, restarts


def check(options: AuditOptions, context: Context) -> None:
    """See that the sums add up; of a store without problems every queue is compared as well."""
    report = context.report
    if "queues" not in report.tables:
        run(options, context)
    messages = sum(int(row["messages"] or 0) for row in report.tables["queues"])
    queued = int(report.figures["messages in queues"] or 0)
    records = int(report.figures["records"] or 0)
    report.add_check(
        "sums", queued <= records and (messages == queued or "queues" in report.rows_left_out),
        f"{records} records, {queued} of them in queues, {messages} summed up by queue",
    )  # fmt: skip
    report.add_check("damage", not report.tables["damage"], "no damaged place within the log")
    wrong = sum(int(row["differing"] or 0) for row in report.tables["queues"])
    if options.queues:
        report.add_check("queue entries", not wrong, f"{wrong} lead to another place than the log")


JOB: Final = Job(
    name="audit",
    summary="every record of a store checked: check sums, gaps, sizes",
    text="""\
Check every record of a store: length, magic, its own offset, check sum; queue offsets without
gaps; queue entries that lead to their messages; sizes of topics and queues. By all cores, at about
the speed of reading. The store may be of gantrymq or Apache RocketMQ, stopped or crashed; it is
only read. Status 1 means that problems were found.""",
    options=AuditOptions,
    plan=plan,
    run=run,
    check=check,
)

if __name__ == "__main__":
    from gantrymq.spark.jobs.audit import JOB as SELF
    from gantrymq.spark.jobs.command import main

    main(SELF)
