"""A store that deletes what is old, on a simulated disk whose power may fail at any step.

The model is, for each queue, what was put to its offsets and where in the log that went. What must
be true after every start, and whenever one looks:

- the log begins no earlier than it was seen to begin, and never behind a message that nobody was
  allowed to delete (`must_stay_from`);
- a queue begins with the first message that the log still has, or is empty;
- every message that was safe is served, if the log begins before it; and a queue never gives an
  offset a second time that a safe message had, whether that message is still there or not.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from gantrymq.kernel import kernel
from gantrymq.store.reader import StoreReader
from gantrymq.store.status import PutStatus
from gantrymq.store.verify import Kind, verify
from gantrymq.testing.clock import VirtualClock
from gantrymq.testing.disk import Halted, Names, SimulatedFiles
from support.store_rig import ROOT, Rig, open_settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HOUR_S = 3600.0
CAPACITY = 1 << 30
PLACES = (("T", 0), ("T", 1), ("Once", 0), ("Py", 3))
SETTINGS = {
    "deleteWhen": ";".join(f"{hour:02d}" for hour in range(24)),
    "fileReservedTime": "72",
    "deleteCommitLogFilesInterval": "100",
    "deleteFileBatchMax": "3",
    "mappedFileSizeConsumeQueue": "100",
    # Otherwise a crash may take keys from the index, as in Apache, and `verify` says so.
    "messageIndexSafe": "true",
}


class Known(NamedTuple):
    """A message that the log has taken, at the queue offset that is its place in the list."""

    body: bytes
    log_offset: int
    end: int


@dataclass
class CleaningWorld:
    """A machine with one disk and one broker that cleans up."""

    sync: bool = True
    names: Names = Names.JOURNALED
    seed: int = 0
    keep: float | None = None
    crashes: int = 0
    starts: int = 0
    must_stay_from: int = 0
    """Log offset from which on nothing may be deleted; checked while it is not 0."""
    model: dict[tuple[str, int], list[Known]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Start a broker on an empty disk."""
        self._clock = VirtualClock()
        self._settings = SETTINGS | {"flushDiskType": "SYNC_FLUSH" if self.sync else "ASYNC_FLUSH"}
        self.disk = SimulatedFiles(
            self.seed, clock=self._clock, names=self.names, capacity=CAPACITY
        )
        self._number = 0
        self._log_min = 0
        self._safe = self._durable = 0
        self._attempt: tuple[tuple[str, int], bytes] | None = None
        self._start()

    # -- start and end ---------------------------------------------------------------------------

    def _start(self) -> None:
        for _ in range(10):
            try:
                self.rig = Rig(self._settings, self.disk, self._clock)
                break
            except Halted:
                self.crashes += 1
                self.disk = self.disk.crash(self.keep)
        else:
            raise AssertionError("it does not open, although nothing is wrong with the disk")
        self.starts += 1
        self._forget_what_was_not_safe()
        self.look()

    def _forget_what_was_not_safe(self) -> None:
        end = self.rig.store.log.wrote_offset
        for place, known in self.model.items():
            kept = [one for one in known if one.end <= end]
            safe = [one for one in known if one.end <= self._safe]
            assert kept[: len(safe)] == safe, f"lost in {place}"
            self.model[place] = kept
        attempt, self._attempt = self._attempt, None
        if attempt is not None:
            self._take_attempt(*attempt)

    def _take_attempt(self, place: tuple[str, int], body: bytes) -> None:
        """Take in the message that was being put when the power failed, if it is there."""
        known = self.model.setdefault(place, [])
        queue = self.rig.store.queues.find(*place)
        if queue is not None and queue.max_offset == len(known) + 1:
            (raw,) = self.rig.store.get(*place, len(known), 1).records
            record, size = kernel.decode_record(raw, 0, len(raw), True)
            assert record.body == body
            known.append(Known(body, record.log_offset, record.log_offset + size))

    def crash(self) -> None:
        """Cut the power."""
        self._forced(self.rig.store.flush.flushed_offset)
        self._cut_power()

    def _forced(self, offset: int) -> None:
        """Note that the disk has the log up to an offset: this much survives anything."""
        self._durable = self._safe = max(self._durable, offset)

    def _cut_power(self) -> None:
        self.crashes += 1
        self.disk = self.disk.crash(self.keep)
        self._start()

    def kill(self) -> None:
        """End the process; the page cache lives on."""
        self._forced(self.rig.store.flush.flushed_offset)
        self._safe = max(self._safe, self.rig.store.log.committed_offset)
        self.disk = self.disk.kill()
        self._start()
        self._forced(self.rig.store.flush.flushed_offset)  # with ASYNC_FLUSH not all of it is

    def stop(self) -> None:
        """Close the store and start it again."""
        flushed = self.rig.store.flush.flushed_offset
        clean = self._guarded(self.rig.store.close)
        if clean is None:
            return
        for worker in self.rig.workers:
            while worker.report_one():
                pass
        flushed = self.rig.store.log.committed_offset if clean else flushed
        self._forced(flushed)
        self.disk = self.disk.kill()
        self._start()

    def _guarded(self, step: Callable[[], object]) -> object | None:
        """Do a step; if the machine stops in the middle of it, start it again and return None."""
        flushed = self.rig.store.flush.flushed_offset
        try:
            result = step()
        except Halted:
            self._forced(flushed)
            self._cut_power()
            return None
        return True if result is None else result

    # -- what happens ----------------------------------------------------------------------------

    def put(self, place: int, size: int) -> PutStatus | None:
        """Put a message with a key; None if the power failed meanwhile."""
        topic, queue_id = PLACES[place]
        self._number += 1
        body = (b"%d " % self._number).ljust(size, b"x")
        properties = {"KEYS": f"k{self._number}"}
        status: list[PutStatus] = []

        def step() -> None:
            offset = self.rig.store.offsets.next_offset(topic, queue_id)
            known = self.model.setdefault((topic, queue_id), [])
            assert offset == len(known), "an offset was given before"
            # A power cut in the middle of it may leave all of it, or nothing.
            self._attempt = (topic, queue_id), body
            stored = self.rig.put(body, topic=topic, queue_id=queue_id, properties=properties)
            self._attempt = None
            status.append(stored.status)
            if stored.status is PutStatus.PUT_OK:
                known.append(Known(body, stored.log_offset, stored.end))

        self._guarded(step)
        return status[0] if status else None

    def run(self, worker: int) -> None:
        """Let a worker do its oldest job."""
        self._guarded(self.rig.workers[worker].run_one)

    def report_back(self, worker: int) -> None:
        """Let the owner know of a job that is done."""
        self._guarded(self.rig.workers[worker].report_one)

    def settle(self) -> None:
        """Let everything come to its end."""
        self._guarded(self.rig.settle)

    def wait(self, seconds: float) -> None:
        """Let time pass, and the timers see it."""
        self._guarded(lambda: self.rig.tick(seconds))

    def force(self) -> None:
        """Bring the log to the disk."""
        self._guarded(lambda: self.rig.store.flush_log(0))
        self.settle()

    def age(self, hours: float) -> None:
        """Let time pass that nobody sees yet."""
        self._clock.jump(hours * HOUR_S)

    def clean(self, seconds: float = 90.0) -> None:
        """Let time pass in small steps, with every worker at work."""
        for _ in range(round(seconds / 0.5)):
            self.wait(0.5)
            self.settle()

    def fill(self, percent: int) -> None:
        """Let somebody else fill the disk up to a part of it."""
        self.disk.other_bytes = CAPACITY * percent // 100

    # -- looking ---------------------------------------------------------------------------------

    def look(self) -> None:
        """Compare all that the store serves with the model."""
        store = self.rig.store
        log_min = store.log.min_offset
        assert log_min >= self._log_min, "the log begins earlier than before"
        self._log_min = log_min
        if self.must_stay_from:
            assert log_min <= self.must_stay_from, "too much was deleted"
        for (topic, queue_id), known in self.model.items():
            limit = store.dispatched_offset
            seen = [one for one in known if one.end <= limit]
            queue = store.queues.find(topic, queue_id)
            if queue is None:
                assert not seen
                continue
            assert queue.max_offset == len(seen), f"{topic}/{queue_id}"
            self._look_at(topic, queue_id, seen, queue.min_offset)

    def _look_at(self, topic: str, queue_id: int, seen: list[Known], least: int) -> None:
        """See that a queue serves what the log has, from its first message on."""
        offset, bodies = least, []
        while offset < len(seen):
            found = self.rig.store.get(topic, queue_id, offset, 32)
            bodies += [
                kernel.decode_record(raw, 0, len(raw), True)[0].body for raw in found.records
            ]
            assert found.next_offset > offset
            offset = found.next_offset
        assert bodies == [one.body for one in seen if one.log_offset >= self._log_min]
        for one in seen[:least]:
            assert one.log_offset < self._log_min, "it is there and not served"

    def check_begins(self) -> None:
        """See that every queue begins with the first message that the log still has."""
        for place, known in self.model.items():
            queue = self.rig.store.queues.find(*place)
            if not known:
                continue
            assert queue is not None
            alive = [n for n, one in enumerate(known) if one.log_offset >= self._log_min]
            assert queue.min_offset == (alive[0] if alive else len(known)), place
            names = self.disk.names(queue.directory)
            assert len(names) <= (queue.max_offset - queue.min_offset) // 5 + 2, "files are left"

    def check_verified(self, folder: Path, *passed_over: Kind) -> None:
        """See that `gantrymq store verify` finds nothing wrong with the disk as it is.

        What a crash left behind the log's end is no fault.
        """
        root = folder / f"store{self.starts}"
        _copy_out(self.disk, ROOT, root)
        settings = open_settings(self._settings | {"storePathRootDir": str(root)})
        reader = StoreReader(settings)
        reader.recover()
        with reader:
            report = verify(reader)
        problems = [one for one in report.problems if one.kind not in {Kind.TAIL, *passed_over}]
        assert not problems, problems


def _copy_out(disk: SimulatedFiles, source: Path, target: Path) -> None:
    """Copy a directory of a simulated disk to the machine's."""
    target.mkdir(parents=True, exist_ok=True)
    for name in disk.names(source):
        if disk.is_directory(source / name):
            _copy_out(disk, source / name, target / name)
        else:
            with suppress(OSError):
                (target / name).write_bytes(disk.read(source / name))
