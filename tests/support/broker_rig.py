"""A whole broker on a simulated disk, its clock and its turns in the hands of a test.

It is asked as a connection asks it: bytes in, answers out. Its event loop is a list of calls that
run when a test says so (`turn`), so that nothing sleeps and nothing happens by itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from inspect import iscoroutine
from typing import TYPE_CHECKING, Any, cast

from gantrymq.broker.broker import Broker
from gantrymq.broker.settings import BrokerSettings
from gantrymq.broker.surroundings import Loop, Surroundings
from gantrymq.kernel import kernel
from gantrymq.model.topic import TopicConfig
from gantrymq.store.worker import Workers
from gantrymq.testing.clock import VirtualClock
from gantrymq.testing.disk import SimulatedFiles
from gantrymq.testing.workers import StepWorker
from gantrymq.wire.frame import FrameParser
from gantrymq.wire.peer import RawReply
from support.client_peers import FakePeer
from support.samples import binary_request, json_request, pull_fields, send_fields
from support.store_rig import STORE_HOST, open_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gantrymq.kernel.values import Record
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Pending

SIZES = {"mappedFileSizeCommitLog": "1048576", "mappedFileSizeConsumeQueue": "20000"}
TURNS_MAX = 10_000
BINARY = 1


class ManualLoop:
    """As much of an event loop as futures and tasks need; it never runs by itself."""

    def __init__(self) -> None:
        self._ready: deque[tuple[Callable[..., object], tuple[object, ...]]] = deque()

    def call_soon(
        self, callback: Callable[..., object], *arguments: object, context: object = None
    ) -> None:
        """Keep a call for the next turn."""
        self._ready.append((callback, arguments))

    def create_future(self) -> asyncio.Future[Any]:
        """Return a future of this loop."""
        return asyncio.Future(loop=self._as_loop())

    def create_task(self, work: Any) -> asyncio.Future[Any]:  # noqa: ANN401
        """Begin a coroutine in the next turn."""
        return asyncio.Task(work, loop=self._as_loop())

    def run_in_executor(
        self, _executor: object, work: Callable[..., Any], *arguments: object
    ) -> asyncio.Future[Any]:
        """Do at once what a thread would do."""
        future = self.create_future()
        try:
            future.set_result(work(*arguments))
        except Exception as error:  # noqa: BLE001  (for who waits)
            future.set_exception(error)
        return future

    def _as_loop(self) -> asyncio.AbstractEventLoop:
        return cast("asyncio.AbstractEventLoop", self)

    def get_debug(self) -> bool:
        """Say that this is no debugging loop; futures ask."""
        return False

    def call_exception_handler(self, context: Mapping[str, object]) -> None:
        """Fail: nobody looked at an error."""
        raise AssertionError(str(context))

    def turn(self) -> bool:
        """Run what is ready now, and not what that makes ready; tell whether there was anything."""
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self._as_loop())
        try:
            for _ in range(count := len(self._ready)):
                callback, arguments = self._ready.popleft()
                callback(*arguments)
        finally:
            asyncio._set_running_loop(before)
        return count > 0


class BrokerRig:
    """One life of a broker, and what the tests ask of it. The first makes topic T, two queues."""

    def __init__(
        self,
        store: Mapping[str, str] | None = None,
        *,
        disk: SimulatedFiles | None = None,
        clock: VirtualClock | None = None,
        is_first: bool = True,
        **settings: Any,  # noqa: ANN401
    ) -> None:
        self.store_changes = dict(store or {})
        self.changes = settings
        self.disk = disk or SimulatedFiles()
        self.clock = clock or VirtualClock()
        self.disk.clock = self.clock
        self.loop = ManualLoop()
        workers = {name: StepWorker() for name in (*Workers._fields, "config")}
        self.workers = workers
        self.routes_changed = 0
        self.broker = Broker(
            BrokerSettings(**{"name": "broker-a", **settings}),
            open_settings(SIZES | self.store_changes),
            STORE_HOST,
            Surroundings(
                self.disk,
                self.clock,
                Workers(*(workers[name] for name in Workers._fields)),
                workers["config"],
                Loop(self.loop.call_soon, self.loop.create_future),
                0,
                1,
            ),
            routes_changed=self._note_change,
        )
        self.report = self.broker.open()
        self.store = self.broker.store
        self.service = self.broker.service
        self.peer = FakePeer(1)
        if is_first:
            self.broker.tables.topics.put(TopicConfig("T", 2, 2))
        self.due: float | None = 0.0

    def _note_change(self) -> None:
        self.routes_changed += 1

    def again(self, disk: SimulatedFiles | None = None, **store: str) -> BrokerRig:
        """Return the broker as the next process finds it: after a kill, unless a disk is given."""
        found = self.disk.kill() if disk is None else disk
        changes = self.store_changes | store
        return BrokerRig(changes, disk=found, clock=self.clock, is_first=False, **self.changes)

    # -- time and work ---------------------------------------------------------------------------

    def turn(self) -> bool:
        """Let the loop do what is ready."""
        return self.loop.turn()

    def turns(self) -> None:
        """Let the loop come to rest, without workers and clock."""
        for _ in range(TURNS_MAX):
            if not self.turn():
                return
        raise AssertionError("the broker keeps itself busy")

    def work(self, *names: str) -> None:
        """Let workers come to their end, all of them unless some are named."""
        for name in names or self.workers:
            self.workers[name].drain()

    def tick(self, seconds: float = 0.0) -> None:
        """Let time pass, and what is due by it happen; workers stand still."""
        self.clock.jump(seconds)
        for _ in range(TURNS_MAX):
            self.due = self.broker.tick(self.clock.monotonic())
            moved = self.turn()
            if not moved and (self.due is None or self.due > self.clock.monotonic()):
                return
        raise AssertionError("the broker keeps itself busy")

    def settle(self, seconds: float = 0.0) -> None:
        """Let time pass and everything come to rest, workers included."""
        self.tick(seconds)
        for _ in range(20):
            self.work()
            self.tick()

    # -- asking ----------------------------------------------------------------------------------

    def take(self, data: bytes, peer: FakePeer | None = None) -> list[Pending]:
        """Hand over bytes as a connection does; return what was promised for them."""
        pendings: list[Pending] = []
        position = 0
        while position < len(data):
            end, answers, _ = self.service.take(data, position, len(data), peer or self.peer)
            pendings += answers
            if end == position:
                break
            position = end
        assert position == len(data), f"{len(data) - position} bytes were not taken"
        return [self.loop.create_task(one) if iscoroutine(one) else one for one in pendings]

    def ask(self, data: bytes, peer: FakePeer | None = None) -> Command:
        """Return the one answer to bytes that is there without waiting."""
        pendings = self.take(data, peer)
        self.turns()
        (answer,) = commands(pendings)
        return answer

    def begin(self, data: bytes, peer: FakePeer | None = None) -> Asked:
        """Ask, and return what will hold the answers."""
        return Asked(self.take(data, peer))

    def send(self, body: bytes = b"hello", *, code: int = 310, **fields: object) -> Command:
        """Send to topic T, queue 0, unless fields say otherwise; the answer must be there."""
        return self.ask(json_request(code, send_fields(**{"b": "T", "i": ""} | fields), body))

    def begin_send(self, body: bytes = b"hello", **fields: object) -> Asked:
        """Do the same, and do not wait for the answer."""
        return self.begin(json_request(310, send_fields(**{"b": "T", "i": ""} | fields), body))

    def store_some(self, *bodies: bytes, tags: str = "", **fields: object) -> None:
        """Send messages that must be stored, and let them be seen."""
        for body in bodies:
            given: dict[str, Any] = {"i": f"TAGS\x01{tags}" if tags else ""} | fields
            assert self.send(body, **given).code == 0
        self.turns()

    def bodies(self, topic: str = "T", queue_id: int = 0) -> list[bytes]:
        """Return the bodies of all messages of a queue."""
        return [record.body for record in self.records(topic, queue_id)]

    def records(self, topic: str = "T", queue_id: int = 0) -> list[Record]:
        """Return all messages of a queue."""
        self.turns()
        found: list[Record] = []
        while True:
            batch = self.store.get(topic, queue_id, len(found), 32)
            if not batch.records:
                return found
            found += [kernel.decode_record(raw, 0, len(raw), True)[0] for raw in batch.records]


class Asked:
    """Requests that may not have their answers yet."""

    def __init__(self, pendings: list[Pending]) -> None:
        self.pendings = pendings

    @property
    def is_answered(self) -> bool:
        """Tell whether every answer is there."""
        return all(not isinstance(one, asyncio.Future) or one.done() for one in self.pendings)

    @property
    def answers(self) -> list[Command]:
        """Return the answers, which must be there."""
        return commands(self.pendings)

    @property
    def answer(self) -> Command:
        """Return the only answer."""
        (found,) = self.answers
        return found


def commands(pendings: Iterable[Pending]) -> list[Command]:
    """Return the answers as their readers see them; oneway requests have none."""
    found: list[Command] = []
    for pending in pendings:
        answer = cast(
            "Answer", pending.result() if isinstance(pending, asyncio.Future) else pending
        )
        if isinstance(answer, RawReply):
            parser = FrameParser()
            found += parser.feed(b"".join(bytes(part) for part in answer.parts))
            assert parser.error is None
            assert not parser.kept_bytes
        elif answer is not None:
            found.append(answer)
    return found


def pull(offset: int = 0, *, codec: int = 0, opaque: int = 7, **fields: object) -> bytes:
    """Return a pull of group `group` from queue 0 of topic T that brings its subscription along.

    It is not held unless `sysFlag` says so: 4 is the subscription, 2 holds, 1 commits.
    """
    changes = {"topic": "T", "queueId": "0", "queueOffset": str(offset), "sysFlag": "4"} | fields
    make = binary_request if codec == BINARY else json_request
    return make(11, pull_fields(**changes), opaque=opaque)
