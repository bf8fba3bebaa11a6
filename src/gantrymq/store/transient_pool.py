"""The transient store pool: buffers that a new log file's records are appended to first.

With `transientStorePoolEnable` a file that is begun takes one of a few buffers, each as long as a
log file. Senders then write to memory that no disk is behind; what they wrote is copied into the
map in larger steps (`CommitLog.commit`), and readers, dispatch and replicas see it from then on.
When a file is full and copied, its buffer comes back for the next one.

    append ─▶ buffer ─ commit: 200 ms or 4 pages ─▶ page cache ─ flush: 500 ms or 4 pages ─▶ disk

With ASYNC_FLUSH the price is that the end of the process loses what was not committed. With
SYNC_FLUSH nothing is lost: every force is preceded by a commit. (Apache 4.9 does not do that, so
every send times out there; its documentation allows the pool with ASYNC_FLUSH alone.) A slave does
not use it, for it copies bytes as they come.

A file that finds no buffer free is written through its map, or is not made at all if
`fastFailIfNoBufferInStorePool` says so. Buffers are not locked into memory, as Apache locks them.

Owned by the task that appends.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from gantrymq.store.settings import StoreSettings


class TransientPool:
    """Page-aligned buffers of one length; `free` says how many can be had."""

    def __init__(self, count: int, buffer_bytes: int, *, fails_fast: bool = False) -> None:
        self.buffer_bytes = buffer_bytes
        self.fails_fast = fails_fast
        self._free = [memoryview(mmap.mmap(-1, buffer_bytes)) for _ in range(count)]

    @property
    def free(self) -> int:
        """Return how many buffers can be had; at 0 a broker refuses sends as busy."""
        return len(self._free)

    def borrow(self) -> memoryview | None:
        """Return a buffer, or None; what it holds is anything."""
        return self._free.pop() if self._free else None

    def give_back(self, buffer: memoryview) -> None:
        """Take a buffer back."""
        if len(buffer) != self.buffer_bytes:
            raise InvalidValue(f"a buffer of {len(buffer)} bytes, not {self.buffer_bytes}")
        self._free.append(buffer)


def pool_of(settings: StoreSettings) -> TransientPool | None:
    """Return the pool that the settings ask for, or None."""
    if not settings.uses_pool:
        return None
    return TransientPool(
        settings.pool.buffers,
        settings.files.commit_log_bytes,
        fails_fast=settings.pool.fails_fast,
    )
