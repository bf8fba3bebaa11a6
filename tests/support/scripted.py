"""A name server and brokers that do what a test says, for tests of the client without a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from gantrymq.model.route import BrokerData, QueueData, TopicRoute
from gantrymq.model.topic import Perm
from gantrymq.transport.command_service import CommandService
from gantrymq.transport.server import Server
from gantrymq.wire.bodies.heartbeat import HEARTBEAT
from gantrymq.wire.bodies.route import TOPIC_ROUTE
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.headers.send import SendMessageResponse, SendMessageV2Request

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from gantrymq.transport.tls import ServerTls
    from gantrymq.wire.bodies.heartbeat import Heartbeat
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Peer, Pending

SENDS = frozenset(
    {
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
        RequestCode.SEND_REPLY_MESSAGE_V2,
    }
)


class ScriptedBroker:
    """Notes what it is asked; answers sends as `on_send` says, and all else with success."""

    def __init__(self, name: str, tls: ServerTls | None = None) -> None:
        self.name = name
        self._tls = tls
        self.address = ""
        self.sends: list[Command] = []
        self.heartbeats: list[Heartbeat] = []
        self.others: list[Command] = []
        self.peers: list[Peer] = []
        self.on_send: Callable[[Command, Peer], Pending] = self.stored
        self._server: Server | None = None

    def stored(self, request: Command, _peer: Peer) -> Command:
        """Answer as a broker does that has stored the message."""
        return request.response(ResponseCode.SUCCESS, self.fields(request))

    def fields(self, request: Command) -> dict[str, str]:
        """Return the ext fields of that answer."""
        header = SendMessageV2Request.decode(request.fields)
        return SendMessageResponse(
            msg_id=f"7F00000100002A9F{len(self.sends):016X}",
            queue_id=header.queue_id,
            queue_offset=len(self.sends),
            region="DefaultRegion",
            trace_on="true",
        ).encode()

    def answering(self, code: int, remark: str = "scripted") -> None:
        """Answer every send with this code from now on."""
        self.on_send = lambda request, _peer: request.response(
            code, self.fields(request), remark=remark
        )

    def silent(self) -> None:
        """Answer no send from now on."""
        self.on_send = lambda _request, _peer: None

    def hanging_up(self) -> None:
        """Close the connection of every send from now on."""

        def close(_request: Command, peer: Peer) -> None:
            peer.close("scripted")

        self.on_send = close

    @property
    def headers(self) -> list[SendMessageV2Request]:
        """Return the headers of all sends."""
        return [SendMessageV2Request.decode(request.fields) for request in self.sends]

    def _handle(self, request: Command, peer: Peer) -> Pending:
        if request.code in SENDS:
            self.sends.append(request)
            return self.on_send(request, peer)
        if request.code == RequestCode.HEART_BEAT:
            self.heartbeats.append(HEARTBEAT.decode(request.body))
        else:
            self.others.append(request)
        return request.response()

    async def start(self) -> None:
        """Listen, again on the port that it had."""
        port = int(self.address.rpartition(":")[2]) if self.address else 0
        service = CommandService(self._handle, opened=self.peers.append)
        self._server = await Server(service, [("127.0.0.1", port)], tls=self._tls).start()
        self.address = self._server.bound[0]

    async def stop(self) -> None:
        """Close all connections and listen no more."""
        if self._server is not None:
            await self._server.stop(0)
            self._server = None


class ScriptedCluster:
    """A name server and so many brokers, as one `async with` block."""

    def __init__(self, brokers: int = 1, queues: int = 2, tls: ServerTls | None = None) -> None:
        self.brokers = [ScriptedBroker(f"broker-{number}", tls) for number in range(brokers)]
        self._tls = tls
        self.queues = queues
        self.namesrv = ""
        self.routes: dict[str, TopicRoute] = {}
        """By topic, in place of what all brokers together make."""
        self.unknown: set[str] = set()
        """Topics that the name server does not know; TBW102 may be one."""
        self.asked: list[str] = []
        """Topics that it was asked about."""
        self._server: Server | None = None

    def route(self, perm: Perm = Perm.READ | Perm.WRITE) -> TopicRoute:
        """Return the route of a topic that all brokers have."""
        return TopicRoute(
            queues=tuple(
                QueueData(broker.name, self.queues, self.queues, perm) for broker in self.brokers
            ),
            brokers=tuple(
                BrokerData("scripted", broker.name, {0: broker.address}) for broker in self.brokers
            ),
        )

    def _handle(self, request: Command, _peer: Peer) -> Command:
        if request.code != RequestCode.GET_ROUTEINFO_BY_TOPIC:
            return request.response(ResponseCode.REQUEST_CODE_NOT_SUPPORTED)
        topic = request.fields["topic"]
        self.asked.append(topic)
        if topic in self.unknown:
            return request.response(ResponseCode.TOPIC_NOT_EXIST, remark="scripted")
        return request.response(body=TOPIC_ROUTE.encode(self.routes.get(topic) or self.route()))

    async def start_name_server(self) -> None:
        """Listen, again on the port that it had."""
        port = int(self.namesrv.rpartition(":")[2]) if self.namesrv else 0
        service = CommandService(self._handle)
        server = Server(service, [("127.0.0.1", port)], tls=self._tls)
        self._server = await server.start()
        self.namesrv = self._server.bound[0]

    async def stop_name_server(self) -> None:
        """Close all connections and listen no more."""
        if self._server is not None:
            await self._server.stop(0)
            self._server = None

    async def __aenter__(self) -> Self:
        """Start all of them."""
        for broker in self.brokers:
            await broker.start()
        await self.start_name_server()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop all of them."""
        await self.stop_name_server()
        for broker in self.brokers:
            await broker.stop()
