"""Looks at the offsets of what is read: every message of a range once, in order, or it is said.

A broker that cannot find a message of a queue passes over it without a word, and so would a reader
of its files. Offsets tell: without a filter they follow one another, and with one they only grow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from gantrymq.errors import GantryError

if TYPE_CHECKING:
    from gantrymq.kernel import Columns
    from gantrymq.spark.losses import Losses
    from gantrymq.spark.slices import Queue


class OutOfOrder(GantryError):
    """A queue leads to messages that are not its own, or not in their order."""


class Sequence:
    """How far the reading of one slice is."""

    def __init__(self, queue: Queue, begin: int, losses: Losses, *, is_dense: bool) -> None:
        self._queue = queue
        self._losses = losses
        self.is_dense = is_dense
        """Whether every offset must have a message: there is no filter."""
        self.next = begin
        """The first offset that may come next."""

    def take(self, rows: Columns) -> None:
        """Look at some messages.

        Raises:
            OutOfOrder: they are not the queue's next ones.
            DataLoss: some are missing before or between them, and that matters.
        """
        offsets = pa.Array.from_buffers(
            pa.int64(), rows.rows, [None, pa.py_buffer(rows.columns["queue_offset"].values)]
        )
        first, last = offsets[0].as_py(), offsets[-1].as_py()
        steps = pc.subtract(offsets[1:], offsets[:-1])
        least = pc.min(steps).as_py()
        if first < self.next or (least is not None and least < 1):
            raise OutOfOrder(
                f"{self._queue}: the messages read from {self.next} on say that they are {first} "
                f"to {last} and not in order; run `gantrymq store verify` on the broker's store"
            )
        if self.is_dense and (first > self.next or last - first != rows.rows - 1):
            self._note_gaps(offsets.to_pylist())
        self.next = last + 1

    def _note_gaps(self, offsets: list[int]) -> None:
        expected = self.next
        for offset in offsets:
            if offset > expected:
                self._losses.lost(self._queue, expected, offset, "nothing is stored for them")
            expected = offset + 1

    def pass_over(self, begin: int, end: int, why: str) -> None:
        """Note that messages cannot be read.

        Raises:
            DataLoss: that matters.
        """
        self._losses.lost(self._queue, begin, end, why)
        self.next = max(self.next, end)

    def finish(self, end: int) -> None:
        """Note the end of the slice.

        Raises:
            DataLoss: messages before it are missing, and that matters.
        """
        if self.is_dense and self.next < end:
            self.pass_over(self.next, end, "nothing is stored for them")
