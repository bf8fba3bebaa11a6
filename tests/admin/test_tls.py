"""Commands against a cluster that takes TLS alone, and wants to see a certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from gantrymq.cli.main import main
from support import gantry
from support.issuing import Issuer
from support.shell import Shell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Closed(NamedTuple):
    """A server that takes nobody without a certificate."""

    shell: Shell
    issuer: Issuer
    mine: Path


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Closed]:
    work = tmp_path_factory.mktemp("closed")
    issuer = Issuer(work / "pki")
    own, mine = str(issuer.issue("server", for_server=True)), issuer.issue("operator")
    settings = {
        "tls.server.mode": "enforcing", "tls.server.certPath": own, "tls.server.keyPath": own,
        "tls.server.trustCertPath": str(issuer.path), "tls.server.need.client.auth": "require",
        "tls.client.trustCertPath": str(issuer.path), "tls.client.certPath": str(mine),
        "tls.client.keyPath": str(mine),
    }  # fmt: skip
    with gantry.server(work / "server", settings) as server:
        yield Closed(Shell(server), issuer, mine)


def test_commands_speak_tls_and_show_a_certificate(
    closed: Closed, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell, issuer, mine = closed
    tls = ("--cluster-trust", str(issuer.path), "--cluster-certificate", str(mine))
    shell.well("topic", "create", "Sealed", *tls)
    assert "Sealed" in shell.well("admin", "topicList", *tls)
    shell.well("message", "send", "Sealed", "hello", *tls)
    assert shell.json("message", "search", "Sealed", *tls)["messages"]
    monkeypatch.setenv("GANTRYMQ_CLUSTER_TRUST", "unchecked")
    monkeypatch.setenv("GANTRYMQ_CLUSTER_CERTIFICATE", str(mine))
    assert "Sealed" in shell.well("topic", "list")


def test_a_broker_is_drained_over_tls(closed: Closed, capsys: pytest.CaptureFixture[str]) -> None:
    shell, issuer, mine = closed
    tls = ("--cluster-trust", str(issuer.path), "--cluster-certificate", str(mine))
    assert main(["broker", "drain", shell.broker, *tls]) == 1
    assert "no other broker could take its sends" in capsys.readouterr().err
    assert main(["broker", "undrain", shell.broker, *tls]) == 0
    assert main(["broker", "undrain", shell.broker]) == 1


def test_nobody_is_trusted_who_was_not_named(closed: Closed, tmp_path: Path) -> None:
    shell, issuer, mine = closed
    shown = ("--cluster-certificate", str(mine))
    other = Issuer(tmp_path, "other")
    for given, wanted, status in (
        ((), "", 1),
        (("--cluster-trust", str(issuer.path)), "", 1),
        (("--cluster-trust", str(other.path), *shown), "certificate", 1),
        (("--cluster-trust", str(tmp_path / "none.pem"), *shown), "none.pem cannot be used", 2),
        (("--cluster-trust", str(issuer.path), "--cluster-key", str(mine)), "needs", 2),
        (shown, "say with --cluster-trust who", 2),
    ):
        ended = shell.run("topic", "list", "--timeout", "3", *given)
        assert (ended.status, ended.out) == (status, ""), given
        assert wanted in ended.err
        assert ended.err.count("\n") == 1
