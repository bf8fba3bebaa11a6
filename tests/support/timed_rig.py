"""A whole broker on a simulated disk and a virtual clock, asked as a connection would ask it."""

from __future__ import annotations

import asyncio
import atexit
from dataclasses import dataclass, field
from inspect import isawaitable
from random import Random
from typing import TYPE_CHECKING, Any

from gantrymq.broker.broker import Broker
from gantrymq.broker.settings import BrokerSettings
from gantrymq.broker.surroundings import Loop, Surroundings
from gantrymq.kernel import kernel
from gantrymq.store.worker import Workers
from gantrymq.testing.clock import VirtualClock
from gantrymq.testing.disk import SimulatedFiles
from gantrymq.testing.workers import StepWorker
from gantrymq.wire.command import Command
from gantrymq.wire.frame import FrameParser, encode_frame
from gantrymq.wire.peer import RawReply
from gantrymq.wire.properties import encode_properties
from support.client_peers import FakePeer
from support.samples import send_fields
from support.store_rig import STORE_HOST, open_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gantrymq.kernel.values import Record
    from gantrymq.wire.peer import Answer

BROKER: dict[str, Any] = {
    "name": "broker-a",
    "recalls": True,
    "creates_topics": True,
    "property_filter": True,
}


_LOOP = asyncio.new_event_loop()
atexit.register(_LOOP.close)


class Asked:
    """A request that may not have its answer yet."""

    def __init__(self, pending: asyncio.Future[Answer] | Answer) -> None:
        self._pending = pending

    @property
    def is_answered(self) -> bool:
        """Tell whether there is an answer."""
        return not isinstance(self._pending, asyncio.Future) or self._pending.done()

    @property
    def answer(self) -> Command:
        """Return the answer, which must be there."""
        assert self.is_answered, "there is no answer yet"
        found = self._pending
        if isinstance(found, asyncio.Future):
            found = found.result()
        if isinstance(found, RawReply):
            (found,) = FrameParser().feed(b"".join(bytes(part) for part in found.parts))
        assert isinstance(found, Command)
        return found


@dataclass
class TimedRig:
    """One life of a broker."""

    store: dict[str, str] = field(default_factory=dict)
    broker_settings: dict[str, Any] = field(default_factory=dict)
    disk: SimulatedFiles = field(default_factory=SimulatedFiles)
    clock: VirtualClock = field(default_factory=VirtualClock)
    seed: int = 1

    def __post_init__(self) -> None:
        """Start it."""
        self.disk.clock = self.clock
        self.loop = _LOOP
        self.is_alive = True
        self.workers = [StepWorker() for _ in (*Workers._fields, "config")]
        *store_workers, config = self.workers
        sizes = {"mappedFileSizeCommitLog": "65536", "mappedFileSizeConsumeQueue": "2000"}
        self.broker = Broker(
            BrokerSettings(**BROKER | self.broker_settings),
            open_settings(sizes | self.store),
            STORE_HOST,
            Surroundings(
                self.disk, self.clock, Workers(*store_workers), config,
                Loop(self._soon, self.loop.create_future), 0, 1,
            ),
        )  # fmt: skip
        dice = Random(self.seed)
        parts = self.broker.timed.pops.parts
        object.__setattr__(parts, "pick", dice.randrange)  # frozen, and a test must repeat itself
        self.broker.open()
        self.peer = FakePeer(1)
        self._opaque = 0
        self.settle()

    def _soon(self, call: Callable[[], None]) -> object:
        """Call what a process that is no more has asked for not any more."""
        return self.loop.call_soon(lambda: call() if self.is_alive else None)

    def again(self, disk: SimulatedFiles | None = None) -> TimedRig:
        """Return the broker as the next process finds it: after a kill, unless a disk is given."""
        found = self.disk.kill() if disk is None else disk
        self.is_alive = False
        return TimedRig(self.store, self.broker_settings, found, self.clock, self.seed + 1)

    def stop(self) -> TimedRig:
        """Stop in good order, and start again."""
        assert self.broker.close()
        return self.again()

    # -- time ------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Let everything come to its end that does not wait for the clock."""
        quiet = 0
        for _ in range(2000):
            due = self.broker.tick(self.clock.monotonic())
            busy = due is not None and due <= self.clock.monotonic()
            for worker in self.workers:
                if not worker.is_closed:
                    busy |= bool(worker.waiting_jobs or worker.waiting_reports)
                    worker.drain()
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()
            quiet = 0 if busy else quiet + 1
            if quiet == 3:
                return
        raise AssertionError("the broker does not come to rest")

    def wait(self, seconds: float, step: float = 0.5) -> None:
        """Let time pass, in steps."""
        left = seconds
        while left > 0:
            self.clock.jump(min(step, left))
            left -= step
            self.settle()

    # -- requests --------------------------------------------------------------------------------

    def begin(self, request: Command, peer: FakePeer | None = None) -> Asked:
        """Ask, and do not wait."""
        frame = encode_frame(request)
        taken = self.broker.service.take(frame, 0, len(frame), peer or self.peer)
        assert taken.end == len(frame)
        (pending,) = taken.answers
        if isawaitable(pending) and not isinstance(pending, asyncio.Future):
            pending = self.loop.create_task(pending)
        return Asked(pending)

    def ask(self, code: int, body: bytes = b"", /, **fields: object) -> Command:
        """Ask and return the answer."""
        asked = self.hold(code, body, **fields)
        self.settle()
        return asked.answer

    def hold(self, code: int, body: bytes = b"", /, **fields: object) -> Asked:
        """Ask, and let the loop go round once."""
        self._opaque += 1
        texts = {name: str(value) for name, value in fields.items() if value is not None}
        asked = self.begin(Command.request(code, self._opaque, texts, body))
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()
        return asked

    def send(self, body: bytes, topic: str = "T", queue_id: int = 0, **properties: str) -> Command:
        """Send a message."""
        text = encode_properties(properties).decode() if properties else ""
        return self.ask(310, body, **send_fields(b=topic, e=str(queue_id), i=text, d="2"))

    def pop(self, **more: object) -> Command:
        """Pop messages of T for group g."""
        return self.ask(200050, **pop_fields(self.clock, more))

    def hold_pop(self, **more: object) -> Asked:
        """Begin a pop."""
        return self.hold(200050, **pop_fields(self.clock, more))

    def ack(self, offset: int, handle: str, **more: object) -> Command:
        """Acknowledge a message."""
        fields = {"consumerGroup": "g", "topic": "T", "queueId": 0} | more
        return self.ask(200051, offset=offset, extraInfo=handle, **fields)

    # -- what there is ---------------------------------------------------------------------------

    def records(self, topic: str, queue_id: int = 0) -> list[Record]:
        """Return all messages of a queue."""
        found: list[Record] = []
        while True:
            batch = self.broker.store.get(topic, queue_id, len(found), 32)
            if not batch.records:
                return found
            found += decoded(b"".join(bytes(raw) for raw in batch.records))

    def bodies(self, topic: str, queue_id: int = 0) -> list[bytes]:
        """Return the bodies of all messages of a queue."""
        return [record.body for record in self.records(topic, queue_id)]


def pop_fields(clock: VirtualClock, more: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a pop."""
    return {
        "consumerGroup": "g",
        "topic": "T",
        "queueId": -1,
        "maxMsgNums": 32,
        "invisibleTime": 10_000,
        "pollTime": 0,
        "bornTime": clock.now_ms(),
        "initMode": 0,
    } | dict(more)


def decoded(body: bytes) -> list[Record]:
    """Return the messages of an answer's body."""
    found, position = [], 0
    while position < len(body):
        record, position = kernel.decode_record(body, position, len(body), True)
        found.append(record)
    return found


def handle_of(answer: Command, queue_id: int = 0, start: int | None = None, mark: str = "0") -> str:
    """Return the extraInfo that a client makes of an answer."""
    fields = answer.fields
    if start is None:
        starts = dict(one.rsplit(" ", 1) for one in fields["startOffsetInfo"].split(";"))
        start = int(starts[f"{mark} {queue_id}"])
    return (
        f"{start} {fields['popTime']} {fields['invisibleTime']} {fields['reviveQid']} {mark} "
        f"broker-a {queue_id}"
    )
