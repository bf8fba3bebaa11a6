"""A store on a simulated disk, everything that may happen to it, and what must be true afterwards.

The model is a list of messages for each queue, in the order they were stored. Every message knows
where it ended in the log, and that is all it takes to say what must survive:

- a message that is committed survives the end of the process;
- a message that the owner knows to be forced survives a power cut, and so does one that was
  recovered, for recovery forces everything;
- with SYNC_FLUSH whatever was acknowledged, or shown to a reader, is one of those.

What is found after a start must be a part of what was sent, in order, each message once, whole, at
the queue offset that it was given; nothing that must survive may be missing; and behind the log's
end there are only zeros. Used by the stateful property test and by the seeded simulation.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gantrymq.kernel import kernel
from gantrymq.store.allocation import FileNotMade
from gantrymq.store.errors import StoreBusy, StoreNotWritable
from gantrymq.store.get import Found, units_of
from gantrymq.store.message_store import Identity, MessageStore
from gantrymq.store.put import NewMessage
from gantrymq.store.settings import (
    DiskSettings,
    FileSettings,
    FlushDiskType,
    FlushSettings,
    IndexSettings,
    PathSettings,
    PoolSettings,
    RetentionSettings,
    StoreSettings,
)
from gantrymq.store.status import PutStatus
from gantrymq.store.timers import StoreTimers
from gantrymq.store.worker import Workers
from gantrymq.testing.clock import VirtualClock
from gantrymq.testing.disk import Halted, Names, SimulatedFiles
from gantrymq.testing.workers import StepWorker
from gantrymq.wire.properties import decode_properties, encode_properties
from support.samples import json_request, send_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

ROOT = Path("/store")
STORE_HOST = bytes([127, 0, 0, 1]) + struct.pack(">i", 10911)
BORN_HOST = bytes([10, 0, 0, 1]) + struct.pack(">i", 12345)
CLUSTER = b"CLUSTER\x01DefaultCluster"
TOPICS = ("A", "Bee")
QUEUES = 2
LANE_TOPIC = TOPICS[0]
"""Its sends go through the kernel's lane; those of the other topic are put by Python."""

COLD_READ = Workers._fields.index("cold_read")

Queue = tuple[str, int]


class Shape(NamedTuple):
    """What kind of store it is."""

    sync: bool = True
    pool: bool = False
    names: Names = Names.JOURNALED
    log_bytes: int = 4096
    queue_bytes: int = 200

    def settings(self) -> StoreSettings:
        """Return a store with tiny files."""
        kind = FlushDiskType.SYNC_FLUSH if self.sync else FlushDiskType.ASYNC_FLUSH
        return StoreSettings(
            paths=PathSettings(root=ROOT),
            files=FileSettings(
                commit_log_bytes=self.log_bytes, consume_queue_bytes=self.queue_bytes
            ),
            flush=FlushSettings(disk_type=kind),
            pool=PoolSettings(enabled=self.pool, buffers=2),
            index=IndexSettings(slots=20, entries=40),
            # Nothing is deleted, however full or late it gets: `cleaning_world.py` is for that.
            retention=RetentionSettings(reserved_hours=1_000_000, delete_hours=()),
            disk=DiskSettings(clean_percent=100, force_percent=100, full_percent=100),
        )

    @classmethod
    def drawn(cls, random: Random) -> Shape:
        """Return one that a seed decides."""
        return cls(
            sync=random.random() < 0.6,
            pool=random.random() < 0.25,
            names=random.choice(list(Names)),
            log_bytes=random.choice((4096, 6000, 8192, 16384)),
            queue_bytes=random.choice((200, 400, 1000)),
        )


@dataclass(eq=False)
class Sent:
    """A message that the log has taken."""

    body: bytes
    properties: bytes
    end: int = 1 << 62
    """Log offset behind it, or behind those it came with; unknown while it is being appended."""
    is_acknowledged: bool = False
    was_seen: bool = False
    is_recovered: bool = False


@dataclass
class Counts:
    """What a run did, to see that it was worth it."""

    sent: int = 0
    acknowledged: int = 0
    crashes: int = 0
    kills: int = 0
    stops: int = 0
    failed_opens: int = 0
    checked: int = 0
    got_later: int = 0


@dataclass
class World:
    """A machine with one disk and one broker."""

    shape: Shape
    seed: int = 0
    keep: float | None = None
    """How likely an unforced sector survives a power cut; None: drawn each time."""
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        """Start a broker on an empty disk."""
        self.clock = VirtualClock()
        self.disk = SimulatedFiles(self.seed, clock=self.clock, names=self.shape.names)
        self.model: dict[Queue, list[Sent]] = {}
        self._number = 0
        self._after_power_cut = False
        self.start()

    # -- start and end --------------------------------------------------------------------------

    def start(self) -> None:
        """Open the store, however often that takes, and look at everything in it."""
        self._forced_before = self.store.flush.flushed_offset if self.counts.checked else 0
        for attempt in range(10):
            try:
                self._open()
                break
            except Halted:
                self._cut_power()
            except OSError:
                # A fault that was ordered; the process is started again on the same machine.
                self.counts.failed_opens += 1
                self.disk = self.disk.kill()
                if attempt > 2:
                    self.disk.other_bytes = 0
        else:
            raise AssertionError("it does not open, although nothing is wrong with the disk")
        self.check_after_start()

    def _open(self) -> None:
        self.workers = [StepWorker() for _name in Workers._fields]
        settings = self.shape.settings()
        self.store = MessageStore(
            settings,
            Identity(STORE_HOST),
            files=self.disk,
            clock=self.clock,
            workers=Workers(*self.workers),
        )
        self.report = self.store.open(pid=1)
        self.store.reads.cold.tail_bytes = 0  # whatever `evict` takes out of memory is cold
        self.store.open_topic(LANE_TOPIC, QUEUES)
        self.timers = StoreTimers(self.store, settings, self.clock.monotonic())

    def kill(self) -> None:
        """End the process; the page cache lives on."""
        self.counts.kills += 1
        committed = self.store.log.committed_offset
        self._must_survive(lambda message: message.end <= committed)
        self.disk = self.disk.kill()
        self.start()

    def crash(self) -> None:
        """Cut the power."""
        flushed = self.store.flush.flushed_offset
        self._must_survive(lambda message: message.end <= flushed)
        self._cut_power()
        self.start()

    def _cut_power(self) -> None:
        self.counts.crashes += 1
        self.disk = self.disk.crash(self.keep)

    def stop(self, *, then_cut_power: bool) -> None:
        """Close the store and start it again; a clean stop has saved everything."""
        self.counts.stops += 1
        clean = self._guarded(self.store.close)
        if clean is None:
            return
        for worker in self.workers:
            while worker.report_one():
                pass
        if clean:
            self._must_survive(lambda _message: True)
        elif then_cut_power:
            flushed = self.store.flush.flushed_offset
            self._must_survive(lambda message: message.end <= flushed)
        else:
            committed = self.store.log.committed_offset
            self._must_survive(lambda message: message.end <= committed)
        if then_cut_power:
            self._cut_power()
        else:
            self.disk = self.disk.kill()
        self.start()
        if clean:
            assert self.report.clean or self.counts.failed_opens or self.disk.counts

    def _guarded(self, step: Callable[[], object]) -> object | None:
        """Do a step; if the machine stops in the middle of it, start it again and return None."""
        flushed = self.store.flush.flushed_offset
        self._attempted: list[tuple[Queue, list[Sent]]] = []
        try:
            result = step()
        except Halted:
            for queue, messages in self._attempted:
                # The log may have taken them before the machine stopped.
                self.model.setdefault(queue, []).extend(messages)
            flushed = max(flushed, self.store.flush.flushed_offset)
            self._must_survive(lambda message: message.end <= flushed)
            self._cut_power()
            self.start()
            return None
        return True if result is None else result

    def _must_survive(self, is_safe: Callable[[Sent], bool]) -> None:
        """Note which messages must be there after the next start."""
        for messages in self.model.values():
            for message in messages:
                if is_safe(message):
                    message.is_recovered = True
                if self.shape.sync and (message.is_acknowledged or message.was_seen):
                    assert message.is_recovered, f"{message} was acknowledged or seen too early"

    # -- what a broker does ---------------------------------------------------------------------

    def send(self, sizes: Sequence[tuple[int, int]]) -> None:
        """Send messages, (queue id, body bytes) each, in one receive buffer through the lane."""
        made = [(queue_id, *self._new(size)) for queue_id, size in sizes]
        frames = [
            json_request(
                310,
                send_fields(b=LANE_TOPIC, e=str(queue_id), i=properties.decode()),
                body,
            )
            for queue_id, body, properties in made
        ]
        buffer = b"".join(frames)

        def step() -> None:
            position = 0
            waiting = [
                ((LANE_TOPIC, queue_id), [Sent(body, properties + b"\x02" + CLUSTER)])
                for queue_id, body, properties in made
            ]
            while position < len(buffer):
                self._attempted = waiting
                run = self.store.append_sends(buffer, position, len(buffer), BORN_HOST)
                self._attempted = []
                if not run.requests:
                    break
                position = run.consumed
                taken, waiting = waiting[: run.requests], waiting[run.requests :]
                self._stored(taken, self.store.log.wrote_offset)

        self._guarded(lambda: self._trying(step))

    def put(self, topic: str, queue_id: int, sizes: Sequence[int], *, waits: bool = True) -> None:
        """Put messages for one queue, as policy does."""
        made = [self._new(size) for size in sizes]
        messages = [
            NewMessage(
                topic,
                queue_id,
                body,
                decode_properties(properties),
                self.clock.now_ms(),
                BORN_HOST,
            )
            for body, properties in made
        ]

        def step() -> None:
            expected = self.store.offsets.next_offset(topic, queue_id)
            assert expected == len(self.model.get((topic, queue_id), []))
            sent = [
                Sent(body, encode_properties(decode_properties(properties)))
                for body, properties in made
            ]
            self._attempted = [((topic, queue_id), sent)]
            stored = self.store.put(messages)
            if stored.status is PutStatus.PUT_OK:
                assert stored.queue_offset == expected
                self._stored(self._attempted, stored.end, waits=waits)
            self._attempted = []

        self._guarded(lambda: self._trying(step))

    def put_uncounted(self, sys_flag: int) -> None:
        """Put a half message, or one that rolls back: it is in no queue."""
        body, _properties = self._new(20)
        message = NewMessage(
            TOPICS[1], 0, body, {}, self.clock.now_ms(), BORN_HOST, sys_flag=sys_flag
        )
        self._guarded(lambda: self._trying(lambda: self.store.put([message])))

    def _trying(self, step: Callable[[], object]) -> None:
        with suppress(StoreNotWritable, StoreBusy, FileNotMade):
            step()

    def _new(self, size: int) -> tuple[bytes, bytes]:
        self._number += 1
        body = f"{self._number}:".encode().ljust(size, b"x")
        return body, f"KEYS\x01k{self._number}\x02TAGS\x01t{self._number}".encode()

    def _stored(
        self, taken: Sequence[tuple[Queue, list[Sent]]], end: int, *, waits: bool = True
    ) -> None:
        messages = [message for _queue, some in taken for message in some]
        for queue, some in taken:
            self.model.setdefault(queue, []).extend(some)
        self._attempted = []
        self.counts.sent += len(messages)
        for message in messages:
            message.end = end

        def let_out(status: PutStatus) -> None:
            if status is PutStatus.PUT_OK and waits:
                self.counts.acknowledged += len(messages)
                for message in messages:
                    message.is_acknowledged = True

        self.store.hold(end, let_out, waits=waits)

    def run(self, worker: int) -> None:
        """Let a worker do its oldest job."""
        self._guarded(self.workers[worker].run_one)

    def report_back(self, worker: int) -> None:
        """Let the owner know of a job that is done."""
        self._guarded(self.workers[worker].report_one)

    def drain(self) -> None:
        """Let everything come to its end."""
        self._guarded(self._drain)

    def _drain(self) -> None:
        while any(worker.run_one() or worker.report_one() for worker in self.workers):
            pass

    def wait(self, seconds: float) -> None:
        """Let time pass, and the timers see it."""
        self.clock.jump(seconds)
        self._guarded(lambda: self.timers.tick(self.clock.monotonic()))

    # -- looking --------------------------------------------------------------------------------

    def evict(self, file: int) -> None:
        """Take a file of the log out of memory."""
        files = self.store.log.files
        if files:
            self.disk.evict(files[file % len(files)].region.path)

    def get_later(self, topic: str, queue_id: int, offset: int) -> None:
        """Begin a get, and look at what it brings whenever it comes."""
        store, sent = self.store, self.model.get((topic, queue_id), [])

        def done(found: Found) -> None:
            flushed = store.flush.flushed_offset
            for at, raw in enumerate(found.records, start=offset):
                record, _end = kernel.decode_record(raw, 0, len(raw), True)
                assert (record.queue_offset, record.body) == (at, sent[at].body)
                sent[at].was_seen = True
                assert not self.shape.sync or sent[at].end <= flushed, "it was not on the disk"
                self.counts.got_later += 1
            assert not found.records or found.next_offset == offset + len(found.records)

        self._guarded(lambda: store.begin_get(topic, queue_id, offset, 4, None, done))

    def _get(self, topic: str, queue_id: int, offset: int) -> Found:
        """Get messages as a broker does, and wait for them."""
        out: list[Found] = []
        self.store.begin_get(topic, queue_id, offset, 32, None, out.append)
        cold = self.workers[COLD_READ]
        while not out:
            assert cold.run_one() or cold.report_one()
        assert not out[0].trouble, out[0].trouble
        return out[0]

    def look(self) -> None:
        """Read all queues of the running store."""
        flushed = self.store.flush.flushed_offset
        for (topic, queue_id), messages in self.model.items():
            found = self._read_all(topic, queue_id)
            assert [body for body, _ in found] == [sent.body for sent in messages[: len(found)]]
            for (body, properties), message in zip(found, messages, strict=False):
                assert (body, properties) == (message.body, message.properties)
                message.was_seen = True
                if self.shape.sync:
                    assert message.end <= flushed, "it could be read before it was on the disk"

    def check_after_start(self) -> None:
        """Compare what a start has found with what was sent."""
        self.counts.checked += 1
        known = {(queue.topic, queue.queue_id) for queue in self.store.queues}
        for topic, queue_id in known | set(self.model):
            sent = self.model.get((topic, queue_id), [])
            found = self._read_all(topic, queue_id)
            by_body = {message.body: message for message in sent}
            assert len(set(found)) == len(found), "a message is there twice"
            kept = []
            for body, properties in found:
                assert body in by_body, f"{body[:20]!r} in {topic}/{queue_id} was never sent"
                assert properties == by_body[body].properties, f"{body[:20]!r} is damaged"
                kept.append(by_body[body])
            assert kept == [message for message in sent if message in kept], "out of order"
            missing = [one for one in sent if one.is_recovered and one not in kept]
            assert not missing, f"lost in {topic}/{queue_id}: {missing}"
            for message in kept:
                message.was_seen = True
                self._note_recovered(message)
            self.model[topic, queue_id] = kept
            assert self.store.offsets.next_offset(topic, queue_id) == len(kept)
        self._check_log()

    def _note_recovered(self, message: Sent) -> None:
        """Note what is on the disk now; with ASYNC_FLUSH a start forces nothing by itself."""
        log, flushed = self.store.log, self.store.flush.flushed_offset
        if flushed == log.wrote_offset or message.end <= self._forced_before:
            message.is_recovered, message.end = True, 0
        else:
            message.is_recovered, message.end = False, log.wrote_offset

    def _check_log(self) -> None:
        log, flushed = self.store.log, self.store.flush.flushed_offset
        assert log.wrote_offset == log.committed_offset
        if self.shape.sync or self.report.clean:
            assert flushed == log.wrote_offset
        assert flushed <= log.wrote_offset
        for file in log.files:
            assert not any(file.region.buffer[file.wrote :]), "bytes behind the end of the log"

    def _read_all(self, topic: str, queue_id: int) -> list[tuple[bytes, bytes]]:
        """Return (body, properties) of all messages of a queue, whose offsets must be dense."""
        found: list[tuple[bytes, bytes]] = []
        tags: list[int] = []
        while True:
            batch = self._get(topic, queue_id, len(found))
            if not batch.records:
                assert batch.max_offset == len(found), batch
                assert batch.min_offset == 0
                self._check_tags(topic, queue_id, tags)
                return found
            for raw in batch.records:
                record, end = kernel.decode_record(raw, 0, len(raw), True)
                assert end == len(raw)
                assert record.queue_offset == len(found)
                assert (record.topic, record.queue_id) == (topic.encode(), queue_id)
                assert record.born_host == BORN_HOST
                found.append((record.body, record.properties))
                tag = decode_properties(record.properties).get("TAGS", "")
                tags.append(kernel.string_hash(tag.encode()))
            assert batch.next_offset == len(found)

    def _check_tags(self, topic: str, queue_id: int, tags: list[int]) -> None:
        queue = self.store.queues.find(topic, queue_id)
        units = units_of(queue.read(0, len(tags))) if queue is not None else ()
        assert [unit.tags_code for unit in units] == tags, "an entry of a consume queue is damaged"
