"""A broker and name servers that take nothing but TLS."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from gantrymq.node.certificate import with_test_certificate
from gantrymq.node.config import read_client_tls
from gantrymq.transport.tls import ServerTls, TlsMode
from support.nodes import all_in_one, broker_node, name_server

if TYPE_CHECKING:
    from pathlib import Path

    from support.transport import Run

NOW_MS = 1_790_000_000_000
SECOND_S = 1.0


def path_of(tls: ServerTls) -> str:
    assert tls.cert_path is not None
    return tls.cert_path


def made(folder: Path) -> ServerTls:
    """Return the settings of a server that takes nothing but TLS."""
    return with_test_certificate(ServerTls(TlsMode.ENFORCING), folder, NOW_MS)


@pytest.mark.parametrize("name", ["tls.enable", "useTLS"])
def test_a_broker_registers_over_tls_if_it_is_told_to(run: Run, tmp_path: Path, name: str) -> None:
    async def main() -> None:
        server = name_server(tmp_path / "ns", tls=made(tmp_path / "tls"))
        await server.start()
        address = f"127.0.0.1:{server.port}"
        plain = broker_node(tmp_path / "plain", address)
        await plain.start()
        assert not await plain.wait_registered(SECOND_S / 5)
        assert await plain.stop()
        node = broker_node(tmp_path / "store", address, **{name: "true"})
        await node.start()
        assert await node.wait_registered(5 * SECOND_S)
        assert node.known_to == {address}
        assert await node.stop()
        assert await server.stop()

    run(main())


def test_a_name_server_that_is_somebody_else_gets_nothing(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        server = name_server(tmp_path / "ns", tls=made(tmp_path / "theirs"))
        await server.start()
        address = f"localhost:{server.port}"  # which its certificate names
        trusted = {
            "tls.enable": "true",
            "tls.client.trustCertPath": path_of(made(tmp_path / "ours")),
        }
        node = broker_node(tmp_path / "store", address, **trusted)
        await node.start()
        assert not await node.wait_registered(SECOND_S / 2)
        assert await node.stop()
        trusted["tls.client.trustCertPath"] = path_of(made(tmp_path / "theirs"))
        node = broker_node(tmp_path / "store", address, **trusted)
        await node.start()
        assert await node.wait_registered(5 * SECOND_S)
        assert await node.stop()
        assert await server.stop()

    run(main())


def test_both_in_one_process_enforce_tls(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        tls = made(tmp_path / "tls")
        node = all_in_one(
            tmp_path / "store",
            **{
                "tls.server.mode": "enforcing",
                "tls.server.certPath": path_of(tls),
                "tls.server.keyPath": str(tls.key_path),
            },
        )
        await node.start()
        assert len(node.broker.known_to) == 1
        assert await node.stop()

    run(main())


def test_what_settings_ask_for(caplog: pytest.LogCaptureFixture) -> None:
    assert read_client_tls({}) is None
    assert read_client_tls({"tls.server.mode": "enforcing", "tls.enable": "false"}) is None
    with caplog.at_level(logging.WARNING):
        unchecked = read_client_tls({"tls.server.mode": "enforcing"})
    assert unchecked is not None
    assert not unchecked.verifies_server
    assert "tls.client.trustCertPath" in caplog.text
    checked = read_client_tls({"tls.enable": "true", "tls.client.authServer": "true"})
    assert checked is not None
    assert checked.verifies_server
