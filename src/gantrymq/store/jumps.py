"""A message whose queue offset is not the next one of its queue: is it damaged, or is there a gap?

No check sum of Apache's format covers the queue offset of a record. One flipped bit of it, believed
while a queue is built from the log, would put the message at a place far behind; those that follow
at their true places would then be taken for known ones, and be lost to their readers. A flip to 0
would look like a topic that was deleted and made again, and cost everything before.

So a single message that jumps waits for the next one of its queue, which tells:

- it goes on behind the one that jumped: that is an honest gap, or a queue that begins there;
- it goes on as if that had been the next one: that was damaged. It costs itself and nothing more:
  its place is a pre-blank unit;
- anything else is believed, as by Apache's brokers.

Two that follow one another need no witness. Of a queue that has no unit yet nobody knows where it
begins: if the second message lies before the first, the third says which of them is out of line.
What nobody has contradicted by the end is believed, unless no queue can have such an offset.

Only what jumps comes here. Owned by whoever appends to the queues.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from gantrymq.kernel import UNIT_BYTES
from gantrymq.store.errors import StoreDamaged
from gantrymq.store.unit_walk import log_offset_of

if TYPE_CHECKING:
    from gantrymq.kernel import QueueRun
    from gantrymq.store.consume_queue import ConsumeQueue

log = logging.getLogger(__name__)


class Jumps:
    """Messages that jumped and wait for a witness: one of a queue, or two where it begins."""

    def __init__(self) -> None:
        self._held: dict[ConsumeQueue, list[QueueRun]] = {}
        self.left_out = 0
        """Damaged messages that were found."""

    def takes(self, queue: ConsumeQueue, run: QueueRun) -> bool:
        """Tell whether a run jumps and is seen to here; otherwise it is to be appended now.

        Raises:
            StoreDamaged: messages that agree with one another have offsets that cannot be.
        """
        held = self._held.pop(queue, None)
        if held is None:
            # What the queue has already, by its place in the log or by its offset, is no jump.
            fresh = queue.fresh(run) if _count(run) == 1 else None
            if fresh is None or fresh.first_queue_offset == queue.max_offset:
                return False
            self._held[queue] = [run]
            return True
        if len(held) > 1:
            return self._third(queue, held[0], held[1], run)
        return self._second(queue, held[0], run)

    def settle(self) -> None:
        """Believe what nobody has contradicted, unless it cannot be."""
        while self._held:
            queue, held = self._held.popitem()
            for run in held:
                self._believe(queue, run)

    def forget(self) -> None:
        """Drop what waits: the same will come once more."""
        self._held.clear()

    def _second(self, queue: ConsumeQueue, first: QueueRun, run: QueueRun) -> bool:
        jumped, found = first.first_queue_offset, run.first_queue_offset
        if found == jumped + 1:
            queue.append(first)
            queue.append(run)
            return True
        if found == queue.max_offset + 1:
            self._leave_out(queue, first)
            return False
        if queue.is_empty and 0 < found <= jumped:
            if _count(run) > 1:
                self._leave_out(queue, first)
                return False
            self._held[queue] = [first, run]
            return True
        self._believe(queue, first)
        queue.append(run, self)
        return True

    def _third(self, queue: ConsumeQueue, first: QueueRun, second: QueueRun, run: QueueRun) -> bool:
        found = run.first_queue_offset
        if found == second.first_queue_offset + 1:
            self._leave_out(queue, first)
            queue.append(second)
        elif found == first.first_queue_offset + 2:
            self._leave_out(queue, second)
            queue.append(first)
        else:
            self._believe(queue, first)
            self._believe(queue, second)
        queue.append(run, self)
        return True

    def _believe(self, queue: ConsumeQueue, run: QueueRun) -> None:
        try:
            queue.append(run)
        except StoreDamaged:
            self._leave_out(queue, run)

    def _leave_out(self, queue: ConsumeQueue, run: QueueRun) -> None:
        self.left_out += 1
        log.error(
            "the message at log offset %d says that it has offset %d of queue %s/%d, which cannot "
            "be: it is damaged, and readers do not get it. Mend the log from a slave or a backup",
            log_offset_of(run.units), run.first_queue_offset, queue.topic, queue.queue_id,
        )  # fmt: skip


def _count(run: QueueRun) -> int:
    return len(run.units) // UNIT_BYTES
