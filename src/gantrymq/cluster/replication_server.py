"""The master's side of the replication port: sockets around `master_link`.

Everything happens on the event loop: reports come in, and what the log has grown by goes out at the
end of the turn that it grew in, as slices of the mapped files. A connection that does not read is
not written to (`WRITE_BYTES_MAX` wait in memory at most).

The protocol is Apache's and has no word for who is there. Whoever reaches the port is given the
whole log, and what it reports releases replies to producers. So the port belongs into a network of
its own, or certificates say who is there (`replication_tls`), or `haAllowedAddresses` names those
who may connect; nobody else gets a byte.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from gantrymq.cluster.frames import LinkBroken
from gantrymq.cluster.master_link import LinkRules, MasterLink
from gantrymq.transport.addresses import socket_host

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.clock import Clock
    from gantrymq.cluster.replica_group import ReplicaGroup
    from gantrymq.cluster.replication_tls import ReplicationTls, ServedCertificate
    from gantrymq.cluster.store_sides import StoreSentLog

log = logging.getLogger(__name__)

CONNECTIONS_MAX: Final = 64
WRITE_BYTES_MAX: Final = 1 << 20
"""What waits in memory for one slave; also what it is given in one turn."""
HANDSHAKE_S_MAX: Final = 10.0


class ServedParts(NamedTuple):
    """What a connection works with."""

    group: ReplicaGroup
    sent_log: Callable[[Callable[[], None]], StoreSentLog]
    rules: Callable[[], LinkRules]
    clock: Clock
    is_master: Callable[[], bool]
    epoch: Callable[[], int | None]
    """Of this master, with failover."""
    allowed: Callable[[str], bool]
    """Whether the broker at `host:port` may copy the log: nobody signs anything on this port."""


class _SlaveConnection(asyncio.Protocol):
    """One slave; `link` decides, this moves bytes."""

    def __init__(self, server: ReplicationServer, parts: ServedParts) -> None:
        self._server = server
        self._parts = parts
        self._transport: asyncio.Transport | None = None
        self._is_paused = False
        self._is_due = False
        self.peer = "?"
        self._log = parts.sent_log(self.wake)
        self.link = MasterLink(self._log, parts.clock.monotonic(), parts.epoch())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a connection, if there is room and this is a master."""
        made = self._transport = cast("asyncio.Transport", transport)
        self.peer = socket_host(made.get_extra_info("peername")).text
        if not self._parts.allowed(self.peer):
            self.abort("it may not copy this log; haAllowedAddresses says who may")
            return
        if not self._parts.is_master() or len(self._server.connections) >= CONNECTIONS_MAX:
            made.abort()
            return
        raw = made.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.set_write_buffer_limits(high=WRITE_BYTES_MAX)
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Count the slave no longer."""
        if self in self._server.connections:
            self._server.connections.discard(self)
            self._parts.group.left(self.link)
            if self.link.has_begun:
                why = f": {exc}" if exc else ""
                log.warning("slave %s is gone at offset %d%s", self.peer, self.link.reported, why)
        self._transport = None

    def data_received(self, data: bytes) -> None:
        """Take reports."""
        had_begun = self.link.has_begun
        try:
            confirmed = self.link.received(data, self._parts.clock.monotonic())
        except LinkBroken as error:
            self.abort(str(error))
            return
        if not had_begun and self.link.has_begun:
            log.info("slave %s copies from offset %d on", self.peer, self.link.next_offset)
            self._parts.group.joined(self.link)
        if confirmed is not None:
            self._parts.group.confirmed(confirmed)
        self.wake()

    def pause_writing(self) -> None:
        """Write no more: the slave does not read."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """Go on."""
        self._is_paused = False
        self.wake()

    def wake(self) -> None:
        """Send what there is at the end of this turn of the loop."""
        if not self._is_due and not self._is_paused and self._transport is not None:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._send)

    def _send(self) -> None:
        self._is_due = False
        transport, link = self._transport, self.link
        if transport is None or transport.is_closing() or self._is_paused:
            return
        frames = link.frames(self._parts.rules(), self._parts.clock.monotonic(), WRITE_BYTES_MAX)
        if frames:
            transport.writelines(frames)
            self.wake()  # there may be more than one turn's worth
        elif self._log.failure is not None:
            self.abort(self._log.failure)

    def tick(self, now: float) -> None:
        """Show that this master lives, and see whether the slave does."""
        if self._transport is None:
            return
        try:
            sign = self.link.tick(self._parts.rules(), now)
        except LinkBroken as error:
            self.abort(str(error))
            return
        if sign and not self._is_paused:
            self._transport.write(sign)

    def abort(self, reason: str) -> None:
        """Close the connection at once."""
        log.warning("slave %s is cut off: %s", self.peer, reason)
        if self._transport is not None:
            self._transport.abort()


class ReplicationServer:
    """The replication port. Owned by the event loop's thread."""

    def __init__(self, parts: ServedParts) -> None:
        self._parts = parts
        self._server: asyncio.Server | None = None
        self._certificate: ServedCertificate | None = None
        self.connections: set[_SlaveConnection] = set()

    async def start(self, host: str, port: int, tls: ReplicationTls | None = None) -> None:
        """Listen; with `tls` for those alone who show a certificate.

        Raises:
            InvalidValue: a file of TLS cannot be used.
            OSError: the address cannot be bound; the text says which.
        """
        loop = asyncio.get_running_loop()
        if tls is not None:
            self._certificate = tls.serving(self._parts.clock.monotonic())
        context = None if self._certificate is None else self._certificate.context
        try:
            self._server = await loop.create_server(
                lambda: _SlaveConnection(self, self._parts),
                host or None,
                port,
                ssl=context,
                ssl_handshake_timeout=None if context is None else HANDSHAKE_S_MAX,
            )
        except OSError as error:
            raise OSError(
                error.errno,
                f"cannot listen for slaves on {host or '*'}:{port}: {error.strerror or error}",
            ) from error

    def wake(self) -> None:
        """Send what the log has now, to everybody."""
        for connection in self.connections:
            connection.wake()

    def tick(self, now: float) -> None:
        """Do what is due on every connection."""
        if self._certificate is not None:
            self._certificate.look(now)
        for connection in tuple(self.connections):
            connection.tick(now)

    def cut_all(self, reason: str) -> None:
        """Serve nobody any more, until somebody connects again."""
        for connection in tuple(self.connections):
            connection.abort(reason)

    async def stop(self) -> None:
        """Close everything."""
        if self._server is not None:
            self._server.close()
            self.cut_all("this broker stops")
            await asyncio.sleep(0)
            self._server = None
