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
        self._revoked: list[x509.RevokedCertificate] = []
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
        for_both: bool = False,
    ) -> Path:
        """Return a file with a certificate and its key: for clients, a server, or `for_both`."""
        for_server |= for_both
        key = ec.generate_private_key(ec.SECP256R1())
        use = ExtendedKeyUsageOID.SERVER_AUTH if for_server else ExtendedKeyUsageOID.CLIENT_AUTH
        others: list[x509.GeneralName] = [x509.DNSName(one) for one in dns]
        others += [x509.UniformResourceIdentifier(one) for one in uris]
        if for_server:
            others.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        made = self._builder(_names(*common), key.public_key(), lasts)
        uses = [use, ExtendedKeyUsageOID.CLIENT_AUTH] if for_both else [use]
        made = made.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
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

    def revoke(self, path: Path) -> None:
        """Have the next list say that a certificate is not to be trusted any more."""
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
        self._revoked.append(
            x509.RevokedCertificateBuilder()
            .serial_number(certificate.serial_number)
            .revocation_date(self._begin)
            .build()
        )

    def revoked(self, lasts: timedelta = DAY) -> bytes:
        """Return the list of what was revoked, as PEM; it is good for so long."""
        made = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self._name)
            .last_update(self._begin - 2 * DAY)
            .next_update(self._begin + lasts)
        )
        for one in self._revoked:
            made = made.add_revoked_certificate(one)
        return made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def trusting(self, certificate: Path | None = None) -> ssl.SSLContext:
        """Return the context of a client that trusts this issuer, and shows a certificate."""
        context = ssl.create_default_context(cafile=str(self.path))
        if certificate is not None:
            context.load_cert_chain(certificate)
        return context


def _names(*common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, one) for one in common])


def hello_of(version: bytes) -> bytes:
    """Return how a client begins that speaks one version, with what a server of today takes."""
    suites = bytes.fromhex("c02bc009c02fc013002f")
    more = bytes.fromhex("000a000400020017000b00020100000d0006000404030401")
    body = version + bytes(32) + b"\0" + len(suites).to_bytes(2) + suites + b"\x01\0"
    body += len(more).to_bytes(2) + more
    hello = b"\x01" + len(body).to_bytes(3) + body
    return b"\x16\x03\x01" + len(hello).to_bytes(2) + hello
