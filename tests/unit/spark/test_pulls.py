"""Ranges of queues over the wire, without a Spark: restarts, slaves, bad peers, TLS."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.blocking import Producer
from gantrymq.blocking.loop_thread import LoopThread
from gantrymq.client.consuming.pull_requests import PullRequests
from gantrymq.client.consuming.statistics import TopicCounters
from gantrymq.client.consuming.subscribed import Subscribed
from gantrymq.client.consuming.subscription import subscription_of
from gantrymq.client.errors import PeerGone, PeerLate
from gantrymq.model.message import Message
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.model.route import BrokerData, QueueData, TopicRoute
from gantrymq.model.topic import Perm
from gantrymq.spark import pull_line
from gantrymq.spark.link import Link
from gantrymq.spark.options import ConnectionOptions
from gantrymq.spark.pull_line import PullLine, PullLines
from gantrymq.spark.pulls import Pulls
from gantrymq.testing import ThreadedBroker
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.record import decode_records
from support import gantry
from support.scripted import ScriptedBroker, ScriptedCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Peer, Pending

COUNT = 3000
TRANSPORT = Path(__file__).parents[1] / "transport"
QUEUE = MessageQueue("Pulled", "broker-a", QueueId(0))


@pytest.fixture(scope="module")
def broker() -> Iterator[ThreadedBroker]:
    with ThreadedBroker() as started:
        fill(started)
        yield started


def fill(broker: ThreadedBroker) -> None:
    broker.create_topic(QUEUE.topic, 1)
    with Producer(broker.namesrv) as producer:
        for start in range(0, COUNT, 500):
            bodies = (b"%06d" % number for number in range(start, start + 500))
            producer.send_batch([Message(topic=QUEUE.topic, body=body) for body in bodies])


@contextmanager
def linked(**options: Any) -> Iterator[Link]:  # noqa: ANN401 - of a connection
    link = Link(ConnectionOptions(**{"retries": 0, "timeout_s": 5.0, **options}))
    try:
        yield link
    finally:
        link.close()


def all_of(link: Link, pulls: Pulls, end: int = COUNT) -> list[bytes]:
    """Return the bodies of a range from the first offset on."""
    found: list[bytes] = []
    begin = 0
    while begin < end:
        chunk = link.run(pulls.chunk(begin, end))
        found += [one.body for body in chunk.bodies for one in decode_records(body)]
        assert not chunk.ended
        begin = chunk.next
    return found


EXPECTED = [b"%06d" % number for number in range(COUNT)]


def test_rows_of_pulls_bring_every_message_in_order(
    broker: ThreadedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A few pulls under way at a time, so that a row has several turns.
    monkeypatch.setattr(pull_line, "WINDOW_BYTES", 2000)
    with linked(name_server=broker.namesrv) as link:
        assert all_of(link, Pulls(link, QUEUE, 32)) == EXPECTED


def test_connections_that_a_broker_closed_meanwhile_are_not_used(broker: ThreadedBroker) -> None:
    with linked(name_server=broker.namesrv) as link:
        pulls = Pulls(link, QUEUE, 32)
        assert all_of(link, pulls) == EXPECTED
        # What would be left of several tasks at once.
        address = broker.address
        idle = link.lines._idle[address]
        idle += [PullLine(address, None, 5.0) for _ in range(4)]
        assert all(line.ask(requests(), [0])[0].body for line in idle)
        broker.drop_connections()
        assert all_of(link, Pulls(link, QUEUE, 32)) == EXPECTED  # without a second attempt
        assert len(idle) == 1


def test_a_broker_that_starts_again_is_waited_for() -> None:
    with ThreadedBroker() as broker:
        fill(broker)
        with linked(name_server=broker.namesrv, retries=8) as link:
            pulls = Pulls(link, QUEUE, 32)
            assert all_of(link, pulls) == EXPECTED
            broker.stop()
            threading.Timer(0.5, broker.start).start()
            assert all_of(link, pulls) == EXPECTED


def test_pulls_over_tls(tmp_path: Path) -> None:
    certificate, key = (TRANSPORT / f"localhost{kind}.pem" for kind in ("", ".key"))
    settings = {
        "tls.server.mode": "enforcing", "tls.server.certPath": str(certificate),
        "tls.server.keyPath": str(key),
    }  # fmt: skip
    with gantry.server(tmp_path / "server", settings) as server:
        trusting = ssl.create_default_context(cafile=str(certificate))
        with Producer(server.name_server, ssl=trusting) as producer:
            for number in range(100):
                producer.send(QUEUE.topic, b"%06d" % number)
        known: dict[str, Any] = {"name_server": server.name_server, "tls": True}
        with linked(**known, tls_ca_file=str(certificate)) as link:
            route = link.run(link.route(QUEUE.topic))
            ends = {one: link.run(link.calls.max_offset(one)) for one in route.read_queues}
            found = [body for one in ends for body in all_of(link, Pulls(link, one, 8), ends[one])]
        assert sorted(found) == EXPECTED[:100]
        with linked(**known) as link, pytest.raises(PeerGone, match="CERTIFICATE_VERIFY_FAILED"):
            link.lines.ask(f"127.0.0.1:{server.port}", requests(), [0])


# -- bad peers -----------------------------------------------------------------------------------


def requests(count: int = 32) -> PullRequests:
    told = subscription_of(QUEUE.topic, "*", 0)
    subscribed = Subscribed(QUEUE.topic, told, None, TopicCounters())
    return PullRequests("g", QUEUE, subscribed, count, suspend_s=0, names_subscription=True)


def answer(opaque: int, body: bytes = b"", **other: object) -> bytes:
    header = {
        "code": 0, "flag": 1, "language": "JAVA", "opaque": opaque, "version": 399,
        "serializeTypeCurrentRPC": "JSON",
        "extFields": {
            "suggestWhichBrokerId": "0", "nextBeginOffset": "32", "minOffset": "0",
            "maxOffset": "64",
        },
        **other,
    }  # fmt: skip
    raw = json.dumps(header).encode()
    return struct.pack(">II", 4 + len(raw) + len(body), len(raw)) + raw + body


@contextmanager
def peer(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """Run a server for one connection that talks as a test says."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.settimeout(10)
                talk(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join(10)
        assert not thread.is_alive()


def asked(connection: socket.socket, at_least: int = 1) -> list[int]:
    """Return the numbers of the pulls that have come, when there are so many and none is cut."""
    data = b""
    found: list[int] = []
    while data or len(found) < at_least:
        if len(data) < 8 or len(data) < 4 + struct.unpack_from(">I", data)[0]:
            more = connection.recv(1 << 20)
            assert more, f"closed after {len(found)} pulls"
            data += more
            continue
        size, head = struct.unpack_from(">II", data)
        found.append(json.loads(data[8 : 8 + head])["opaque"])
        data = data[4 + size :]
    return found


def test_answers_may_come_in_any_order_and_in_pieces() -> None:
    def talk(connection: socket.socket) -> None:
        numbers = asked(connection, 3)
        notice = answer(1, flag=0, code=40, extFields={})  # a broker asks something itself
        stale = answer(10_000, b"x")
        frames = [answer(one, b"body-%d" % one) for one in reversed(numbers)]
        raw = b"".join([notice, stale, *frames, frames[-1]])
        with suppress(ConnectionError):  # who has all answers may close, whatever else comes
            for at in range(0, len(raw), 7):
                connection.sendall(raw[at : at + 7])
            connection.recv(1)  # until it is closed

    with peer(talk) as address:
        line = PullLine(address, None, 5.0)
        found = line.ask(requests(), [0, 32, 64])
        line.close()
    assert [one.body for one in found] == [b"body-1", b"body-2", b"body-3"]
    assert found[0][:5] == (0, 32, 0, 64, 0)


def test_an_answer_that_is_larger_than_the_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pull_line, "BUFFER_BYTES", 4096)
    monkeypatch.setattr(pull_line, "READ_BYTES_MIN", 1024)
    bodies = [bytes([number]) * 50_000 for number in range(3)]

    def talk(connection: socket.socket) -> None:
        for number in asked(connection, 3):
            connection.sendall(answer(number, bodies[number - 1]))

    with peer(talk) as address:
        line = PullLine(address, None, 5.0)
        assert [one.body for one in line.ask(requests(), [0, 1, 2])] == bodies
        line.close()


def test_a_broker_that_does_not_read_and_one_that_says_nothing() -> None:
    """More pulls than a system holds for a socket: they are not all written at once."""
    most: list[int] = []

    def talk(connection: socket.socket) -> None:
        numbers = asked(connection)
        connection.settimeout(0.3)
        with suppress(TimeoutError):  # some time nothing more comes, as nothing is answered
            while True:
                numbers += asked(connection)
        connection.settimeout(10)
        while numbers:
            most.append(len(numbers))
            last = numbers[-1]
            connection.sendall(b"".join(map(answer, numbers)))
            numbers = asked(connection) if last < 1000 else []

    with peer(talk) as address:
        line = PullLine(address, None, 5.0)
        assert len(line.ask(requests(), range(1000))) == 1000
        line.close()
    assert max(most) < 200

    with peer(lambda connection: asked(connection).clear()) as address:
        line = PullLine(address, None, 0.2)
        with pytest.raises((PeerGone, PeerLate), match=address):
            line.ask(requests(), [0])
        line.close()


def test_words_that_are_no_answer_do_not_keep_a_pull_waiting() -> None:
    def talk(connection: socket.socket) -> None:
        asked(connection)
        ended = threading.Event()
        try:
            while not ended.wait(0.02):
                connection.sendall(answer(1, flag=0, code=40))
        except OSError:
            return

    with peer(talk) as address:
        line = PullLine(address, None, 0.3)
        with pytest.raises(PeerLate, match="no answer to a pull within"):
            line.ask(requests(), [0])
        line.close()


@pytest.mark.parametrize(
    "raw", [b"GET / HTTP/1.1\r\n\r\n", struct.pack(">II", 1 << 30, 4), answer(1, code=1)]
)
def test_what_is_no_answer_is_an_error_and_the_connection_is_not_kept(raw: bytes) -> None:
    def talk(connection: socket.socket) -> None:
        asked(connection)
        connection.sendall(raw)

    with peer(talk) as address:
        lines = PullLines(None, 2.0)
        with pytest.raises(Exception, match=r"no|closed|byte|frame|SYSTEM_ERROR") as caught:
            lines.ask(address, requests(), [0])
        assert type(caught.value).__module__.startswith("gantrymq.")
        assert not lines._idle[address]


# -- masters and slaves --------------------------------------------------------------------------


class Half(ScriptedBroker):
    """A broker of a group that has so many messages, and suggests whom to ask next."""

    def __init__(self, most: int, suggests: int) -> None:
        super().__init__("broker-a")
        self.most, self.suggests, self.pulled = most, suggests, list[int]()

    def _handle(self, request: Command, peer: Peer) -> Pending:
        if request.code != RequestCode.PULL_MESSAGE:
            return super()._handle(request, peer)
        offset = int(request.fields["queueOffset"])
        self.pulled.append(offset)
        fields = {"suggestWhichBrokerId": str(self.suggests), "minOffset": "0",
                  "maxOffset": str(self.most)}  # fmt: skip
        if offset < self.most:
            fields["nextBeginOffset"] = str(offset + 1)
            return request.response(ResponseCode.SUCCESS, fields, body=b"<%d>" % offset)
        fields["nextBeginOffset"] = str(self.most)
        return request.response(ResponseCode.PULL_NOT_FOUND, fields)


@contextmanager
def group(master: int | None, slave: int) -> Iterator[tuple[Link, Half, Half]]:
    """Run a master, which sends readers to its slave, and that slave."""
    cluster, thread = ScriptedCluster(0), LoopThread("scripted")
    here, there = Half(master or 0, 1), Half(slave, 1)
    cluster.brokers = [here, there]
    thread.start()
    thread.call(cluster.__aenter__())
    addresses = {1: there.address} if master is None else {0: here.address, 1: there.address}
    cluster.routes[QUEUE.topic] = TopicRoute(
        queues=(QueueData("broker-a", 1, 1, Perm.READ | Perm.WRITE),),
        brokers=(BrokerData("c", "broker-a", addresses),),
    )
    try:
        with linked(name_server=cluster.namesrv, retries=1) as link:
            yield link, here, there
    finally:
        thread.call(cluster.__aexit__(None, None, None))
        thread.stop()


def read(link: Link, end: int) -> list[bytes]:
    pulls, begin, found = Pulls(link, QUEUE, 1), 0, list[bytes]()
    while begin < end:
        chunk = link.run(pulls.chunk(begin, end))
        found += chunk.bodies
        if chunk.ended:
            break
        begin = chunk.next
    return found


def test_what_a_slave_does_not_have_yet_is_asked_of_the_master() -> None:
    with group(master=100, slave=40) as (link, here, there):
        assert read(link, 100) == [b"<%d>" % number for number in range(100)]
        assert there.pulled
        assert set(range(40, 100)) <= set(here.pulled)


def test_the_end_is_the_masters() -> None:
    with group(master=60, slave=40) as (link, _here, _there):
        assert len(read(link, 100)) == 60


def test_a_slave_alone_is_not_believed_that_messages_are_gone() -> None:
    with group(master=None, slave=40) as (link, _here, _there):
        assert len(read(link, 40)) == 40
        with pytest.raises(PeerLate, match="has no master now"):
            read(link, 100)
