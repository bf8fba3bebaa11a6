"""TLS settings: Apache's names, and errors that say which file."""

from __future__ import annotations

import ssl
from dataclasses import replace

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.transport.tls import ClientAuth, ClientTls, ServerTls, TlsMode


def test_apache_names_are_read() -> None:
    server = ServerTls.from_properties(
        {
            "tls.server.mode": "ENFORCING",
            "tls.server.certPath": "c",
            "tls.server.keyPath": "k",
            "tls.server.keyPassword": "p",
            "tls.server.trustCertPath": "t",
            "tls.server.need.client.auth": "require",
            "listenPort": "1",
        }
    )
    assert server == ServerTls(TlsMode.ENFORCING, "c", "k", "p", "t", ClientAuth.REQUIRE)
    assert ServerTls.from_properties({}) == ServerTls()
    client = ClientTls.from_properties({"tls.client.authServer": "false"})
    assert client == ClientTls(verifies_server=False, checks_name=False)
    assert ClientTls.from_properties({}) == ClientTls()
    with pytest.raises(InvalidValue, match="say one of disabled, permissive, enforcing"):
        ServerTls.from_properties({"tls.server.mode": "on"})


def test_contexts_are_safe_by_default(certificate: tuple[str, str]) -> None:
    server = ServerTls(cert_path=certificate[0], key_path=certificate[1]).context()
    assert server is not None
    client = ClientTls().context()
    assert server.options & ssl.OP_NO_RENEGOTIATION
    assert server.minimum_version == client.minimum_version == ssl.TLSVersion.TLSv1_2
    assert client.check_hostname
    assert client.verify_mode == ssl.CERT_REQUIRED


def test_clients_can_be_asked_for_certificates(certificate: tuple[str, str]) -> None:
    offering = ServerTls(cert_path=certificate[0], key_path=certificate[1])
    strict = replace(offering, trust_path=certificate[0], client_auth=ClientAuth.REQUIRE)
    context = strict.context()
    assert context is not None
    assert context.verify_mode == ssl.CERT_REQUIRED
    with pytest.raises(InvalidValue, match="trustCertPath"):
        replace(offering, client_auth=ClientAuth.OPTIONAL).context()


def test_without_a_certificate_there_is_no_tls() -> None:
    assert ServerTls().context() is None
    assert ServerTls(TlsMode.DISABLED, "c", "k").context() is None
    for incomplete in (ServerTls(TlsMode.ENFORCING), ServerTls(cert_path="c")):
        with pytest.raises(InvalidValue, match="needs both a certificate and its key"):
            incomplete.context()


def test_files_that_cannot_be_used_are_named(certificate: tuple[str, str]) -> None:
    with pytest.raises(InvalidValue, match=r"missing\.pem"):
        ServerTls(cert_path="missing.pem", key_path=certificate[1]).context()
    with pytest.raises(InvalidValue, match="belong together"):
        ServerTls(cert_path=certificate[0], key_path=certificate[0]).context()
    with pytest.raises(InvalidValue, match=r"missing\.pem"):
        ClientTls(trust_path="missing.pem").context()
