"""The op queue: one record for each half message that is done with, written and read back.

A record is written when a half message was committed, rolled back, stored again or given up. After
a start the queue is read from its progress to its end, a bounded number of records at a time; until
then it is not known which half messages are open (`Ledger.is_loaded`).

Progress in both queues is kept as the committed offsets of a group, where an Apache broker keeps
it. It may be behind after a crash, never ahead: what was cut off the log with a torn end is not
taken for done with when its offsets are given to others.

Owned by the event loop's task.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from gantrymq.broker.half import HALF_QUEUE, done_with, op_record
from gantrymq.broker.stored_again import decode
from gantrymq.broker.transactions_ledger import DONE
from gantrymq.errors import GantryError
from gantrymq.model.names import HALF_OP_TOPIC, HALF_TOPIC
from gantrymq.store.status import PutStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.broker.consumer_offsets import ConsumerOffsets
    from gantrymq.broker.transactions_ledger import Ledger
    from gantrymq.clock import Clock
    from gantrymq.store.get import Found
    from gantrymq.store.message_store import MessageStore
    from gantrymq.store.put import Stored

log = logging.getLogger(__name__)

GROUP: Final = "CID_RMQ_SYS_TRANS"
READ_COUNT: Final = 32


class OpQueue:
    """Writes op records, reads them back, and keeps the progress."""

    def __init__(
        self,
        store: MessageStore,
        ledger: Ledger,
        offsets: ConsumerOffsets,
        clock: Clock,
        store_host: bytes,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._offsets = offsets
        self._clock = clock
        self._store_host = store_host

    # -- writing --------------------------------------------------------------------------------

    def write(self, half_offset: int, state: int = DONE) -> Stored:
        """Note for good that a half message is done with, and for now why.

        One whose record the store refuses is done with all the same, as far as this process knows.
        """
        stored = self._store.put([op_record(half_offset, self._clock.now_ms(), self._store_host)])
        if stored.status is PutStatus.PUT_OK:
            self._ledger.take_op(stored.queue_offset, (half_offset,), state)
        else:
            log.warning(
                "half message %d is done with, but the op record could not be stored: %s",
                half_offset,
                stored.status.value,
            )
            self._ledger.mark(half_offset, state)
        return stored

    # -- progress -------------------------------------------------------------------------------

    def restart(self) -> None:
        """Begin where the saved progress says."""
        self._ledger.restart(self._progress(HALF_TOPIC), self._progress(HALF_OP_TOPIC))

    def _progress(self, topic: str) -> int:
        """Return a saved offset, moved to where the queue has one."""
        reads = self._store.reads
        saved = self._offsets.find(GROUP, topic, HALF_QUEUE)
        least = reads.min_offset(topic, HALF_QUEUE)
        return max(least, min(saved, reads.max_offset(topic, HALF_QUEUE)))

    def save(self) -> None:
        """Let go of what is done with, and note how far that is."""
        half_offset, op_offset = self._ledger.trim()
        for topic, offset in ((HALF_TOPIC, half_offset), (HALF_OP_TOPIC, op_offset)):
            if self._offsets.find(GROUP, topic, HALF_QUEUE) != offset:
                self._offsets.commit(GROUP, topic, HALF_QUEUE, offset)

    # -- reading --------------------------------------------------------------------------------

    @property
    def is_read(self) -> bool:
        """Tell whether there is no record left to be read."""
        return self._ledger.next_op >= self._store.reads.max_offset(HALF_OP_TOPIC, HALF_QUEUE)

    def begin_read(self, done: Callable[[Found], None]) -> None:
        """Read the next records; `done` is to hand them to `take`."""
        self._store.reads.begin_get(
            HALF_OP_TOPIC, HALF_QUEUE, self._ledger.next_op, READ_COUNT, None, done
        )

    def take(self, found: Found) -> bool:
        """Take in what was read; False if nothing came of it and it has to be tried again."""
        asked = self._ledger.next_op
        for raw in found.records:
            try:
                record = decode(raw)
                offset, halves = record.queue_offset, done_with(record)
            except GantryError as error:
                log.warning("an op record at or behind %d cannot be read: %s", asked, error)
                offset, halves = self._ledger.next_op, []
            self._ledger.pass_over_ops(offset)
            self._ledger.take_op(offset, halves)
        self._ledger.pass_over_ops(found.next_offset)
        return self._ledger.next_op > asked or self.is_read
