"""A name server in a test: peers that only have numbers, brokers that register in one line."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NoReturn

from gantrymq.model.offsets import DataVersion
from gantrymq.model.topic import READ_WRITE, Perm, TopicConfig
from gantrymq.namesrv.handlers import NameServer
from gantrymq.namesrv.members import Announcement
from gantrymq.testing.clock import VirtualClock
from gantrymq.wire.bodies.registration import REGISTRATION, Registration
from gantrymq.wire.bodies.topic import TopicTable
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.headers.namesrv import RegisterBrokerRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gantrymq.namesrv.settings import NamesrvSettings

CLUSTER = "DefaultCluster"
MASTER = "10.0.0.1:10911"
SLAVE = "10.0.0.2:10911"


class FakePeer:
    """The other end of a connection that does not exist."""

    def __init__(
        self,
        number: int = 1,
        *,
        address: str = "10.0.0.9:40000",
        listener: str = "10.0.0.8:9876",
    ) -> None:
        self.number = number
        self.address = address
        self.listener = listener
        self.host = bytes(8)
        self.certificate: tuple[str, ...] = ()
        self.is_open = True
        self.waited_ms = 0
        self.closed_because: str | None = None

    def ask(self, request: Command, timeout_s: float) -> NoReturn:
        """Fail: a name server asks nobody."""
        raise AssertionError(f"{request} within {timeout_s} s")

    def tell(self, request: Command) -> bool:
        """Fail: a name server tells nobody by this way."""
        raise AssertionError(str(request))

    def close(self, reason: str) -> None:
        """Remember why."""
        self.is_open = False
        self.closed_because = reason


def topics(*names: str, perm: Perm = READ_WRITE, queues: int = 4) -> dict[str, TopicConfig]:
    """Return the settings of topics."""
    return {name: TopicConfig(name, queues, queues, perm) for name in names}


def announcement(
    address: str = MASTER,
    *,
    name: str = "broker-a",
    broker_id: int = 0,
    cluster: str = CLUSTER,
    version: int = 1,
    state_version: int = 0,
    having: Iterable[str] = ("A", "B"),
    perm: Perm = READ_WRITE,
    acting_master: bool | None = None,
    timeout_s: float = 120.0,
    fingerprint: object = None,
) -> Announcement:
    """Return what a broker of a test says."""
    return Announcement(
        cluster=cluster,
        name=name,
        broker_id=broker_id,
        address=address,
        ha_address=address.replace("10911", "10912"),
        version=DataVersion(state_version, 1_700_000_000_000, version),
        topics=topics(*having, perm=perm),
        timeout_s=timeout_s,
        acting_master=acting_master,
        fingerprint=fingerprint,
    )


class Site:
    """A name server, its clock, and a connection for whoever asks."""

    def __init__(self, settings: NamesrvSettings | None = None) -> None:
        self.clock = VirtualClock()
        self.saved: list[bytes] = []
        self.saved_settings: list[bytes] = []
        self.sent: list[tuple[str, Command]] = []
        self.peer = FakePeer(1000)
        self.server = NameServer(
            self.clock,
            settings,
            save_kv=self.saved.append,
            save_settings=self.saved_settings.append,
            send_oneway=lambda address, request: self.sent.append((address, request)),
        )

    def ask(
        self,
        code: int,
        fields: Mapping[str, str] | None = None,
        body: bytes = b"",
        peer: FakePeer | None = None,
    ) -> Command:
        """Return the answer to a request."""
        request = Command.request(code, 7, fields, body)
        answer = self.server.handle(request, peer or self.peer)
        assert answer is not None
        assert answer.is_response
        assert answer.opaque == request.opaque
        return answer

    def want(
        self,
        code: int,
        fields: Mapping[str, str] | None = None,
        body: bytes = b"",
        peer: FakePeer | None = None,
    ) -> Command:
        """Return the answer to a request that must succeed."""
        answer = self.ask(code, fields, body, peer)
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        return answer

    def register(
        self,
        having: Iterable[str] = ("A", "B"),
        *,
        address: str = MASTER,
        name: str = "broker-a",
        broker_id: int = 0,
        version: int = 1,
        peer: FakePeer | None = None,
        compressed: bool = False,
        fields: Mapping[str, str] | None = None,
        **more: str,
    ) -> Command:
        """Register a broker over the wire and return the answer; fields given here win."""
        table = TopicTable(
            data_version=DataVersion(0, 1_700_000_000_000, version),
            topic_config_table=topics(*having),
        )
        registration = Registration(topic_config_serialize_wrapper=table)
        encode = REGISTRATION.encode_compressed if compressed else REGISTRATION.encode
        body = encode(registration)
        header = RegisterBrokerRequest(
            broker_name=name,
            broker_addr=address,
            cluster_name=CLUSTER,
            ha_server_addr=address.replace("10911", "10912"),
            broker_id=broker_id,
            compressed=False,
            body_crc32=zlib.crc32(body) & 0x7FFFFFFF,
        )
        sent = {**header.encode(), **(fields or {}), **more}
        return self.ask(RequestCode.REGISTER_BROKER, sent, body, peer or FakePeer(1))
