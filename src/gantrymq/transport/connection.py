"""One connection, either end of it: from its beginning to its end.

What passes through it is in `exchange`, how it writes and when it stops reading in `sending`.

A peer that takes none of its unsent bytes for `write_timeout_s` is cut off. The end of a peer's
stream is the end of the connection, as with Apache's servers: a client that closes is no member of
its groups any more, at once, whatever answers it has not fetched.

Everything here happens on the event loop's thread.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, cast

from gantrymq.transport.addresses import socket_host
from gantrymq.transport.exchange import Exchange
from gantrymq.transport.identity import certificate_names
from gantrymq.transport.sending import FINISHING, MEMORY, UNSENT
from gantrymq.wire.hosts import encode_host

if TYPE_CHECKING:
    import asyncio

    from gantrymq.transport.table import ConnectionTable
    from gantrymq.wire.peer import Service

logger = logging.getLogger(__name__)


class Connection(Exchange):
    """A `Peer` on an asyncio transport."""

    __slots__ = (
        "_drained",
        "_grew_at",
        "_kept_before",
        "_since",
        "_stuck_since",
        "admitted_as",
        "takes_nothing",
    )

    def __init__(
        self, table: ConnectionTable, service: Service, *, reads_always: bool = False
    ) -> None:
        super().__init__(table, service, reads_always=reads_always)
        self.takes_nothing = False
        """Whether unsent bytes wait and none went out between the last two looks."""
        self.admitted_as: str | None = None
        """The address that it is counted by, at a server."""
        self._since = 0.0  # when it was last seen active
        self._drained = 0  # bytes ever sent that had left the transport at the last look
        self._stuck_since: float | None = None
        self._kept_before = 0  # bytes of an unfinished frame at the last look
        self._grew_at = 0.0  # when it was last seen to grow, or could not

    # -- the life of the connection -------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; called by the loop."""
        transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but name
        peer = socket_host(transport.get_extra_info("peername"))
        self.address, self.host = peer.text, encode_host(peer)
        self.listener = socket_host(transport.get_extra_info("sockname")).text
        self.certificate = certificate_names(transport)
        settings = self._table.settings
        transport.set_write_buffer_limits(settings.write_high_bytes, settings.write_low_bytes)
        self._transport = transport
        self._handle = _plain_handle(transport)
        self._open = True
        self._since = self._table.clock.monotonic()
        self._table.add(self)
        try:
            self._service.opened(self)
        except Exception:
            logger.exception("the service refused the connection of %s", self.address)
            self.abort("the service failed")

    def connection_lost(self, exc: Exception | None) -> None:
        """End; called by the loop. Only the first call counts, and none before the beginning."""
        if self._transport is None:
            return
        self._transport, self._handle = None, -1  # nothing can be sent: not what follows, either
        self._take_gathered()
        if exc is not None and self._open:
            self._reason = f"the connection broke: {exc}"
        self._shut()
        self._note_unsent(0)
        self._table.discard(self)
        try:
            self._service.closed(self)
        except Exception:
            logger.exception("the service failed when %s was closed", self.address)

    def eof_received(self) -> bool:
        """Let the transport send what it has and close."""
        return False

    def close(self, reason: str) -> None:
        """Close the connection when what was written has gone out; nothing more is read."""
        self._take_gathered()
        if self._open and self._transport is not None:
            self._reason = reason
            self._shut()
            self._transport.close()

    def abort(self, reason: str) -> None:
        """Close the connection now; what was not sent is lost."""
        self._take_gathered()
        if self._open:
            self._reason = reason
            self._shut()
        if self._transport is not None:
            self._transport.abort()
            self._note_unsent(0)

    def finish(self, reason: str) -> None:
        """Take no more requests, answer those that were taken, then close."""
        self._take_gathered()
        if self._open:
            self._reason = reason
            self._stop_reading(FINISHING)
            self._close_if_finished()

    def _on_flushed(self) -> None:
        self._close_if_finished()

    def _close_if_finished(self) -> None:
        if self._halt & FINISHING and not self._promises and not self._ready:
            self.close(self._reason)

    def _shut(self) -> None:
        """Give up everything except the transport."""
        self._open = False
        self._release()
        self._ready = None
        if self._asks is not None:
            self._asks.fail_all(f"{self.address}: {self._reason}")

    def look(self, now: float) -> None:
        """Close what is idle or stuck; called by the sweep."""
        settings = self._table.settings
        if self._is_active:
            self._is_active = False
            self._since = now
        unsent = self.unsent_bytes
        drained = self._sent - unsent
        self.takes_nothing = unsent > 0 and drained == self._drained
        self._drained = drained
        self._note_unsent(unsent)
        if self._halt or self.kept_bytes != self._kept_before:
            self._kept_before, self._grew_at = self.kept_bytes, now
        if not (self.takes_nothing or self._halt & MEMORY):
            self._stuck_since = None
        elif self._stuck_since is None:
            self._stuck_since = now
        if self._stuck_since is not None and now - self._stuck_since >= settings.write_timeout_s:
            why = f"did not read {unsent} bytes" if unsent else "found no memory for its frame"
            self._table.rare_log.warning(
                f"stuck {self.address}",
                f"closing {self.address}, which {why} in {settings.write_timeout_s:g} s",
            )
            self._table.closed["unread" if unsent else "memory"] += 1
            self.abort(why)
        elif self._open and not self._halt and now - self._since >= settings.idle_s:
            logger.info("closing %s: nothing came or went for %g s", self.address, settings.idle_s)
            self._table.closed["idle"] += 1
            self.close(f"nothing came or went for {settings.idle_s:g} s")

    # -- memory ---------------------------------------------------------------------------------

    @property
    def kept_bytes(self) -> int:
        """Return how many bytes of an unfinished frame are here."""
        return 0 if self._kept is None else len(self._kept)

    @property
    def missing_bytes(self) -> int:
        """Return how many bytes an unfinished frame still needs."""
        return max(self._need - self.kept_bytes, 0)

    @property
    def is_slow(self) -> bool:
        """Tell whether it is not read because its peer does not take its answers."""
        return bool(self._halt & UNSENT) and self._open

    @property
    def is_starved(self) -> bool:
        """Tell whether an unfinished frame may not grow, because memory is short."""
        return bool(self._halt & MEMORY) and self._open

    def stalled_s(self, now: float) -> float:
        """Return for how long an unfinished frame has not grown, although it might have."""
        return now - self._grew_at if self._kept is not None and not self._halt else 0.0

    def go_on(self) -> None:
        """Let an unfinished frame grow again."""
        self._resume_reading(MEMORY)


def _plain_handle(transport: asyncio.Transport) -> int:
    """Return the file number of a socket that takes bytes as they are; -1 for TLS, and in tests."""
    socket = transport.get_extra_info("socket")
    if socket is None or transport.get_extra_info("ssl_object") is not None:
        return -1
    return int(socket.fileno())
