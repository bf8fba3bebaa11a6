"""Who can reach a server: this machine alone, until access control is on or somebody accepts less.

Apache's servers listen at every address and take every request. Here one that nobody protects
listens on loopback; `aclEnable=true` lets it listen everywhere, and so does `insecure=true`, which
`--insecure` sets. What cannot be is refused before anything is made: another address without either
of them, or a broker that tells others an address at which it does not listen.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue, shown
from gantrymq.store.settings import InvalidSettings
from gantrymq.transport.addresses import split_address
from gantrymq.wire.hosts import is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gantrymq.broker.settings import BrokerSettings
    from gantrymq.namesrv.settings import NamesrvSettings

LOOPBACK: Final = "127.0.0.1"
EVERYWHERE: Final = "0.0.0.0"  # noqa: S104  (for those who are protected, or said so)
WAYS_OUT: Final = (
    "turn access control on (aclEnable=true with accounts or users, docs/security.md), or start it "
    "with --insecure (insecure=true in the file), and whoever reaches it may do everything"
)


def default_address(settings: BrokerSettings | NamesrvSettings) -> str:
    """Return where a server listens that was not told."""
    return EVERYWHERE if settings.acl or settings.insecure else LOOPBACK


def refuse_exposed(settings: BrokerSettings | NamesrvSettings, *, protected: bool = False) -> None:
    """Refuse to be reached by other machines while nobody checks who asks.

    `protected` is a server whose process has access control for it.

    Raises:
        InvalidSettings: it would be; the ways out are named.
    """
    if settings.acl or settings.insecure or protected:
        return
    listening = {"bindAddress": settings.bind_address}
    if settings.metrics_port >= 0:
        listening["metricsBindAddress"] = settings.metrics_bind_address
    problems = [
        f"{name} is {shown(address)}, where other machines come in, and nobody checks who asks: "
        f"{WAYS_OUT}; or listen at {LOOPBACK}"
        for name, address in listening.items()
        if not is_loopback(address)
    ]
    if problems:
        raise InvalidSettings(problems)


def refuse_unreachable(settings: BrokerSettings, *, is_bound_by_default: bool = False) -> None:
    """Refuse to tell others an address of this broker at which they would find another, or none.

    Raises:
        InvalidSettings: brokerIP1 or brokerIP2 is of a network, and the listener on loopback; or
            nobody said where to listen, and name servers or etcd are on other machines.
    """
    if not is_loopback(settings.bind_address):
        return
    problems = [
        _unreachable(name, address, settings.bind_address)
        for name, address in (("brokerIP1", settings.address), ("brokerIP2", settings.ha_address))
        if _is_address(address) and not is_loopback(address)
    ]
    if is_bound_by_default and not problems:
        problems = list(_far_away(settings))
    if problems:
        raise InvalidSettings(problems)


def refuse_unreachable_name(settings: BrokerSettings, address: str) -> None:
    """Refuse a brokerIP1 that is a name, once its address is known.

    Raises:
        InvalidSettings: it is none of those at which the broker listens.
    """
    if is_loopback(settings.bind_address) and not is_loopback(address):
        told = f"{settings.address} ({address})"
        raise InvalidSettings([_unreachable("brokerIP1", told, settings.bind_address)])


def _unreachable(name: str, address: str, bind_address: str) -> str:
    return (
        f"{name} is {shown(address)}, which others are told, and this broker listens at "
        f"{shown(bind_address)} alone, where they do not reach it: {WAYS_OUT}; or leave {name} out"
    )


def _far_away(settings: BrokerSettings) -> Iterator[str]:
    """Yield a sentence for name servers and an etcd that others see, too."""
    named = (
        ("namesrvAddr", settings.name_servers.split(";")),
        ("failoverEtcd", settings.etcd.split(",")),
    )
    for name, addresses in named:
        far = [one.strip() for one in addresses if one.strip() and not is_loopback(_host(one))]
        if far:
            yield (
                f"{name} is {shown(', '.join(far))}, on another machine, where this broker would "
                f"be known as {settings.bind_address}, and that is everybody's own: {WAYS_OUT}; or "
                f"say bindAddress={LOOPBACK} if all of its clients are on this machine"
            )


def _host(address: str) -> str:
    try:
        return split_address(address.rpartition("//")[2].rstrip("/"))[0]
    except InvalidValue:
        return ""


def _is_address(text: str) -> bool:
    try:
        ip_address(text.strip("[]"))
    except ValueError:
        return False
    return True


def reach_line(settings: BrokerSettings | NamesrvSettings, *, is_bound_by_default: bool) -> str:
    """Return what whoever starts a server should know of who reaches it; "" if nothing."""
    if is_loopback(settings.bind_address):
        if not is_bound_by_default:
            return ""
        return (
            f"it listens at {settings.bind_address}, for this machine alone; for others turn "
            "access control on (docs/security.md), or start it with --insecure"
        )
    if settings.acl:
        return ""
    return (
        f"it listens at {settings.bind_address} without access control: whoever reaches it may "
        "read, write and administer"
    )
