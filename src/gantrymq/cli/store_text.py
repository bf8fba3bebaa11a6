"""How `gantrymq store` tells people what it found."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.store.overview import QueueOverview, StoreOverview
    from gantrymq.store.rebuild import RebuildReport
    from gantrymq.store.verify import VerifyReport

STATES: Final = {
    "open": "open in {holder}; what follows is the state of this moment",
    "stopped": "stopped cleanly",
    "crashed": "not stopped cleanly (DIR/abort is there): a broker recovers it when it starts",
}
UNITS: Final = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
TROUBLES_SHOWN: Final = 20


def size_text(count: int) -> str:
    """Return a number of bytes in the largest unit that divides it, or with one digit behind."""
    for unit, name in UNITS:
        if count >= unit:
            return f"{count // unit} {name}" if count % unit == 0 else f"{count / unit:.1f} {name}"
    return f"{count} bytes"


def time_text(timestamp_ms: int | None) -> str:
    """Return a store timestamp, in UTC; a dash for none, the number if it is no date."""
    if not timestamp_ms:
        return "-"
    try:
        moment = datetime.fromtimestamp(timestamp_ms // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{timestamp_ms % 1000:03d}"


def overview_text(store: StoreOverview) -> str:
    """Return what `inspect` prints."""
    log, checkpoint = store.log, store.checkpoint
    to_drop = f", {log.files_to_drop} behind the end" if log.files_to_drop else ""
    times = (checkpoint.log, checkpoint.queues, checkpoint.index)
    rows = [
        ("store", store.directory),
        ("state", STATES[store.state].format(holder=store.holder)),
        ("log", f"{log.files} files of {size_text(log.file_bytes)}{to_drop}"),
        ("offsets", f"{log.min_offset} to {log.max_offset} ({_end_text(log.ended_by)})"),
        ("stored", _span_text(log.first_store_timestamp, log.last_store_timestamp)),
        ("checkpoint", "log {}, queues {}, index {}".format(*map(time_text, times))),
        ("queues", _queues_text(store)),
        ("index", _index_text(store)),
        ("config", ", ".join(store.config_files) or "none"),
    ]
    lines = [f"{name:<11} {text}" for name, text in rows]
    return "\n".join([*lines, "", *_table(store.queues)])


def _end_text(ended_by: str) -> str:
    usual = {"BAD_MAGIC", "BLANK", "END"}
    return "nothing behind" if ended_by in usual else f"a damaged record behind: {ended_by}"


def _span_text(first_ms: int | None, last_ms: int) -> str:
    return f"{time_text(first_ms)} to {time_text(last_ms)} UTC"


def _queues_text(store: StoreOverview) -> str:
    topics = len({queue.topic for queue in store.queues})
    text = f"{len(store.queues)} in {topics} topics, files of {size_text(store.queue_file_bytes)}"
    if store.queue_ext_file_bytes is not None:
        text += f", extension in files of {size_text(store.queue_ext_file_bytes)}"
    return text


def _index_text(store: StoreOverview) -> str:
    if store.index_slots is None:
        return "not readable: give the configuration with -c, for maxHashSlotNum and maxIndexNum"
    entries = sum(file.entries for file in store.index_files)
    shape = f"{store.index_slots} slots and {store.index_entries} entries a file"
    return f"{len(store.index_files)} files with {entries} keys, {shape}"


def _table(queues: list[QueueOverview]) -> list[str]:
    """Return the queues as a table; the topic stands last, for it may be long."""
    heads = ("QUEUE", "MIN", "MAX", "MESSAGES", "FIRST STORED", "LAST STORED", "TOPIC")
    rows: list[tuple[str, ...]] = [heads]
    for queue in queues:
        count = queue.max_offset - queue.min_offset
        numbers = map(str, (queue.queue_id, queue.min_offset, queue.max_offset, count))
        times = map(time_text, (queue.first_store_timestamp, queue.last_store_timestamp))
        rows.append((*numbers, *times, queue.topic))
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads) - 1)]
    return ["  ".join([*map(str.rjust, row[:-1], widths), row[-1]]) for row in rows]


def verify_text(report: VerifyReport, directory: Path) -> str:
    """Return what `verify` prints."""
    lines = [
        f"{report.records} records in {size_text(report.log_bytes)} of log",
        f"{report.queue_entries} entries in {report.queues} queues",
        f"{report.index_entries} entries in {report.index_files} index files",
    ]
    if report.records_of_deleted_topics:
        lines.append(f"{report.records_of_deleted_topics} records are of deleted topics")
    if report.stale_bytes:
        lines.append(f"{report.stale_bytes} bytes behind the log's end are of an earlier cut")
    if report.is_sound:
        return "\n".join([*lines, "no problems"])
    lines += [f"{problem.place}: {problem.what}" for problem in report.problems]
    counts = sorted((kind.value, count) for kind, count in report.counts.items())
    lines.append("PROBLEMS: " + ", ".join(f"{kind} {count}" for kind, count in counts))
    if not any(kind.startswith("log.") for kind, _count in counts):
        lines.append(f"the log is whole: `gantrymq store rebuild {directory}` mends the rest")
    return "\n".join(lines)


def rebuild_text(report: RebuildReport) -> str:
    """Return what `rebuild` prints."""
    lines = [
        f"{report.directory}: made of {report.records} records",
        f"{report.queue_entries} entries in {report.queues} queues",
        f"{report.index_keys} keys in {report.index_files} index files",
    ]
    lines += [f"left out: {count} messages of {topic}" for topic, count in report.left_out.items()]
    if report.replaced is not None:
        lines.append(f"the old ones are in {report.replaced}")
    lines += report.troubles[:TROUBLES_SHOWN]
    if report.trouble_count:
        lines.append(f"PROBLEMS: {report.trouble_count} parts of the log could not be used")
    return "\n".join(lines)
