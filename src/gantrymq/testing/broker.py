"""A name server and a broker inside a test, on loopback ports that the system chooses.

    async with TestBroker() as broker:
        async with Producer(broker.namesrv) as producer:
            await producer.send("Orders", b"one")
        assert [message.body for message in broker.messages("Orders")] == [b"one"]

It is the real broker over real sockets, with small files in a temporary directory. Two things are a
test's own: the clock can be moved (`jump`), so that delays, retries and transaction checks need no
waiting; and faults can be switched on (`refuse`, `delay_answers`, `lose_answers`,
`drop_connections`, `stop`, `stop_namesrv`).

A jump is time for messages and not for connections: nobody is thrown out for having been silent
meanwhile.
"""

from __future__ import annotations

import asyncio
import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, Self

from gantrymq.client.received import ReceivedMessage
from gantrymq.clock import Clock
from gantrymq.model.topic import TopicConfig
from gantrymq.namesrv.settings import NamesrvSettings
from gantrymq.node.broker_node import BrokerNode
from gantrymq.node.config import read_broker_config
from gantrymq.node.namesrv_node import NamesrvNode
from gantrymq.testing.clock import RunningClock
from gantrymq.testing.faults import SENDS, Faults, FaultyService
from gantrymq.wire.codes import ResponseCode
from gantrymq.wire.record import decode_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType

HOST: Final = "127.0.0.1"
SETTINGS: Final = {
    "brokerName": "broker-a",
    "mappedFileSizeCommitLog": str(4 << 20),
    "maxHashSlotNum": "1000",
    "maxIndexNum": "4000",
    "diskSpaceWarningLevelRatio": "0.99",
    "diskSpaceCleanForciblyRatio": "0.99",
    # A machine that is busy with other tests is no reason to refuse a send.
    "brokerFastFailureEnable": "false",
    # Connections are not idle because a test moved the clock.
    "serverChannelMaxIdleTimeSeconds": str(10**9),
    "enablePropertyFilter": "true",
    "recallMessageEnable": "true",
    "traceTopicEnable": "true",
    "bindAddress": HOST,
    "brokerIP1": HOST,
    "listenPort": "0",
}
"""What is other than a broker's defaults; `settings` of a TestBroker go on top."""
JUMP_ROUNDS_MAX: Final = 1000
READ_MAX: Final = 32
REGISTERED_S: Final = 10.0


class JumpClock(Clock, Protocol):
    """A clock that can be moved: `RunningClock`, or `VirtualClock`, which stands still."""

    def jump(self, seconds: float) -> None:
        """Let time pass at once."""
        ...


class TestBroker:
    """A broker with its name server. Used on the event loop that it was started on."""

    __test__ = False  # no test class, whatever its name

    def __init__(
        self,
        *,
        clock: JumpClock | None = None,
        directory: Path | str | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare; `async with`, or `start`, begins.

        Args:
            clock: the broker's time; one that runs on and can be moved unless given.
            directory: where to keep the data; a temporary directory, removed by `close`, if None.
            settings: the broker's, under RocketMQ's names, on top of `SETTINGS`.
        """
        self.clock: JumpClock = clock or RunningClock()
        self.faults = Faults()
        self._directory = None if directory is None else Path(directory)
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._settings = {**SETTINGS, **(settings or {})}
        self._namesrv: NamesrvNode | None = None
        self._namesrv_port = 0
        self._node: BrokerNode | None = None
        self._port = 0

    # -- life -----------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Start, and return itself."""
        try:
            await self.start()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        await self.close()

    async def start(self) -> None:
        """Start what does not run: the first time both, later what was stopped, with its data."""
        if self._namesrv is None:
            await self.start_namesrv()
        if self._node is not None:
            return
        root = self._root()
        found = read_broker_config(
            {
                **self._settings,
                "storePathRootDir": str(root),
                "namesrvAddr": self.namesrv,
                "listenPort": str(self._port),
            },
            root,
        )
        node = BrokerNode(
            found.broker,
            found.store,
            clock=self.clock,
            front=lambda service: FaultyService(service, self.faults),
        )
        await node.start()
        # Heartbeats come by the machine's clock; a jump must not make members of groups vanish.
        node.broker.tables.clients.timeout_s = math.inf
        self._node, self._port = node, node.port
        await node.wait_registered(REGISTERED_S)

    async def stop(self) -> None:
        """Stop the broker as an operator would; its data stays for `start`."""
        node, self._node = self._node, None
        if node is not None:
            await node.stop()

    async def start_namesrv(self) -> None:
        """Start the name server at the address that it had; the broker registers by itself."""
        if self._namesrv is not None:
            return
        root = self._root()
        node = NamesrvNode(
            NamesrvSettings(
                listen_port=self._namesrv_port,
                bind_address=HOST,
                kv_config_path=str(root / "namesrv" / "kvConfig.json"),
                config_store_path=str(root / "namesrv" / "namesrv.properties"),
            )
        )
        await node.start()
        self._namesrv, self._namesrv_port = node, node.port

    async def stop_namesrv(self) -> None:
        """Lose the name server: nobody answers at its address until `start_namesrv`."""
        node, self._namesrv = self._namesrv, None
        if node is not None:
            await node.stop()

    async def close(self) -> None:
        """Stop everything and remove the temporary directory."""
        await self.stop()
        await self.stop_namesrv()
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def _root(self) -> Path:
        if self._directory is not None:
            return self._directory
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="gantrymq-test-")
        return Path(self._temporary.name)

    # -- where it is ----------------------------------------------------------------------------

    @property
    def namesrv(self) -> str:
        """Return `host:port` of the name server, which clients are given."""
        return f"{HOST}:{self._namesrv_port}"

    @property
    def address(self) -> str:
        """Return `host:port` of the broker."""
        return f"{HOST}:{self._port}"

    @property
    def node(self) -> BrokerNode:
        """Return the broker itself, for what has no method here.

        Raises:
            RuntimeError: it does not run.
        """
        if self._node is None:
            raise RuntimeError("the broker does not run: call start() first")
        return self._node

    # -- time -----------------------------------------------------------------------------------

    async def jump(self, seconds: float) -> None:
        """Let time pass at once for the broker, and do what is due by then."""
        self.clock.jump(seconds)
        for _ in range(JUMP_ROUNDS_MAX):
            now = self.clock.monotonic()
            due = self.node.broker.tick(now)
            await asyncio.sleep(0)
            if due is None or due > now:
                break
        self.node.look_at_clock()

    # -- topics and messages --------------------------------------------------------------------

    async def create_topic(self, name: str, queues: int = 4) -> str:
        """Make a topic, wait until the name server knows it, return its name."""
        tables = self.node.broker.tables
        tables.topics.put(TopicConfig(name, read_queues=queues, write_queues=queues))
        await self.wait_route(name)
        return name

    async def wait_route(self, topic: str) -> None:
        """Wait until the name server knows a topic that the broker made by itself.

        Retry and dead letter topics come into being with their first message, and are told to the
        name server a moment later.

        Raises:
            TimeoutError: it does not get to know it.
        """
        async with asyncio.timeout(REGISTERED_S):
            while self._namesrv is not None and not _knows(self._namesrv, topic):  # noqa: ASYNC110
                await asyncio.sleep(0.001)

    def messages(self, topic: str) -> list[ReceivedMessage]:
        """Return all messages of a topic as they are stored, queue by queue."""
        node = self.node
        store, config = node.broker.store, node.broker.tables.topics.find(topic)
        found: list[ReceivedMessage] = []
        for queue_id in range(0 if config is None else config.write_queues):
            offset = store.reads.min_offset(topic, queue_id)
            while offset < store.reads.max_offset(topic, queue_id):
                read = store.get(topic, queue_id, offset, READ_MAX)
                for raw in read.records:
                    records = decode_records(bytes(raw))
                    found += [ReceivedMessage(one, node.settings.name) for one in records]
                if read.next_offset <= offset:
                    break
                offset = read.next_offset
        return found

    # -- faults ---------------------------------------------------------------------------------

    def refuse(
        self,
        code: int = ResponseCode.SYSTEM_BUSY,
        remark: str = "refused by a test",
        *,
        requests: Iterable[int] | None = SENDS,
        times: int | None = None,
    ) -> None:
        """Answer requests (sends; None is all) with a code, and do nothing of what they ask."""
        self.faults.refuse(code, remark, requests, times)

    def delay_answers(
        self, seconds: float, *, requests: Iterable[int] | None = None, times: int | None = None
    ) -> None:
        """Do what is asked at once, and answer after so many seconds by the machine's clock."""
        self.faults.delay(seconds, requests, times)

    def lose_answers(
        self, *, requests: Iterable[int] | None = SENDS, times: int | None = 1
    ) -> None:
        """Do what is asked, then cut the connection: the client cannot know."""
        self.faults.lose_answers(requests, times)

    def drop_connections(self) -> int:
        """Cut every connection to the broker; return how many there were."""
        return self.faults.drop_connections()

    def heal(self) -> None:
        """Switch off what `refuse`, `delay_answers` and `lose_answers` switched on."""
        self.faults.heal()


def _knows(namesrv: NamesrvNode, topic: str) -> bool:
    return topic in namesrv.name_server.table.topics
