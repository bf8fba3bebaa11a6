"""Socket addresses as peers know them: `host:port` text, and the bytes that records keep."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

from gantrymq.errors import InvalidValue
from gantrymq.model.message import Host

NOWHERE = Host("0.0.0.0", 0)  # noqa: S104  (nothing is bound: the address of nobody)


def socket_host(name: object) -> Host:
    """Return the host in what `getpeername` or `getsockname` gave; a broken socket has none.

    An IPv4 address in IPv6 clothing counts as IPv4, and a scope (`fe80::1%eth0`) is left out.
    """
    if not (isinstance(name, tuple) and len(name) >= 2):
        return NOWHERE
    address = ip_address(str(name[0]).partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return Host(str(address), int(name[1]))


def split_address(text: str) -> tuple[str, int]:
    """Read `host:port`, where host is a name or an address; an IPv6 one may stand in brackets.

    Raises:
        InvalidValue: it is something else.
    """
    host, colon, port = text.strip().rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not (colon and host and port.isascii() and port.isdecimal() and 0 < int(port[:6]) < 65536):
        raise InvalidValue(f"{text[:64]!r} is not host:port: say for example 127.0.0.1:10911")
    return host, int(port)
