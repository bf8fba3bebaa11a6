"""Finding the end of a log that was stopped cleanly, without reading much of it.

Every message is in a queue by then, so the queues know where the last one ends. The walk begins at
a record somewhat before that place, checks everything from there on, and must come by it; what may
follow are messages that no queue has, such as prepared ones.

Where anything does not agree (queues that know more than there is, a last record that is damaged,
no record at all), the last three files are walked from their beginning, as Apache RocketMQ does
after every clean stop. Damage before the last record costs nobody else his messages, where Apache
would cut the log: near the end it is said and passed over, further back it is not looked for here.
`gantrymq store verify` names it, and no reader is given what is damaged (`read_check.py`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from gantrymq.kernel import Stop, kernel
from gantrymq.store.recovery import LogEnd

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.store.files import Region
    from gantrymq.store.recovery import LogRecovery

log = logging.getLogger(__name__)

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
        before = _over_damage(region, begin, known, start, verify_crc=verify_crc)
        size = region.size
        behind = kernel.scan_records(region.buffer, known, size, start, verify_crc, size)
    finally:
        region.close()
    if before is None or behind.stop not in _USUAL:
        return None
    stamp = max(before[1], behind.last_store_timestamp)
    records = before[0] + behind.records
    return LogEnd(start, start + behind.end, records, behind.stop, stamp)


def _over_damage(
    region: Region, begin: int, known: int, start: int, *, verify_crc: bool
) -> tuple[int, int] | None:
    """Walk to the known place; return records and the last store time, None if it is not one.

    A record that is damaged is said and passed over: it was whole when the log was closed, and so
    are those behind it. The last one must be whole, or else the place itself is not believed.
    """
    position, records, stamp = begin, 0, 0
    while True:
        found = kernel.scan_records(region.buffer, position, known, start, verify_crc, known)
        records, stamp = records + found.records, max(stamp, found.last_store_timestamp)
        if found.stop is Stop.END:
            return records, stamp
        following = kernel.find_record(region.buffer, found.end + 1, known, start)
        if following < 0:
            return None
        log.error(
            "%s is damaged at log offset %d (%s); the log goes on at %d. Readers do not get what "
            "lies between; mend it from a slave or a backup",
            region.path, start + found.end, found.stop.name, start + following,
        )  # fmt: skip
        position = following
