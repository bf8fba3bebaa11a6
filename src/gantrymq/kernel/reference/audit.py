"""Records checked and counted, for an audit of the log and its queues."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from gantrymq.kernel.reference.dispatch import dispatch_records
from gantrymq.kernel.values import UNIT_BYTES, Audit, AuditRun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.kernel.interface import Buffer

_SIZE: Final = struct.Struct(">8xi8x")


def audit_records(
    buffer: Buffer,
    start: int,
    end: int,
    log_base: int,
    records_max: int,
    delays_ms: Sequence[int],
) -> Audit:
    """Check the records of a range, and build what a comparison with the queues needs."""
    made = dispatch_records(buffer, start, end, log_base, True, records_max, delays_ms)
    runs = [
        AuditRun(
            run.topic,
            run.queue_id,
            run.first_queue_offset,
            run.units,
            sum(size for (size,) in _SIZE.iter_unpack(run.units)),
        )
        for run in made.runs
    ]
    return Audit(made.end, made.records, made.stop, runs, len(made.keys) // UNIT_BYTES)
