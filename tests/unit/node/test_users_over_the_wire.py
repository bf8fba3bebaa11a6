"""Every request code by every kind of user over every transport: plain, TLS, TLS with certificates.

The requests go to real ports. All of them are sent at once, and behind them one that is refused
always: when that is answered, so is every refusal before it.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

from gantrymq.security.access import EXCEPTION
from gantrymq.wire.frame import FrameParser, encode_frame
from support.access_matrix import (
    CODES,
    USER_ROLES,
    kind_of,
    request,
    user_signer,
    write_users,
)
from support.accounts import Signer, signed_request, write_accounts
from support.issuing import Issuer
from support.nodes import all_in_one

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    from gantrymq.node.all_in_one import AllInOne
    from gantrymq.wire.command import Command
    from support.transport import Run

WRONG = Signer("admin", "not-the-secret")
ANSWER_S_MAX = 20
REFUSED = "(?i)alert|certificate|reset|closed"
"""How a client sees a handshake that the server ends, with either loop."""


class Rig:
    """A server that takes certificates of one issuer."""

    def __init__(self, folder: Path, *, auth: str = "optional", mode: str = "permissive") -> None:
        self.folder = folder
        self.issuer = Issuer(folder / "pki")
        own = str(self.issuer.issue("server", for_server=True))
        self.users = write_users(folder)
        self._settings = {
            "aclEnable": "true", "aclPath": str(folder), "tls.server.mode": mode,
            "tls.server.certPath": own, "tls.server.keyPath": own,
            "tls.server.trustCertPath": str(self.issuer.path), "tls.server.need.client.auth": auth,
        }  # fmt: skip

    async def __aenter__(self) -> AllInOne:
        """Start it."""
        self._node = all_in_one(self.folder / "store", **self._settings)
        await self._node.start()
        return self._node

    async def __aexit__(self, *_: object) -> None:
        """Stop it."""
        assert await self._node.stop()

    def context(self, *common: str, **more: object) -> ssl.SSLContext:
        """Return the context of a client with a certificate of the issuer."""
        return self.issuer.trusting(self.issuer.issue(*common, **more))  # type: ignore[arg-type]


async def asked(
    port: int, frames: list[bytes], context: ssl.SSLContext | None
) -> dict[int, Command]:
    """Return what is answered, by opaque, until the last request is; numbers are their places."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    parser = FrameParser()
    answers: dict[int, Command] = {}
    try:
        for number, frame in enumerate(frames):
            (one,) = FrameParser().feed(frame)
            writer.write(encode_frame(msgspec.structs.replace(one, opaque=number)))
        async with asyncio.timeout(ANSWER_S_MAX):
            while len(frames) - 1 not in answers:
                chunk = await reader.read(1 << 18)
                if not chunk:
                    raise ConnectionResetError("the server closed the connection")
                answers |= {one.opaque: one for one in parser.feed(chunk) if one.is_response}
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    return answers


def refusal(answer: Command | None) -> str:
    """Return why access control refuses; nothing if it does not."""
    remark = "" if answer is None else str(answer.remark or "")
    return remark if remark.startswith(EXCEPTION) else ""


async def ask(port: int, context: ssl.SSLContext | None, frame: bytes) -> str:
    """Return why one request is refused."""
    return refusal((await asked(port, [frame], context))[0])


@pytest.mark.parametrize("transport", ["plain", "TLS", "certificate"])
def test_every_code_by_every_user(run: Run, tmp_path: Path, transport: str) -> None:
    rig = Rig(tmp_path)

    async def main() -> None:
        wrong = []
        async with rig as node:
            for user, (_, kinds) in USER_ROLES.items():
                signer: Signer | None = user_signer(user)
                context: ssl.SSLContext | None = None
                if transport == "TLS":
                    context = rig.issuer.trusting()
                elif transport == "certificate":
                    signer, context = None, rig.context(user)
                frames = [request(code, signer) for code in CODES]
                last = signed_request(WRONG, 105, {"topic": "T"})
                for port in (node.broker.port, node.namesrv.port):
                    answers = await asked(port, [*frames, last], context)
                    assert refusal(answers[len(frames)])
                    said = b"".join(
                        one.body + repr((one.remark, one.fields)).encode()
                        for one in answers.values()
                    )
                    assert b"secret-of-" not in said
                    assert b"seal1." not in said
                    wrong += [
                        f"{user} {code.name} ({code}): {refusal(answers.get(place)) or 'passed'}"
                        for place, code in enumerate(CODES)
                        if bool(refusal(answers.get(place))) is (kind_of(code) in kinds)
                    ]
        assert not wrong

    run(main())


VIEW = signed_request(None, 26, {})


@pytest.mark.parametrize(
    ("names", "may"),
    [
        ({"common": ["viewer"]}, True),
        ({"common": ["Viewer"]}, False),
        ({"common": ["viewer "]}, False),
        ({"common": ["viewer", "viewer"]}, False),  # two are none
        ({"common": [], "dns": ["viewer"]}, False),  # a DNS name is no commonName
        ({"common": ["else"], "dns": ["OPS.example.com"]}, True),
        ({"common": ["else"], "dns": ["ops.example.com.evil.org"]}, False),
        ({"common": ["else"], "uris": ["spiffe://shop/ops"]}, True),
        ({"common": ["else"], "uris": ["spiffe://shop/ops/"]}, False),
        ({"common": ["ops"]}, False),  # names of its own take the place of the commonName
        ({"common": ["viewer"], "uris": ["spiffe://shop/ops"]}, False),  # two users are nobody
        ({"common": ["else"]}, False),
    ],
)
def test_which_certificate_is_whose(
    run: Run, tmp_path: Path, names: dict[str, list[str]], may: bool
) -> None:
    rig = Rig(tmp_path)
    with rig.users.open("a") as file:
        file.write('[users.ops]\nrole = "viewer"\n'
                   'certificates = ["dns:ops.example.com", "uri:spiffe://shop/ops"]\n')  # fmt: skip

    async def main() -> None:
        more = {name: texts for name, texts in names.items() if name != "common"}
        async with rig as node:
            context = rig.context(*names["common"], **more)
            assert bool(await ask(node.broker.port, context, VIEW)) is not may

    run(main())


def test_a_certificate_counts_only_if_it_was_verified(run: Run, tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    stranger = Issuer(tmp_path / "strangers")
    contexts = [
        rig.issuer.trusting(stranger.issue("admin")),
        rig.context("admin", lasts=timedelta(days=-1)),
        rig.context("admin", for_server=True),
    ]

    async def main() -> None:
        async with rig as node:
            assert not await ask(node.broker.port, rig.context("admin"), VIEW)
            for context in contexts:
                with pytest.raises(OSError, match=REFUSED):
                    await ask(node.broker.port, context, VIEW)

    run(main())


def test_without_asking_for_certificates_none_counts(run: Run, tmp_path: Path) -> None:
    rig = Rig(tmp_path, auth="none")

    async def main() -> None:
        async with rig as node:
            assert "is not signed" in await ask(node.broker.port, rig.context("admin"), VIEW)

    run(main())


def test_certificates_may_be_required(run: Run, tmp_path: Path) -> None:
    rig = Rig(tmp_path, auth="require")
    signed = signed_request(user_signer("viewer"), 26, {})

    async def main() -> None:
        async with rig as node:
            port = node.broker.port
            assert not await ask(port, rig.context("viewer"), VIEW)
            with pytest.raises(OSError, match=REFUSED):
                await ask(port, rig.issuer.trusting(), signed)
            assert not await ask(port, None, signed), "permissive is about TLS alone"

    run(main())


def test_a_signature_counts_before_a_certificate(run: Run, tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    write_accounts(tmp_path)

    async def main() -> None:
        async with rig as node:
            port, admin = node.broker.port, rig.context("admin")
            assert not await ask(port, admin, VIEW)
            for signer, why in (
                (user_signer("without"), "needs the role viewer"),
                (Signer("viewer", "not-the-secret"), "signature of the user viewer is wrong"),
                (Signer("publisher", "publisher-secret"), "needs an administrator"),
                (Signer("nobody-known", "secret-of-it"), "there is no account"),
            ):
                assert why in await ask(port, admin, signed_request(signer, 26, {}))
            unsigned = signed_request(None, 26, {"AccessKey": "admin"})
            assert "signature of the user admin is missing" in await ask(port, admin, unsigned)
            account = rig.context("administrator")  # of Apache's file: it has no certificate
            assert "no user has the certificate" in await ask(port, account, VIEW)

    run(main())


def test_a_user_without_a_secret_comes_with_its_certificate_alone(run: Run, tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    with rig.users.open("a") as file:
        file.write('[users.mailer]\nrole = "viewer"\n')

    async def main() -> None:
        async with rig as node:
            port = node.broker.port
            assert not await ask(port, rig.context("mailer"), VIEW)
            for secret in ("", "mailer", "anything"):
                signed = signed_request(Signer("mailer", secret), 26, {})
                assert "has no secret to sign with" in await ask(port, None, signed)

    run(main())


def test_who_is_taken_out_of_the_file_is_out_though_still_connected(
    run: Run, tmp_path: Path
) -> None:
    rig = Rig(tmp_path)

    async def main() -> None:
        async with rig as node:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", node.broker.port, ssl=rig.context("viewer")
            )
            parser = FrameParser()

            async def why() -> str:
                writer.write(VIEW)
                found: list[Command] = []
                while not found:
                    found += parser.feed(await reader.read(1 << 18))
                return refusal(found[0])

            assert not await why()
            text = rig.users.read_text().replace(
                "[users.viewer]", "[users.viewer]\ncertificates=[]"
            )
            rig.users.write_text(text)
            seen = rig.users.stat()
            os.utime(rig.users, ns=(seen.st_atime_ns, seen.st_mtime_ns + 1_000_000))
            async with asyncio.timeout(ANSWER_S_MAX):
                while not (said := await why()):  # noqa: ASYNC110 - it looks once a second
                    await asyncio.sleep(0.05)
            assert "no user has the certificate cn:viewer" in said
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    run(main())
