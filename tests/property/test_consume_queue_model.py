"""A consume queue behaves like a list, whatever happens to it.

The model is a list: at each queue offset the unit of its message, a pre-blank one where there was
none. What was not written out is gone after a crash, so recovery must find exactly the beginning
that was: not a unit less, and none that was cut off before. Dispatching the log again, all of it or
from any offset that is early enough, must then bring the queue back to the whole list.
"""

from __future__ import annotations

import struct
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gantrymq.kernel import PRE_BLANK_SIZE, FileWrite, QueueRun
from gantrymq.store.consume_queue import ConsumeQueue
from gantrymq.store.queue_files import sync_out, write_out
from gantrymq.testing.disk import Names, SimulatedFiles
from support.queues import drop_files_before

UNIT = struct.Struct(">qiq")
DIRECTORY = Path("/store/consumequeue/T/0")
FILE_UNITS = 5
BLANK = (0, PRE_BLANK_SIZE, 0)
Unit = tuple[int, int, int]


class ConsumeQueueMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.disk = SimulatedFiles()
        self.model: list[Unit] = []
        self.least = 0
        self.log_min = self.log_end = 0
        self.written = 0
        self.writes: list[FileWrite] | None = None
        self.writes_end = 0
        self.queue = self.open()

    def open(self) -> ConsumeQueue:
        return ConsumeQueue("T", 0, DIRECTORY, FILE_UNITS * 20, self.disk)

    def messages(self) -> list[int]:
        """Return the queue offsets of the messages that the log has."""
        units = enumerate(self.model)
        return [offset for offset, unit in units if unit != BLANK and unit[0] >= self.log_min]

    # -- dispatch ----------------------------------------------------------------------------------

    @initialize(first=st.sampled_from([0, 0, 0, 1, 4, 5, 13]), log_end=st.sampled_from([0, 0, 700]))
    def begin(self, first: int, log_end: int) -> None:
        """The first message in the log need not be the first that was ever sent to the queue."""
        self.log_min = self.log_end = log_end
        self.model = [BLANK] * first
        self.least = first
        self.append(1, 0, 0)

    def send(self, count: int, skipped: int) -> None:
        """Store messages in the log, some bytes of other queues before each."""
        for number in range(count):
            self.log_end += skipped
            self.model.append((self.log_end, 91 + number, number - 2))
            self.log_end += 91 + number

    def dispatch(self, first: int) -> int:
        """Dispatch the messages from an offset on, in runs as the kernel makes them."""
        missing = 0
        run: list[int] = []
        for offset in [*filter(lambda offset: offset >= first, self.messages()), 2**40]:
            if run and offset != run[-1] + 1:
                units = [self.model[at] for at in run]
                raw = b"".join(UNIT.pack(*unit) for unit in units)
                missing += self.queue.append(QueueRun(b"T", 0, run[0], raw, sum(units[-1][:2]), 1))
                run = []
            run.append(offset)
        return missing

    @rule(count=st.integers(1, 12), skipped=st.sampled_from([0, 0, 50]), again=st.integers(0, 4))
    def append(self, count: int, skipped: int, again: int) -> None:
        """Append units; some before them come once more."""
        first = len(self.model)
        self.send(count, skipped)
        assert self.dispatch(max(first - again, 0)) == 0

    @rule(missing=st.integers(1, 7))
    def append_behind_a_gap(self, missing: int) -> None:
        """Messages are missing; the next one still stands at its own offset."""
        if not self.messages():
            return  # that may be a queue's beginning
        self.model += [BLANK] * missing
        self.send(1, 10)
        assert self.dispatch(len(self.model) - 1) == missing

    @rule(first=st.integers(0, 60))
    def dispatch_again(self, first: int) -> None:
        assert self.dispatch(first) == 0

    # -- writing out -------------------------------------------------------------------------------

    @precondition(lambda self: self.writes is None)
    @rule()
    def begin_writing(self) -> None:
        self.writes_end = self.queue.max_offset
        self.writes = self.queue.pending_writes()
        assert self.queue.pending_writes() == []

    @precondition(lambda self: self.writes is not None)
    @rule(works=st.sampled_from([True, True, False]))
    def finish_writing(self, works: bool) -> None:
        if self.writes and works:
            write_out(self.disk, self.writes)
            self.written = max(self.written, self.writes_end)
        self.queue.wrote_out(self.writes_end if works else self.queue.written_offset)
        self.writes = None

    @precondition(lambda self: self.writes is None)
    @rule()
    def force(self) -> None:
        sync_out(self.disk, self.queue.pending_syncs())
        self.queue.synced(self.queue.written_offset)
        assert self.queue.pending_syncs() == []

    # -- recovery ----------------------------------------------------------------------------------

    @rule(performed=st.booleans(), late=st.booleans())
    def die(self, performed: bool, late: bool) -> None:
        """The process dies, perhaps before the thread has done its writes; then it starts again.

        Units of messages that the log has lost meanwhile cannot be built again.
        """
        if self.writes and performed:
            write_out(self.disk, self.writes)
            self.written = max(self.written, self.writes_end)
        self.writes = None
        self.queue = self.open()
        self.queue.load()
        self.queue.recover()
        assert self.queue.max_offset == self.written
        first = self.queue.min_offset
        units = list(UNIT.iter_unpack(self.queue.read(first, 1000)))
        assert units == self.model[first : self.written]
        alive = set(self.messages())
        self.model[self.written :] = [
            unit if self.written + at in alive else BLANK
            for at, unit in enumerate(self.model[self.written :])
        ]
        self.forget_trailing_blanks()
        if late and self.queue.log_end:
            self.dispatch(self.written)
        else:
            self.dispatch(0)
        self.queue.correct_min_offset(self.log_min)
        self.note_min()

    def forget_trailing_blanks(self) -> None:
        """What was made up before a message is not made up without it."""
        while len(self.model) > self.written and self.model[-1] == BLANK:
            del self.model[-1]

    @precondition(lambda self: self.writes is None)
    @rule(back=st.integers(0, 14), cut=st.booleans())
    def truncate(self, back: int, cut: bool) -> None:
        """The log is cut and other messages come; or the same ones are dispatched again."""
        messages = self.messages()
        if not messages:
            return
        first = messages[max(len(messages) - 1 - back, 0)]
        log_offset = self.model[first][0]
        self.queue.truncate_to(log_offset)
        assert self.queue.max_offset == first
        self.written = min(self.written, first)
        if cut:
            del self.model[first:]
            self.log_end = log_offset
        else:
            self.forget_trailing_blanks()
            self.dispatch(0)
        self.note_min()

    def note_min(self) -> None:
        """Check the min offset: at the log's first message, or lower if that is not in one file."""
        messages = self.messages()
        assert self.queue.min_offset <= (messages[0] if messages else len(self.model))
        self.least = self.queue.min_offset

    # -- retention ---------------------------------------------------------------------------------

    @rule(ahead=st.integers(1, 12))
    def expire(self, ahead: int) -> None:
        """The log's beginning is gone; whole files of the queue go with it, but never the last."""
        messages = self.messages()
        if len(messages) <= ahead:
            return
        self.log_min = self.model[messages[ahead]][0]
        for path in drop_files_before(self.queue, self.log_min):
            self.disk.remove(path)
        self.queue.correct_min_offset(self.log_min)
        least = messages[ahead]
        if self.written > least // FILE_UNITS * FILE_UNITS:
            assert self.queue.min_offset == least
        self.note_min()

    # -- what always holds -------------------------------------------------------------------------

    @invariant()
    def agrees(self) -> None:
        queue = self.queue
        if not self.model:
            return
        assert (queue.min_offset, queue.max_offset) == (self.least, len(self.model))
        assert list(UNIT.iter_unpack(queue.read(self.least, 1000))) == self.model[self.least :]
        assert queue.read(len(self.model), 9) == b""
        assert self.least == 0 or queue.read(self.least - 1, 9) == b""
        last = queue.last_unit()
        assert last == (self.model[-1] if len(self.model) > self.least else None)
        log_ends = [sum(unit[:2]) for unit in self.model if unit != BLANK]
        if self.messages():
            assert queue.log_end == log_ends[-1]
        else:  # all that is left may have been in files that are gone
            assert queue.log_end in {0, *log_ends[-1:]}


ConsumeQueueMachine.TestCase.settings = settings(
    max_examples=4 * settings().max_examples, stateful_step_count=30
)
TestConsumeQueueModel = ConsumeQueueMachine.TestCase


@given(
    st.integers(0, 2**32),
    st.sampled_from(Names),
    st.lists(st.sampled_from(["append", "append", "append", "write", "force"]), max_size=25),
    st.booleans(),
)
def test_a_power_cut_takes_nothing_that_was_forced(
    seed: int, names: Names, steps: list[str], tidy: bool
) -> None:
    """What was forced is there, and dispatching the log from there brings back the rest."""
    disk = SimulatedFiles(seed, names=names)
    disk.make_directory(DIRECTORY)
    for directory in DIRECTORY.parents:
        disk.sync_directory(directory)
    queue = ConsumeQueue("T", 0, DIRECTORY, FILE_UNITS * 20, disk)
    forced = 0
    for step in steps:
        end = queue.max_offset
        if step == "append":
            queue.append(QueueRun(b"T", 0, end, UNIT.pack(100 * end, 100, 7), 100 * end + 100, 1))
            continue
        write_out(disk, queue.pending_writes())
        queue.wrote_out(end)
        if step == "force":
            sync_out(disk, queue.pending_syncs())
            queue.synced(end)
            forced = end
    count = queue.max_offset
    disk = disk.crash(0.0 if tidy else None)
    again = ConsumeQueue("T", 0, DIRECTORY, FILE_UNITS * 20, disk)
    again.load(after_crash=True)
    again.recover()
    assert again.max_offset >= forced
    again.truncate_to(100 * forced)
    for offset in range(forced, count):
        unit = UNIT.pack(100 * offset, 100, 7)
        assert again.append(QueueRun(b"T", 0, offset, unit, 100 * offset + 100, 1)) == 0
    assert list(UNIT.iter_unpack(again.read(0, 1000))) == [
        (100 * offset, 100, 7) for offset in range(count)
    ]
