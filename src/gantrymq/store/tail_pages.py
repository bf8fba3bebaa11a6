"""Pages in front of the log's tail, made writable on a thread before an append comes to them.

The first write to a page of a mapped file is a fault, and so is the first one after the page was
written to the disk. The kernel then wants to note the file's new time in the file system's journal,
and while a force has that journal closed, the fault waits for the force: tens of milliseconds on a
busy disk, in the one task that everybody waits for. Measured beside a reader of cold data, one
append in a thousand took 25 ms so, and 0.15 ms with the pages touched ahead.

So a thread touches what the next half second of appends will need, and a force leaves the page of
the tail alone where nobody waits for it (`flush.py`). With a low rate that is one mebibyte. A page
that the kernel has written back before it was used is an ordinary fault again.

Owned by the task that appends; the thread gets slices of the maps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.kernel import kernel
from gantrymq.store.mapped_file import PAGE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.clock import Clock
    from gantrymq.store.files import Region
    from gantrymq.store.mapped_file import MappedFile
    from gantrymq.store.worker import Worker

AHEAD_S: Final = 0.5
"""A force beside a busy disk can keep a fault waiting for so long."""
AHEAD_BYTES_MIN: Final = 1 << 20
AHEAD_BYTES_MAX: Final = 32 << 20


class TailPages:
    """Follows the tail of one log."""

    def __init__(self, worker: Worker, clock: Clock) -> None:
        self.due = 0
        """Log offset from which on the tail is to be followed further."""
        self._worker = worker
        self._clock = clock
        self._reach = 0
        self._is_busy = False
        self._seen = 0
        self._seen_at = 0.0

    def follow(self, tail: MappedFile, following: Callable[[], Region | None]) -> None:
        """Have the pages touched that come next; `following` is the file behind the last one."""
        wrote = tail.start + tail.wrote
        window = self._window(wrote)
        self.due = wrote + min(window, AHEAD_BYTES_MIN) // 2
        if self._is_busy or tail.is_buffered:
            return
        begin, end = max(self._reach, wrote), wrote + window
        slices = [_slice(tail.region, begin - tail.start, end - tail.start)]
        behind = tail.start + tail.size
        region = following() if end > behind else None
        if region is not None:
            slices.append(_slice(region, begin - behind, end - behind))
        elif end > behind:
            end = behind
        if end > begin:
            self._reach, self.due = end, max(self.due, end - window // 2)
            self._is_busy = True
            self._worker.submit(lambda: _touch(slices), self._touched, self._touched)

    def _window(self, wrote: int) -> int:
        """Return how far to go: what is appended in half a second, going by the last time."""
        now = self._clock.monotonic()
        rate = (wrote - self._seen) / max(now - self._seen_at, 0.001)
        self._seen, self._seen_at = wrote, now
        return int(min(max(rate * AHEAD_S, AHEAD_BYTES_MIN), AHEAD_BYTES_MAX))

    def _touched(self, _outcome: object) -> None:
        self._is_busy = False


def _slice(region: Region, begin: int, end: int) -> memoryview:
    return region.buffer[max(begin, 0) : max(end, 0)]


def _touch(slices: list[memoryview]) -> None:
    """Write a byte of every page, as it is; runs on the worker."""
    for one in slices:
        kernel.touch_pages(one, 0, len(one), PAGE_BYTES)
        one.release()
