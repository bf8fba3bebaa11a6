"""Sockets from the listen queue to their first byte, which says plain or TLS.

A socket that has said nothing has no transport and no buffer: it waits for its first byte, which is
looked at and left where it is. 0x16 begins a TLS hello; 0x00 and 0x01 begin the length of a frame.
Owned by the event loop's thread.
"""

from __future__ import annotations

import errno
import logging
import socket
from typing import TYPE_CHECKING, Final

from gantrymq.transport.addresses import NOWHERE, socket_host
from gantrymq.transport.tls import TlsMode

if TYPE_CHECKING:
    import asyncio
    import ssl
    from collections.abc import Callable

    from gantrymq.model.message import Host
    from gantrymq.transport.table import ConnectionTable

logger = logging.getLogger(__name__)

ACCEPTS_MAX: Final = 64
"""Sockets taken from a listen queue before other work of the loop has its turn."""
NO_RESOURCES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
PAUSE_S: Final = 0.5
"""How long no socket is accepted after the system had none to give."""
TLS_BYTE: Final = 0x16
PLAIN_BYTES: Final = frozenset({0x00, 0x01})


class Accepting:
    """The listening sockets of a server, and accepted ones that have not said anything."""

    def __init__(
        self,
        table: ConnectionTable,
        mode: TlsMode,
        context: ssl.SSLContext | None,
        give: Callable[[socket.socket, str, ssl.SSLContext | None], None],
        count: Callable[[], int],
    ) -> None:
        """`give` gets a socket that has spoken, and its address, which it has to say good-bye to.

        `count` says how many it was given and has.
        """
        self._table = table
        self._loop: asyncio.AbstractEventLoop = table.loop
        self._mode = mode
        self._context = context
        self._give = give
        self._count = count
        self._listeners: list[socket.socket] = []
        self._silent: dict[socket.socket, tuple[float, str]] = {}
        """Since when, and of which address."""
        self._pause: asyncio.TimerHandle | None = None

    @property
    def silent_count(self) -> int:
        """Return how many sockets have not said anything yet."""
        return len(self._silent)

    def use(self, context: ssl.SSLContext) -> None:
        """Show another certificate to those who connect from now on."""
        self._context = context

    def listen(self, listener: socket.socket) -> None:
        """Accept from a bound socket."""
        listener.setblocking(False)
        listener.listen(self._table.settings.backlog)
        self._listeners.append(listener)
        self._loop.add_reader(listener, self._accept_some, listener)

    def close(self) -> None:
        """Accept no more, and drop the sockets that have not said anything."""
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        for listener in self._listeners:
            self._loop.remove_reader(listener)
            listener.close()
        self._listeners.clear()
        for silent in tuple(self._silent):
            self._drop(silent)

    def look(self, now: float) -> None:
        """Close sockets that have been silent too long."""
        idle_s = self._table.settings.idle_s
        for silent, (since, _address) in tuple(self._silent.items()):  # oldest first
            if now - since < idle_s:
                return
            self._drop(silent)

    def _accept_some(self, listener: socket.socket) -> None:
        for _ in range(ACCEPTS_MAX):
            try:
                accepted, name = listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in NO_RESOURCES:
                    self._rest(error)
                    return
                logger.debug("a connection was gone before it was accepted: %s", error)
                continue
            self._admit(accepted, socket_host(name).address)

    def _rest(self, error: OSError) -> None:
        """Leave the listen queues alone for a moment: trying at once would only burn time."""
        self._table.rare_log.warning(
            "accept",
            f"no more connections can be accepted ({error}); trying again every {PAUSE_S} s:"
            " raise the limit of open files (ulimit -n), or lower connections_max",
        )
        for listener in self._listeners:
            self._loop.remove_reader(listener)
        self._pause = self._loop.call_later(PAUSE_S, self._go_on)

    def _go_on(self) -> None:
        self._pause = None
        for listener in self._listeners:
            self._loop.add_reader(listener, self._accept_some, listener)

    def _admit(self, accepted: socket.socket, address: str) -> None:
        table, settings = self._table, self._table.settings
        count = self._count() + len(self._silent)
        if not table.admission.admit(address, count, settings, table.rare_log):
            accepted.close()
            return
        try:
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if hasattr(socket, "TCP_USER_TIMEOUT"):  # a peer that vanished: the system notices
                timeout_ms = int(settings.write_timeout_s * 1000)
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, timeout_ms)
        except OSError as error:
            logger.debug("a connection was gone at once: %s", error)
            table.admission.leave(address)
            accepted.close()
            return
        self._silent[accepted] = table.clock.monotonic(), address
        self._loop.add_reader(accepted, self._on_first_byte, accepted)

    def _on_first_byte(self, accepted: socket.socket) -> None:
        try:
            first = accepted.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            first = b""
        if not first:
            self._drop(accepted)
            return
        problem = self._problem_with(first[0])
        if problem is not None:
            host = _peer_of(accepted)
            self._table.rare_log.warning(
                f"first byte {host.address}", f"closing {host.text}: {problem}"
            )
            self._drop(accepted)
            return
        address = self._forget(accepted)
        self._give(accepted, address, self._context if first[0] == TLS_BYTE else None)

    def _problem_with(self, first: int) -> str | None:
        """Return why a connection that begins with this byte is not wanted, or None."""
        if first == TLS_BYTE:
            if self._mode is TlsMode.DISABLED:
                return "it speaks TLS, which is disabled here (tls.server.mode)"
            if self._context is None:
                return "it speaks TLS, and there is no certificate here (tls.server.certPath)"
            return None
        if first not in PLAIN_BYTES:
            return f"its first byte is {first:#04x}: this is neither a frame nor TLS"
        if self._mode is TlsMode.ENFORCING:
            return "it does not speak TLS, which is enforced here (tls.server.mode)"
        return None

    def _forget(self, accepted: socket.socket) -> str:
        self._loop.remove_reader(accepted)
        return self._silent.pop(accepted)[1]

    def _drop(self, accepted: socket.socket) -> None:
        self._table.admission.leave(self._forget(accepted))
        accepted.close()


def _peer_of(accepted: socket.socket) -> Host:
    try:
        return socket_host(accepted.getpeername())
    except OSError:  # it has gone meanwhile
        return NOWHERE
