"""Tails of consume queues, and the runs that continue them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

from gantrymq.kernel.values import UNIT_BYTES

if TYPE_CHECKING:
    from gantrymq.kernel import tails
    from gantrymq.kernel.values import QueueRun


LOG_OFFSET_MAX: Final = 2**63 - 1


class QueueTail:
    """Where a queue ends, and what waits there; see `tails.QueueTail`."""

    __slots__ = ("_data", "end", "is_open", "log_end")

    def __init__(self) -> None:
        self.end = 0
        self.log_end = 0
        self.is_open = False
        self._data = bytearray()

    @property
    def data(self) -> bytearray:
        """Return the bytes before `end` that are in memory."""
        return self._data

    def copy(self) -> Self:
        """Return another one that holds the same, closed."""
        other = type(self)()
        other.end, other.log_end = self.end, self.log_end
        other._data += self._data
        return other


def extend_queues(
    tails: dict[tuple[bytes, int], tails.QueueTail], runs: list[QueueRun]
) -> list[QueueRun]:
    """Add runs to the open tails that they continue; return the others."""
    others: list[QueueRun] = []
    for run in runs:
        tail = tails.get((run.topic, run.queue_id))
        if tail is None or not _extend(tail, run):
            others.append(run)
    return others


def _extend(tail: tails.QueueTail, run: QueueRun) -> bool:
    """Add a run if it continues the tail; otherwise close that, and tell so."""
    units = run.units
    if (
        not tail.is_open
        or len(units) < UNIT_BYTES
        or run.first_queue_offset * UNIT_BYTES != tail.end
        or int.from_bytes(units[:8], signed=True) < tail.log_end
        or run.log_end > LOG_OFFSET_MAX
    ):
        tail.is_open = False
        return False
    tail.data.extend(units)
    tail.end += len(units)
    tail.log_end = run.log_end
    return True
