"""One operator's connections to a cluster: whom to ask, and what to make of several answers.

Every function of this package takes a `Session` first. It has no heartbeat and joins no group, so
that looking at a cluster changes nothing in it. Owned by the event loop that it was opened on.

What is asked of several brokers is asked of all at once, within a bound, and comes back as
`Gathered`: what was found beside what went wrong. A broker that does not answer is never the same
as one that has nothing.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from gantrymq.client.name_servers import NameServers
from gantrymq.client.remote import ONLY_SUCCESS, Remote
from gantrymq.client.settings import ClientSettings, parse_name_servers
from gantrymq.clock import SystemClock
from gantrymq.errors import GantryError, InvalidValue
from gantrymq.transport.requester import Connections
from gantrymq.wire.bodies.route import CLUSTER_INFO, TOPIC_ROUTE
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.headers.namesrv import GetRouteInfoRequest
from gantrymq.wire.response_errors import TopicNotExist, error_for

if TYPE_CHECKING:
    import ssl as tls
    from collections.abc import Awaitable, Callable, Collection, Iterable
    from types import TracebackType
    from typing import Self

    from gantrymq.client.settings import Credentials
    from gantrymq.clock import Clock
    from gantrymq.model.route import TopicRoute
    from gantrymq.wire.bodies.route import ClusterInfo
    from gantrymq.wire.fields import Header

Key = TypeVar("Key")
Value = TypeVar("Value")

ASKED_AT_ONCE_MAX: Final = 32
SEARCHES_AT_ONCE_MAX: Final = 2
"""Each holds what it read: one more waits."""
TIMEOUT_S: Final = 5.0


class Gathered(Generic[Key, Value]):
    """Answers of several, and what went wrong with the others."""

    __slots__ = ("found", "problems")

    def __init__(
        self,
        found: dict[Key, Value] | None = None,
        problems: dict[Key, GantryError] | None = None,
    ) -> None:
        self.found: dict[Key, Value] = {} if found is None else found
        self.problems: dict[Key, GantryError] = {} if problems is None else problems

    def check(self) -> None:
        """Raise the first problem if nothing at all was found."""
        if not self.found and self.problems:
            raise next(iter(self.problems.values()))

    @property
    def complaints(self) -> list[str]:
        """Return the problems as sentences."""
        return [f"{who}: {problem}" for who, problem in self.problems.items()]


class NoSuchTarget(GantryError):
    """A cluster or broker that the name servers do not know."""


class Session:
    """Asks name servers and brokers; `async with Session(...)` opens it."""

    def __init__(
        self,
        namesrv: str,
        *,
        credentials: Credentials | None = None,
        ssl: tls.SSLContext | None = None,
        timeout_s: float = TIMEOUT_S,
        clock: Clock | None = None,
    ) -> None:
        self.settings = ClientSettings(
            name_servers=parse_name_servers(namesrv),
            credentials=credentials,
            ssl=ssl,
            request_timeout_s=timeout_s,
            connect_timeout_s=min(timeout_s, 3.0),
        )
        self.clock: Clock = clock or SystemClock()
        self.searches = asyncio.Semaphore(SEARCHES_AT_ONCE_MAX)
        self.broad_searches = asyncio.Semaphore(1)
        """Of all topics: each asks thousands of questions."""
        self._connections: Connections | None = None

    @property
    def name_servers(self) -> tuple[str, ...]:
        """Return the addresses of all name servers."""
        return self.settings.name_servers

    async def __aenter__(self) -> Self:
        """Open it; nothing is asked yet."""
        self._connections = Connections(
            tls=self.settings.ssl,
            clock=self.clock,
            connect_timeout_s=self.settings.connect_timeout_s,
        )
        self.remote = Remote(self._connections, self.settings)
        self._servers = NameServers(self.settings.name_servers, self.remote)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close all connections."""
        if self._connections is not None:
            await self._connections.close()

    # -- questions --------------------------------------------------------------------------------

    async def ask_name_server(
        self,
        code: RequestCode,
        header: Header | None = None,
        body: bytes = b"",
        accept: Collection[int] = ONLY_SUCCESS,
    ) -> Command:
        """Return the answer of any name server.

        Raises:
            NoNameServer: none answered.
            ResponseError: the answer is not one of those accepted.
        """
        fields = header.encode() if header is not None else None
        reply = await self._servers.ask(Command.request(code, 0, fields, body))
        if reply.code not in accept:
            raise error_for(reply.code, reply.remark)
        return reply

    async def tell_name_servers(
        self, code: RequestCode, header: Header | None = None, body: bytes = b""
    ) -> Gathered[str, Command]:
        """Ask every name server, as changes have to be; they know nothing of each other."""

        async def ask(address: str) -> Command:
            return (await self.remote.call(address, code, header, body)).command

        return await self.gather(self.name_servers, ask)

    async def gather(
        self, keys: Iterable[Key], ask: Callable[[Key], Awaitable[Value]]
    ) -> Gathered[Key, Value]:
        """Ask for every key, some at the same time; keep the order of the keys."""
        listed = list(dict.fromkeys(keys))
        slots = asyncio.Semaphore(ASKED_AT_ONCE_MAX)

        async def one(key: Key) -> Value | GantryError:
            async with slots:
                try:
                    return await ask(key)
                except GantryError as error:
                    return error

        gathered: Gathered[Key, Value] = Gathered()
        for key, answer in zip(listed, await asyncio.gather(*map(one, listed)), strict=True):
            if isinstance(answer, GantryError):
                gathered.problems[key] = answer
            else:
                gathered.found[key] = answer
        return gathered

    # -- where ------------------------------------------------------------------------------------

    async def cluster(self) -> ClusterInfo:
        """Return all clusters and brokers that a name server knows."""
        reply = await self.ask_name_server(RequestCode.GET_BROKER_CLUSTER_INFO)
        return CLUSTER_INFO.decode(reply.body)

    async def route(self, topic: str) -> TopicRoute:
        """Return where a topic is.

        Raises:
            TopicNotExist: no name server knows it.
        """
        reply = await self.ask_name_server(
            RequestCode.GET_ROUTEINFO_BY_TOPIC,
            GetRouteInfoRequest(topic=topic, accept_standard_json_only=True),
            accept=(ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST),
        )
        if reply.code == ResponseCode.TOPIC_NOT_EXIST:
            raise TopicNotExist(reply.remark or f"no name server knows the topic {topic}")
        return TOPIC_ROUTE.decode(reply.body)

    async def masters(self, cluster: str | None = None) -> dict[str, str]:
        """Return broker name to the master's address, of one cluster or of all.

        Raises:
            NoSuchTarget: there is no such cluster.
        """
        info = await self.cluster()
        return {
            name: address
            for name in broker_names(info, cluster)
            if (address := info.broker_addr_table[name].master) is not None
        }

    async def addresses(self, cluster: str | None = None) -> dict[str, str]:
        """Return address to broker name of all brokers, slaves as well."""
        info = await self.cluster()
        return {
            address: name
            for name in broker_names(info, cluster)
            for _id, address in sorted(info.broker_addr_table[name].addresses.items())
        }

    async def targets(
        self, broker: str | None, cluster: str | None, *, slaves: bool = False
    ) -> list[str]:
        """Return the addresses that `-b ADDRESS` or `-c CLUSTER` mean.

        Raises:
            NoSuchTarget: the cluster is unknown or has no master.
            InvalidValue: neither is given.
        """
        if broker:
            return [broker if ":" in broker else await self.master_of(broker)]
        if not cluster:
            raise InvalidValue("give a broker (-b host:port) or a cluster (-c name)")
        if slaves:
            return list(await self.addresses(cluster))
        found = list((await self.masters(cluster)).values())
        if not found:
            raise NoSuchTarget(f"cluster {cluster!r} has no master at the moment")
        return found

    async def master_of(self, broker_name: str) -> str:
        """Return the address of a broker group's master.

        Raises:
            NoSuchTarget: the name servers know no such group, or it has no master now.
        """
        info = await self.cluster()
        known = info.broker_addr_table.get(broker_name)
        if known is None:
            names = ", ".join(sorted(info.broker_addr_table)) or "none"
            raise NoSuchTarget(f"no broker is called {broker_name!r}; there are: {names}")
        if known.master is None:
            raise NoSuchTarget(f"broker {broker_name!r} has no master at the moment")
        return known.master

    async def masters_of_topic(self, topic: str) -> dict[str, str]:
        """Return broker name to address of the brokers that have a topic; a slave if need be.

        Raises:
            TopicNotExist: no name server knows it.
        """
        route = await self.route(topic)
        return {
            broker.name: broker.addresses[min(broker.addresses)]
            for broker in sorted(route.brokers, key=lambda each: each.name)
            if broker.addresses
        }


def broker_names(info: ClusterInfo, cluster: str | None) -> list[str]:
    """Return the names of a cluster's brokers, or of all.

    Raises:
        NoSuchTarget: there is no such cluster.
    """
    if cluster is None:
        return sorted(info.broker_addr_table)
    if cluster not in info.cluster_addr_table:
        known = ", ".join(sorted(info.cluster_addr_table)) or "none"
        raise NoSuchTarget(f"there is no cluster {cluster!r}; there are: {known}")
    return sorted(set(info.cluster_addr_table[cluster]) & set(info.broker_addr_table))
