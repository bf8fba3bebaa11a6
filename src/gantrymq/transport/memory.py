"""Two connections joined without a socket, for tests: the same code with other bytes under it.

Each end has a transport that hands what is written to the other end in the loop's next turn, in
pieces of `chunk_bytes`. A test can hold an end's reading (`pause_reading` does, as on a socket):
then what is written to it stays with the writer, and counts as unsent.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from gantrymq.transport.command_service import CommandService
from gantrymq.transport.connection import Connection
from gantrymq.transport.table import ConnectionTable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gantrymq.wire.peer import Service

PORT_BASE = 40000


class MemoryTransport(asyncio.Transport):
    """One end. Owned by the event loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, port: int, peer_port: int) -> None:
        names = {"sockname": ("127.0.0.1", port), "peername": ("127.0.0.1", peer_port)}
        super().__init__(names)
        self._loop = loop
        self.chunk_bytes = 65536
        self._other: MemoryTransport | None = None
        self._protocol: asyncio.BufferedProtocol | None = None
        self._unsent = bytearray()
        self._high, self._low = 65536, 16384
        self._reads = True
        self._writes = True  # has not told the protocol to pause
        self._closing = False
        self._scheduled = False

    def join(self, other: MemoryTransport, protocol: asyncio.BufferedProtocol) -> None:
        """Connect with the other end; what arrives goes to the protocol."""
        self._other = other
        self._protocol = protocol
        protocol.connection_made(self)

    # -- what a protocol calls ------------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Give bytes to the other end, later."""
        if self._closing:
            return
        self._unsent += data
        self._schedule()
        if self._writes and len(self._unsent) > self._high and self._protocol is not None:
            self._writes = False
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview[Any]]) -> None:
        """Give several pieces to the other end."""
        self.write(b"".join(list_of_data))

    def get_write_buffer_size(self) -> int:
        """Return what the other end has not taken."""
        return len(self._unsent)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set when the protocol is told to pause."""
        self._high = 65536 if high is None else high
        self._low = self._high // 4 if low is None else low

    def pause_reading(self) -> None:
        """Take nothing from the other end."""
        self._reads = False

    def resume_reading(self) -> None:
        """Take what waits."""
        self._reads = True
        if self._other is not None:
            self._other._schedule()

    def is_reading(self) -> bool:
        """Tell whether bytes are taken."""
        return self._reads

    def is_closing(self) -> bool:
        """Tell whether the end is near."""
        return self._closing

    def close(self) -> None:
        """Close when everything is with the other end."""
        if not self._closing:
            self._closing = True
            self._schedule()

    def abort(self) -> None:
        """Close now."""
        self._closing = True
        self._unsent.clear()
        self._schedule()

    # -- moving bytes ---------------------------------------------------------------------------

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._move)

    def _move(self) -> None:
        """Hand one piece over; end if nothing is left and the end was asked for."""
        self._scheduled = False
        other = self._other
        if other is not None and other._reads and not other._closing and self._unsent:
            piece = bytes(self._unsent[: self.chunk_bytes])
            del self._unsent[: self.chunk_bytes]
            other._receive(piece)
        if other is None or other._protocol is None or other._closing:
            self._unsent.clear()
        if not self._writes and len(self._unsent) <= self._low and self._protocol is not None:
            self._writes = True
            self._protocol.resume_writing()
        if self._unsent:
            if other is not None and other._reads:
                self._schedule()
        elif self._closing:
            self._end()

    def _receive(self, piece: bytes) -> None:
        protocol = self._protocol
        while piece and protocol is not None and not self._closing:
            buffer: Any = protocol.get_buffer(-1)
            size = min(len(buffer), len(piece))
            buffer[:size] = piece[:size]
            protocol.buffer_updated(size)
            piece = piece[size:]

    def _end(self) -> None:
        protocol, self._protocol = self._protocol, None
        other, self._other = self._other, None
        if protocol is not None:
            protocol.connection_lost(None)
        if other is not None and other._protocol is not None:
            other._protocol.eof_received()
            other.close()


def memory_pair(
    left: Service | None = None,
    right: Service | None = None,
    *,
    left_table: ConnectionTable | None = None,
    right_table: ConnectionTable | None = None,
) -> tuple[Connection, Connection]:
    """Return two connected peers; each hands the other's requests to its own service.

    The left one is the client: it reads even when it has much to send.
    """
    loop = asyncio.get_running_loop()
    ends = (
        Connection(
            left_table or ConnectionTable(loop), left or CommandService(), reads_always=True
        ),
        Connection(right_table or ConnectionTable(loop), right or CommandService()),
    )
    ports = [PORT_BASE + end.number % (65536 - PORT_BASE) for end in ends]
    transports = [MemoryTransport(loop, *ports), MemoryTransport(loop, *reversed(ports))]
    for transport, other, end in zip(transports, reversed(transports), ends, strict=True):
        transport.join(other, end)
    return ends
