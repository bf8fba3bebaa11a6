"""Where received bytes lie: one buffer for all connections, and the small reads of a turn in it.

A loop reads a socket and reports the bytes in one step, so nothing of the buffer is needed when the
next connection's turn comes, except two things. The beginning of a frame that is not complete is
copied by its connection, and put in front of the rest when it comes: there is headroom for that.

And small reads stay where they are until the turn of the loop is over. Many connections with one
request each are then taken together: a service has one call for all of them (`Service.take_turn`),
where it would have one for each. A connection that is read twice in a row is likely alone: it does
not wait.

    buffer   |......headroom......|small read|small read|.......room for the next read.......|
                                  ^ parts[0] ^ parts[1] ^ position

Owned by the event loop's thread.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio

    from gantrymq.transport.exchange import Exchange
    from gantrymq.wire.peer import Service

logger = logging.getLogger(__name__)

HEADROOM: Final = 64 * 1024
SMALL_BYTES: Final = 4096
"""A read of at most so many bytes may wait for the end of the turn."""


class Arrivals:
    """The receive buffer of one server or client."""

    def __init__(self, loop: asyncio.AbstractEventLoop, receive_bytes: int) -> None:
        self.buffer = bytearray(HEADROOM + receive_bytes)
        self.view = memoryview(self.buffer)
        self.position = HEADROOM
        """Where the bytes of the next read go."""
        self.room = self._whole = self.view[HEADROOM:]
        """The same, as a socket wants it."""
        self.last = 0
        """The number of the connection that was gathered last."""
        self._loop = loop
        self._full_at = HEADROOM + receive_bytes // 2
        self._parts: list[tuple[int, int, Exchange]] = []
        self._service: Service | None = None
        self._is_due = False

    def gather(self, connection: Exchange, service: Service, size: int) -> None:
        """Leave a read where it is until the turn of the loop is over."""
        start = self.position
        if service is not self._service:
            self.take()
            self._service = service
        self.position = stop = start + size
        self._parts.append((start, stop, connection))
        self.last = connection.number
        if stop > self._full_at:
            self.take()
            return
        self.room = self.view[stop:]
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._is_due = False
        self.take()

    def take(self) -> None:
        """Have everything taken that was gathered."""
        parts, self._parts = self._parts, []
        service = self._service
        if not parts or service is None:
            return
        try:
            while parts:
                runs = self._run(service, parts)
                for (_, stop, connection), (end, replies) in zip(parts, runs, strict=False):
                    connection.took(end, stop, replies)
                parts = parts[len(runs) :]
                if not runs:
                    for start, stop, connection in parts:
                        connection.took(start, stop, b"")
                    break
        finally:
            if not self._parts:
                self.position, self.room = HEADROOM, self._whole

    def _run(
        self, service: Service, parts: list[tuple[int, int, Exchange]]
    ) -> list[tuple[int, bytes]]:
        try:
            return service.take_turn(self.buffer, parts)
        except Exception:
            # Nobody is left without an answer: each is served by itself, or closed for its fault.
            logger.exception("a service failed with %d connections at once", len(parts))
            return []
