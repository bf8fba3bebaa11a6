"""Dispatch: consume queues and index out of commit log bytes. Nothing else ever builds them.

`Dispatcher.run(end)` takes the log from where it stopped to `end`. It runs right after an append,
when replicated bytes have arrived, and through recovery; each time it is the same walk over the
same bytes, so a queue built again is the queue that was. Who wants to know of new messages (held
pulls) is told of all that came at once, after the queues have it.

How far it may go is its caller's business: up to what is committed, and with SYNC_FLUSH up to what
is on the disk, so that nobody reads what a power cut could take back.
"""

from __future__ import annotations

import logging
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from gantrymq.kernel import Stop, kernel
from gantrymq.store.errors import StoreDamaged
from gantrymq.store.jumps import Jumps

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gantrymq.kernel import Dispatch, QueueRun
    from gantrymq.store.commit_log import CommitLog
    from gantrymq.store.index import Index
    from gantrymq.store.queue_table import QueueTable

log = logging.getLogger(__name__)

# By position and in C: of many queues with a message each there are as many runs as messages.
_STORE_TIMESTAMP: Final = itemgetter(5)
RECORDS_MAX: Final = 65536
"""Records in one call of the kernel: bounds what it holds at once."""


class Dispatcher:
    """Knows how far the log has been dispatched; owned by the task that owns the log."""

    def __init__(
        self,
        log: CommitLog,
        queues: QueueTable,
        index: Index | None,
        delays_ms: Sequence[int],
        arrived: Callable[[Sequence[QueueRun]], None],
    ) -> None:
        self._log = log
        self._queues = queues
        self._index = index
        self._delays_ms = tuple(delays_ms)
        self._arrived = arrived
        self._jumps = Jumps()
        self.offset = 0
        self.last_store_timestamp = 0

    def run(self, end: int) -> None:
        """Dispatch what the log holds from `offset` to `end`.

        Raises:
            StoreDamaged: a record of our own is not one; nothing behind it is dispatched.
            OSError: the disk refuses; the next run begins where this one stopped.
            QueueBeingSaved: so it does, once the save that is under way has ended.
        """
        self.offset = max(self.offset, self._log.min_offset)
        for file, begin, stop in self._log.spans(self.offset, end):
            position = begin
            while position < stop:
                found = kernel.dispatch_records(
                    file.region.buffer,
                    position,
                    stop,
                    file.start,
                    False,  # the CRC was checked, or made, when the record came
                    RECORDS_MAX,
                    self._delays_ms,
                )
                self.take(found)
                position = found.end
                self.offset = file.start + position
                if found.stop is Stop.BLANK:
                    if stop < self._log.file_bytes:
                        return  # a slave has only a part of it yet
                    self.offset = file.start + self._log.file_bytes
                    break
                if found.stop is Stop.INCOMPLETE:
                    return
                if found.stop not in {Stop.END, Stop.LIMIT}:
                    raise StoreDamaged(
                        f"{file.region.path}: no message at log offset {self.offset} "
                        f"({found.stop.name}); run `gantrymq store verify`"
                    )

    def take(self, found: Dispatch, *, is_last: bool = True) -> None:
        """Hand what the kernel found to the queues, the index and whoever waits.

        If it is not the last, more follows at once, and at the end `settle`: a message with an
        offset that is in doubt waits for those behind it.

        Raises:
            OSError: the disk refuses; taking the same once more does what is missing.
        """
        runs = found.runs
        try:
            # Many queues with a message each are usual, not the odd case: no Python for them.
            for run in kernel.extend_queues(self._queues.tails, runs):
                queue = self._queues.queue_of(run.topic, run.queue_id)
                if queue is not None:
                    queue.append(run, self._jumps)
            if is_last:
                self.settle()
        except BaseException:
            self._jumps.forget()  # it comes again
            raise
        if self._index is not None and found.keys:
            self._index.insert(found.keys)
        # Not before all of it is in: the checkpoint takes this for what queues and index know.
        if runs:
            last = max(map(_STORE_TIMESTAMP, runs))
            self.last_store_timestamp = max(self.last_store_timestamp, last)
            try:
                self._arrived(runs)
            except Exception:
                # The queues have it. To stop here would keep every later message from its readers.
                log.exception("those who wait for messages could not all be told of new ones")

    def settle(self) -> None:
        """Append what waits for a witness that did not come; see `jumps.py`."""
        self._jumps.settle()
