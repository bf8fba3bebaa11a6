"""Queues that the kernel adds to are the queues that their owner would have made."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from gantrymq.kernel import QueueRun
from gantrymq.kernel import kernel as chosen
from gantrymq.store.errors import QueueBeingSaved, StoreDamaged
from gantrymq.store.queue_table import QueueTable
from gantrymq.testing.disk import SimulatedFiles
from support.agreement import check_agreement

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Kernel

ROOT = Path("/store")
SIZE = 10
QUEUES = [(b"A", 0), (b"A", 1), (b"B", 0)]


class Next(NamedTuple):
    """A run that continues a queue where it is, or nearly."""

    queue: int
    messages: int
    ahead: int
    log_ahead: int

    def at(self, table: QueueTable) -> QueueRun:
        """Return the run."""
        topic, queue_id = QUEUES[self.queue]
        queue = table.find(topic.decode(), queue_id)
        first, log_end = (0, 0) if queue is None else (queue.max_offset, queue.log_end)
        log_offset = max(log_end + self.log_ahead * SIZE, 0)
        units = b"".join(
            struct.pack(">qiq", log_offset + number * SIZE, SIZE, 0)
            for number in range(self.messages)
        )
        log_end = log_offset + self.messages * SIZE
        return QueueRun(topic, queue_id, max(first + self.ahead, 0), units, log_end, 0)


MOSTLY_0 = st.sampled_from([0, 0, 0, 0, 0, 0, 1, 3, -1, -4, -1000])
NEXT = st.builds(Next, st.integers(0, 2), st.integers(1, 3), MOSTLY_0, MOSTLY_0)
ACTIONS = st.lists(
    st.one_of(
        st.lists(NEXT, min_size=1, max_size=4),
        st.lists(NEXT, min_size=1, max_size=4),
        st.sampled_from(["flush", "begin flush", "delete A", "truncate", "correct"]),
    ),
    max_size=25,
)


class Tables:
    """A table on a disk of its own, with or without the kernel's help."""

    def __init__(self, kernel: Kernel | None) -> None:
        self._kernel = kernel
        self.disk = SimulatedFiles()
        self.helped = 0
        """How many runs the kernel has added."""
        self.table = QueueTable(ROOT, 100, self.disk)
        self.table.serve()
        self._flush = self.table.begin_flush(thorough=False)
        self._end_flush()

    def _end_flush(self) -> None:
        self._flush.perform(self.disk)
        self.table.end_flush(self._flush)

    def act(self, action: list[Next] | str) -> list[str]:
        """Do something; return the errors that it met."""
        errors = []
        if isinstance(action, list):
            table = self.table
            runs = [each.at(table) for each in action]
            if self._kernel is not None:
                runs = self._kernel.extend_queues(table.tails, runs)
                self.helped += len(action) - len(runs)
            for run in runs:
                queue = table.queue_of(run.topic, run.queue_id)
                assert queue is not None
                try:
                    queue.append(run)
                except (StoreDamaged, QueueBeingSaved) as error:
                    errors.append(str(error))
        elif action == "begin flush":
            self._flush = self.table.begin_flush(thorough=True)
        elif action == "flush":
            self._flush = self.table.begin_flush(thorough=False)
            self._end_flush()
        elif action == "delete A":
            for path in self.table.delete_topic("A"):
                self.disk.remove(path)
            self.table.topic_removed("A")
        elif action == "truncate":
            self.table.truncate_to(30 * SIZE)
        else:
            self.table.correct_min_offsets(20 * SIZE)
        return errors

    def finish_flush(self) -> None:
        """End the flush that was begun."""
        self._end_flush()

    def seen(self) -> dict[tuple[str, int], tuple[int, int, int, bytes]]:
        """Return what readers see."""
        return {
            (queue.topic, queue.queue_id): (
                queue.min_offset, queue.max_offset, queue.log_end,
                queue.read(queue.min_offset, 100),
            )
            for queue in self.table
        }  # fmt: skip


@given(ACTIONS)
def test_with_and_without_the_kernel(actions: list[list[Next] | str]) -> None:
    def act(kernel: Kernel) -> object:
        plain, helped = Tables(None), Tables(kernel)
        for action in actions:
            assert plain.act(action) == helped.act(action)
            assert plain.seen() == helped.seen()
            if action == "begin flush":
                for each in (plain, helped):
                    each.finish_flush()
        for each in (plain, helped):
            each.act("flush")
            assert each.table.waiting_bytes() == 0, "a flush knows of every queue"
        assert plain.seen() == helped.seen()
        return helped.seen()

    check_agreement(act)


def test_the_kernel_does_help() -> None:
    """What the test above compares is not twice the same."""
    tables = Tables(chosen)
    for _ in range(3):
        tables.act([Next(0, 2, 0, 0)])
    tables.act("flush")
    tables.act([Next(0, 1, 0, 0)])  # the first behind a flush is its owner's, who notes it
    tables.act([Next(0, 1, 0, 0)])
    assert tables.helped == 3
