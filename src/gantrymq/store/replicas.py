"""What a SYNC_MASTER must know of its slaves before it waits for one.

A send waits for a slave only if there is one that can be expected to answer: connected, and not
further behind than `haSlaveFallbehindMax`. Otherwise it is answered SLAVE_NOT_AVAILABLE
(HAService.isSlaveOK). How far slaves have come is the gate's to know.
"""

from __future__ import annotations

from typing import Protocol


class Replicas(Protocol):
    """The slaves of a master, as far as the store asks."""

    def is_available(self, end: int) -> bool:
        """Tell whether a slave can be expected to have the log up to `end` soon."""
        ...

    def moved(self) -> None:
        """Note that the log has grown, or has been forced further."""
        ...

    def shown_until(self) -> int | None:
        """Return how far messages may be shown, with failover; None: all of them."""
        ...


class NoReplicas:
    """A master that nobody has connected to."""

    __slots__ = ()

    def is_available(self, end: int) -> bool:
        """Have nobody to wait for."""
        return False

    def shown_until(self) -> int | None:
        """Show everything."""
        return None

    def moved(self) -> None:
        """Have nobody to tell."""
