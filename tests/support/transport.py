"""What the tests of the transport share: a service that echoes, a transport that only notes what is
written to it, and a client that is nothing but a socket.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from gantrymq.transport.command_service import CommandService
from gantrymq.transport.connection import Connection
from gantrymq.transport.table import ConnectionTable
from gantrymq.wire.command import Command
from gantrymq.wire.frame import FrameParser, encode_frame
from gantrymq.wire.peer import RawReply
from gantrymq.wire.response_errors import TopicNotExist

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from gantrymq.clock import Clock
    from gantrymq.transport.settings import TransportSettings
    from gantrymq.wire.peer import Peer, Pending, Service

ECHO = 1
LATER = 2
"""Answered when the test calls `Echo.release`."""
COROUTINE = 3
FAILS = 4
REFUSES = 5
LARGE = 6
"""Answered with the 64 KiB slice that stands for a pull's data."""
ASKS_BACK = 7
NOT_ENCODABLE = 9

LARGE_BODY = bytes(range(256)) * 256

Result = TypeVar("Result")


class Run(Protocol):
    """Runs a coroutine on a loop of its own."""

    def __call__(self, main: Coroutine[Any, Any, Result]) -> Result:
        """Return its result, within half a minute."""
        ...


class Echo:
    """Answers in every way there is, and notes who came and went."""

    def __init__(self) -> None:
        self.service = CommandService(self.handle, opened=self.opened, closed=self.closed)
        self.peers: list[Peer] = []
        self.gone: list[Peer] = []
        self.seen: list[Command] = []
        self.held: list[tuple[Command, asyncio.Future[Any]]] = []

    def opened(self, peer: Peer) -> None:
        """Note a peer."""
        self.peers.append(peer)

    def closed(self, peer: Peer) -> None:
        """Note that it left."""
        self.gone.append(peer)

    def handle(self, request: Command, peer: Peer) -> Pending:
        """Answer one request as its code says."""
        self.seen.append(request)
        match request.code:
            case 2:
                future = asyncio.get_running_loop().create_future()
                self.held.append((request, future))
                return future
            case 3:
                return self._answer_later(request)
            case 4:
                raise ZeroDivisionError("on purpose")
            case 5:
                raise TopicNotExist("no such topic: t")
            case 6:
                frame = encode_frame(request.response(body=LARGE_BODY))
                return RawReply((frame[: -len(LARGE_BODY)], memoryview(LARGE_BODY)))
            case 7:
                return self._ask_back(request, peer)
            case 9:
                return request.response(2**40)
        return request.response(body=request.body)

    def release(self, *, backwards: bool = False) -> None:
        """Answer what is held."""
        held, self.held = self.held, []
        for request, future in reversed(held) if backwards else held:
            future.set_result(request.response(body=request.body))

    async def _answer_later(self, request: Command) -> Command:
        await asyncio.sleep(0)
        if request.body == b"fail":
            raise ZeroDivisionError("later")
        return request.response(body=request.body)

    async def _ask_back(self, request: Command, peer: Peer) -> Command:
        answer = await peer.ask(Command.request(ECHO, 0, body=request.body + b" back"), 5)
        return request.response(body=answer.body)


class NotingTransport(asyncio.Transport):
    """Takes what is written; `unsent` is what it pretends to have left."""

    def __init__(self) -> None:
        super().__init__({"peername": ("10.0.0.7", 4321), "sockname": ("10.0.0.1", 10911)})
        self.writes: list[bytes] = []
        self.unsent = 0
        self._reads = True
        self._closed = False
        self._aborted = False

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Note one write."""
        self.writes.append(bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview[Any]]) -> None:
        """Note one write of several pieces."""
        self.writes.append(b"".join(list_of_data))

    def get_write_buffer_size(self) -> int:
        """Return what the test says."""
        return self.unsent

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Leave it to the test."""

    def pause_reading(self) -> None:
        """Note it."""
        self._reads = False

    def resume_reading(self) -> None:
        """Note it."""
        self._reads = True

    def is_closing(self) -> bool:
        """Say whether it was closed."""
        return self._closed or self._aborted

    def close(self) -> None:
        """Note it."""
        self._closed = True

    def abort(self) -> None:
        """Note it."""
        self._aborted = True

    def is_reading(self) -> bool:
        """Say whether it would take bytes."""
        return self._reads

    def was_closed(self) -> bool:
        """Say whether it was closed in good order."""
        return self._closed

    def was_aborted(self) -> bool:
        """Say whether it was cut off."""
        return self._aborted

    def answers(self) -> list[Command]:
        """Return the commands written since the last call."""
        parser = FrameParser()
        commands = parser.feed(b"".join(self.writes))
        assert parser.error is None
        assert not parser.kept_bytes
        self.writes.clear()
        return commands


def wired(
    service: Service, settings: TransportSettings | None = None, clock: Clock | None = None
) -> tuple[Connection, NotingTransport, ConnectionTable]:
    """Return a server's connection on a noting transport; on a running loop only."""
    table = ConnectionTable(asyncio.get_running_loop(), settings, clock)
    return *wired_to(table, service), table


def wired_to(table: ConnectionTable, service: Service) -> tuple[Connection, NotingTransport]:
    """Return one more connection of a table."""
    connection, transport = Connection(table, service), NotingTransport()
    connection.connection_made(transport)
    return connection, transport


def feed(connection: Connection, data: bytes, sizes: Iterable[int] = ()) -> None:
    """Let bytes arrive in pieces of these sizes, the rest in as large ones as fit."""
    position = 0
    steps = iter(sizes)
    while position < len(data):
        buffer = connection.get_buffer(-1)
        size = min(next(steps, len(data)), len(buffer), len(data) - position)
        buffer[:size] = data[position : position + size]
        connection.buffer_updated(size)
        position += size


async def turns(count: int = 5) -> None:
    """Let the loop do what is ready."""
    for _ in range(count):
        await asyncio.sleep(0)


async def until(condition: Callable[[], object]) -> None:
    """Wait for what the other end of a socket causes."""
    while not condition():  # noqa: ASYNC110  (there is no event: it is what a user would see)
        await asyncio.sleep(0.001)


def request(code: int, opaque: int, body: bytes = b"", *, oneway: bool = False) -> bytes:
    """Return the frame of a request."""
    return encode_frame(Command.request(code, opaque, {"k": "v"}, body, oneway=oneway))


class RawClient:
    """A socket and a parser: sends any bytes, reads when it is told to."""

    def __init__(self, plain: socket.socket) -> None:
        self.socket = plain
        self._loop = asyncio.get_running_loop()
        self._parser = FrameParser()
        self._commands: list[Command] = []

    @classmethod
    async def connect(cls, address: str, receive_bytes: int = 0) -> RawClient:
        """Connect; a small receive buffer makes the other end notice sooner that nobody reads."""
        host, _colon, port = address.rpartition(":")
        host = host.strip("[]")
        plain = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        plain.setblocking(False)
        if receive_bytes:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        try:
            await asyncio.get_running_loop().sock_connect(plain, (host, int(port)))
        except OSError:
            plain.close()
            raise
        return cls(plain)

    async def send(self, data: bytes) -> None:
        """Send all of it."""
        await self._loop.sock_sendall(self.socket, data)

    async def receive(self, count: int) -> list[Command]:
        """Return the next commands, as many as asked for; fewer if the other end closes."""
        while len(self._commands) < count:
            chunk = await self._loop.sock_recv(self.socket, 1 << 18)
            if not chunk:
                break
            self._commands += self._parser.feed(chunk)
        found, self._commands = self._commands[:count], self._commands[count:]
        return found

    async def is_closed(self) -> bool:
        """Wait for the other end to close, and say that it did without sending anything."""
        try:
            return await self._loop.sock_recv(self.socket, 1) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()
