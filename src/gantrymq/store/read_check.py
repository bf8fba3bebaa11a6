"""Whether a message is what its queue says, and what was sent, before a reader gets it.

A disk may give back other bytes than it was given, years later or at the next start. What this
process has appended itself is believed: it lies in memory as it was written. Everything older is
checked each time it is read, and so is all that a worker reads from the disk:

- the body has the check sum that the record carries;
- topic, queue id, queue offset and log offset of the record, and its length, are those of the unit
  that led to it. So a damaged unit never brings another queue's message.

A message that fails is passed over, as one whose file is gone, and said in the log: a reader that
was given it could only fail, and would ask for it again for ever. What Apache's format has no check
sum for (flags, times, hosts, properties) can be damaged without anybody noticing.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from gantrymq.kernel import UNIT_BYTES, kernel
from gantrymq.model.names import LMQ_PREFIX

if TYPE_CHECKING:
    from gantrymq.kernel import QueueUnit
    from gantrymq.kernel.interface import Buffer
    from gantrymq.store.consume_queue import ConsumeQueue

log = logging.getLogger(__name__)

_LINKED_BYTES: Final = 12
"""Of a unit: log offset and length. The rest is a hash, a time or an address elsewhere."""
_NO_BASE: Final = -1
_KNOWN_MAX: Final = 1024
"""Damaged messages that are remembered, so that each is said once."""


class ReadCheck:
    """Checks records of one store; `is_good` may be asked on any thread."""

    def __init__(self) -> None:
        self.trusted_from = 0
        """Where the log begins that this process has written."""
        self._known: set[int] = set()

    @property
    def damaged(self) -> int:
        """Return how many damaged messages readers have come across."""
        return len(self._known)

    def is_good(
        self, queue: ConsumeQueue, queue_offset: int, unit: QueueUnit, record: Buffer
    ) -> bool:
        """Tell whether a record is the one that a unit of a queue means, and whole."""
        if _is_linked(queue, queue_offset, unit, record):
            return True
        if unit.log_offset not in self._known and len(self._known) < _KNOWN_MAX:
            self._known.add(unit.log_offset)
            log.error(
                "message %d of queue %s/%d is damaged, or its entry is (log offset %d): it is "
                "passed over. Look with `gantrymq store verify`; the log may be mended from a "
                "slave, queues with `gantrymq store rebuild`",
                queue_offset, queue.topic, queue.queue_id, unit.log_offset,
            )  # fmt: skip
        return False

    def are_good(
        self, queue: ConsumeQueue, units: bytes, first_offset: int, packed: Buffer, messages: int
    ) -> bool:
        """Tell the same of records behind one another; `units` begin at `first_offset`."""
        if queue.topic.startswith(LMQ_PREFIX):
            return (
                kernel.scan_records(packed, 0, len(packed), _NO_BASE, True, messages).records
                == messages
            )
        found = kernel.dispatch_records(packed, 0, len(packed), _NO_BASE, True, messages, ())
        if found.records != messages:
            return False
        topic = queue.topic.encode()
        counted = 0
        for run in found.runs:
            if run.topic != topic or run.queue_id != queue.queue_id:
                return False
            at = (run.first_queue_offset - first_offset) * UNIT_BYTES
            own = units[at : at + len(run.units)] if at >= 0 else b""
            if len(own) != len(run.units) or _links(own) != _links(run.units):
                return False
            counted += len(run.units) // UNIT_BYTES
        return counted == messages


def _is_linked(queue: ConsumeQueue, queue_offset: int, unit: QueueUnit, record: Buffer) -> bool:
    found = kernel.dispatch_records(record, 0, len(record), _NO_BASE, True, 1, ())
    if found.records != 1 or found.end != len(record):
        return False
    if queue.topic.startswith(LMQ_PREFIX):
        return True  # the record is of another topic, which led it here
    if len(found.runs) != 1:
        return False
    (run,) = found.runs
    link = unit.log_offset.to_bytes(8, signed=True) + unit.size.to_bytes(4, signed=True)
    return (
        run.topic == queue.topic.encode()
        and run.queue_id == queue.queue_id
        and run.first_queue_offset == queue_offset
        and run.units[:_LINKED_BYTES] == link
    )


def _links(units: bytes) -> list[bytes]:
    return [units[at : at + _LINKED_BYTES] for at in range(0, len(units), UNIT_BYTES)]
