"""Checking a store: every record, every queue entry and every index entry, against each other.

The log is walked from its first byte with all check sums; what dispatch makes of it is compared
with the queues (`verify_queues.py`) and the index (`verify_index.py`). Queues and index are those
that a broker would have after its recovery: what a crash left half done and recovery completes is
no problem, what it cannot mend is. The walk is the kernel's, and bytes are compared in bulk, so a
sound store costs about as much as reading it.

Damage does not end the walk (`log_walk.py`), so that one report names all of it.

**Behind the end of the log** there should be zeros. In a store that crashed anything else is the
rest of an unfinished write, and is reported, for recovery will cut it off. In one that was stopped
cleanly it is harmless if no queue knows of messages there: Apache does not wipe what it cuts.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from gantrymq.kernel import Stop, kernel
from gantrymq.model.names import SYSTEM_TOPICS
from gantrymq.store.columns import integers
from gantrymq.store.config_files import load_json
from gantrymq.store.errors import StoreDamaged
from gantrymq.store.file_queue import file_name
from gantrymq.store.log_walk import log_parts
from gantrymq.store.queue_table import QueueTable
from gantrymq.store.shadow_files import ShadowFiles
from gantrymq.store.verify_index import IndexCheck
from gantrymq.store.verify_queues import QueueCheck
from gantrymq.store.verify_report import Kind, Problem, VerifyReport

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gantrymq.store.files import Files
    from gantrymq.store.log_walk import LogPart, Span
    from gantrymq.store.reader import StoreReader
    from gantrymq.store.settings import StoreSettings

__all__ = ["Kind", "Problem", "StoreCheck", "VerifyReport", "known_topics", "verify"]

COLUMN_BYTES_MAX: Final = 1 << 29
"""Most that `kernel.scan_columns` takes in one call."""
_CHUNK_BYTES: Final = 1 << 20
_ZEROS: Final = bytes(_CHUNK_BYTES)


def verify(reader: StoreReader, *, progress: Callable[[int], None] | None = None) -> VerifyReport:
    """Check all of a store; `progress` is told how far the log was walked."""
    return StoreCheck(reader, progress).run()


def known_topics(settings: StoreSettings, files: Files) -> frozenset[str] | None:
    """Return the topics in config/topics.json, and those that a broker needs without its saying so.

    None if there is no such file to be read.
    """
    try:
        loaded = load_json(files, settings.paths.config / "topics.json")
    except StoreDamaged:
        return None
    value = None if loaded is None else loaded.value
    table = value.get("topicConfigTable") if isinstance(value, dict) else None
    # 4.9 does not write down the topics of half messages; what nobody knows counts as deleted.
    return SYSTEM_TOPICS | frozenset(table) if isinstance(table, dict) else None


class StoreCheck:
    """One check of one store."""

    def __init__(self, reader: StoreReader, progress: Callable[[int], None] | None = None) -> None:
        self._reader = reader
        self._progress = progress
        self._report = VerifyReport()
        self._queues = QueueCheck(reader, known_topics(reader.settings, reader.files), self._report)
        self._index: IndexCheck | None = None
        if reader.index is not None:
            self._index = IndexCheck(reader, reader.index, self._report)
        self._last_ms = 0

    def run(self) -> VerifyReport:
        """Check everything."""
        delays_ms = self._reader.settings.schedule.delays_ms
        for span in self._reader.spans():
            for part in log_parts(span, delays_ms, self._progress):
                self._check_part(part)
        self._check_tail()
        self._queues.finish()
        if self._index is not None:
            self._index.finish()
        return self._report

    # -- the log ---------------------------------------------------------------------------------

    def _check_part(self, part: LogPart) -> None:
        span, found = part.span, part.found
        self._check_times(span, part.start, found.end, found.records)
        self._report.records += found.records
        self._report.log_bytes += found.end - part.start
        for run in found.runs:
            self._queues.take(run)
        if self._index is not None and found.records:
            self._index.take(found.keys, span.log_base + found.end)
        if found.stop is Stop.BLANK:
            self._check_blank(span, found.end)
        if part.damage is not None:
            self._add(Kind.RECORD, span.log_base, str(part.damage))

    def _check_times(self, span: Span, position: int, end: int, records: int) -> None:
        """See that store timestamps never go back."""
        if not records:
            return
        names, log_base = ("store_timestamp", "log_offset"), span.log_base
        # In several rounds, for the kernel takes no more than 512 MiB of records at once.
        while position < end:
            rows = kernel.scan_columns(
                span.buffer, position, end, log_base, False, names, (), records, COLUMN_BYTES_MAX
            )
            stored, offsets = (integers(rows, name) for name in names)
            times = [self._last_ms, *stored]
            if times != sorted(times):
                for (before, now), offset in zip(pairwise(times), offsets, strict=True):
                    if now < before:
                        what = f"the record at {offset} was stored {before - now} ms too early"
                        self._add(Kind.TIME, span.log_base, what)
            self._last_ms = times[-1]
            position = rows.end

    def _check_blank(self, span: Span, position: int) -> None:
        """See that the blank record says how much of the file is left."""
        size = int.from_bytes(span.buffer[position : position + 4])
        left = len(span.buffer) - position
        if size != left:
            at = span.log_base + position
            self._add(Kind.BLANK, span.log_base, f"blank record at {at}: {size} bytes, not {left}")

    # -- behind it -------------------------------------------------------------------------------

    def _check_tail(self) -> None:
        """Look at what the files hold behind the end that recovery finds."""
        report, end = self._reader.report, self._reader.max_log_offset
        if report is None or not self._reader.log.files or report.log_end.stop is Stop.BLANK:
            return  # what a blank record closes has no tail
        last = self._reader.log.files[-1]
        start = last.start
        tail = self._tail_bytes(last.region.path, end - start)
        if not tail:
            return
        what = f"the log ends at {end} ({report.log_end.stop.name}), {tail} bytes follow"
        if not report.clean:
            self._add(Kind.TAIL, start, f"{what}; recovery will cut them off")
        elif (known := self._queues_end()) > end:
            lost = f"queues know of messages up to {known}, which no broker can serve"
            self._add(Kind.RECORD, start, f"{what}; {lost}")
        else:
            self._report.stale_bytes = tail

    def _tail_bytes(self, path: Path, position: int) -> int:
        """Return how many bytes of a file lie between a position and its last non-zero byte."""
        region, last = ShadowFiles().open(path, writable=False), position
        try:
            for start in range(position, region.size, _CHUNK_BYTES):
                chunk = bytes(region.buffer[start : start + _CHUNK_BYTES])
                # Comparing is forty times as fast as stripping, and nearly all of it is zeros.
                if chunk != _ZEROS[: len(chunk)]:
                    last = start + len(chunk.rstrip(b"\0"))
        finally:
            region.close()
        return last - position

    def _queues_end(self) -> int:
        """Return how far the queues on the disk know the log, before recovery cuts them."""
        settings = self._reader.settings
        table = QueueTable(settings.paths.root, settings.files.consume_queue_bytes, ShadowFiles())
        table.load()
        table.recover()
        return table.log_end_max

    def _add(self, kind: Kind, start: int, what: str) -> None:
        file, root = self._reader.log.file_at(start), self._reader.settings.paths.root
        path = root / "commitlog" / file_name(start) if file is None else file.region.path
        # Another disk's file by its whole path: `commitlog` would be looked for below the root.
        place = path.relative_to(root) if path.is_relative_to(root) else path
        self._report.add(kind, str(place), what)
