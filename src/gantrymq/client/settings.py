"""How a client finds its servers and how long it waits for them: one frozen value.

Producers and consumers make it from their own arguments; nothing is read from the environment.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final, TypedDict

from gantrymq.client.arguments import seconds, text
from gantrymq.errors import InvalidValue, shown
from gantrymq.model.names import check_topic
from gantrymq.transport.addresses import split_address

if TYPE_CHECKING:
    import ssl as tls

NAME_SERVERS_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class Credentials:
    """What requests are signed with (see `wire.signing`)."""

    access_key: str
    secret_key: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse what would be refused by every server."""
        for known in fields(self):
            if (value := getattr(self, known.name)) is not None:
                text(known.name, value)
        if not self.access_key or not self.secret_key:
            raise InvalidValue(
                "credentials need both: give access_key and secret_key, or neither of them"
            )


class Timers(TypedDict, total=False):
    """Settings that consumers take by name, in seconds; `ClientSettings` says what they are."""

    route_s: float
    heartbeat_s: float
    persist_s: float
    rebalance_s: float
    request_timeout_s: float
    connect_timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """What every client needs to know. Times are in seconds."""

    name_servers: tuple[str, ...]
    namespace: str = ""
    instance: str | None = None
    """What stands behind the `@` of the client id; made up unless given."""
    ssl: tls.SSLContext | None = None
    credentials: Credentials | None = None
    route_s: float = 30.0
    heartbeat_s: float = 30.0
    persist_s: float = 5.0
    rebalance_s: float = 20.0
    request_timeout_s: float = 3.0
    """For questions that a user does not put: routes, heartbeats, offsets."""
    connect_timeout_s: float = 3.0
    close_timeout_s: float = 3.0
    """For saying goodbye to all brokers together."""
    vip: bool = False
    """Whether sends go to the broker's second port, two below its first."""
    binary_headers: bool = True
    """Whether sends have binary headers, which cost less; every server reads both."""

    def __post_init__(self) -> None:
        """Refuse what cannot work; the first problem is named."""
        if not self.name_servers:
            raise InvalidValue("no name server: give at least one as host:port")
        if len(self.name_servers) > NAME_SERVERS_MAX:
            raise InvalidValue(
                f"{len(self.name_servers)} name servers: give at most {NAME_SERVERS_MAX}"
            )
        for address in self.name_servers:
            split_address(address)
        if self.namespace:
            check_topic(self.namespace)
            if "%" in self.namespace:
                raise InvalidValue(
                    f"namespace is {self.namespace!r}: % stands between a namespace and a name, so"
                    " it cannot be in one"
                )
        if self.instance is not None:
            text("instance", self.instance)
        for known in fields(self):
            if known.name.endswith("_s"):
                seconds(known.name, getattr(self, known.name))
        if self.ssl is not None and not _is_context(self.ssl):
            raise InvalidValue(
                f"ssl is {shown(repr(self.ssl))}: give an ssl.SSLContext, for example"
                " ssl.create_default_context(), or None"
            )


def instead_of(own: ClientSettings, given: ClientSettings | None) -> ClientSettings:
    """Return the settings that were given at once, or those that single arguments make.

    Raises:
        InvalidValue: they are none, or single arguments say something that they would pass over.
    """
    if given is None:
        return own
    if not isinstance(given, ClientSettings):
        raise InvalidValue(f"settings is {shown(repr(given))}: give ClientSettings")
    plain = ClientSettings(name_servers=own.name_servers)
    both = [
        known.name
        for known in fields(own)
        if getattr(own, known.name) not in (getattr(plain, known.name), getattr(given, known.name))
    ]
    if both:
        raise InvalidValue(
            f"{', '.join(sorted(both))} beside settings=, which says it otherwise: say it there"
        )
    return given


def _is_context(given: object) -> bool:
    from ssl import SSLContext  # noqa: PLC0415  (slow to load, wanted by few)

    return isinstance(given, SSLContext)


def parse_name_servers(given: str) -> tuple[str, ...]:
    """Read `host:port;host:port`; commas will do as well. An address that is repeated counts once.

    Raises:
        InvalidValue: an address is none, there is none, or it is a URL.
    """
    if not isinstance(given, str):
        raise InvalidValue(f'namesrv is {shown(repr(given))}: give text such as "127.0.0.1:9876"')
    if "://" in given:
        raise InvalidValue(
            f"namesrv is {shown(given)!r}: addresses are not fetched from a URL; give the name"
            ' servers themselves, for example "10.0.0.1:9876;10.0.0.2:9876"'
        )
    parts = [part.strip() for part in given.replace(",", ";").split(";")]
    found = tuple(dict.fromkeys(part for part in parts if part))
    if not found:
        raise InvalidValue('namesrv is empty: give "host:port", or several with ; between them')
    for address in found:
        split_address(address)
    return found


def credentials_of(
    access_key: str | None, secret_key: str | None, security_token: str | None
) -> Credentials | None:
    """Return the credentials that a client's arguments make; None for none.

    Raises:
        InvalidValue: one of the keys is given without the other.
    """
    if access_key is None and secret_key is None and security_token is None:
        return None
    return Credentials(
        "" if access_key is None else access_key,
        "" if secret_key is None else secret_key,
        security_token,
    )
