"""Consume queues and index, made again from the commit log alone.

In place: everything is made and forced beside the old ones first, then the old ones are moved to
ROOT/replaced-TIME and the new ones to where they were. Interrupted before that, nothing has
happened; in between, queues are missing, and a broker makes them again when it starts. The commit
log itself is only read. Or into another directory, for a look or a comparison; then the store is
left as it is.

What cannot be made again: the bitmaps of the consume queue extension, which say who was consuming
when a message came. Queues are made without it: an entry then holds the tags code itself, and SQL
filters look at the message. And the tags that Apache 5.x indexes beside the keys.

Damaged records are passed over: what stands behind them is in the queues again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.errors import InvalidValue
from gantrymq.kernel import UNIT_BYTES, QueueRun
from gantrymq.store.checkpoint import load_checkpoint
from gantrymq.store.errors import StoreDamaged
from gantrymq.store.index import INDEX_DIRECTORY, Index
from gantrymq.store.jumps import Jumps
from gantrymq.store.log_walk import LogPart, log_parts, log_spans
from gantrymq.store.process_lock import ProcessLock
from gantrymq.store.queue_table import EXT_DIRECTORY, QUEUES_DIRECTORY, QueueTable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gantrymq.clock import Clock
    from gantrymq.store.files import Files
    from gantrymq.store.settings import StoreSettings

WORK_DIRECTORY: Final = "rebuilding"
PARTS_A_FLUSH: Final = 8
"""Parts of the log after which queues are written out: bounds what waits in memory."""
TROUBLES_MAX: Final = 100


class RebuildReport(msgspec.Struct, rename="camel"):
    """What was made, and what could not be."""

    directory: str
    records: int = 0
    queues: int = 0
    queue_entries: int = 0
    index_files: int = 0
    index_keys: int = 0
    left_out: dict[str, int] = msgspec.field(default_factory=dict)
    """Messages of topics that were not asked for."""
    replaced: str | None = None
    """Where the old ones are."""
    trouble_count: int = 0
    troubles: list[str] = msgspec.field(default_factory=list)
    """Damaged records, and those that no queue can take."""

    def add_trouble(self, what: str) -> None:
        """Note something that could not be made."""
        self.trouble_count += 1
        if len(self.troubles) < TROUBLES_MAX:
            self.troubles.append(what)


class Rebuild:
    """One making of queues and index; writes to `target`, reads the log of `settings`."""

    def __init__(
        self,
        settings: StoreSettings,
        target: Path,
        files: Files,
        clock: Clock,
        topics: frozenset[str] | None = None,
    ) -> None:
        self._settings = settings
        self._files = files
        self._topics = topics
        self._last_ms = 0
        self._jumps = Jumps()
        self.report = RebuildReport(str(target))
        self._queues = QueueTable(target, settings.files.consume_queue_bytes, files)
        self._index: Index | None = None
        if settings.index.enabled:
            shape = settings.index.slots, settings.index.entries
            self._index = Index(target, *shape, files, clock)

    @property
    def last_store_timestamp(self) -> int:
        """Return the newest store timestamp that was seen."""
        return self._last_ms

    def run(self, progress: Callable[[int], None] | None = None) -> RebuildReport:
        """Make everything, and force it."""
        number = 0
        for span in log_spans(self._settings, self._files):
            for part in log_parts(span, self._settings.schedule.delays_ms, progress):
                self._take(part)
                number += 1
                if number % PARTS_A_FLUSH == 0:
                    self._flush(thorough=False)
        self._settle_jumps()
        self._flush(thorough=True)
        self.report.queues = len(self._queues)
        if self._index is not None:
            for file in self._index.files:
                file.region.sync()
            self.report.index_files = len(self._index.files)
            self._index.close()
        return self.report

    def _take(self, part: LogPart) -> None:
        self.report.records += part.found.records
        if part.damage is not None:
            self.report.add_trouble(str(part.damage))
        for run in part.found.runs:
            self._append(run)
        if self._index is not None and part.found.keys:
            self._index.insert(part.found.keys)
            self.report.index_keys += len(part.found.keys) // UNIT_BYTES

    def _append(self, run: QueueRun) -> None:
        topic, count = run.topic.decode(errors="replace"), len(run.units) // UNIT_BYTES
        self._last_ms = max(self._last_ms, run.last_store_timestamp)
        if self._topics is not None and topic not in self._topics:
            self.report.left_out[topic] = self.report.left_out.get(topic, 0) + count
            return
        try:
            self._queues.queue(topic, run.queue_id).append(run, self._jumps)
        except (InvalidValue, StoreDamaged) as error:
            self.report.add_trouble(f"{count} messages of {topic!r}/{run.queue_id}: {error}")
        else:
            self.report.queue_entries += count

    def _settle_jumps(self) -> None:
        self._jumps.settle()
        if damaged := self._jumps.left_out:
            self.report.queue_entries -= damaged
            self.report.add_trouble(f"{damaged} messages have a queue offset that cannot be")

    def _flush(self, *, thorough: bool) -> None:
        flush = self._queues.begin_flush(thorough=thorough)
        flush.perform(self._files)
        self._queues.end_flush(flush)


def rebuild_into(
    settings: StoreSettings,
    target: Path,
    files: Files,
    clock: Clock,
    *,
    topics: frozenset[str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> RebuildReport:
    """Make queues and index in another directory; `topics`, if given, are the only ones.

    Raises:
        StoreDamaged: the directory is not empty, or the log is not what the settings say.
        OSError: the disk refuses.
    """
    if files.names(target):
        raise StoreDamaged(f"{target} is not empty; name a directory that is, or that is not there")
    files.make_directory(target)
    return Rebuild(settings, target, files, clock, topics).run(progress)


def rebuild_in_place(
    settings: StoreSettings,
    files: Files,
    clock: Clock,
    *,
    topics: frozenset[str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> RebuildReport:
    """Make queues and index and put them in the place of the old ones, which are kept.

    Raises:
        StoreLocked: another process has the store open.
        StoreDamaged: the log is not what the settings say, or a rebuild before was interrupted.
        OSError: the disk refuses.
    """
    root = settings.paths.root
    work = root / WORK_DIRECTORY
    lock = ProcessLock(files, root)
    try:
        if files.exists(work):
            raise StoreDamaged(f"{work} is of a rebuild that was interrupted; remove it first")
        files.make_directory(work)
        rebuild = Rebuild(settings, work, files, clock, topics)
        report = rebuild.run(progress)
        replaced = _replace(files, root, work, f"replaced-{clock.now_ms()}")
        _vouch_for_index(files, root, rebuild)
        report.directory = str(root)
        report.replaced = None if replaced is None else str(replaced)
        return report
    finally:
        lock.release()


def _replace(files: Files, root: Path, work: Path, name: str) -> Path | None:
    """Put the new ones in the place of the old; return where those are, if there were any."""
    names = (QUEUES_DIRECTORY, EXT_DIRECTORY, INDEX_DIRECTORY)
    old = [one for one in names if files.exists(root / one)]
    if old:
        files.make_directory(root / name)
    for one in old:
        files.rename(root / one, root / name / one)
    for one in files.names(work):
        files.rename(work / one, root / one)
    files.remove(work)
    files.sync_directory(root)
    return root / name if old else None


def _vouch_for_index(files: Files, root: Path, rebuild: Rebuild) -> None:
    """Say in the checkpoint that the index is on the disk.

    After a crash index files that it does not vouch for are removed, and made again from the last
    log files only: most of what was just made would be gone.
    """
    checkpoint = load_checkpoint(files, root / "checkpoint")
    if rebuild.report.index_files:
        checkpoint.index_ms = max(checkpoint.index_ms, rebuild.last_store_timestamp)
        checkpoint.save(files)
