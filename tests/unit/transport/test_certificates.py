"""Certificates that are renewed while a server runs, and clients that must show one."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import ssl
from typing import TYPE_CHECKING

import pytest

from gantrymq.node.certificate import with_test_certificate
from gantrymq.testing.clock import VirtualClock
from gantrymq.transport.certificates import LOOK_S
from gantrymq.transport.server import Server
from gantrymq.transport.tls import ClientAuth, ServerTls, TlsMode
from support.transport import Echo

if TYPE_CHECKING:
    from pathlib import Path

    from support.transport import Run

NOW_MS = 1_794_800_000_000
pytest.importorskip("cryptography")


def made(folder: Path) -> ServerTls:
    """Return TLS with a certificate of its own."""
    return with_test_certificate(ServerTls(TlsMode.ENFORCING), folder, NOW_MS)


def put_in_place(made_in: Path, place: Path, number: int) -> None:
    """Replace the files, with a time that differs however quick a test is."""
    for path in made_in.iterdir():
        shutil.copy(path, place / path.name)
        os.utime(place / path.name, (number, number))


async def shown(address: str) -> bytes | None:
    """Return the certificate that a server shows."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    host, port = address.split(":")
    _, writer = await asyncio.open_connection(host, int(port), ssl=context)
    raw = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return bytes(raw) if raw else None


def test_a_renewed_certificate_is_shown_and_a_broken_one_is_not(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        clock = VirtualClock()
        server = Server(Echo().service, [("127.0.0.1", 0)], tls=made(tmp_path / "tls"), clock=clock)
        await server.start()

        async def after_a_look() -> bytes | None:
            clock.jump(LOOK_S)
            server.table.sweep()
            return await shown(server.bound[0])

        first = await shown(server.bound[0])
        assert await after_a_look() == first
        made(tmp_path / "other")
        put_in_place(tmp_path / "other", tmp_path / "tls", 1)
        assert await shown(server.bound[0]) == first, "not before it is looked at"
        second = await after_a_look()
        assert second != first
        for number, broken in enumerate((b"", b"half a file", b"-----BEGIN CERTIFICATE-----\n")):
            path = tmp_path / "tls" / "test-certificate.pem"
            path.write_bytes(broken)
            os.utime(path, (10 + number, 10 + number))
            assert await after_a_look() == second
        (tmp_path / "tls" / "test-key.pem").unlink()
        assert await after_a_look() == second
        made(tmp_path / "third")
        put_in_place(tmp_path / "third", tmp_path / "tls", 50)
        assert await after_a_look() not in {first, second, None}
        await server.stop(1.0)

    run(main())


def test_a_client_without_a_certificate_is_not_let_in(run: Run, tmp_path: Path) -> None:
    async def speaks(address: str, context: ssl.SSLContext) -> bool:
        host, port = address.split(":")
        try:
            reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
            writer.write(bytes(4))
            # With TLS 1.3 a refusal comes behind the handshake.
            alive = await asyncio.wait_for(reader.read(1), 0.5)
            writer.close()
        except TimeoutError:
            return True  # nobody minded
        except (OSError, ssl.SSLError):
            return False
        return bool(alive)

    async def main() -> None:
        own, client = made(tmp_path / "server"), made(tmp_path / "client")
        strict = ServerTls(
            TlsMode.ENFORCING, own.cert_path, own.key_path, None, client.cert_path,
            ClientAuth.REQUIRE,
        )  # fmt: skip
        server = Server(Echo().service, [("127.0.0.1", 0)], tls=strict)
        await server.start()
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        assert not await speaks(server.bound[0], context)
        assert client.cert_path is not None
        context.load_cert_chain(client.cert_path, client.key_path)
        host, port = server.bound[0].split(":")
        _, writer = await asyncio.open_connection(host, int(port), ssl=context)
        assert writer.get_extra_info("cipher")
        writer.close()
        await server.stop(1.0)

    run(main())


def test_nothing_below_tls_1_2_is_spoken(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        server = Server(Echo().service, [("127.0.0.1", 0)], tls=made(tmp_path / "tls"))
        await server.start()
        host, port = server.bound[0].split(":")
        # A hello of TLS 1.0, by hand: the library of a test may refuse to speak it at all.
        body = bytes.fromhex("0301") + bytes(32) + bytes.fromhex("000002002f0100")
        hello = b"\x01" + len(body).to_bytes(3) + body
        frame = b"\x16\x03\x01" + len(hello).to_bytes(2) + hello
        reader, writer = await asyncio.open_connection(host, int(port), family=socket.AF_INET)
        writer.write(frame)
        answer = await asyncio.wait_for(reader.read(64), 5)
        assert not answer.startswith(b"\x16"), "it must not go on with a hello of its own"
        writer.close()
        await server.stop(1.0)

    run(main())
