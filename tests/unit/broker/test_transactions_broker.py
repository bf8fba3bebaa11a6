"""Transactions through a whole broker: what a producer's bytes are answered with."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from gantrymq.broker.broker import Broker
from gantrymq.broker.settings import BrokerSettings
from gantrymq.broker.surroundings import Loop, Surroundings
from gantrymq.kernel import kernel
from gantrymq.store.worker import Workers
from gantrymq.testing.clock import VirtualClock
from gantrymq.testing.disk import SimulatedFiles
from gantrymq.testing.workers import StepWorker
from gantrymq.wire.bodies.heartbeat import HEARTBEAT
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.frame import FrameParser, encode_frame
from gantrymq.wire.peer import RawReply
from support.client_peers import FakePeer, heartbeat
from support.samples import send_fields
from support.store_rig import STORE_HOST, open_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

PROPERTIES = "TRAN_MSG\x01true\x02PGROUP\x01PG\x02UNIQ_KEY\x01k1"


class Node:
    """A broker on a simulated disk, whose workers run when told."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        disk: SimulatedFiles,
        clock: VirtualClock,
        **changes: object,
    ) -> None:
        self.loop, self.disk, self.clock = loop, disk, clock
        disk.clock = clock
        self.workers = [StepWorker() for _ in Workers._fields]
        config = StepWorker()
        around = Surroundings(
            disk,
            clock,
            Workers(*self.workers),
            config,
            Loop(self.loop.call_soon, self.loop.create_future),
            1 << 30,
            1,
        )
        self.workers.append(config)
        self.broker = Broker(
            BrokerSettings(name="broker-a", **changes),  # type: ignore[arg-type]
            open_settings({"mappedFileSizeCommitLog": "65536"}),
            STORE_HOST,
            around,
        )
        self.broker.open()
        self.tick()

    def tick(self, seconds: float = 0.0) -> None:
        """Let time pass."""
        self.clock.jump(seconds)
        now = self.clock.monotonic()
        for _ in range(1000):
            due = self.broker.tick(now)
            for worker in self.workers:
                worker.drain()
            self.turn()
            if due is None or due > now:
                return
        raise AssertionError("the broker never comes to rest")

    def turn(self) -> None:
        """Let the loop do what was put off."""
        self.loop.run_until_complete(asyncio.sleep(0))

    def ask(self, peer: FakePeer, *requests: Command) -> list[Command]:
        """Return the answers to what a client wrote."""
        buffer = b"".join(map(encode_frame, requests))
        taken = self.broker.service.take(buffer, 0, len(buffer), peer)
        assert taken.end == len(buffer)
        self.turn()
        answers: list[Command] = []
        for pending in taken.answers:
            if isinstance(pending, RawReply):
                answers += FrameParser().feed(b"".join(pending.parts))
            elif pending is not None:
                assert isinstance(pending, Command)
                answers.append(pending)
        return answers

    def bodies(self, topic: str) -> list[bytes]:
        """Return the bodies of queue 0 of a topic."""
        found = self.broker.store.get(topic, 0, 0, 32).records
        return [kernel.decode_record(raw, 0, len(raw), True)[0].body for raw in found]


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Return a loop that is let go at the end."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture
def node(loop: asyncio.AbstractEventLoop) -> Node:
    """Return a new broker."""
    return Node(loop, SimulatedFiles(), VirtualClock())


def half(body: bytes = b"a") -> Command:
    """Return a transactional send."""
    return send(RequestCode.SEND_MESSAGE_V2, "T", PROPERTIES, body)


def send(code: int, topic: str, properties: str, body: bytes) -> Command:
    """Return a send with one-letter names."""
    fields = send_fields(b=topic, e="0", f="4", i=properties)
    return Command.request(code, 1, {name: str(value) for name, value in fields.items()}, body)


def decision(answer: Command, says: int) -> Command:
    """Return what a producer sends when it knows."""
    return Command.request(
        RequestCode.END_TRANSACTION,
        2,
        {
            "producerGroup": "PG",
            "tranStateTableOffset": answer.fields["queueOffset"],
            "commitLogOffset": str(int(answer.fields["msgId"][-16:], 16)),
            "commitOrRollback": str(says),
            "msgId": "k1",
            "fromTransactionCheck": "false",
        },
    )


def test_producer_commits(node: Node) -> None:
    """The answer to the half message tells all that ending it takes."""
    peer = FakePeer(3)
    (sent,) = node.ask(peer, half())
    assert sent.code == ResponseCode.SUCCESS
    assert sent.fields["transactionId"] == "k1"
    assert node.bodies("T") == []
    (ended,) = node.ask(peer, decision(sent, 8))
    assert ended.code == ResponseCode.SUCCESS
    assert node.bodies("T") == [b"a"]


def test_producer_is_asked_after_a_restart(node: Node) -> None:
    """The broker is killed with an open transaction; the next one asks and publishes it."""
    (first, second) = node.ask(FakePeer(3), half(b"a"), half(b"b"))
    node.ask(FakePeer(3), decision(first, 12))
    node.tick(70)
    after = Node(node.loop, node.disk.kill(), node.clock)
    assert second.fields["queueOffset"] == "1"
    peer = FakePeer(4)
    beat = HEARTBEAT.encode(heartbeat("c", producers=["PG"]))
    after.ask(peer, Command.request(RequestCode.HEART_BEAT, 1, {}, beat))
    for _ in range(20):
        after.tick(5)
    (question,) = peer.told
    assert question.code == RequestCode.CHECK_TRANSACTION_STATE
    answer = Command.request(
        RequestCode.END_TRANSACTION,
        2,
        {
            "producerGroup": "PG",
            "tranStateTableOffset": question.fields["tranStateTableOffset"],
            "commitLogOffset": question.fields["commitLogOffset"],
            "commitOrRollback": "8",
            "msgId": "k1",
            "fromTransactionCheck": "true",
        },
        oneway=True,
    )
    assert after.ask(peer, answer) == []
    assert after.bodies("T") == [b"b"]


def test_transactions_can_be_forbidden(loop: asyncio.AbstractEventLoop) -> None:
    """`rejectTransactionMessage`: Apache's code and words."""
    node = Node(loop, SimulatedFiles(), VirtualClock(), rejects_transactions=True)
    (refused,) = node.ask(FakePeer(3), half())
    assert refused.code == ResponseCode.NO_PERMISSION
    assert "sending transaction message is forbidden" in (refused.remark or "")


def test_request_reply_is_served(node: Node) -> None:
    """A reply comes as a request of its own code; nobody asked here."""
    code, topic = RequestCode.SEND_REPLY_MESSAGE_V2, "DefaultCluster_REPLY_TOPIC"
    reply = encode_frame(send(code, topic, "CORRELATION_ID\x01c", b"r"))
    (pending,) = node.broker.service.take(reply, 0, len(reply), FakePeer(3)).answers
    answer = node.loop.run_until_complete(pending)  # type: ignore[arg-type]
    assert isinstance(answer, Command)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "REPLY_TO_CLIENT" in (answer.remark or "")
    node.turn()
    assert node.bodies(topic) == [b"r"]
