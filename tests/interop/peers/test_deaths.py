"""Clients and brokers that are killed: what the others notice of it."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from contextlib import ExitStack, suppress
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, Final

import pytest

from gantrymq.kernel import kernel
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.topic import CreateTopicRequest
from interop.peers.clients import command_of, had
from interop.peers.scenarios import World
from support import gantry, peers
from support.failover_group import Broker, start_name_server
from support.mqadmin import mqadmin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from interop.peers.scenarios import Consumer
    from support.peers import Message, Peer

WAIT_S_MAX: Final = 60
LOCK_S: Final = 5
HANDLING_MS: Final = 20
IN_A_HURRY: Final = (
    "-Drocketmq.client.rebalance.lockInterval=1000",
    "-Drocketmq.client.rebalance.waitInterval=1000",
    f"-Drocketmq.client.rebalance.lockMaxLiveTime={LOCK_S * 500}",
)
"""A member asks for its locks and looks at the others every second; both are every 20 s else."""

pytestmark = [
    pytest.mark.tool("java"),
    pytest.mark.tool("javac"),
    pytest.mark.tool("mvn"),
]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as held:
        yield held


def wait_until(condition: Callable[[], bool], what: str, seconds: float = WAIT_S_MAX) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


# -- producers -----------------------------------------------------------------------------------


def test_the_producers_of_a_group_are_listed_until_they_die(
    stack: ExitStack, tmp_path: Path
) -> None:
    command = command_of("java-4.9.7")
    server = stack.enter_context(gantry.server(tmp_path / "server", {}))
    tool = stack.enter_context(mqadmin("4.9.7", tmp_path / "tool", server.name_server))
    # Two in one process, the third in its own.
    two, one = (
        stack.enter_context(peers.running(command, server.name_server, tmp_path / label))
        for label in ("two", "one")
    )
    topic = World(two, server.name_server, server.port, "listed").topic()
    for peer, name in ((two, "first"), (two, "second"), (one, "third")):
        peer.call("producer", name=name, group="listed", quick=True)
        peer.call("send", producer=name, topic=topic, how="sync", messages=[{"body": "here"}])

    def listed() -> dict[str, tuple[str, ...]]:
        said = tool.one(f"producerConnection -g listed -t {topic}")
        found = {}
        for line in said.splitlines():
            words = line.split()
            if len(words) > 1 and "@" in words[1]:
                found[words[1].partition("@")[2]] = tuple(words[2:])
        return found

    wait_until(lambda: len(listed()) == 3, f"three are not listed: {listed()}")
    rows = listed()
    assert set(rows) == {"first", "second", "third"}
    for address, language, version in rows.values():
        assert re.fullmatch(r"127\.0\.0\.1:\d+", address)
        assert (language, version) == ("JAVA", "V4_9_7")
    assert len({row[0] for row in rows.values()}) == 3, "each has its connection"
    one.end()
    wait_until(lambda: set(listed()) == {"first", "second"}, "the dead one is still listed", 40)


# -- orderly members -----------------------------------------------------------------------------


class Orderly:
    """An orderly group whose members are processes, and a flow of messages to all its queues."""

    QUEUES: Final = 4

    def __init__(self, stack: ExitStack, work: Path) -> None:
        self._stack = stack
        self._work = work
        self._command = had("java-4.9.7", lambda: peers.java("4.9.7", *IN_A_HURRY))
        settings = {"lockMaxLiveTime": str(LOCK_S * 1000)}
        self._server = stack.enter_context(gantry.server(work / "server", settings))
        self._sender = self._world("sender")
        self._producer = self._sender.producer()
        self.topic = self._sender.topic(self.QUEUES)
        self._numbers = count()
        self.sent: list[str] = []
        self.members: list[Consumer] = []

    def _world(self, name: str) -> World:
        peer = peers.running(self._command, self._server.name_server, self._work / name)
        return World(
            self._stack.enter_context(peer), self._server.name_server, self._server.port, name
        )

    def join(self) -> None:
        world = self._world(f"member{len(self.members)}")
        fields = {"orderly": True, "takes_ms": HANDLING_MS, "quick": True, "threads": self.QUEUES}
        self.members.append(world.consumer(self.topic, "orderly", **fields))

    def send(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            number = next(self._numbers)
            messages: list[Message] = [
                {"body": f"{queue}/{number}", "queue": queue} for queue in range(self.QUEUES)
            ]
            self._sender.send(self.topic, messages, producer=self._producer)
            self.sent += [message["body"] for message in messages]
            time.sleep(0.05)

    def received(self) -> list[Message]:
        return [message for member in self.members for message in member.received()]

    def has_all(self) -> bool:
        return {message["body"] for message in self.received()} >= set(self.sent)

    def by_queue(self) -> dict[int, list[Message]]:
        """Return what was handled of each queue, in the order of the clock."""
        found: dict[int, list[Message]] = defaultdict(list)
        for message in sorted(self.received(), key=lambda one: one["received"]):
            found[message["queue"]].append(message)
        return found


def test_order_is_kept_when_members_join_and_die(stack: ExitStack, tmp_path: Path) -> None:
    group = Orderly(stack, tmp_path)
    group.join()
    group.send(2)
    group.join()
    group.send(4)
    assert all(member.received() for member in group.members), "both have queues"
    victim = group.members[1]
    died_ms = time.time_ns() // 1_000_000
    victim.peer.end()
    group.send(3)
    group.join()
    wait_until(group.has_all, "messages are missing")
    group.send(2)
    wait_until(group.has_all, "messages are missing at the end")
    assert sum(1 for member in group.members if member.received()) == 3
    for queue, messages in group.by_queue().items():
        for before, after in pairwise(messages):
            assert_in_order(queue, before, after, died_ms)


def assert_in_order(
    queue: int, before: dict[str, Any], after: dict[str, Any], died_ms: int
) -> None:
    """Be sure that the second was handled when the first was done with, and follows it."""
    between = f"queue {queue}: {before} and then {after}"
    assert before["ended"] <= after["received"], f"two at once, {between}"
    if after["consumer"] == before["consumer"]:
        assert after["offset"] == before["offset"] + 1, between
        return
    # Who takes over goes on where the other has committed: it may repeat, and leaves nothing out.
    assert after["offset"] <= before["offset"] + 1, between
    if after["received"] > died_ms:
        assert after["received"] >= before["ended"]


# -- transactions --------------------------------------------------------------------------------


class Undecided:
    """A sync master and its slave; halves whose producer dies; another one of its group lives."""

    TOPIC: Final = "Decided"
    GROUP: Final = "p-deciding"
    """What the program around the Go client calls the group of its producer p."""

    def __init__(self, stack: ExitStack, work: Path) -> None:
        self._stack = stack
        self._work = work
        self._dying, living = command_of("go"), command_of("java-4.9.7")
        self._names = start_name_server(stack, work)
        common = {
            "namesrvAddr": self._names, "transactionTimeOut": "1000",
            "transactionCheckInterval": "1000", "brokerName": "broker-a",
        }  # fmt: skip
        self.master = Broker(work, "master", {**common, "brokerRole": "SYNC_MASTER"})
        stack.callback(self.master.stop)
        self.slave = Broker(work, "slave", {**common, "brokerRole": "SLAVE", "brokerId": "1"})
        stack.callback(self.slave.stop)
        self.living = self._peer(living, "living")
        wait_until(lambda: self.master.takes() == 0, "the slave does not come")
        self._make_topic()
        self.living.call("producer", name="p", group=self.GROUP, quick=True)
        self.greet()

    def _peer(self, command: list[str], name: str) -> Peer:
        return self._stack.enter_context(peers.running(command, self._names, self._work / name))

    def _make_topic(self) -> None:
        header = CreateTopicRequest(
            topic=self.TOPIC, default_topic="TBW102", read_queue_nums=1, write_queue_nums=1,
            perm=6, topic_filter_type="SINGLE_TAG", order=False, topic_sys_flag=0,
        )  # fmt: skip
        with self.master.client() as client:
            client.want(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
        wait_until(self._is_known, "the name server is not told of the topic")

    def _is_known(self) -> bool:
        with suppress(peers.PeerError):
            self.living.call("producer", name="probe", group="probe")
            self._send(self.living, "probe", "sync", {"body": "hello"})
            return True
        return False

    def _send(self, peer: Peer, producer: str, how: str, message: dict[str, Any]) -> None:
        told = peer.call("send", producer=producer, topic=self.TOPIC, how=how, messages=[message])
        assert [one["status"] for one in told] == ["SEND_OK"]

    def greet(self) -> None:
        """Have the living producer known to whoever is master now."""

        def is_stored() -> bool:
            with suppress(peers.PeerError, AssertionError):
                self._send(self.living, "p", "sync", {"body": "hello"})
                return True
            return False

        wait_until(is_stored, "the living producer cannot send")

    def half(self, body: str) -> None:
        """Send a half message and kill its producer, which has not decided."""
        peer = self._peer(self._dying, f"dying-{body}")
        peer.call("producer", name="p", group="p")
        properties = {"decide": "unknown", "check": "commit"}
        self._send(peer, "p", "transaction", {"body": body, "properties": properties})
        peer.end()

    def comes_once(self, body: str, master: Broker) -> None:
        """Be sure that the living producer is asked, and that the message is there once.

        It is looked for with pulls: the Java consumer waits half a minute for a broker that died.
        """
        living = self.living
        wait_until(lambda: body in living.checks(), f"nobody is asked about {body}")

        def seen() -> int:
            with master.client() as client:
                raws = client.pull_all(self.TOPIC, 0)
            records = [kernel.decode_record(raw, 0, len(raw), True)[0] for raw in raws]
            return sum(record.body == body.encode() for record in records)

        wait_until(lambda: seen() > 0, f"{body} is decided and not seen")
        time.sleep(2.5)  # two more rounds
        assert seen() == 1
        assert living.checks().count(body) == 1


def test_any_producer_of_the_group_is_asked(stack: ExitStack, tmp_path: Path) -> None:
    world = Undecided(stack, tmp_path)
    world.half("alive")
    world.comes_once("alive", world.master)

    world.half("restarted")
    world.master.kill()
    world.master.start()
    world.greet()
    world.comes_once("restarted", world.master)

    wait_until(lambda: world.master.takes() == 0, "the slave does not come back")
    world.half("promoted")
    world.master.kill()
    world.slave.stop()
    world.slave.settings |= {"brokerRole": "ASYNC_MASTER", "brokerId": "0"}
    world.slave.start()
    world.greet()
    world.comes_once("promoted", world.slave)
