"""One file of the commit log: where it begins, and how far it has been written, committed, forced.

    0          flushed       committed        wrote                size
    |------------|---------------|--------------|-------------------|
     on the disk   in the page     appended       zeros
                   cache

Without a transient buffer what is written is committed at once, for it is written through the map.
With one, records are appended to memory of our own and copied into the map by `commit`, in larger
steps. Readers, dispatch and replicas see what is committed and nothing else.

Owned by the task that appends; `flushed` is moved by that task when a flush thread reports back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from gantrymq.store.files import Region

PAGE_BYTES: Final = 4096
_HEAD_BYTES: Final = 8
"""Length and magic of a record: without them there is none."""


def is_due(position: int, done: int, size: int, least_pages: int) -> bool:
    """Tell whether [done, position) of a file is worth a flush, or a commit.

    A full file always is; otherwise `least_pages` must have been begun since, or, if that is 0,
    a single byte. Agrees with MappedFile.isAbleToFlush.
    """
    if position == size:
        return True
    if least_pages > 0:
        return position // PAGE_BYTES - done // PAGE_BYTES >= least_pages
    return position > done


class MappedFile:
    """A commit log file and its positions, relative to its start."""

    __slots__ = ("_region", "_transient", "committed", "flushed", "start", "wrote")

    def __init__(self, start: int, region: Region, transient: memoryview | None = None) -> None:
        if transient is not None and len(transient) != region.size:
            raise InvalidValue(
                f"a transient buffer of {len(transient)} bytes for a file of {region.size}"
            )
        self.start = start
        self.wrote = 0
        self.committed = 0
        self.flushed = 0
        self._region = region
        self._transient = transient

    @property
    def size(self) -> int:
        """Return the file's fixed length."""
        return self._region.size

    @property
    def region(self) -> Region:
        """Return the mapped file itself, for a flush thread."""
        return self._region

    @property
    def tail(self) -> memoryview:
        """Return the buffer that records are appended to."""
        return self._region.buffer if self._transient is None else self._transient

    @property
    def is_buffered(self) -> bool:
        """Tell whether records are appended to a transient buffer."""
        return self._transient is not None

    @property
    def is_full(self) -> bool:
        """Tell whether nothing more will be appended here."""
        return self.wrote == self.size

    def advance(self, position: int) -> None:
        """Note that records were appended up to `position`."""
        if not self.wrote <= position <= self.size:
            raise InvalidValue(f"position {position} is not between {self.wrote} and {self.size}")
        self.wrote = position
        if self._transient is None:
            self.committed = position

    def cut(self, position: int) -> None:
        """Drop what was appended behind a position; zeros are left, as behind every tail."""
        self.tail[position : self.wrote] = bytes(self.wrote - position)
        self.wrote = position
        self.committed = min(self.committed, position)
        self.flushed = min(self.flushed, position)

    def commit(self) -> int:
        """Copy what was appended into the map; return the bytes that became readable."""
        if self._transient is None:
            return 0
        begin, end = self.committed, self.wrote
        # Its first magic last: a kill in between leaves none of it, not a record without its end.
        head = min(begin + _HEAD_BYTES, end)
        self._region.buffer[head:end] = self._transient[head:end]
        self._region.buffer[begin:head] = self._transient[begin:head]
        self.committed = end
        return end - begin

    def release_transient(self) -> memoryview | None:
        """Give the transient buffer back, once the file is full and committed."""
        if self._transient is None or self.committed < self.size:
            return None
        buffer, self._transient = self._transient, None
        return buffer

    def read(self, position: int, count: int) -> memoryview | None:
        """Return committed bytes as a slice of the map, or None if they are not all there."""
        if not 0 <= position <= position + count <= self.committed:
            return None
        return self._region.buffer[position : position + count]

    def recovered(self, position: int) -> None:
        """Set every position to what recovery found."""
        self.wrote = self.committed = self.flushed = position

    def close(self) -> None:
        """Give up the mapping; slices that were handed out stay good."""
        self._region.close()
