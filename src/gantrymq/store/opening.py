"""Opening a store: what was found on the disk becomes a log, queues and an index that agree.

The order is RocketMQ's: was it stopped cleanly, log files, queues, checkpoint, index, then
recovery. With SYNC_FLUSH everything that was recovered is on the disk afterwards, so that it may be
read and acknowledged; with ASYNC_FLUSH it is as safe as what was appended just now, and the timers
force it.

What is done after a crash beyond what RocketMQ does:

- Queues are cut back to where the walk over the log begins, and built again from there. What the
  checkpoint does not vouch for may be torn in a way that no unit shows: a tags code is eight bytes
  of anything.
- A store whose queues are all gone begins at the first file, whatever the checkpoint says.
- The mark of a start (ROOT/abort) is left before the first change, so that a start that is
  interrupted is followed by one that looks at everything.
- If a force had failed (`failed_disk.py`), the recovered log is written once more.
- Queues that were closed in order and are damaged now are built again from the whole log.
- A store whose queues know of messages, and whose log has no file at all, is not opened: its disk
  may not be mounted. Nor is one with a log on several disks whose queues know of messages behind
  its last file. Queues that were cut would not agree with the log any more when it is back.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from gantrymq.kernel import Stop, kernel
from gantrymq.store.clean_walk import clean_walk
from gantrymq.store.errors import StoreDamaged
from gantrymq.store.failed_disk import is_marked, leave_mark, remove_mark
from gantrymq.store.mapped_file import MappedFile
from gantrymq.store.process_lock import mark_running, was_aborted
from gantrymq.store.recovery import LogEnd, LogRecovery, RecoveryReport
from gantrymq.store.rot import vouched_behind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from gantrymq.clock import Clock
    from gantrymq.store.checkpoint import Checkpoint
    from gantrymq.store.commit_log import CommitLog
    from gantrymq.store.dispatch import Dispatcher
    from gantrymq.store.files import Files
    from gantrymq.store.index import Index
    from gantrymq.store.log_directories import LogDirectories
    from gantrymq.store.queue_table import QueueTable

log = logging.getLogger(__name__)

LINE_PAUSE_S: Final = 5.0
"""A start that takes long says so often how far it is."""


@dataclass(frozen=True, slots=True)
class StoreParts:
    """What opening fills."""

    files: Files
    clock: Clock
    root: Path
    log_directories: LogDirectories
    log: CommitLog
    queues: QueueTable
    index: Index | None
    checkpoint: Checkpoint
    dispatcher: Dispatcher
    delays_ms: tuple[int, ...]
    verify_crc: bool
    index_is_safe: bool
    pid: int
    forces: bool = True
    """Bring what was recovered to the disk before anybody reads it: SYNC_FLUSH promises that."""


def make_directories(files: Files, paths: Iterable[Path]) -> None:
    """Make directories, and force the names of those that were not there."""
    for path in paths:
        made = [one for one in (path, *path.parents) if not files.exists(one)]
        files.make_directory(path)
        for one in reversed(made):
            files.sync_directory(one.parent)


def open_parts(parts: StoreParts, progress: Callable[[int], None] | None = None) -> RecoveryReport:
    """Recover a store, cut its log and load everything from it."""
    began = parts.clock.monotonic()
    clean = not was_aborted(parts.files, parts.root)
    recovery = LogRecovery(parts.log_directories, parts.log.file_bytes, parts.files)
    parts.queues.load(after_crash=not clean)
    mark_running(parts.files, parts.root, parts.pid)
    is_damaged = parts.queues.recover()
    _check_disks(parts, recovery)
    progress = _with_lines(parts.clock, recovery.files_end, progress)
    if parts.queues.log_end_max == 0 and recovery.starts and parts.checkpoint.queues_ms:
        # They are to be built from the first file on, also if this attempt is cut short.
        parts.checkpoint.queues_ms = 0
        parts.checkpoint.save(parts.files)
    if parts.index is not None:
        checkpoint = parts.checkpoint
        parts.index.load(None if clean else checkpoint.index_ms, checkpoint.index_log_offset)
    end = _walk(parts, recovery, progress, clean=clean)
    known = parts.queues.log_end_max
    builds = not clean or is_damaged or not _goes_on_at(recovery, known, end)
    if clean and builds:
        end = _build_again(parts, recovery, progress)
    is_spoiled = is_marked(parts.files, parts.root)
    dropped, wiped = recovery.cut(end.offset, trusts_zeros=not is_spoiled)
    if parts.queues.log_end_max > end.offset or not recovery.starts:
        parts.queues.truncate_to(end.offset)
    _load_log(parts, recovery, end)
    if parts.index is not None and parts.index.truncate_to(end.offset):
        _index_again(parts, parts.index, end)
    log_min = parts.log.min_offset
    parts.queues.correct_min_offsets(log_min)
    dispatched_from = _dispatch_rest(parts, end, is_dispatched=builds)
    _save_queues(parts)
    if is_spoiled:
        remove_mark(parts.files, parts.root)
    seconds = parts.clock.monotonic() - began
    return RecoveryReport(
        clean, log_min, end, dropped, wiped, len(parts.queues), dispatched_from, seconds
    )


def _with_lines(
    clock: Clock, files_end: int, progress: Callable[[int], None] | None
) -> Callable[[int], None]:
    """Return a progress that tells the log as well, now and then."""
    due = clock.monotonic() + LINE_PAUSE_S

    def told(log_offset: int) -> None:
        nonlocal due
        if progress is not None:
            progress(log_offset)
        now = clock.monotonic()
        if now >= due:
            due = now + LINE_PAUSE_S
            log.info("recovering: at log offset %d; the files end at %d", log_offset, files_end)

    return told


def _check_disks(parts: StoreParts, recovery: LogRecovery) -> None:
    """See that no disk is missing with the end of the log, or with all of it."""
    known, end = parts.queues.log_end_max, recovery.files_end
    if known > end and (len(parts.log_directories.all) > 1 or not recovery.starts):
        raise StoreDamaged(
            f"the files of the log end at {end}, and the consume queues know of messages up to "
            f"{known}; is a disk of storePathCommitLog not mounted? If those files are lost for "
            f"good, move {parts.root / 'consumequeue'} elsewhere: it is built again"
        )


def _walk(
    parts: StoreParts,
    recovery: LogRecovery,
    progress: Callable[[int], None] | None,
    *,
    clean: bool,
) -> LogEnd:
    if clean and not is_marked(parts.files, parts.root):
        known = parts.queues.log_end_max
        return clean_walk(recovery, known, verify_crc=parts.verify_crc, progress=progress)
    if clean:
        return recovery.walk(recovery.clean_start(), verify_crc=parts.verify_crc, progress=progress)
    checkpoint = parts.checkpoint
    safe = checkpoint.min_timestamp
    if parts.index is not None and parts.index_is_safe:
        safe = checkpoint.min_timestamp_with_index
    first = recovery.crash_start(safe)
    if recovery.starts:
        # `_save_queues` writes all of them out before anybody is served.
        parts.queues.truncate_to(recovery.starts[first], wipes_later=True)
    end = recovery.walk(
        first,
        verify_crc=parts.verify_crc,
        forced_until_ms=checkpoint.log_ms,
        delays_ms=parts.delays_ms,
        take=partial(parts.dispatcher.take, is_last=False),
        progress=progress,
    )
    parts.dispatcher.settle()
    kept = vouched_behind(recovery, end, checkpoint.log_ms)
    if kept is not None:
        raise StoreDamaged(
            f"the log is damaged at offset {end.offset} ({end.stop.name}), and messages behind it, "
            f"from offset {kept} on, were safe on the disk before: the disk has lost something. "
            "Nothing was cut. Bring the file back from a slave or a backup; or, to give up "
            f"everything from offset {end.offset} on, remove {checkpoint.path} and start again"
        )
    return end


def _goes_on_at(recovery: LogRecovery, offset: int, end: LogEnd) -> bool:
    """Tell whether the log ends at an offset, or a record follows there."""
    starts = [start for start in recovery.starts if start <= offset]
    if offset >= end.offset or not starts:
        return offset <= end.offset
    region = recovery.files.open(recovery.path(starts[-1]), writable=False)
    try:
        found = kernel.scan_records(
            region.buffer, offset - starts[-1], region.size, starts[-1], False, 1
        )
        return found.records > 0 or found.stop is Stop.BLANK
    finally:
        region.close()


def _build_again(
    parts: StoreParts, recovery: LogRecovery, progress: Callable[[int], None] | None
) -> LogEnd:
    """Build all queues from the log: after a clean stop they were whole, and they are not now.

    A unit that is damaged ends its queue for whoever reads it, and hides all that follow.
    """
    log.warning("consume queues do not agree with the log: they are built again from its beginning")
    parts.checkpoint.queues_ms = 0
    parts.checkpoint.save(parts.files)
    return _walk(parts, recovery, progress, clean=False)


def _load_log(parts: StoreParts, recovery: LogRecovery, end: LogEnd) -> None:
    """Map the files that are left, all but the last of them full; force what was walked over."""
    if is_marked(parts.files, parts.root):
        recovery.rewrite(end.began_at, end.offset)
    files: list[MappedFile] = []
    for start in recovery.starts:
        writable = not recovery.is_read_only(start)
        file = MappedFile(start, parts.files.open(recovery.path(start), writable=writable))
        file.recovered(min(file.size, max(0, end.offset - start)))
        if _forces(parts) and start + file.size > end.began_at:
            _force(parts, file)
        files.append(file)
    parts.log.load(files, end.last_store_timestamp)


def _forces(parts: StoreParts) -> bool:
    """Tell whether a start must force: also if a force had failed, which must be made good."""
    return parts.forces or is_marked(parts.files, parts.root)


def _force(parts: StoreParts, file: MappedFile) -> None:
    try:
        file.region.sync()
    except OSError as error:
        leave_mark(parts.files, parts.root, f"forcing {file.region.path} failed: {error}")
        raise


def _index_again(parts: StoreParts, index: Index, end: LogEnd) -> None:
    """Index again what the files knew that were dropped for knowing of messages behind the end.

    The walk has not done it: those files were there, and passed its keys over.
    """
    # From the last message indexed, for a file may have become full among its keys. Those before
    # are then in twice, as after any recovery, ours or Apache's.
    start = max(index.end_log_offset, parts.log.min_offset)
    for file, position, stop in parts.log.spans(start, end.offset):
        found = kernel.dispatch_records(
            file.region.buffer, position, stop, file.start, False, stop - position + 1, ()
        )
        index.insert(found.keys)


def _dispatch_rest(parts: StoreParts, end: LogEnd, *, is_dispatched: bool) -> int:
    """Dispatch what no queue knows yet; where queues are built again the walk has done it."""
    if is_dispatched:
        parts.dispatcher.offset = end.offset
    else:
        parts.dispatcher.offset = max(parts.log.min_offset, parts.queues.log_end_max)
    dispatched_from = parts.dispatcher.offset
    parts.dispatcher.run(end.offset)
    return dispatched_from


def _save_queues(parts: StoreParts) -> None:
    """Write out what was built, and force it where the log was forced too."""
    flush = parts.queues.begin_flush(thorough=_forces(parts))
    try:
        flush.perform(parts.files)
    except OSError as error:
        parts.queues.end_flush(flush, failed=True)
        leave_mark(parts.files, parts.root, f"saving consume queues failed: {error}")
        raise
    parts.queues.end_flush(flush)
