"""A server: listening sockets, one service for all that connects, an orderly end."""

from __future__ import annotations

import asyncio
import logging
import socket
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from gantrymq.clock import SystemClock
from gantrymq.transport.accepting import Accepting
from gantrymq.transport.addresses import socket_host
from gantrymq.transport.ages import ReadTimes
from gantrymq.transport.certificates import Certificates
from gantrymq.transport.connection import Connection
from gantrymq.transport.table import ConnectionTable
from gantrymq.transport.tls import ServerTls

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Sequence

    from gantrymq.clock import Clock
    from gantrymq.transport.settings import TransportSettings
    from gantrymq.wire.peer import Service

logger = logging.getLogger(__name__)


class Server:
    """Listens on one or more addresses. Owned by the event loop's thread.

    `addresses` are (host, port); a broker has its own port and the VIP port two below. Port 0 lets
    the system choose; `bound` says what it chose.
    """

    def __init__(
        self,
        service: Service,
        addresses: Sequence[tuple[str, int]],
        *,
        settings: TransportSettings | None = None,
        tls: ServerTls | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._service = service
        self._addresses = tuple(addresses)
        self._settings = settings
        self._tls = tls or ServerTls()
        self._clock = clock
        self._table: ConnectionTable | None = None
        self._accepting: Accepting | None = None
        self._beginning: set[asyncio.Task[None]] = set()
        self.bound: tuple[str, ...] = ()
        """`host:port` of every listening socket, in the order of the addresses."""

    @property
    def table(self) -> ConnectionTable:
        """Return the connections.

        Raises:
            RuntimeError: the server has not been started.
        """
        if self._table is None:
            raise RuntimeError("the server has not been started")
        return self._table

    @property
    def silent_count(self) -> int:
        """Return how many accepted sockets have not said anything yet."""
        return 0 if self._accepting is None else self._accepting.silent_count

    async def start(self) -> Self:
        """Bind all addresses, then accept; if one cannot be bound, none is.

        Raises:
            OSError: an address cannot be bound; the text says which.
            InvalidValue: the TLS settings are wrong.
        """
        clock = self._clock or SystemClock()
        certificates = Certificates(self._tls, clock.monotonic())
        loop = asyncio.get_running_loop()
        listeners: list[socket.socket] = []
        try:
            for host, port in self._addresses:
                listeners += await _bind(loop, host, port)
        except OSError:
            for listener in listeners:
                listener.close()
            raise
        self._table = ConnectionTable(loop, self._settings, self._clock)
        self._table.read_times = ReadTimes(loop, self._table.clock)
        accepting = self._accepting = Accepting(
            self._table, self._tls.mode, certificates.context, self._begin, self._count
        )

        def look(now: float) -> None:
            accepting.look(now)
            if (renewed := certificates.look(now)) is not None:
                accepting.use(renewed)

        self._table.on_sweep = look
        self._table.start_sweeping()
        for listener in listeners:
            self._accepting.listen(listener)
        self.bound = tuple(socket_host(listener.getsockname()).text for listener in listeners)
        logger.info("listening on %s", ", ".join(self.bound))
        return self

    def _count(self) -> int:
        return len(self.table.connections) + len(self._beginning)

    def tell_pressure(self, told: Callable[[float], None]) -> None:
        """Tell from now on which share of what comes can be taken in; see `pressure`."""
        times = self.table.read_times
        if times is not None:
            times.pressure.told = told
            told(times.pressure.share)

    def limit_connections(self, connections_max: int, address_connections_max: int) -> None:
        """Take so many connections from now on; those that are there stay."""
        table = self.table
        table.settings = replace(
            table.settings,
            connections_max=connections_max,
            address_connections_max=address_connections_max,
        )

    def _begin(self, accepted: socket.socket, address: str, context: ssl.SSLContext | None) -> None:
        table = self.table
        connection = Connection(table, self._service)
        task = table.loop.create_task(self._connect(connection, accepted, context))
        self._beginning.add(task)

        def is_done(done: asyncio.Task[None]) -> None:
            self._beginning.discard(done)
            if connection.number not in table.connections:  # it came to nothing, or is over
                table.admission.leave(address)
            else:
                connection.admitted_as = address

        task.add_done_callback(is_done)

    async def _connect(
        self, connection: Connection, accepted: socket.socket, context: ssl.SSLContext | None
    ) -> None:
        """Make a connection of a socket that has spoken; with TLS this takes a while."""
        table = self.table
        try:
            await table.loop.connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=context,
                ssl_handshake_timeout=table.settings.handshake_s if context else None,
            )
        except OSError as error:  # of which TLS errors and time-outs are kinds
            why = str(error) or f"it ended during the TLS handshake ({type(error).__name__})"
            table.rare_log.warning("handshake", f"a connection did not come about: {why}")
            accepted.close()
        except asyncio.CancelledError:
            # uvloop closes what it has just made, and does not say so.
            connection.connection_lost(None)
            raise

    async def stop(self, drain_s: float) -> None:
        """Accept and read no more; let answers out for `drain_s` at most; close everything."""
        if self._table is None or self._accepting is None:
            return
        table = self._table
        self._accepting.close()
        await asyncio.sleep(0)  # a task that is cancelled before it began would leak its socket
        for task in self._beginning:
            task.cancel()
        if self._beginning:
            await asyncio.wait(tuple(self._beginning))
        for connection in tuple(table.connections.values()):
            connection.finish("the server is stopping")
        try:
            await asyncio.wait_for(table.wait_until_empty(), drain_s)
        except TimeoutError:
            left = tuple(table.connections.values())
            logger.warning("cutting %d connections that did not end in %g s", len(left), drain_s)
            for connection in left:
                connection.abort("the server is stopping")
            await table.wait_until_empty()
        table.stop_sweeping()
        if table.read_times is not None:
            table.read_times.pressure.stop()


async def _bind(loop: asyncio.AbstractEventLoop, host: str, port: int) -> list[socket.socket]:
    """Return a bound socket for each address that a host has."""
    try:
        found = await loop.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise OSError(
            error.errno, f"cannot listen on {host}:{port}: {error.strerror or error}"
        ) from error
    listeners: list[socket.socket] = []
    for family, kind, protocol, _name, address in dict.fromkeys(found):
        listener = socket.socket(family, kind, protocol)
        listeners.append(listener)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind(address)
        except OSError as error:
            for opened in listeners:
                opened.close()
            raise OSError(
                error.errno, f"cannot listen on {host or '*'}:{port}: {error.strerror or error}"
            ) from error
    return listeners
