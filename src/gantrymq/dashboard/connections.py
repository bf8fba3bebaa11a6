"""Connections of browsers: bounded in number, together and for each peer, and in time.

uvicorn waits for the first request of a connection for as long as it takes, and holds any number of
connections that ask nothing. The broker beside it needs those file descriptors.
"""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

from gantrymq.dashboard.settings import CONNECTIONS_MAX, network_of

if TYPE_CHECKING:
    import asyncio

CONNECTIONS_OF_ONE_MAX: Final = 128
"""From one address that is no proxy."""
HEAD_S_MAX: Final = 10.0
"""For a request's head, and for what is left of a body that nobody reads any more."""
ANSWER_S_MAX: Final = 300.0
"""For a request to be worked on and its answer to be taken."""


class BoundedProtocol(H11Protocol):
    """One connection."""

    proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    """Many people are behind one of these: it has as many connections as there are."""
    _network: str = ""
    _timer: asyncio.TimerHandle | None = None
    _is_timed_for_work = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Refuse a connection too many; else wait for a request, but not for long."""
        super().connection_made(transport)
        self._network = network_of(self.client[0]) if self.client is not None else ""
        if not self._is_welcome():
            self.connections.discard(self)  # so that the next one is not refused for this one
            transport.abort()
            return
        self._time(HEAD_S_MAX)

    def _is_welcome(self) -> bool:
        if len(self.connections) > CONNECTIONS_MAX:
            return False
        if self.client is not None and self._is_proxy(self.client[0]):
            return True
        listed = [each for each in self.connections if isinstance(each, BoundedProtocol)]
        own = [each for each in listed if each._network == self._network]
        return len(own) <= CONNECTIONS_OF_ONE_MAX

    def _is_proxy(self, host: str) -> bool:
        if not self.proxies:
            return False
        try:
            address = ip_address(host.partition("%")[0])
        except ValueError:
            return False
        return any(address in network for network in self.proxies)

    def data_received(self, data: bytes) -> None:
        """Take what came; a request that is whole has more time than one that is not."""
        super().data_received(data)
        if self._is_at_work != self._is_timed_for_work or self._timer is None:
            self._time(ANSWER_S_MAX if self._is_at_work else HEAD_S_MAX)

    def on_response_complete(self) -> None:
        """Leave a connection without a request to uvicorn's own, shorter patience."""
        self._end_timer()
        super().on_response_complete()
        if self._is_at_work:  # the next request was there already
            self._time(ANSWER_S_MAX)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._end_timer()
        super().connection_lost(exc)

    def timeout_keep_alive_handler(self) -> None:
        """Close it; who does not take the rest of an answer is not waited for without end."""
        super().timeout_keep_alive_handler()
        self._end_timer()
        self._timer = self.loop.call_later(ANSWER_S_MAX, self.transport.abort)

    @property
    def _is_at_work(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _time(self, seconds: float) -> None:
        self._end_timer()
        self._is_timed_for_work = self._is_at_work
        if not self.transport.is_closing():
            self._timer = self.loop.call_later(seconds, self.transport.abort)

    def _end_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def protocol_with(proxies: tuple[str, ...]) -> type[BoundedProtocol]:
    """Return the protocol of a server that is behind these."""
    networks = tuple(map(ip_network, proxies))
    return type("_Protocol", (BoundedProtocol,), {"proxies": networks})
