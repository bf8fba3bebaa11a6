"""Keeps a broker known to every name server: a long connection to each, on a timer and on change.

Name servers know nothing of each other, so each is told everything, and one that does not answer
holds nobody up. Changes that come together are told together.

A registration names every topic, which is much for a broker that has thousands and gets one more.
A name server that knows this broker is therefore told of new and changed topics one by one
(REGISTER_TOPIC_IN_NAMESRV), as an Apache 5.x broker does with `enableSingleTopicRegister`. It is
told everything on the timer, when a topic is gone, and if it does not know that request.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import ContentError, GantryError
from gantrymq.model.route import QueueData, TopicRoute
from gantrymq.wire.bodies.encoded_topics import EncodedTopics
from gantrymq.wire.bodies.registration import REGISTRATION, Registration
from gantrymq.wire.bodies.route import KV_TABLE, TOPIC_ROUTE
from gantrymq.wire.bodies.topic import DATA_VERSION
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.headers.namesrv import (
    BrokerIdentityRequest,
    QueryDataVersionResponse,
    RegisterBrokerRequest,
    RegisterBrokerResponse,
)
from gantrymq.wire.headers.targets import TopicRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gantrymq.model.offsets import DataVersion
    from gantrymq.model.topic import TopicConfig
    from gantrymq.transport.requester import Connections
    from gantrymq.wire.bodies.topic import TopicTable

log = logging.getLogger(__name__)

SETTLE_S: Final = 0.02
"""Between two registrations: changes that come together are told together."""
SINGLES_MAX: Final = 500
"""Changed topics that are told one by one; of more everything is told."""
RETRY_S: Final = 1.0
"""Pause before a name server that did not answer is asked again, doubled up to the interval."""


class BrokerAddress(NamedTuple):
    """Who a broker is to a name server."""

    cluster: str
    name: str
    broker_id: int
    address: str
    ha_address: str


class Rules(NamedTuple):
    """How a broker registers; asked for each time, for an operator may change it."""

    timeout_s: float = 6.0
    """How long a name server may take to answer."""
    compressed: bool = False
    always: bool = True
    """False: on the timer a name server is told nothing that it knows (`forceRegister`)."""


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
        rules: Callable[[], Rules] = Rules,
        ordered: Callable[[frozenset[str]], None] = lambda _topics: None,
        master: Callable[[str | None, str | None], None] = lambda _address, _ha: None,
        encoded: Callable[[], EncodedTopics] | None = None,
    ) -> None:
        """Tell `ordered` the topics that a name server calls ordered.

        `master` is told who a name server says the master of this slave is, and where it is copied
        from.

        `encoded` remembers how the topics of `table` look, so that they are not encoded again.
        """
        self._who = who
        self._connections = connections
        self._table = table
        self._interval_s = interval_s
        self._rules = rules
        self._ordered = ordered
        self._master = master
        self.known_to: set[str] = set()
        """Name servers that have answered the last registration."""
        self._silent: set[str] = set()
        """Those that did not answer it, which the log has said."""
        self._changed = {address: asyncio.Event() for address in name_servers}
        own = EncodedTopics()
        self._encoded = encoded or (lambda: own)
        self._told: dict[str, dict[str, TopicConfig]] = {}
        """What name servers know of topics."""
        self._told_versions: dict[str, DataVersion] = {}
        self._heard_at: dict[str, float] = {}
        """When name servers last heard that this broker lives, by the loop's clock."""
        self._without_master: set[str] = set()
        """Those that know no master of this slave yet; they are asked again soon."""
        self._wants_all: set[str] = set()
        """Those that cannot be told of one topic alone."""
        self._all_known = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to register with all of them."""
        self._tasks = [asyncio.create_task(self._keep(one)) for one in self._changed]

    def identify(self, who: BrokerAddress) -> None:
        """Be somebody else from now on: a slave that has become master."""
        self._who = who
        self._without_master.clear()
        self._told.clear()
        self.changed()

    def changed(self) -> None:
        """Tell all of them soon."""
        for event in self._changed.values():
            event.set()

    def line_closed(self) -> None:
        """Register again where the connection is gone: a name server forgets a broker with it.

        One that was started again knows nobody until then, and its clients find no routes.
        """
        for address, event in self._changed.items():
            if address in self.known_to and self._connections.open_connection(address) is None:
                self.known_to.discard(address)
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
        has_changed = True
        while True:
            event.clear()
            try:
                known = await self._tell(address, has_changed=has_changed)
            except Exception:
                # Whatever it is, this broker must not vanish from the routes because of it.
                log.exception("registering with name server %s failed", address)
                known = False
            if known:
                pause = RETRY_S
                wait = self._until_due(address) if address not in self._without_master else RETRY_S
            else:
                wait, pause = pause, min(2 * pause, self._interval_s)
            # A change goes out at once, those that follow it together: a client may ask for the
            # route of a new topic as soon as it knows of it.
            await asyncio.sleep(SETTLE_S)
            with suppress(TimeoutError):
                # Not wait_for: of a stop that comes with a change it would forget the stop.
                async with asyncio.timeout(wait):
                    await event.wait()
            has_changed = event.is_set()

    async def _tell(self, address: str, *, has_changed: bool) -> bool:
        """Register, unless the name server knows everything; tell whether it does now."""
        # A name server forgets a broker that has not registered for two minutes, whatever it was
        # told of topics meanwhile: one that gets a new topic every few seconds must not vanish.
        if has_changed and address in self.known_to and self._until_due(address) > 0:
            changed = self._changes_for(address)
            if changed is not None and await self._tell_topics(address, changed):
                return True
        if has_changed or address not in self.known_to or self._rules().always:
            return await self._register(address)
        return await self._is_known(address) or await self._register(address)

    def _until_due(self, address: str) -> float:
        """Return in how many seconds a name server has to hear from this broker again."""
        heard_at = self._heard_at.get(address)
        if heard_at is None:
            return 0.0
        now = asyncio.get_running_loop().time()
        return max(heard_at + self._interval_s - now, 0.0)

    def _changes_for(self, address: str) -> list[TopicConfig] | None:
        """Return the topics that are new to a name server; None if it has to be told everything."""
        table, told = self._table(), self._told.get(address)
        if told is None or address in self._wants_all:
            return None
        if self._told_versions.get(address) == table.data_version:
            return []  # told already: it changed just before the others were
        now = table.topic_config_table
        changed = [topic for name, topic in now.items() if told.get(name) is not topic]
        is_short = 0 < len(changed) <= SINGLES_MAX
        # Names are only added: if they are as many as there are, none is gone.
        new = sum(topic.name not in told for topic in changed)
        if not is_short or len(told) + new != len(now):
            return None
        self._told_versions[address] = table.data_version
        return changed

    async def _tell_topics(self, address: str, topics: list[TopicConfig]) -> bool:
        """Tell a name server of some topics; False if it did not take them all."""
        timeout_s = self._rules().timeout_s
        try:
            for topic in topics:
                reply = await self._connections.ask(address, self._one(topic), timeout_s)
                if reply.code != ResponseCode.SUCCESS:
                    self._wants_all.add(address)
                    return False
                self._told[address][topic.name] = topic
        except GantryError:
            return False  # it is told everything instead, or later
        return True

    def _one(self, topic: TopicConfig) -> Command:
        queues = QueueData(
            self._who.name, topic.read_queues, topic.write_queues, topic.perm, topic.system_flags
        )
        return Command.request(
            RequestCode.REGISTER_TOPIC_IN_NAMESRV,
            0,
            TopicRequest(topic=topic.name).encode(),
            TOPIC_ROUTE.encode(TopicRoute(queues=(queues,))),
        )

    async def _is_known(self, address: str) -> bool:
        """Ask whether a name server has this broker's topics as they are; a sign of life, too."""
        body = DATA_VERSION.encode(self._table().data_version)
        request = Command.request(
            RequestCode.QUERY_DATA_VERSION, 0, self._identity().encode(), body
        )
        try:
            reply = await self._connections.ask(address, request, self._rules().timeout_s)
            known = (
                reply.code == ResponseCode.SUCCESS
                and not QueryDataVersionResponse.decode(reply.fields).changed
            )
        except GantryError as error:
            log.info("name server %s does not say what it knows: %s", address, error)
            return False
        if known:
            self._heard_at[address] = asyncio.get_running_loop().time()
        return known

    async def _register(self, address: str) -> bool:
        """Register once; tell whether the name server took it."""
        table = self._table()
        try:
            request = self._request(table)
            reply = await self._connections.ask(address, request, self._rules().timeout_s)
        except GantryError as error:
            if address not in self._silent:  # once, until it answers
                log.warning("name server %s does not answer: %s", address, error)
            self._silent.add(address)
            self.known_to.discard(address)
            return False
        self._silent.discard(address)
        if reply.code != ResponseCode.SUCCESS:
            log.warning("name server %s refuses this broker: %s", address, reply.remark)
            self.known_to.discard(address)
            return False
        if address not in self.known_to:
            log.info("registered with name server %s as %s", address, self._who.address)
        self.known_to.add(address)
        self._heard_at[address] = asyncio.get_running_loop().time()
        self._told[address] = dict(table.topic_config_table)
        self._told_versions[address] = table.data_version
        if len(self.known_to) == len(self._changed):
            self._all_known.set()
        if reply.body:
            self._take_order(address, reply.body)
        if self._who.broker_id:
            told = RegisterBrokerResponse.decode(reply.fields)
            self._master(told.master_addr or None, told.ha_server_addr or None)
            if told.master_addr:
                self._without_master.discard(address)
            else:
                self._without_master.add(address)
        return True

    def _take_order(self, address: str, body: bytes) -> None:
        try:
            topics = frozenset(KV_TABLE.decode(body).table)
        except ContentError as error:
            log.warning("name server %s names ordered topics in no known form: %s", address, error)
            return
        self._ordered(topics)

    def _request(self, table: TopicTable) -> Command:
        compressed = self._rules().compressed
        if compressed:
            registration = Registration(topic_config_serialize_wrapper=table)
            body = REGISTRATION.encode_compressed(registration)
        else:
            body = b"".join(self._encoded().pieces(table, _registration))
        who = self._who
        header = RegisterBrokerRequest(
            broker_name=who.name,
            broker_addr=who.address,
            cluster_name=who.cluster,
            broker_id=who.broker_id,
            ha_server_addr=who.ha_address,
            compressed=compressed,
            body_crc32=zlib.crc32(body) & 0x7FFFFFFF,
        )
        return Command.request(RequestCode.REGISTER_BROKER, 0, header.encode(), body)

    def _identity(self) -> BrokerIdentityRequest:
        who = self._who
        return BrokerIdentityRequest(
            broker_name=who.name,
            broker_addr=who.address,
            cluster_name=who.cluster,
            broker_id=who.broker_id,
        )

    async def stop(self) -> None:
        """Leave every name server that knows this broker, and register no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        request = Command.request(RequestCode.UNREGISTER_BROKER, 0, self._identity().encode())
        timeout_s = min(self._rules().timeout_s, 1.0)
        asked = [self._connections.ask(address, request, timeout_s) for address in self.known_to]
        for outcome in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(outcome, Exception):
                log.info("a name server was not told that this broker stops: %s", outcome)
        self.known_to.clear()


def _registration(table: TopicTable) -> bytes:
    return REGISTRATION.encode(Registration(topic_config_serialize_wrapper=table))
