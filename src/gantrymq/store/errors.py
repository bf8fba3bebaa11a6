"""What may go wrong in a store, for the people who must do something about it."""

from __future__ import annotations

from gantrymq.errors import GantryError


class StoreError(GantryError):
    """Anything that the store raises on purpose."""


class StoreDamaged(StoreError):
    """The files are not what they must be; the text names the file and what to do."""


class QueueBeingSaved(StoreError):
    """A queue is to begin anew while a thread has its files in hand: try again when that is done.

    Nothing is lost meanwhile: what was to go into the queue is in the log.
    """


class StoreLocked(StoreError):
    """Another process has this store open; the text names it."""


class StoreNotWritable(StoreError):
    """The store takes no more writes, and says since when and why: a failed flush, a full disk."""


class StoreOverloaded(StoreError):
    """Too many questions wait for the disk, or the store closes: ask again later."""


class StoreBusy(StoreError):
    """The page cache is busy: appending took too long a moment ago. Send elsewhere, or later."""
