"""How much of the consume queues may wait in memory for the disk.

Units wait while a save is under way. A disk that hangs would let them pile up until the machine has
no memory left, so from a bound on the store takes no writes; it goes on by itself when a save has
brought them to the disk. At a quarter of the bound a save is begun, if none is under way, whatever
flushIntervalConsumeQueue says. Nothing that was put is lost meanwhile: it is in the log.

Asking thousands of queues costs time, so they are asked only when the log has grown so far that the
bound may have been reached. A byte of the log makes no more than a byte of units: a record has 91
bytes or more, its unit 20, and one in the extension 20 and a bitmap of some bytes.

Owned by the task that owns the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.store.put import Writability
    from gantrymq.store.queue_table import QueueTable

WAITING_BYTES_MAX: Final = 128 << 20
"""Some six million messages."""
_SOURCE: Final = "backlog"


class QueueBacklog:
    """Forbids writes while too much waits."""

    def __init__(
        self,
        queues: QueueTable,
        writability: Writability,
        save: Callable[[], object],
        bytes_max: int = WAITING_BYTES_MAX,
    ) -> None:
        self._queues = queues
        self._writability = writability
        self._save = save
        self.bytes_max = bytes_max
        self.look_at = 0
        """The log offset from which on `look` may find something."""

    def look(self, dispatched: int) -> None:
        """See how much waits, now that the log is dispatched up to an offset."""
        waiting = self._queues.waiting_bytes()
        left = self.bytes_max - waiting
        self.look_at = dispatched + max(left, 0)
        if waiting * 4 >= self.bytes_max:
            self._save()
        if left <= 0:
            self._writability.forbid(
                _SOURCE,
                f"{waiting >> 20} MiB of consume queues wait for the disk, which is slow or hangs",
            )
        elif left * 2 >= self.bytes_max:  # not a little below it, or they would come and go
            self._writability.allow(_SOURCE)
