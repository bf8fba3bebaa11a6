"""TLS to a cluster, as options and variables name it; loaded by those who want it alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from ssl import SSLContext

UNCHECKED: Final = "unchecked"
"""In place of a file: encrypted, and nobody is asked who the other one is."""


def tls_to_cluster(
    trust: str | None, certificate: str | None, key: str | None
) -> SSLContext | None:
    """Return TLS that trusts who is in a file and shows a certificate; None if it is not wanted.

    Raises:
        InvalidValue: a file cannot be used, or one says nothing without another.
    """
    if trust is None:
        if certificate or key:
            raise InvalidValue(
                "--cluster-certificate and --cluster-key are for TLS: say with --cluster-trust who"
                f" signs the servers' certificates, or {UNCHECKED}"
            )
        return None
    if key and not certificate:
        raise InvalidValue("--cluster-key needs --cluster-certificate")
    from gantrymq.transport.tls import ClientTls  # noqa: PLC0415  (slow to load, wanted by few)

    is_checked = trust != UNCHECKED
    return ClientTls(
        cert_path=certificate or None,
        key_path=key or None,
        trust_path=trust if is_checked else None,
        verifies_server=is_checked,
    ).context()
