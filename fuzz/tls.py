"""The remoting port with TLS: from the first byte that tells it from a frame, to what is inside.

A real listener on loopback, since the handshake is the loop's and OpenSSL's. The first byte of an
input says how far a client comes before the rest of it goes out as it is:

    0  not at all: these are the first bytes of the connection
    1  a hello, of which some bytes are replaced (the name of the server among them), then the rest
    2  a hello whose name of the server is these bytes, then an end in mid-handshake
    3  a handshake; then the rest as if it were records of TLS
    4  a handshake; then the rest inside of TLS, as frames
    5  a handshake; then another hello inside of the encrypted stream, which would be renegotiation

However it ends, the server must let go of the connection, and answer the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fuzz.ports import Loop
from fuzz.twins import DisagreementError
from gantrymq.transport.command_service import CommandService
from gantrymq.transport.server import Server
from gantrymq.transport.tls import ServerTls
from gantrymq.wire.command import Command
from gantrymq.wire.frame import FrameParser, encode_frame

if TYPE_CHECKING:
    from gantrymq.wire.peer import Peer, Pending

HERE: Final = Path(__file__).parents[1] / "tests" / "unit" / "transport"
CERTIFICATE: Final = HERE / "localhost.pem"
KEY: Final = HERE / "localhost.key.pem"
WAYS: Final = 6
NAME_BYTES_MAX: Final = 200
LET_GO_S: Final = 0.5
"""For a server to notice that a client has gone."""
READ_BYTES: Final = 1 << 16
PROBE: Final = encode_frame(Command.request(1, 7, {"k": "v"}, b"still there?"))


def _echo(request: Command, _peer: Peer) -> Pending:
    return request.response(body=request.body)


@cache
def _context() -> ssl.SSLContext:
    """Return a client's, which trusts anybody."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def hello(name: str) -> bytes:
    """Return the first bytes of a client that asks for a server of this name."""
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        _context().wrap_bio(received, sent, server_hostname=name or None).do_handshake()
    return sent.read()


class Port:
    """A server that is there for all inputs, and clients of it."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.server = Server(
            CommandService(_echo),
            [("127.0.0.1", 0)],
            tls=ServerTls(cert_path=str(CERTIFICATE), key_path=str(KEY)),
        )
        self.loop.run(self.server.start())

    async def connected(self) -> socket.socket:
        """Return a socket that is connected."""
        host, _, port = self.server.bound[0].rpartition(":")
        plain = socket.socket()
        plain.setblocking(False)
        await asyncio.get_running_loop().sock_connect(plain, (host, int(port)))
        return plain

    async def take(self, way: int, data: bytes) -> str:
        """Be a client that does what an input says; then see that nothing is left of it."""
        plain = await self.connected()
        said = ""
        try:
            said = await _Client(plain).go(way, data)
        except (OSError, ssl.SSLError, ValueError) as error:
            said = f"{type(error).__name__} {getattr(error, 'reason', '')}"
        finally:
            plain.close()
        await self._let_go()
        await self._probe()
        return f"{way} {said}"

    async def _let_go(self) -> None:
        try:
            async with asyncio.timeout(LET_GO_S):
                while self.server._count() or self.server.silent_count:  # noqa: ASYNC110
                    await asyncio.sleep(0)
        except TimeoutError:
            raise DisagreementError("a connection stays after its client has gone") from None

    async def _probe(self) -> None:
        plain = await self.connected()
        loop = asyncio.get_running_loop()
        parser = FrameParser()
        found: list[Command] = []
        try:
            await loop.sock_sendall(plain, PROBE)
            async with asyncio.timeout(LET_GO_S):
                while not found:
                    found = parser.feed(await loop.sock_recv(plain, READ_BYTES))
        finally:
            plain.close()
        if found[0].body != b"still there?":
            raise DisagreementError(f"another answer: {found!r}")
        await self._let_go()


class _Client:
    """One connection."""

    def __init__(self, plain: socket.socket) -> None:
        self._plain = plain
        self._loop = asyncio.get_running_loop()
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()

    async def go(self, way: int, data: bytes) -> str:
        """Do what an input says, and return what the server said to it."""
        if way == 0:
            return await self._said(data)
        if way == 1:
            said = bytearray(hello("localhost"))
            for at in range(0, min(len(data), 8), 2):
                said[data[at] % len(said)] = data[at + 1 : at + 2].ljust(1)[0]
            return await self._said(bytes(said) + data[8:])
        if way == 2:
            name = data[:NAME_BYTES_MAX]
            given = ("x" * 60 + ".") * 4
            given = given[: max(len(name), 1) - 1] + "x"
            return await self._said(hello(given).replace(given.encode(), name.ljust(1)))
        inside = await self._handshake()
        if way == 3:
            return await self._said(data)
        if way == 5:
            data = hello("again") + data
        with contextlib.suppress(ssl.SSLWantReadError):
            inside.write(data or b"\0")
        return await self._said(self._out.read())

    async def _handshake(self) -> ssl.SSLObject:
        client = _context().wrap_bio(self._in, self._out, server_hostname="localhost")
        while True:
            try:
                client.do_handshake()
                is_done = True
            except ssl.SSLWantReadError:
                is_done = False
            if raw := self._out.read():
                await self._loop.sock_sendall(self._plain, raw)
            if is_done:
                return client
            got = await self._loop.sock_recv(self._plain, READ_BYTES)
            if not got:
                raise ConnectionResetError("in the middle of the handshake")
            self._in.write(got)

    async def _said(self, data: bytes) -> str:
        """Send the last bytes; return the kind of what comes until the server ends it."""
        with contextlib.suppress(OSError):
            await self._loop.sock_sendall(self._plain, data)
            self._plain.shutdown(socket.SHUT_WR)
        got = bytearray()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(LET_GO_S):
                while chunk := await self._loop.sock_recv(self._plain, READ_BYTES):
                    got += chunk
        is_tls = got.startswith((b"\x15", b"\x16"))
        return got[:3].hex() + got[5:7].hex() if is_tls else str(bool(got))


@cache
def _port() -> Port:
    return Port()


def tls(data: bytes) -> str:
    """Take what a connection of a broker's port receives where there is a certificate."""
    port = _port()
    return port.loop.run(port.take((data[0] if data else 0) % WAYS, data[1:]))


TARGETS: Final = {"tls": tls}
