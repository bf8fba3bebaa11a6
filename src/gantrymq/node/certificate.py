"""A certificate for trying TLS out, made once and kept beside the data.

Apache RocketMQ offers TLS on its port without being told to (`tls.test.mode.enable`), with a
certificate that nobody vouches for: a client with `useTLS` connects, what it sends is encrypted,
and nobody knows to whom. The same is done here, so that such clients work; name real files with
`tls.server.certPath` and `tls.server.keyPath` to be known by your clients.

Needs the package `cryptography` (extra `server`); without it there is no TLS until files are named.
"""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from gantrymq.clock import SystemClock
from gantrymq.transport.tls import TlsMode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gantrymq.transport.tls import ServerTls

log = logging.getLogger(__name__)

TEST_MODE_NAME: Final = "tls.test.mode.enable"
VALID_DAYS: Final = 3650
CERTIFICATE_NAME: Final = "test-certificate.pem"
KEY_NAME: Final = "test-key.pem"


def offered_tls(tls: ServerTls, properties: Mapping[str, str], directory: Path) -> ServerTls:
    """Return the TLS settings, with a test certificate if none is named and that is not forbidden.

    The name of the setting is Apache's, and so is its default.
    """
    if properties.get(TEST_MODE_NAME, "true").strip().lower() != "true":
        return tls
    return with_test_certificate(tls, directory, SystemClock().now_ms())


def with_test_certificate(tls: ServerTls, directory: Path, now_ms: int) -> ServerTls:
    """Return the settings with a certificate of our own, if TLS is allowed and none is named."""
    if tls.mode is TlsMode.DISABLED or tls.cert_path is not None or tls.key_path is not None:
        return tls
    certificate, key = directory / CERTIFICATE_NAME, directory / KEY_NAME
    if not (certificate.exists() and key.exists()):
        try:
            made = _make(now_ms)
        except ImportError:
            log.info("no TLS: no certificate is named, and `cryptography` is not installed")
            return tls
        directory.mkdir(parents=True, exist_ok=True)
        _write(key, made[1])
        _write(certificate, made[0])
    return replace(tls, cert_path=str(certificate), key_path=str(key))


def _write(path: Path, content: bytes) -> None:
    """Write a file that only its owner reads."""
    fresh = path.with_suffix(".tmp")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    fresh.replace(path)


def _make(now_ms: int) -> tuple[bytes, bytes]:
    """Return a new certificate and its key, as PEM."""
    from cryptography import x509  # noqa: PLC0415  (optional, and slow to import)
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "gantrymq test certificate")])
    begin = datetime.fromtimestamp(now_ms / 1000, UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin - timedelta(days=1))
        .not_valid_after(begin + timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return (
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
