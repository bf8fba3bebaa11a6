"""Who the other end of a TLS connection is, by the certificate that it has shown.

Only a certificate that was verified counts: its issuer is in `tls.server.trustCertPath`, it is
valid when the connection begins, and it is one for clients. OpenSSL sees to that in the handshake;
what was not verified has no names here. The names, in this order:

    uri:spiffe://shop/billing    a URI among its subjectAltName
    dns:billing.example.com      a DNS name among it, in small letters
    cn:billing                   the commonName of its subject, if there is exactly one
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator


def certificate_names(transport: asyncio.BaseTransport) -> tuple[str, ...]:
    """Return the names of the peer's verified certificate; nothing without one."""
    tls = transport.get_extra_info("ssl_object")
    # What was not asked for is not verified, and then this is empty; None is no certificate.
    found = None if tls is None else tls.getpeercert()
    return tuple(_names(found)) if found else ()


def _names(certificate: dict[str, object]) -> Iterator[str]:
    others = certificate.get("subjectAltName")
    pairs = others if isinstance(others, tuple) else ()
    yield from (f"uri:{text}" for kind, text in pairs if kind == "URI")
    yield from (f"dns:{text.lower()}" for kind, text in pairs if kind == "DNS")
    subject = certificate.get("subject")
    parts = subject if isinstance(subject, tuple) else ()
    common = [text for part in parts for kind, text in part if kind == "commonName"]
    if len(common) == 1:
        yield f"cn:{common[0]}"
