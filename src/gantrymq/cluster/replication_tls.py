"""TLS of the replication port, with certificates on both sides: who copies and who is copied.

The protocol has no word for who is there, so the certificate says it. A broker shows the same one
as master and as slave, and believes those of one issuer alone, which should issue for brokers and
nobody else: names are not compared, since a group knows its members by address.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gantrymq.transport.certificates import Certificates
from gantrymq.transport.tls import ClientAuth, ClientTls, ServerTls, TlsMode

if TYPE_CHECKING:
    import ssl


@dataclass(frozen=True, slots=True)
class ReplicationTls:
    """The files; all three are there."""

    cert_path: str
    key_path: str
    trust_path: str

    def copying(self) -> ssl.SSLContext:
        """Return what a slave connects with; the files are read each time.

        Raises:
            InvalidValue: a file cannot be used.
        """
        return ClientTls(
            self.cert_path, self.key_path, trust_path=self.trust_path, checks_name=False
        ).context()

    def serving(self, now: float) -> ServedCertificate:
        """Return what a master listens with.

        Raises:
            InvalidValue: a file cannot be used.
        """
        return ServedCertificate(self, now)


class ServedCertificate:
    """The context of a listener, which goes on when the certificate is renewed."""

    def __init__(self, tls: ReplicationTls, now: float) -> None:
        self._tls = tls
        serving = ServerTls(
            TlsMode.ENFORCING, tls.cert_path, tls.key_path, None, tls.trust_path,
            ClientAuth.REQUIRE,
        )  # fmt: skip
        self._files = Certificates(serving, now)
        context = self._files.context
        assert context is not None  # noqa: S101 - TLS is not disabled
        self.context = context

    def look(self, now: float) -> None:
        """Show a renewed certificate from now on; whom to believe is read at the start."""
        if self._files.look(now) is not None:
            self.context.load_cert_chain(self._tls.cert_path, self._tls.key_path, "")
