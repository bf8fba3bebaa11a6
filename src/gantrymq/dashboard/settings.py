"""What a dashboard is told when it starts, and its bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue
from gantrymq.wire.hosts import is_loopback

if TYPE_CHECKING:
    import ssl as tls
    from pathlib import Path

    from gantrymq.client.settings import Credentials

PORT: Final = 8080
BIND: Final = "127.0.0.1"

BODY_BYTES_MAX: Final = 5 * 1024 * 1024
"""Of a request: the largest is a test message."""
CHANGE_BYTES_MAX: Final = 256 * 1024
"""Of any other change."""
LOGIN_BYTES_MAX: Final = 4 * 1024
"""Of a request with nothing in it but passwords."""
CALLS_MAX: Final = 64
"""Requests that are worked on at the same time; the next ones are told to come back."""
CALLS_OF_ONE_MAX: Final = 24
"""The same for one user; a browser sends six."""
CHANGES_MAX: Final = 120
"""Of one user in a minute, so that nobody fills the audit log."""
CALL_S_MAX: Final = 60.0
"""For one request, whatever it asks of the cluster."""
CONNECTIONS_MAX: Final = 512
KEEP_ALIVE_S: Final = 30


@dataclass(frozen=True, slots=True)
class DashboardSettings:
    """How a dashboard is run."""

    namesrv: str
    data: Path
    """Where accounts, the audit log, undo files and the journals of jobs are kept."""
    bind: str = BIND
    port: int = PORT
    read_only: bool = False
    login: bool = True
    reports: Path | None = None
    """A folder with reports of `gantrymq pipeline run --report`."""
    hosts: tuple[str, ...] = ()
    """Names by which browsers may call it; beside them, on loopback, those of this machine."""
    proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies whose word is taken for who asks, and whether by TLS."""
    certificate: Path | None = None
    key: Path | None = None
    credentials: Credentials | None = field(default=None, repr=False)
    ssl: tls.SSLContext | None = None
    """TLS of connections to the cluster; without it they are plain."""

    @property
    def is_local(self) -> bool:
        """Tell whether only this machine can reach it."""
        return is_loopback(self.bind)

    @property
    def is_encrypted(self) -> bool:
        """Tell whether browsers speak TLS to it."""
        return self.certificate is not None

    def address(self, port: int) -> str:
        """Return what to type into a browser."""
        scheme = "https" if self.is_encrypted else "http"
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.bind, self.bind)  # noqa: S104
        if ":" in host and not host.startswith("["):
            host = f"[{host}]"
        return f"{scheme}://{host}:{port}"


def check_proxy(text: str) -> str:
    """Return the address or network of a proxy.

    Raises:
        InvalidValue: it is neither, or everybody.
    """
    try:
        found = ip_network(text)
    except ValueError as error:
        raise InvalidValue(
            f"{text!r} is no proxy: give its address, or a network as 10.1.0.0/24 ({error})"
        ) from None
    if not found.prefixlen:
        raise InvalidValue(f"{text} is everybody, who could then say to be anybody: name proxies")
    return text


def network_of(host: str) -> str:
    """Return whom an address counts as: itself, or of IPv6 the network that one customer has."""
    try:
        found = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if not isinstance(found, IPv6Address):
        return host
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ip_network((found, 64), strict=False))
