"""Transactions against a model: random orders of sending, deciding, asking, dying and restarting.

Every producer has made up its mind about each message; it may say so, say that it does not know
yet, say it twice, or never. What must hold:

* a message whose producer rolls back is never seen;
* one whose producer commits is seen, as long as somebody of its group comes back to be asked;
* it is seen once, unless the broker died while the message was stored and its op record was not:
  then once more for each such death.

After every step an Apache broker that took over the store would find the same messages open.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest

from gantrymq.broker.half import done_with
from gantrymq.broker.transactions_ledger import OPEN
from gantrymq.errors import GantryError
from gantrymq.model.names import HALF_OP_TOPIC
from support.store_rig import Rig
from support.transaction_world import COMMIT, ROLLBACK, UNKNOWN, Sent, World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gantrymq.wire.peer import Answer
    from support.client_peers import FakePeer

STEPS = 150
ROUNDS_MAX = 60


class Model:
    """One broker after another, and what its producers want."""

    def __init__(self, seed: int, flush: str) -> None:
        self.random = Random(seed)
        self.is_sync = flush == "SYNC_FLUSH"
        rig = Rig({"mappedFileSizeCommitLog": "65536", "flushDiskType": flush})
        self.world = World(rig, {"transaction_checks_max": 1000})
        self.fate: dict[bytes, int] = {}
        self.known: list[Sent] = []
        self.producers: list[FakePeer] = []
        self.doubled: Counter[bytes] = Counter()
        """How often a message may be there again: the broker died before its op record was safe."""
        self.under_way: dict[bytes, asyncio.Future[Answer]] = {}
        self.next_peer = 10

    def step(self) -> None:
        """Do something."""
        actions = [self.send] * 5 + [self.decide] * 6 + [self.pass_time] * 2
        actions += [self.round, self.come, self.go, self.world.save, self.work]
        if self.random.random() < 0.08:
            actions = [self.die]
        self.random.choice(actions)()

    def send(self) -> None:
        """Send a half message, some with a time of their own."""
        body = b"m%d" % len(self.fate)
        self.fate[body] = self.random.choice((COMMIT, COMMIT, ROLLBACK))
        immune = self.random.choice((None, None, None, "200", "9000"))
        self.known.append(self.world.send(body, CHECK_IMMUNITY_TIME_IN_SECONDS=immune))

    def decide(self, sent: Sent | None = None) -> None:
        """Say what became of a message, or that it is not known, or say it again."""
        if sent is None:
            if not self.known:
                return
            sent = self.random.choice(self.known[-8:])
        says = self.fate[sent.body] if self.random.random() < 0.8 else UNKNOWN
        try:
            pending = self.world.begin_end(sent, says)
        except GantryError:
            return  # refused: the producer is asked again
        if isinstance(pending, asyncio.Future):
            self.under_way[sent.body] = pending
        if self.random.random() < 0.8:
            self.work()

    def work(self) -> None:
        """Let the disk do what it was asked to."""
        self.world.rig.settle()

    def round(self) -> None:
        """Let the broker ask; producers answer some of it at once, some later."""
        self.world.round()
        self.take_questions()

    def take_questions(self) -> None:
        for producer in self.producers:
            for question in self.world.asked(producer):
                self.known.append(question)
                if self.random.random() < 0.6:
                    self.decide(question)

    def pass_time(self) -> None:
        """Let seconds go by."""
        self.world.tick(self.random.choice((0.5, 7, 70, 3700)))
        self.take_questions()

    def come(self) -> None:
        """Another producer of the group appears."""
        self.next_peer += 1
        self.producers.append(self.world.producer(self.next_peer))

    def go(self) -> None:
        """A producer is gone, with what it was asked."""
        if self.producers:
            peer = self.producers.pop(self.random.randrange(len(self.producers)))
            peer.close("killed")
            self.world.tables.clients.peer_closed(peer)

    def die(self) -> None:
        """Kill the broker, or cut its power if it forces what it acknowledges; start another."""
        self.producers.clear()
        world = self.world
        self.doubled.update(body for body, answer in self.under_way.items() if not answer.done())
        self.under_way.clear()
        if self.is_sync and self.random.random() < 0.5:
            self.doubled.update(set(world.seen()))  # op records that were not forced are gone
            disk = world.rig.disk.crash()
            rig = world.rig.again(disk)
            self.world = World(rig, world.changes, world.saved, loop=world.loop)
        else:
            self.world = world.killed()

    def settle(self) -> None:
        """Let everybody be asked and answer, until nothing is open."""
        self.work()
        self.come()
        for _ in range(ROUNDS_MAX):
            self.world.tick(600)
            questions = self.world.asked(self.producers[-1])
            for question in questions:
                self.world.end(question, self.fate[question.body])
            if not questions and not self.open_offsets():
                return
        raise AssertionError(f"still open: {self.open_offsets()}")

    def open_offsets(self) -> list[int]:
        """Return the half messages that the ledger has open."""
        ledger, end = self.world.transactions.ledger, len(self.world.halves())
        return [offset for offset in range(ledger.base, end) if ledger.state(offset) == OPEN]

    def open_to_apache(self) -> list[int]:
        """Return what another broker finds open: it knows the saved offsets and the two queues."""
        half_offset, op_offset = (max(0, offset) for offset in self.world.progress())
        done = {
            offset
            for record in self.world.rig.records(HALF_OP_TOPIC)[op_offset:]
            for offset in done_with(record)
        }
        return [
            offset for offset in range(half_offset, len(self.world.halves())) if offset not in done
        ]


@pytest.fixture
def loops() -> Iterator[list[asyncio.AbstractEventLoop]]:
    """Let go of loops at the end."""
    made: list[asyncio.AbstractEventLoop] = []
    yield made
    for loop in made:
        loop.close()


def run(seed: int, flush: str, loops: list[asyncio.AbstractEventLoop]) -> Model:
    """Run a model to its end."""
    model = Model(seed, flush)
    loops.append(model.world.loop)
    for _ in range(STEPS):
        model.step()
        seen = model.world.seen()
        assert {body for body in seen if model.fate[body] == ROLLBACK} == set()
        if not model.is_sync:  # nothing is between two states
            assert model.open_to_apache() == model.open_offsets()
    model.settle()
    return model


@pytest.mark.parametrize("seed", range(25))
def test_seen_once_whoever_is_killed(seed: int, loops: list[asyncio.AbstractEventLoop]) -> None:
    """ASYNC_FLUSH: message and op record are stored in one go, so that a kill never doubles."""
    model = run(seed, "ASYNC_FLUSH", loops)
    wanted = sorted(body for body, fate in model.fate.items() if fate == COMMIT)
    assert len(wanted) > 10
    assert sorted(model.world.seen()) == wanted


@pytest.mark.parametrize("seed", range(25))
def test_nothing_is_lost_with_the_power(seed: int, loops: list[asyncio.AbstractEventLoop]) -> None:
    """SYNC_FLUSH: at least once after every crash, and twice only for what was under way."""
    model = run(seed, "SYNC_FLUSH", loops)
    seen = model.world.seen()
    wanted = {body for body, fate in model.fate.items() if fate == COMMIT}
    assert set(seen) == wanted
    counts = Counter(seen)
    assert {body for body in wanted if counts[body] > 1 + model.doubled[body]} == set()
