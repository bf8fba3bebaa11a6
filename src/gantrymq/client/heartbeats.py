"""What keeps a client a member: a heartbeat to every broker it has to do with.

Every `heartbeat_s`, and at once when a group, a route or a connection is new: a broker forgets a
client when its connection closes, and until the next heartbeat it has nobody to ask about a
transaction or to give a reply to. No handler has a part in it, so a slow one never costs a client
its membership.

Producers speak to masters, consumers to slaves as well, from which they may read. Owned by the
event loop's thread.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from gantrymq.errors import GantryError
from gantrymq.wire.bodies.heartbeat import HEARTBEAT, ConsumerData, Heartbeat, ProducerData
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.client import UnregisterClientRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gantrymq.client.remote import Remote
    from gantrymq.client.routes import Routes

logger = logging.getLogger(__name__)

SOON_S: Final = 0.01
"""News of one moment go into one heartbeat."""


class Heartbeats:
    """The heartbeats of one client."""

    def __init__(self, remote: Remote, routes: Routes, period_s: float) -> None:
        self._remote = remote
        self._routes = routes
        self._period_s = period_s
        self._client_id = ""
        self._producers: set[str] = set()
        self._consumers: dict[str, Callable[[], ConsumerData]] = {}
        self._due = asyncio.Event()
        self._said: bytes | None = None  # what there is to say, until something changes
        self._greeted: dict[str, bytes] = {}  # address -> what was last said and taken there
        self._versions: dict[str, int] = {}

    def start(self, client_id: str) -> None:
        """Learn whose heartbeats these are."""
        self._client_id = client_id

    def producer(self, group: str) -> None:
        """Be a member of a producer group, by its full name."""
        self._producers.add(group)
        self.changed()

    def consumer(self, group: str, provider: Callable[[], ConsumerData]) -> None:
        """Be a member of a consumer group; `provider` says what it takes, after each `changed`."""
        self._consumers[group] = provider
        self.changed()

    async def forget(self, group: str) -> None:
        """Leave a group, of producers and of consumers, and tell all brokers."""
        producer = group if group in self._producers else None
        consumer = group if group in self._consumers else None
        self._producers.discard(group)
        self._consumers.pop(group, None)
        self._said = None
        if producer is not None or consumer is not None:
            await self._unregister(producer, consumer)

    def changed(self) -> None:
        """Send one in a moment: there is something else to say than before."""
        self._said = None
        self._due.set()

    def soon(self) -> None:
        """Send one in a moment: there may be somebody who has not had it."""
        self._due.set()

    def on_opened(self, _peer: object) -> None:
        """Send one in a moment: whoever is at the other end has forgotten us."""
        self._greeted.clear()
        self._due.set()

    def version_of(self, address: str) -> int | None:
        """Return the version that a broker names in its answers; None until it has answered."""
        return self._versions.get(address)

    async def now(self) -> None:
        """Send one to every broker now and wait for the answers; what fails is logged."""
        await self._send(self._addresses())

    async def ensure(self, addresses: Iterable[str]) -> None:
        """Send one to those brokers that have not heard what there is to say now."""
        body = self._body()
        await self._send([each for each in addresses if self._greeted.get(each) != body])

    async def run(self) -> None:
        """Send them for ever; a task of the client's."""
        while True:
            is_news = await self._wait()
            try:
                if is_news:
                    await self.ensure(self._addresses())
                else:
                    await self.now()
            except Exception:  # a provider that fails once must not cost the membership
                logger.exception("no heartbeat could be made")

    async def _wait(self) -> bool:
        """Wait until the next one is due; tell whether that is because of news."""
        try:
            async with asyncio.timeout(self._period_s):
                await self._due.wait()
        except TimeoutError:
            return False
        await asyncio.sleep(SOON_S)
        self._due.clear()
        return True

    async def say_goodbye(self) -> None:
        """Tell all brokers that the client leaves its groups."""
        groups = [(group, None) for group in sorted(self._producers)]
        leaving: list[tuple[str | None, str | None]] = [*groups]
        leaving += [(None, group) for group in sorted(self._consumers)]
        self._producers.clear()
        self._consumers.clear()
        self._said = None
        await asyncio.gather(*(self._unregister(*each) for each in leaving))

    def _addresses(self) -> list[str]:
        if not (self._producers or self._consumers):
            return []
        return list(self._routes.addresses(slaves=bool(self._consumers)))

    def _body(self) -> bytes:
        """Return what there is to say; with a thousand topics it takes long to make."""
        if self._said is None:
            self._said = self._make_body()
        return self._said

    def _make_body(self) -> bytes:
        heartbeat = Heartbeat(
            client_id=self._client_id,
            producer_data_set=tuple(
                ProducerData(group_name=group) for group in sorted(self._producers)
            ),
            consumer_data_set=tuple(
                provider() for _group, provider in sorted(self._consumers.items())
            ),
        )
        return HEARTBEAT.encode(heartbeat)

    async def _send(self, addresses: Iterable[str]) -> None:
        body = self._body()
        await asyncio.gather(*(self._send_one(address, body) for address in addresses))

    async def _send_one(self, address: str, body: bytes) -> None:
        try:
            reply = await self._remote.call(address, RequestCode.HEART_BEAT, body=body)
        except GantryError as error:
            self._greeted.pop(address, None)
            logger.warning("broker %s did not take a heartbeat: %s", address, error)
        else:
            self._greeted[address] = body
            self._versions[address] = reply.command.version

    async def _unregister(self, producer: str | None, consumer: str | None) -> None:
        header = UnregisterClientRequest(
            client_id=self._client_id, producer_group=producer, consumer_group=consumer
        )
        addresses = self._routes.addresses(slaves=consumer is not None)
        await asyncio.gather(*(self._unregister_at(each, header) for each in addresses))

    async def _unregister_at(self, address: str, header: UnregisterClientRequest) -> None:
        try:
            await self._remote.call(address, RequestCode.UNREGISTER_CLIENT, header)
        except GantryError as error:
            logger.info("broker %s was not told that the client leaves: %s", address, error)
