"""Finding the end of a log that was stopped cleanly, without reading much of it.

Every message is in a queue by then, so the queues know where the last one ends. The walk begins at
a record somewhat before that place, checks everything from there on, and must come by it; what may
follow are messages that no queue has, such as prepared ones.

Where anything does not agree (queues that know more than there is, a record that is damaged, no
record at all), the last three files are walked from their beginning, as Apache RocketMQ does after
every clean stop. Damage further back is not looked for here, and costs nobody else his messages:
Apache would cut the log there. `gantrymq store verify` names it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.kernel import Stop, kernel
from gantrymq.store.recovery import LogEnd

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.store.recovery import LogRecovery

CLOSE_BYTES: Final = 64 << 20
"""How much of the log is looked at before the place that the queues know."""
_USUAL: Final = frozenset({Stop.END, Stop.BLANK, Stop.BAD_MAGIC})
"""What ends a log that is whole."""


def clean_walk(
    recovery: LogRecovery,
    known_end: int,
    *,
    verify_crc: bool,
    progress: Callable[[int], None] | None = None,
) -> LogEnd:
    """Find the end of a log whose queues know it up to `known_end`."""
    end = _quick_walk(recovery, known_end, verify_crc=verify_crc)
    if end is None:
        return recovery.walk(recovery.clean_start(), verify_crc=verify_crc, progress=progress)
    if progress is not None:
        progress(end.offset)
    return end


def _quick_walk(recovery: LogRecovery, known_end: int, *, verify_crc: bool) -> LogEnd | None:
    """Find the end from the file on that the known place lies in; None if there is any doubt."""
    first = recovery.starts[0] if recovery.starts else 0
    index = (known_end - 1 - first) // recovery.file_bytes
    if not recovery.clean_start() <= index < len(recovery.starts):
        return None
    end = _walk_file(recovery, recovery.starts[index], known_end, verify_crc=verify_crc)
    following = recovery.starts[index + 1 :]
    if end is None or not following:
        return None if end is None else recovery.behind_blank(end)
    if end.stop is Stop.BLANK:
        rest = recovery.walk(index + 1, verify_crc=verify_crc)
        stamp = max(end.last_store_timestamp, rest.last_store_timestamp)
        records = end.records + rest.records
        end = LogEnd(end.began_at, rest.offset, records, rest.stop, stamp)
        return end if end.stop in _USUAL else None
    # It ends in the middle of a file: those behind it were made ahead, or something is missing.
    is_last = all(recovery.first_store_timestamp(start) is None for start in following)
    return end if is_last else None


def _walk_file(
    recovery: LogRecovery, start: int, known_end: int, *, verify_crc: bool
) -> LogEnd | None:
    """Check one file from somewhat before the known place on; None if it does not come by it."""
    known = known_end - start
    region = recovery.files.open(recovery.path(start), writable=False)
    try:
        begin = kernel.find_record(region.buffer, max(0, known - CLOSE_BYTES), known, start)
        if begin < 0:
            return None
        before = kernel.scan_records(region.buffer, begin, known, start, verify_crc, known)
        size = region.size
        behind = kernel.scan_records(region.buffer, known, size, start, verify_crc, size)
    finally:
        region.close()
    if before.stop is not Stop.END or behind.stop not in _USUAL:
        return None
    stamp = max(before.last_store_timestamp, behind.last_store_timestamp)
    records = before.records + behind.records
    return LogEnd(start, start + behind.end, records, behind.stop, stamp)
