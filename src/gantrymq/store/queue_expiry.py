"""Where a consume queue begins, now that the log begins later; and which of its files go.

The log is cut from its beginning, and every queue follows: it begins with the first message that
the log still has. To find that message is a search by halves over the units, a few reads of a file
that may be cold, for each of thousands of queues. So a thread does it, over a view of the queue as
it was when it was asked (`QueueSearch`), and the owner takes the answer (`QueueBegin`) if the queue
is still the same. Then the files that lie before that message are removed by a thread, one by one,
and when they are gone the owner forgets them (`ExpiredFiles`). A removal that failed has changed
nothing but the min offset, and is asked for again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from gantrymq.kernel import UNIT_BYTES
from gantrymq.store.consume_queue_ext import is_ext_address
from gantrymq.store.unit_walk import UNIT, find_message

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.store.consume_queue import ConsumeQueue
    from gantrymq.store.queue_files import QueueFiles


class QueueBegin(NamedTuple):
    """What a search has found."""

    position: int
    """Of the first message that the log still has; the end of the queue without one."""
    log_offset: int
    """Of that message; -1 without one."""
    ext_address: int
    """Nothing below this address of the extension is needed; 0: nothing is known."""


@dataclass(frozen=True, slots=True)
class QueueSearch:
    """A queue as it is now, and the question where it begins."""

    files: QueueFiles
    start: int
    log_min_offset: int
    ext_end: int

    def find(self) -> QueueBegin:
        """Look for the first message at or behind the log's first byte; may run on any thread.

        Raises:
            FileNotFoundError: the queue was begun anew meanwhile.
            StoreDamaged: a file is shorter than it was.
        """
        found = find_message(self.files, self.start, self.files.end, self.log_min_offset)
        if found is None:
            return QueueBegin(self.files.end, -1, self.ext_end)
        position, log_offset = found
        _offset, _size, tags_code = UNIT.unpack(self.files.read(position, UNIT_BYTES))
        return QueueBegin(position, log_offset, tags_code if is_ext_address(tags_code) else 0)


class ExpiredFiles(NamedTuple):
    """Files of one queue, and of its extension, that go."""

    queue: ConsumeQueue
    paths: list[Path]
    """Oldest first."""
    keep: int
    ext_keep: int
    restarts: int
