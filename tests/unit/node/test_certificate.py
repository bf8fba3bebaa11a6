"""The certificate for trying TLS out."""

from __future__ import annotations

import ssl
import stat
from typing import TYPE_CHECKING

from gantrymq.node.certificate import offered_tls, with_test_certificate
from gantrymq.transport.tls import ServerTls, TlsMode

if TYPE_CHECKING:
    from pathlib import Path

NOW_MS = 1_790_000_000_000


def test_it_is_made_once_and_can_be_used(tmp_path: Path) -> None:
    first = with_test_certificate(ServerTls(), tmp_path / "tls", NOW_MS)
    assert first.cert_path is not None
    assert first.key_path is not None
    assert isinstance(first.context(), ssl.SSLContext)
    before = (tmp_path / "tls" / "test-certificate.pem").read_bytes()
    assert with_test_certificate(ServerTls(), tmp_path / "tls", NOW_MS) == first
    assert (tmp_path / "tls" / "test-certificate.pem").read_bytes() == before
    key = tmp_path / "tls" / "test-key.pem"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_nothing_is_made_where_files_are_named_or_tls_is_off(tmp_path: Path) -> None:
    named = ServerTls(cert_path="c", key_path="k")
    off = ServerTls(TlsMode.DISABLED)
    assert with_test_certificate(named, tmp_path, NOW_MS) == named
    assert with_test_certificate(off, tmp_path, NOW_MS) == off
    assert offered_tls(ServerTls(), {"tls.test.mode.enable": "false"}, tmp_path) == ServerTls()
    assert list(tmp_path.iterdir()) == []
