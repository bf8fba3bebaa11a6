"""A whole broker without sockets or threads, for the tests of admin requests."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from inspect import isawaitable
from pathlib import Path
from typing import TYPE_CHECKING

from gantrymq.broker.admin.configuration import restored
from gantrymq.broker.broker import Broker
from gantrymq.broker.settings import BrokerSettings
from gantrymq.broker.surroundings import Loop, Surroundings
from gantrymq.store.put import NewMessage
from gantrymq.store.settings import read_settings
from gantrymq.store.status import PutStatus
from gantrymq.store.worker import InlineWorker, Workers
from gantrymq.testing.clock import VirtualClock
from gantrymq.testing.disk import SimulatedFiles
from gantrymq.wire.bodies.heartbeat import HEARTBEAT
from gantrymq.wire.codes import LanguageCode, RequestCode
from gantrymq.wire.command import Command
from support.client_peers import FakePeer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.broker.admin.parts import RouteOf
    from gantrymq.store.files import Files
    from gantrymq.wire.bodies.heartbeat import Heartbeat

ROOT = Path("/store")
HOST = bytes([127, 0, 0, 2]) + (21911).to_bytes(4)
ADDRESS = "127.0.0.2:21911"
SMALL = {
    "storePathRootDir": str(ROOT),
    "mappedFileSizeCommitLog": "262144",
    "mappedFileSizeConsumeQueue": "1000",
    "maxHashSlotNum": "200",
    "maxIndexNum": "800",
}
BORN = bytes([10, 0, 0, 1]) + (12345).to_bytes(4)


class AskedPeer(FakePeer):
    """A client that answers what its broker asks."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.asked: list[tuple[Command, float]] = []
        self.reply: Command | Exception = Command(code=0, opaque=0, flag=1)

    def ask(self, request: Command, timeout_s: float) -> asyncio.Future[Command]:
        """Answer at once."""
        self.asked.append((request, timeout_s))
        future: asyncio.Future[Command] = asyncio.get_running_loop().create_future()
        if isinstance(self.reply, Exception):
            future.set_exception(self.reply)
        else:
            future.set_result(self.reply)
        return future


class World:
    """A broker, its disk, its clock, and how to ask it."""

    def __init__(
        self,
        files: Files | None = None,
        properties: Mapping[str, str] | None = None,
        clock: VirtualClock | None = None,
        settings: BrokerSettings | None = None,
        route: RouteOf | None = None,
    ) -> None:
        self.files = files or SimulatedFiles()
        self.clock = clock or VirtualClock()
        self.properties = SMALL | dict(properties or {})
        self.routes_changed = 0
        self.peer = AskedPeer(1)
        inline = InlineWorker()
        own = settings or BrokerSettings(name="broker-a")
        found = restored(self.files, own, read_settings(self.properties))
        around = Surroundings(
            self.files,
            self.clock,
            Workers.made(lambda _name: inline),
            inline,
            Loop(lambda call: call(), lambda: asyncio.get_running_loop().create_future()),
            0,
            1,
        )
        self.broker = Broker(
            found.broker,
            found.store,
            HOST,
            around,
            routes_changed=self._routes_changed,
            route=route,
        )
        self.broker.open()
        self.tables = self.broker.tables

    def _routes_changed(self) -> None:
        self.routes_changed += 1

    def again(self) -> World:
        """Stop the broker, and start another one on the same disk."""
        self.broker.close()
        return World(self.files, self.properties, self.clock)

    # -- asking ---------------------------------------------------------------------------------

    def ask(
        self,
        code: int,
        fields: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        peer: FakePeer | None = None,
        language: int = LanguageCode.JAVA,
    ) -> Command:
        """Return the answer to a request."""
        request = replace_language(Command.request(code, 7, fields, body), language)
        return self.handle(request, peer)

    def handle(self, request: Command, peer: FakePeer | None = None) -> Command:
        """Return the answer to a command."""

        async def run() -> object:
            pending = self.broker.router.handle(request, peer or self.peer)
            return await pending if isawaitable(pending) else pending

        reply = asyncio.run(run())
        assert isinstance(reply, Command), reply
        assert reply.opaque == request.opaque
        return reply

    # -- what there is --------------------------------------------------------------------------

    def topic(self, name: str, queues: int = 2, **more: str) -> None:
        """Have a topic made, as an operator does."""
        fields = {
            "topic": name,
            "defaultTopic": "TBW102",
            "readQueueNums": str(queues),
            "writeQueueNums": str(queues),
            "perm": "6",
            "topicFilterType": "SINGLE_TAG",
            "order": "false",
        }
        reply = self.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, fields | more)
        assert reply.code == 0, reply.remark

    def group(self, name: str) -> None:
        """Have a group made, as an operator does."""
        body = b'{"groupName":"%b"}' % name.encode()
        assert self.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body).code == 0

    def put(self, topic: str, queue_id: int, count: int = 1) -> None:
        """Store messages, a second apart."""
        for number in range(count):
            body, born = b"body %d" % number, self.clock.now_ms()
            message = NewMessage(topic, queue_id, body, {"TAGS": "TagA"}, born, BORN)
            assert self.broker.store.put([message]).status is PutStatus.PUT_OK
            self.clock.jump(1.0)

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Commit an offset."""
        self.tables.offsets.commit(group, topic, queue_id, offset)

    def join(self, data: Heartbeat, peer: FakePeer, *, language: int = LanguageCode.JAVA) -> None:
        """Have a client come."""
        body = HEARTBEAT.encode(data)
        reply = self.ask(RequestCode.HEART_BEAT, body=body, peer=peer, language=language)
        assert reply.code == 0, reply.remark


def replace_language(request: Command, language: int) -> Command:
    """Return a request of a client in another language."""
    return Command(
        code=request.code,
        opaque=request.opaque,
        language=language,
        fields=request.fields,
        body=request.body,
    )


def slave() -> World:
    """Return a broker that copies another."""
    own = replace(BrokerSettings(name="broker-a"), broker_id=1)
    return World(properties={"brokerRole": "SLAVE"}, settings=own)
