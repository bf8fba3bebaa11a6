"""TLS contexts with safe defaults, from settings that have Apache RocketMQ's names.

    tls.server.mode            disabled, permissive (the default) or enforcing
    tls.server.certPath        PEM, the server's certificate and what leads to its issuer
    tls.server.keyPath         PEM, its key;  tls.server.keyPassword  if that is encrypted
    tls.server.trustCertPath   PEM, who signs the certificates of clients
    tls.server.need.client.auth   none, optional or require
    tls.server.crlPath         PEM, lists of revoked certificates of clients; a name of our own
    tls.client.certPath, keyPath, keyPassword, trustCertPath, authServer   the same for a client

Where this differs from Apache: nothing below TLS 1.2 is spoken, a server without a certificate has
no TLS instead of one with a certificate made on the spot, and a client checks the server's
certificate and name unless it is told not to (`authServer=false`).
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Mapping


Kind = TypeVar("Kind", bound=Enum)


class TlsMode(Enum):
    """What a server does with a connection that begins with TLS, and with one that does not."""

    DISABLED = "disabled"
    PERMISSIVE = "permissive"
    ENFORCING = "enforcing"


class ClientAuth(Enum):
    """Whether clients must show a certificate."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRE = "require"


_VERIFY = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.OPTIONAL: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRE: ssl.CERT_REQUIRED,
}


@dataclass(frozen=True, slots=True)
class ServerTls:
    """TLS of a server; `cert_path` and `key_path` are given together or not at all."""

    mode: TlsMode = TlsMode.PERMISSIVE
    cert_path: str | None = None
    key_path: str | None = None
    key_password: str | None = field(default=None, repr=False)
    trust_path: str | None = None
    client_auth: ClientAuth = ClientAuth.NONE
    crl_path: str | None = None

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> ServerTls:
        """Read Apache's names; others are left alone.

        Raises:
            InvalidValue: a mode that is none.
        """
        mode = properties.get("tls.server.mode", "permissive")
        auth = properties.get("tls.server.need.client.auth", "none")
        return cls(
            mode=_choice(TlsMode, "tls.server.mode", mode),
            cert_path=properties.get("tls.server.certPath"),
            key_path=properties.get("tls.server.keyPath"),
            key_password=properties.get("tls.server.keyPassword"),
            trust_path=properties.get("tls.server.trustCertPath"),
            client_auth=_choice(ClientAuth, "tls.server.need.client.auth", auth),
            crl_path=properties.get("tls.server.crlPath", "").strip() or None,
        )

    def context(self) -> ssl.SSLContext | None:
        """Return the context, or None where TLS is not offered.

        Raises:
            InvalidValue: a file cannot be used, or one that is needed is not named.
        """
        if self.mode is TlsMode.DISABLED:
            return None
        if self.cert_path is None or self.key_path is None:
            if self.mode is TlsMode.PERMISSIVE and self.cert_path is self.key_path:
                return None
            raise InvalidValue(
                f"TLS is {self.mode.value} and needs both a certificate and its key: set"
                " tls.server.certPath and tls.server.keyPath"
            )
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # A client would have the server calculate for nothing, as often as it likes.
        context.options |= ssl.OP_NO_RENEGOTIATION
        _load_identity(context, self.cert_path, self.key_path, self.key_password)
        if self.client_auth is not ClientAuth.NONE:
            if self.trust_path is None:
                raise InvalidValue(
                    f"client certificates are {self.client_auth.value} and nobody is named who"
                    " signs them: set tls.server.trustCertPath"
                )
            _load_trust(context, self.trust_path)
            context.verify_mode = _VERIFY[self.client_auth]
        if self.crl_path is not None:
            self._load_revoked(context, self.crl_path)
        return context

    def _load_revoked(self, context: ssl.SSLContext, crl_path: str) -> None:
        """Refuse certificates that their issuer has revoked, and those it has no valid list for."""
        if self.client_auth is ClientAuth.NONE:
            raise InvalidValue(
                f"tls.server.crlPath is {crl_path} and no client is asked for a certificate: set"
                " tls.server.need.client.auth, or leave it out"
            )
        trusted = context.cert_store_stats()["x509"]
        try:
            context.load_verify_locations(crl_path)
        except (OSError, ValueError) as error:
            raise InvalidValue(
                f"the list of revoked certificates {crl_path} cannot be used: {error}; name a PEM"
                " file"
            ) from error
        found = context.cert_store_stats()
        if found["crl"] == 0 or found["x509"] != trusted:
            # A certificate in it would be trusted, which nobody expects of such a file.
            raise InvalidValue(
                f"the list of revoked certificates {crl_path} must hold lists (X509 CRL) and no"
                " certificates"
            )
        context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF


@dataclass(frozen=True, slots=True)
class ClientTls:
    """TLS of a client. Without `trust_path` the machine's own list of issuers counts."""

    cert_path: str | None = None
    key_path: str | None = None
    key_password: str | None = field(default=None, repr=False)
    trust_path: str | None = None
    verifies_server: bool = True
    checks_name: bool = True
    """Whether the certificate must have the name or address that was connected to."""

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> ClientTls:
        """Read Apache's names; others are left alone. `authServer=false` checks nothing."""
        verifies = properties.get("tls.client.authServer", "true").strip().lower() == "true"
        return cls(
            cert_path=properties.get("tls.client.certPath"),
            key_path=properties.get("tls.client.keyPath"),
            key_password=properties.get("tls.client.keyPassword"),
            trust_path=properties.get("tls.client.trustCertPath"),
            verifies_server=verifies,
            checks_name=verifies,
        )

    def context(self) -> ssl.SSLContext:
        """Return the context.

        Raises:
            InvalidValue: a file cannot be used.
        """
        context = self._trusting()
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = self.verifies_server and self.checks_name
        if not self.verifies_server:
            context.verify_mode = ssl.CERT_NONE
        if self.cert_path is not None:
            _load_identity(context, self.cert_path, self.key_path, self.key_password)
        return context

    def _trusting(self) -> ssl.SSLContext:
        """Return a context that believes whom the file names, and then nobody else."""
        try:
            return ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=self.trust_path)
        except (OSError, ValueError) as error:
            raise _untrusted(self.trust_path, error) from error


def _choice(kind: type[Kind], name: str, text: str) -> Kind:
    try:
        return kind(text.strip().lower())
    except ValueError:
        known = ", ".join(str(member.value) for member in kind)
        raise InvalidValue(f"{name} is {text[:64]!r}: say one of {known}") from None


def _load_identity(
    context: ssl.SSLContext, cert_path: str, key_path: str | None, password: str | None
) -> None:
    try:
        # An empty password keeps OpenSSL from asking on the terminal for one.
        context.load_cert_chain(cert_path, key_path, password or "")
    except (OSError, ValueError) as error:
        raise InvalidValue(
            f"the certificate {cert_path} and its key {key_path} cannot be used: {error};"
            " both must be readable PEM files that belong together"
        ) from error


def _load_trust(context: ssl.SSLContext, trust_path: str) -> None:
    try:
        context.load_verify_locations(trust_path)
    except (OSError, ValueError) as error:
        raise _untrusted(trust_path, error) from error


def _untrusted(trust_path: str | None, error: Exception) -> InvalidValue:
    return InvalidValue(
        f"the trusted certificates {trust_path} cannot be used: {error}; name a PEM file"
    )
