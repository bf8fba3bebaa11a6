"""How many connections a server takes, in all and of one address, and which it has sent away.

Owned by the event loop's thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gantrymq.transport.rare_log import RareLog
    from gantrymq.transport.settings import TransportSettings


class Admission:
    """Counts sockets by address, from their acceptance to their end."""

    def __init__(self) -> None:
        self._by_address: dict[str, int] = {}
        self.refused = {"all": 0, "address": 0}
        """Connections that were closed at once, by which bound they were over."""

    def of(self, address: str) -> int:
        """Return how many sockets of an address there are."""
        return self._by_address.get(address, 0)

    def admit(
        self, address: str, count: int, settings: TransportSettings, rare_log: RareLog
    ) -> bool:
        """Tell whether another socket may stay, where there are `count`; note it if it may."""
        if count >= settings.connections_max:
            self.refused["all"] += 1
            rare_log.warning(
                "connections",
                f"a new connection was closed: there are {settings.connections_max}, as many as"
                " connections_max (maxConnections) allows",
            )
            return False
        most = settings.address_connections_max
        if most and self.of(address) >= most:
            self.refused["address"] += 1
            rare_log.warning(
                f"connections {address}",
                f"a new connection of {address} was closed: it has {most}, as many as"
                " maxConnectionsPerAddress allows",
            )
            return False
        self._by_address[address] = self.of(address) + 1
        return True

    def leave(self, address: str) -> None:
        """Forget a socket."""
        left = self.of(address) - 1
        if left > 0:
            self._by_address[address] = left
        else:
            self._by_address.pop(address, None)
