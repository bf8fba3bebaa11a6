"""Certificates that are renewed while a server runs, and clients that must show one."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import ssl
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.node.certificate import with_test_certificate
from gantrymq.testing.clock import VirtualClock
from gantrymq.transport.certificates import LOOK_S
from gantrymq.transport.server import Server
from gantrymq.transport.tls import ClientAuth, ServerTls, TlsMode
from gantrymq.wire.command import Command
from gantrymq.wire.frame import encode_frame
from support.issuing import DAY, Issuer, hello_of
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


@pytest.mark.parametrize(
    ("version", "speaks"), [("0300", False), ("0301", False), ("0302", False), ("0303", True)]
)
def test_nothing_below_tls_1_2_is_spoken(
    run: Run, tmp_path: Path, version: str, *, speaks: bool
) -> None:
    """The hello is made by hand: the library of a test may refuse to speak the old ones at all."""

    async def main() -> None:
        server = Server(Echo().service, [("127.0.0.1", 0)], tls=made(tmp_path / "tls"))
        await server.start()
        host, port = server.bound[0].split(":")
        reader, writer = await asyncio.open_connection(host, int(port), family=socket.AF_INET)
        writer.write(hello_of(bytes.fromhex(version)))
        answer = await asyncio.wait_for(reader.read(64), 5)
        # An alert, or nothing if the loop closes before it is out; only a hello goes on.
        assert answer.startswith(b"\x16") is speaks
        writer.close()
        await server.stop(1.0)

    run(main())


class Guarded:
    """A server that asks for certificates, and has a list of those that were revoked."""

    def __init__(self, folder: Path) -> None:
        self.issuer = Issuer(folder)
        self.list = folder / "revoked.pem"
        self.list.write_bytes(self.issuer.revoked())
        own = str(self.issuer.issue("server", for_server=True))
        self.clock = VirtualClock()
        self.tls = ServerTls(
            TlsMode.ENFORCING, own, own, None, str(self.issuer.path), ClientAuth.REQUIRE,
            str(self.list),
        )  # fmt: skip
        self.server = Server(Echo().service, [("127.0.0.1", 0)], tls=self.tls, clock=self.clock)
        self._written = 0

    def put_list(self, content: bytes) -> None:
        """Replace the list, with a time that differs however quick a test is, and have it read."""
        self._written += 1
        self.list.write_bytes(content)
        os.utime(self.list, (self._written, self._written))
        self.clock.jump(LOOK_S)
        self.server.table.sweep()

    async def lets_in(self, certificate: Path | None) -> bool:
        """Tell whether it answers a client with this certificate."""
        host, port = self.server.bound[0].split(":")
        context = self.issuer.trusting(certificate)
        try:
            reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
            writer.write(encode_frame(Command.request(1, 1, {})))
            answered = await asyncio.wait_for(reader.read(1), 5)
            writer.close()
        except OSError:  # of which those of TLS are a kind
            return False
        return bool(answered)


def test_a_revoked_certificate_is_refused_without_a_restart(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        site = Guarded(tmp_path / "pki")
        good, lost = site.issuer.issue("good"), site.issuer.issue("lost")
        await site.server.start()
        assert await site.lets_in(good)
        assert await site.lets_in(lost)
        assert not await site.lets_in(None)
        site.issuer.revoke(lost)
        assert await site.lets_in(lost), "not before the list is written"
        site.put_list(site.issuer.revoked())
        assert not await site.lets_in(lost)
        assert await site.lets_in(good)
        # What cannot be used changes nothing: neither lets it anybody in nor locks anybody out.
        for broken in (b"", b"half a list", site.issuer.path.read_bytes()):
            site.put_list(broken)
            assert not await site.lets_in(lost)
            assert await site.lets_in(good)
        site.list.unlink()
        site.clock.jump(LOOK_S)
        site.server.table.sweep()
        assert not await site.lets_in(lost)
        assert await site.lets_in(good)
        site.put_list(site.issuer.revoked())
        assert await site.lets_in(good)
        await site.server.stop(1.0)

    run(main())


def test_a_list_that_is_too_old_or_of_another_lets_nobody_in(run: Run, tmp_path: Path) -> None:
    """Whoever keeps the new list away must not bring a revoked certificate back."""

    async def main() -> None:
        site = Guarded(tmp_path / "pki")
        good = site.issuer.issue("good")
        await site.server.start()
        assert await site.lets_in(good)
        site.put_list(site.issuer.revoked(lasts=-DAY))
        assert not await site.lets_in(good)
        site.put_list(site.issuer.revoked())
        assert await site.lets_in(good)
        site.put_list(Issuer(tmp_path / "others", "other").revoked())
        assert not await site.lets_in(good)
        await site.server.stop(1.0)

    run(main())


@pytest.mark.parametrize("content", [None, b"", b"no list", "certificate", "both"])
def test_what_is_no_list_of_revoked_certificates_does_not_start(
    tmp_path: Path, content: bytes | str | None
) -> None:
    site = Guarded(tmp_path / "pki")
    certificate = site.issuer.path.read_bytes()
    if content is None:
        site.list.unlink()
    elif isinstance(content, bytes):
        site.list.write_bytes(content)
    else:
        other = Issuer(tmp_path / "others", "other").path.read_bytes()
        site.list.write_bytes(
            certificate if content == "certificate" else site.issuer.revoked() + other
        )
    with pytest.raises(InvalidValue, match=r"the list of revoked certificates .*revoked\.pem"):
        site.tls.context()


def test_a_list_without_a_question_for_certificates_is_refused(tmp_path: Path) -> None:
    site = Guarded(tmp_path / "pki")
    with pytest.raises(InvalidValue, match=r"set tls\.server\.need\.client\.auth"):
        replace(site.tls, client_auth=ClientAuth.NONE).context()
    read = ServerTls.from_properties({"tls.server.crlPath": " revoked.pem "})
    assert read.crl_path == "revoked.pem"
