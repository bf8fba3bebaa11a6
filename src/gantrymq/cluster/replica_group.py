"""All slaves of a master: when a send counts as copied, and when a slave counts as there.

Without failover the rules are Apache's: the report of any one slave releases a reply, and a slave
counts if it is connected and not further behind than `haSlaveFallbehindMax`. With failover there is
an in-sync set, and everybody in it has to have reported: whoever may become master has everything
that was acknowledged. Owned by the task that owns the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gantrymq.cluster.in_sync import InSyncSet
    from gantrymq.cluster.master_link import MasterLink


class ReplicaGroup:
    """The links of a master; what the store asks about its slaves."""

    def __init__(
        self,
        gap_bytes_max: Callable[[], int],
        replicated: Callable[[int], None],
        wake: Callable[[], None],
    ) -> None:
        """Tell `replicated` how far replies may go; `wake` when there is more to send."""
        self._gap_bytes_max = gap_bytes_max
        self._replicated = replicated
        self._wake = wake
        self._links: list[MasterLink] = []
        self.in_sync: InSyncSet | None = None
        """With failover: who has to have reported."""

    @property
    def links(self) -> Iterable[MasterLink]:
        """Return the slaves that are connected."""
        return tuple(self._links)

    def joined(self, link: MasterLink) -> None:
        """Count a slave that has connected."""
        self._links.append(link)

    def left(self, link: MasterLink) -> None:
        """Count it no longer."""
        if link in self._links:
            self._links.remove(link)

    def reported(self) -> dict[int, int]:
        """Return how far each member is that has connected in this master's present epoch."""
        epoch = None if self.in_sync is None else self.in_sync.state.epoch
        return {
            link.member: link.reported
            for link in self._links
            if link.member is not None and link.has_begun and link.epoch == epoch
        }

    def confirmed(self, offset: int) -> None:
        """Note that a slave has reported the log up to `offset`."""
        if self.in_sync is None:
            self._replicated(offset)
            return
        everybody = self.in_sync.replicated(self.reported())
        if everybody is not None:
            self._replicated(everybody)

    # -- what the store asks; see `store.replicas.Replicas` ---------------------------------------

    def is_available(self, end: int) -> bool:
        """Tell whether a slave can be expected to have the log up to `end` soon."""
        gap = self._gap_bytes_max()
        if self.in_sync is not None:
            everybody = self.in_sync.replicated(self.reported())
            return everybody is not None and end - everybody < gap
        return any(link.has_begun and end - link.reported < gap for link in self._links)

    def moved(self) -> None:
        """Send on what the log has now."""
        if self._links:
            self._wake()

    def shown_until(self) -> int | None:
        """Return how far messages may be shown to consumers, with failover; None: all of them."""
        return None if self.in_sync is None else self.in_sync.shown_until(self.reported())
