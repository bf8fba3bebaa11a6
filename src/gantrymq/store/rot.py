"""Damage far from the log's end: a disk that forgot what it had once kept.

A crash damages what was written last. Recovery ends the log at the first record that is not one and
wipes what follows; that is right as long as nothing that follows was ever safe. The checkpoint says
up to which store time everything was forced. A whole record behind the damage that is older than
this was acknowledged as safe: the damage is no crash's, and cutting the log there would destroy
good messages. (Apache's brokers cut.) So recovery stops, changes nothing, and says where to look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.kernel import Stop, kernel

if TYPE_CHECKING:
    from gantrymq.store.recovery import LogEnd, LogRecovery


def vouched_behind(recovery: LogRecovery, end: LogEnd, forced_until_ms: int) -> int | None:
    """Return the log offset of a whole record behind the end that was forced once, or None."""
    if end.stop in {Stop.BLANK, Stop.END}:
        return None
    for start in recovery.starts:
        if start + recovery.file_bytes <= end.offset:
            continue
        found = _whole_record(recovery, start, max(end.offset - start, 0))
        if found is not None:
            offset, stored_ms = found
            return offset if stored_ms < forced_until_ms else None
    return None


def _whole_record(recovery: LogRecovery, start: int, position: int) -> tuple[int, int] | None:
    """Return (log offset, store time) of the first whole record from a position of a file on."""
    path = recovery.path(start)
    limit = min(recovery.files.data_end(path), recovery.file_bytes)
    region = recovery.files.open(path, writable=False)
    try:
        while position < limit:
            position = kernel.find_record(region.buffer, position, limit, start)
            if position < 0:
                return None
            record = kernel.scan_records(region.buffer, position, limit, start, True, 1)
            if record.records:
                return start + position, record.first_store_timestamp
            position += 1
        return None
    finally:
        region.close()
