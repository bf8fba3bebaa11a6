"""What a SYNC_MASTER must know of its slaves before it waits for one.

A send waits for a slave only if there is one that can be expected to answer: connected, and not
further behind than `haSlaveFallbehindMax`. Otherwise it is answered SLAVE_NOT_AVAILABLE
(HAService.isSlaveOK). How far slaves have come is the gate's to know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gantrymq.store.gate import DurabilityGate


class Replicas(Protocol):
    """The slaves of a master, as far as the store asks."""

    def is_available(self, end: int) -> bool:
        """Tell whether a slave can be expected to have the log up to `end` soon."""
        ...


class NoReplicas:
    """A master that nobody has connected to."""

    __slots__ = ()

    def is_available(self, end: int) -> bool:
        """Have nobody to wait for."""
        return False


class ConnectedReplicas:
    """Counts connected slaves and compares with what they have; owned by the store's task."""

    def __init__(self, gate: DurabilityGate, behind_bytes_max: int) -> None:
        self.connections = 0
        self.behind_bytes_max = behind_bytes_max
        self._gate = gate

    def joined(self) -> None:
        """Count a slave that has connected."""
        self.connections += 1

    def left(self) -> None:
        """Count it no longer."""
        self.connections -= 1

    def is_available(self, end: int) -> bool:
        """Tell whether one is connected, and the best of all slaves is near enough."""
        return self.connections > 0 and end - self._gate.replicated_offset < self.behind_bytes_max
