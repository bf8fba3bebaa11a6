"""The end of a consume queue as the kernel sees it: new units are added there without Python.

A part of the kernel's interface, whose rules hold here too. `reference/queue_tails.py` is the
meaning, `native/` is the speed.
"""

from __future__ import annotations

from typing import Protocol, Self


class QueueTail(Protocol):
    """Where a queue ends, and the units before that which are in memory.

    Who owns the queue opens the tail when a run that continues it needs nothing but to be added,
    and closes it when that is no longer so. Owned by one task.
    """

    end: int
    """The position behind the last unit, in bytes from the first one ever."""
    log_end: int
    """The log offset behind the last message; 0 without one."""
    is_open: bool

    @property
    def data(self) -> bytearray:
        """Return the bytes before `end` that are in memory."""
        ...

    def copy(self) -> Self:
        """Return another one that holds the same, closed."""
        ...
