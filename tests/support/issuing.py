"""An issuer of certificates for a test: of servers, of clients, and of some that may not pass."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

DAY = timedelta(days=1)


class Issuer:
    """Signs certificates; its own is `path`."""

    def __init__(self, folder: Path, name: str = "issuer") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _names(name)
        self._begin = datetime.now(UTC)
        made = self._builder(self._name, self._key.public_key(), DAY).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        self.path = folder / f"{name}.pem"
        signed = made.sign(self._key, hashes.SHA256())
        self.path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, lasts: timedelta
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._begin - 2 * DAY)
            .not_valid_after(self._begin + lasts)
        )

    def issue(
        self,
        *common: str,
        dns: Sequence[str] = (),
        uris: Sequence[str] = (),
        lasts: timedelta = DAY,
        for_server: bool = False,
    ) -> Path:
        """Return a file with a certificate and its key: for clients, unless it is for a server."""
        key = ec.generate_private_key(ec.SECP256R1())
        use = ExtendedKeyUsageOID.SERVER_AUTH if for_server else ExtendedKeyUsageOID.CLIENT_AUTH
        others: list[x509.GeneralName] = [x509.DNSName(one) for one in dns]
        others += [x509.UniformResourceIdentifier(one) for one in uris]
        if for_server:
            others.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        made = self._builder(_names(*common), key.public_key(), lasts)
        made = made.add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        if others:
            made = made.add_extension(x509.SubjectAlternativeName(others), critical=False)
        signed = made.sign(self._key, hashes.SHA256())
        path = self._folder / f"{signed.serial_number:x}.pem"
        path.write_bytes(
            signed.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return path

    def trusting(self, certificate: Path | None = None) -> ssl.SSLContext:
        """Return the context of a client that trusts this issuer, and shows a certificate."""
        context = ssl.create_default_context(cafile=str(self.path))
        if certificate is not None:
            context.load_cert_chain(certificate)
        return context


def _names(*common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, one) for one in common])
