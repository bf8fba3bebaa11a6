"""The client side: connections made on demand, one for each address.

Requests that come from the server side of such a connection, as a broker's notifications do, go to
the service given here.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from gantrymq.transport.addresses import split_address
from gantrymq.transport.client_connection import ClientConnection
from gantrymq.transport.command_service import CommandService
from gantrymq.transport.settings import KIB, TransportSettings
from gantrymq.transport.table import ConnectionTable
from gantrymq.wire.peer import PeerGone, PeerLate

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from gantrymq.clock import Clock
    from gantrymq.transport.tls import ClientTls
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Service

CONNECT_TIMEOUT_S: Final = 3.0
BACK_OFF_S: Final = 0.1
"""After the first failed attempt; doubled with each further one."""
BACK_OFF_S_MAX: Final = 5.0
ADDRESSES_MAX: Final = 4096
"""Addresses that a pool remembers."""
END_LOOKS: Final = 5
END_LOOK_S: Final = 0.1
"""How often, and for how long each time, a pool that closes waits for its connections to end."""
SINGLE_RECEIVE_BYTES: Final = 128 * KIB


def context_of(tls: ClientTls | ssl.SSLContext | None) -> ssl.SSLContext | None:
    """Return the TLS context of settings, or the one that was given.

    Raises:
        InvalidValue: the settings are wrong.
    """
    if tls is None:
        return None
    from ssl import SSLContext  # noqa: PLC0415  (slow to load, wanted by few)

    return tls if isinstance(tls, SSLContext) else tls.context()


async def connect(
    host: str,
    port: int,
    service: Service | None = None,
    tls: ClientTls | ssl.SSLContext | None = None,
    timeout_s: float = CONNECT_TIMEOUT_S,
    *,
    table: ConnectionTable | None = None,
) -> ClientConnection:
    """Return a new connection.

    Raises:
        PeerGone: nobody is there, or not one to be trusted.
        PeerLate: it took longer than `timeout_s`.
        InvalidValue: the TLS settings are wrong.
    """
    loop = asyncio.get_running_loop()
    if table is None:
        table = ConnectionTable(loop, TransportSettings(receive_bytes=SINGLE_RECEIVE_BYTES))
    context = context_of(tls)
    made = ClientConnection(table, service or CommandService())
    try:
        async with asyncio.timeout(timeout_s):
            await loop.create_connection(lambda: made, host, port, ssl=context)
    except TimeoutError:
        made.abort("connecting took too long")
        raise PeerLate(f"{host}:{port}: no connection within {timeout_s:g} s") from None
    except (OSError, UnicodeError) as error:  # UnicodeError: a name that no DNS can have
        raise PeerGone(f"{host}:{port}: cannot connect: {error}") from error
    except asyncio.CancelledError:
        made.abort("nobody waits for it any more")
        raise
    return made


def _look_at_error(attempt: asyncio.Task[ClientConnection]) -> None:
    """Keep asyncio from reporting an attempt that failed after all who waited had left."""
    if not attempt.cancelled():
        attempt.exception()


class _Line:
    """What a pool knows of one address."""

    __slots__ = ("attempt", "connection", "failures", "not_before", "problem")

    def __init__(self) -> None:
        self.connection: ClientConnection | None = None
        self.attempt: asyncio.Task[ClientConnection] | None = None
        self.failures = 0
        self.not_before = 0.0
        self.problem = ""

    @property
    def is_in_use(self) -> bool:
        """Tell whether there is a connection, or will be."""
        return self.attempt is not None or (self.connection is not None and self.connection.is_open)


class Connections:
    """A pool: one connection for each address, made when it is needed and made again when it broke.

    Callers that want the same address at the same time share one attempt. After a failed attempt
    there is none for a while, and callers are told at once. Owned by the event loop's thread.
    """

    def __init__(
        self,
        service: Service | None = None,
        tls: ClientTls | ssl.SSLContext | None = None,
        *,
        settings: TransportSettings | None = None,
        clock: Clock | None = None,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        back_off_s_max: float = BACK_OFF_S_MAX,
        sign: Callable[[Command], Command] | None = None,
    ) -> None:
        """Must be called on a running loop; `sign` is given every request before it is sent."""
        self._sign = sign
        self._service = service or CommandService()
        self._context = context_of(tls)
        self._connect_timeout_s = connect_timeout_s
        self._back_off_s_max = back_off_s_max
        self._lines: dict[str, _Line] = {}
        self._is_closed = False
        self.table = ConnectionTable(asyncio.get_running_loop(), settings, clock)

    def open_connection(self, address: str) -> ClientConnection | None:
        """Return the connection to `host:port` if there is one now."""
        line = self._lines.get(address)
        if line is not None and line.connection is not None and line.connection.is_open:
            return line.connection
        return None

    async def connection(self, address: str) -> ClientConnection:
        """Return the connection to `host:port`, made if there is none.

        Raises:
            PeerGone: there is none, or the last attempt failed a moment ago.
            PeerLate: connecting took too long.
            InvalidValue: the address is none.
        """
        line = self._lines.get(address)
        if line is None:
            line = self._add(address)
        if line.connection is not None and line.connection.is_open:
            return line.connection
        if line.attempt is None:
            self._check_may_try(address, line)
            line.attempt = self.table.loop.create_task(self._attempt(address, line))
            line.attempt.add_done_callback(_look_at_error)
        attempt = line.attempt
        try:
            # One caller that gives up must not take the attempt from the others.
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if attempt.cancelled() and caller is not None and not caller.cancelling():
                raise PeerGone(f"{address}: the connection was given up") from None
            raise

    async def ask(self, address: str, request: Command, timeout_s: float) -> Command:
        """Send a request and return its answer, whatever it says; connecting counts as waiting.

        Raises:
            PeerGone: the peer cannot be reached, or the connection broke before the answer.
            PeerLate: there was no answer within `timeout_s`.
            InvalidValue: the address is none, or the request cannot be encoded.
        """
        if self._sign is not None:
            request = self._sign(request)
        connection = self.open_connection(address)
        if connection is not None and not connection.is_congested:
            return await connection.ask(request, timeout_s)
        loop = self.table.loop
        end = loop.time() + timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                connection = await self.connection(address)
                await connection.writable()
        except TimeoutError:
            raise PeerLate(f"{address}: no connection within {timeout_s:g} s") from None
        return await connection.ask(request, max(end - loop.time(), 0.0))

    async def tell(self, address: str, request: Command) -> bool:
        """Send a request that gets no answer; False if the peer does not read.

        Raises:
            PeerGone, PeerLate, InvalidValue: as `connection` does.
        """
        connection = await self.connection(address)
        return connection.tell(request if self._sign is None else self._sign(request))

    def drop(self, address: str, reason: str) -> None:
        """Close the connection to an address, if there is one, and forget its failures."""
        line = self._lines.pop(address, None)
        if line is not None:
            self._end(line, reason)

    async def close(self) -> None:
        """Close all connections and make no more."""
        self._is_closed = True
        for line in self._lines.values():
            self._end(line, "the client is closed")
        attempts = [line.attempt for line in self._lines.values() if line.attempt is not None]
        self._lines.clear()
        if attempts:
            await asyncio.wait(attempts)
        await self._end_all()
        self.table.stop_sweeping()

    async def _end_all(self) -> None:
        """End every connection, in a bounded time.

        One whose making was cancelled may be there only a moment later, or be closed by its loop
        and never told so: nobody waits for it for ever.
        """
        for _ in range(END_LOOKS):
            for connection in tuple(self.table.connections.values()):
                connection.abort("the client is closed")
            try:
                async with asyncio.timeout(END_LOOK_S):
                    await self.table.wait_until_empty()
            except TimeoutError:
                continue
            return
        for connection in tuple(self.table.connections.values()):
            connection.connection_lost(None)

    @staticmethod
    def _end(line: _Line, reason: str) -> None:
        if line.attempt is not None:
            line.attempt.cancel()
        if line.connection is not None:
            line.connection.close(reason)

    def _add(self, address: str) -> _Line:
        split_address(address)
        if len(self._lines) >= ADDRESSES_MAX:
            unused = [name for name, line in self._lines.items() if not line.is_in_use]
            for name in unused:
                del self._lines[name]
            if not unused:
                raise PeerGone(f"{address}: there are {ADDRESSES_MAX} connections already")
        line = self._lines[address] = _Line()
        return line

    def _check_may_try(self, address: str, line: _Line) -> None:
        if self._is_closed:
            raise PeerGone(f"{address}: the client is closed")
        wait_s = line.not_before - self.table.clock.monotonic()
        if wait_s > 0:
            raise PeerGone(f"{line.problem}; the next attempt can be made in {wait_s:.1f} s")

    async def _attempt(self, address: str, line: _Line) -> ClientConnection:
        host, port = split_address(address)
        try:
            line.connection = await connect(
                host,
                port,
                self._service,
                self._context,
                self._connect_timeout_s,
                table=self.table,
            )
        except (PeerGone, PeerLate) as error:
            wait_s = min(BACK_OFF_S * 2**line.failures, self._back_off_s_max)
            line.failures = min(line.failures + 1, 16)
            line.not_before = self.table.clock.monotonic() + wait_s
            line.problem = str(error)
            raise
        else:
            line.failures = 0
            return line.connection
        finally:
            line.attempt = None
