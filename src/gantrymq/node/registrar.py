"""Keeps a broker known to every name server: a long connection to each, on a timer and on change.

Name servers know nothing of each other, so each is told everything, and one that does not answer
holds nobody up. Changes that come together are told together.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import ContentError, GantryError
from gantrymq.wire.bodies.registration import REGISTRATION, Registration
from gantrymq.wire.bodies.route import KV_TABLE
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.headers.namesrv import BrokerIdentityRequest, RegisterBrokerRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gantrymq.transport.requester import Connections
    from gantrymq.wire.bodies.topic import TopicTable

log = logging.getLogger(__name__)

SETTLE_S: Final = 0.02
"""Between two registrations: changes that come together are told together."""
RETRY_S: Final = 1.0
"""Pause before a name server that did not answer is asked again, doubled up to the interval."""


class BrokerAddress(NamedTuple):
    """Who a broker is to a name server."""

    cluster: str
    name: str
    broker_id: int
    address: str
    ha_address: str


class Registrar:
    """Registers one broker; owned by the event loop's thread."""

    def __init__(
        self,
        who: BrokerAddress,
        name_servers: Iterable[str],
        connections: Connections,
        table: Callable[[], TopicTable],
        *,
        interval_s: float,
        timeout_s: float,
        compressed: bool = False,
        ordered: Callable[[frozenset[str]], None] = lambda _topics: None,
    ) -> None:
        """Tell `ordered` the topics that a name server calls ordered."""
        self._who = who
        self._connections = connections
        self._table = table
        self._interval_s = interval_s
        self._timeout_s = timeout_s
        self._compressed = compressed
        self._ordered = ordered
        self.known_to: set[str] = set()
        """Name servers that have answered the last registration."""
        self._changed = {address: asyncio.Event() for address in name_servers}
        self._all_known = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to register with all of them."""
        self._tasks = [asyncio.create_task(self._keep(one)) for one in self._changed]

    def changed(self) -> None:
        """Tell all of them soon."""
        for event in self._changed.values():
            event.set()

    async def wait_known(self, timeout_s: float) -> bool:
        """Wait until all of them have answered once; tell whether they have."""
        if not self._changed:
            return True
        try:
            await asyncio.wait_for(self._all_known.wait(), timeout_s)
        except TimeoutError:
            return False
        return True

    async def _keep(self, address: str) -> None:
        event, pause = self._changed[address], RETRY_S
        while True:
            event.clear()
            try:
                known = await self._register(address)
            except Exception:
                # Whatever it is, this broker must not vanish from the routes because of it.
                log.exception("registering with name server %s failed", address)
                known = False
            if known:
                pause = RETRY_S
                wait = self._interval_s
            else:
                wait, pause = pause, min(2 * pause, self._interval_s)
            # A change goes out at once, those that follow it together: a client may ask for the
            # route of a new topic as soon as it knows of it.
            await asyncio.sleep(SETTLE_S)
            with suppress(TimeoutError):
                await asyncio.wait_for(event.wait(), wait)

    async def _register(self, address: str) -> bool:
        """Register once; tell whether the name server took it."""
        try:
            reply = await self._connections.ask(address, self._request(), self._timeout_s)
        except GantryError as error:
            if address in self.known_to:
                log.warning("name server %s does not answer: %s", address, error)
            self.known_to.discard(address)
            return False
        if reply.code != ResponseCode.SUCCESS:
            log.warning("name server %s refuses this broker: %s", address, reply.remark)
            self.known_to.discard(address)
            return False
        if address not in self.known_to:
            log.info("registered with name server %s as %s", address, self._who.address)
        self.known_to.add(address)
        if len(self.known_to) == len(self._changed):
            self._all_known.set()
        if reply.body:
            self._take_order(address, reply.body)
        return True

    def _take_order(self, address: str, body: bytes) -> None:
        try:
            topics = frozenset(KV_TABLE.decode(body).table)
        except ContentError as error:
            log.warning("name server %s names ordered topics in no known form: %s", address, error)
            return
        self._ordered(topics)

    def _request(self) -> Command:
        registration = Registration(topic_config_serialize_wrapper=self._table())
        if self._compressed:
            body = REGISTRATION.encode_compressed(registration)
        else:
            body = REGISTRATION.encode(registration)
        who = self._who
        header = RegisterBrokerRequest(
            broker_name=who.name,
            broker_addr=who.address,
            cluster_name=who.cluster,
            broker_id=who.broker_id,
            ha_server_addr=who.ha_address,
            compressed=self._compressed,
            body_crc32=zlib.crc32(body) & 0x7FFFFFFF,
        )
        return Command.request(RequestCode.REGISTER_BROKER, 0, header.encode(), body)

    async def stop(self) -> None:
        """Leave every name server that knows this broker, and register no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        who = self._who
        header = BrokerIdentityRequest(
            broker_name=who.name,
            broker_addr=who.address,
            cluster_name=who.cluster,
            broker_id=who.broker_id,
        )
        request = Command.request(RequestCode.UNREGISTER_BROKER, 0, header.encode())
        asked = [
            self._connections.ask(address, request, min(self._timeout_s, 1.0))
            for address in self.known_to
        ]
        for outcome in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(outcome, Exception):
                log.info("a name server was not told that this broker stops: %s", outcome)
        self.known_to.clear()
