"""Which address of a broker a client is told: one that it can reach.

A broker registers one address. Clients may come from several networks: a machine with two cards, a
container and its host, a laptop that is asked by 127.0.0.1 and by its name. What a name server
knows of a client's network is the address that the client reached *it* by (`Peer.listener`). The
rules, the first that applies:

1. An address that somebody chose (`brokerIP1` in the broker's file) is told as it is, always.
   Nobody calls `advertise` for such a broker. With ports mapped by Docker, address translation or a
   load balancer in between, this is the only way: the listener's address is then one that clients
   cannot see either.
2. A broker of the same process may give an address for each listener: `advertise(address, {listener
   host: address})`. A listener that is not among them gets the registered address.
3. A broker of the same process that listens on all addresses of the machine, on a port that is the
   same on all of them, is told as the listener's host with the broker's port: `follow_listener`.
4. A broker elsewhere that registers a wildcard host (`0.0.0.0:10911`) says "as you see me": it is
   known by the address its connection came from, and if that is this machine itself, by rule 3.
5. Every other address is told as it was registered.

Rules 2 to 4 concern every answer with an address in it: routes, cluster lists, a slave's master.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Final, TypeAlias

from gantrymq.errors import InvalidValue, shown
from gantrymq.limits import (
    ADDRESS_CHARACTERS_MAX,
    NAMESRV_ADVERTISED_MAX,
    NAMESRV_VIEWS_MAX,
)

if TYPE_CHECKING:
    from gantrymq.model.route import BrokerData

Advertised: TypeAlias = Mapping[str, str] | Callable[[str], str | None]
"""Listener host to address, or a function that says the same; None is the registered address."""

PLAIN_VIEW: Final = ""
"""How a client sees brokers when no rule concerns it: as they registered."""
_ADDRESS: Final = re.compile(r"(?:[A-Za-z0-9._%:-]+|\[[A-Za-z0-9.%:]+\]):[0-9]{1,5}")
_PORT_MAX: Final = 65535


class Reach:
    """How brokers are seen from the listeners of this name server. One event loop owns it."""

    def __init__(self) -> None:
        self._rules: dict[str, Callable[[str], str | None]] = {}
        self._wildcards = False

    def advertise(self, address: str, how: Advertised) -> None:
        """Give other addresses for a registered one; whoever cached answers drops them.

        Raises:
            InvalidValue: too many brokers have given some.
        """
        if address not in self._rules and len(self._rules) >= NAMESRV_ADVERTISED_MAX:
            raise InvalidValue(f"{NAMESRV_ADVERTISED_MAX} addresses are advertised already")
        self._rules[address] = dict(how).get if isinstance(how, Mapping) else how

    def follow_listener(self, address: str) -> None:
        """Say that a broker listens wherever the name server does, on its own port."""
        port = address.rpartition(":")[2]
        self.advertise(address, lambda host: _join(host, port))

    def withdraw(self, address: str) -> None:
        """Tell a registered address as it is again."""
        self._rules.pop(address, None)

    def known_as(self, address: str, source: str) -> str:
        """Return the address that a broker is known by; `source` is where its connection is from.

        The answer for a wildcard stays one only if the broker runs on this machine.
        """
        host, _, port = address.rpartition(":")
        if not _is_wildcard(host):
            return address
        seen = listener_host(source)
        if not seen or ip_address(seen).is_loopback:
            self._wildcards = True
            return address
        return _join(seen, port)

    def view_of(self, listener: str) -> str:
        """Return under which name answers for clients of a listener can be kept."""
        if not (self._rules or self._wildcards):
            return PLAIN_VIEW
        return listener_host(listener)

    def address(self, registered: str, view: str) -> str:
        """Return the address to tell."""
        if view == PLAIN_VIEW:
            return registered
        rule = self._rules.get(registered)
        if rule is not None:
            return rule(view) or registered
        if self._wildcards:
            host, _, port = registered.rpartition(":")
            if _is_wildcard(host):
                return _join(view, port)
        return registered

    def broker(self, data: BrokerData, view: str) -> BrokerData:
        """Return a broker group with the addresses to tell."""
        if view == PLAIN_VIEW:
            return data
        told = {number: self.address(text, view) for number, text in data.addresses.items()}
        return type(data)(data.cluster, data.name, told, data.zone, data.acting_master)


@lru_cache(maxsize=64 * NAMESRV_VIEWS_MAX)
def listener_host(listener: str) -> str:
    """Return the host of `host:port` as others can use it, or an empty text.

    An IPv6 address with a scope means nothing on another machine; one that holds an IPv4 address
    is written as that.
    """
    host = listener.rpartition(":")[0].removeprefix("[").removesuffix("]")
    try:
        address = ip_address(host)
    except ValueError:
        return ""
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return ""
        address = address.ipv4_mapped or address
    return "" if address.is_unspecified else str(address)


def _is_wildcard(host: str) -> bool:
    """Say whether a host means every address of a machine."""
    return host in {"0.0.0.0", "::", "[::]", "0:0:0:0:0:0:0:0", "[0:0:0:0:0:0:0:0]"}  # noqa: S104


def _join(host: str, port: str) -> str:
    """Return `host:port`; Go and Java both read brackets around IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def check_address(what: str, address: str) -> str:
    """Return an address that clients can read out of a route, which some of them cut as text.

    Raises:
        InvalidValue: it is not `host:port`.
    """
    if len(address) > ADDRESS_CHARACTERS_MAX or _ADDRESS.fullmatch(address) is None:
        raise InvalidValue(f"{what} {shown(address)!r} is not host:port")
    if not 0 < int(address.rpartition(":")[2]) <= _PORT_MAX:
        raise InvalidValue(f"{what} {shown(address)!r} has no port from 1 to {_PORT_MAX}")
    return address
