"""What there is in a store, as plain values: for `gantrymq store inspect` and its JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.store.checkpoint import load_checkpoint
from gantrymq.store.lock_holder import holder_of
from gantrymq.store.query import MessageQuery
from gantrymq.store.search import TimeSearch
from gantrymq.store.shadow_files import ShadowFiles

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.store.consume_queue import ConsumeQueue
    from gantrymq.store.reader import StoreReader

CONFIG_NAMES: Final = (".json",)


class LogOverview(msgspec.Struct, rename="camel"):
    """The commit log."""

    files: int
    file_bytes: int
    min_offset: int
    max_offset: int
    ended_by: str
    files_to_drop: int
    """Files behind the end, which recovery removes."""
    first_store_timestamp: int | None
    last_store_timestamp: int


class QueueOverview(msgspec.Struct, rename="camel"):
    """One queue."""

    topic: str
    queue_id: int
    min_offset: int
    max_offset: int
    first_store_timestamp: int | None
    last_store_timestamp: int | None


class IndexOverview(msgspec.Struct, rename="camel"):
    """One index file."""

    name: str
    entries: int
    begin_timestamp: int
    end_timestamp: int
    begin_offset: int
    end_offset: int


class CheckpointOverview(msgspec.Struct, rename="camel"):
    """Up to which store timestamp everything is on the disk."""

    log: int
    queues: int
    index: int


class StoreOverview(msgspec.Struct, rename="camel"):
    """All of it."""

    directory: str
    state: str
    """`open` in a process, `stopped` cleanly, or `crashed`."""
    holder: str | None
    """The process that has it open, as far as it can be seen."""
    log: LogOverview
    checkpoint: CheckpointOverview
    queue_file_bytes: int
    queue_ext_file_bytes: int | None
    queues: list[QueueOverview]
    index_slots: int | None
    """None if the index cannot be read without its settings."""
    index_entries: int | None
    index_files: list[IndexOverview]
    config_files: list[str]


def overview_of(reader: StoreReader) -> StoreOverview:
    """Return what there is in a store; queues and index as a broker would have them."""
    settings, report = reader.settings, reader.report
    root, index = settings.paths.root, reader.index
    holder = holder_of(root / "lock")
    is_clean = report is None or report.clean
    checkpoint = load_checkpoint(ShadowFiles(), root / "checkpoint")
    sizes = settings.files
    return StoreOverview(
        directory=str(root),
        state="open" if holder else "stopped" if is_clean else "crashed",
        holder=None if holder is None else str(holder),
        log=_log(reader),
        checkpoint=CheckpointOverview(checkpoint.log_ms, checkpoint.queues_ms, checkpoint.index_ms),
        queue_file_bytes=sizes.consume_queue_bytes,
        queue_ext_file_bytes=(
            sizes.consume_queue_ext_bytes if sizes.consume_queue_ext_enabled else None
        ),
        queues=_queues(reader),
        index_slots=None if index is None else settings.index.slots,
        index_entries=None if index is None else settings.index.entries,
        index_files=_index_files(reader),
        config_files=_config_files(reader, settings.paths.config),
    )


def _log(reader: StoreReader) -> LogOverview:
    report = reader.report
    return LogOverview(
        files=len(reader.log.files),
        file_bytes=reader.log.file_bytes,
        min_offset=reader.min_log_offset,
        max_offset=reader.max_log_offset,
        ended_by="" if report is None else report.log_end.stop.name,
        files_to_drop=0 if report is None else report.files_dropped,
        first_store_timestamp=MessageQuery(reader.log, None).earliest_timestamp(),
        last_store_timestamp=0 if report is None else report.log_end.last_store_timestamp,
    )


def _queues(reader: StoreReader) -> list[QueueOverview]:
    search, found = TimeSearch(reader.log), []
    for topic in sorted(reader.queue_table.topics()):
        found += [_queue(search, queue) for queue in reader.queue_table.queues(topic)]
    return found


def _queue(search: TimeSearch, queue: ConsumeQueue) -> QueueOverview:
    return QueueOverview(
        queue.topic,
        queue.queue_id,
        queue.min_offset,
        queue.max_offset,
        search.earliest(queue),
        search.stored_at(queue, queue.max_offset - 1),
    )


def _index_files(reader: StoreReader) -> list[IndexOverview]:
    found = []
    for file in reader.index.files if reader.index is not None else ():
        header = file.header
        found.append(
            IndexOverview(
                file.path.name,
                max(header.next_number - 1, 0),
                header.begin_timestamp,
                header.end_timestamp,
                header.begin_log_offset,
                header.end_log_offset,
            )
        )
    return found


def _config_files(reader: StoreReader, directory: Path) -> list[str]:
    return [name for name in reader.files.names(directory) if name.endswith(CONFIG_NAMES)]
