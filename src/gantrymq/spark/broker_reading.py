"""Reading slices over the wire: the next chunk is on its way while this one is decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.client.consuming.subscription import sql
from gantrymq.errors import GantryError
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.spark.batches import BadRecord
from gantrymq.spark.link import link_to
from gantrymq.spark.pulls import Pulls
from gantrymq.spark.sequence import Sequence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gantrymq.blocking.call import Call
    from gantrymq.spark.batches import Batches
    from gantrymq.spark.filters import RowFilter
    from gantrymq.spark.losses import Losses
    from gantrymq.spark.options import SourceOptions
    from gantrymq.spark.pulls import Chunk
    from gantrymq.spark.slices import Slice


class BrokerSlice:
    """One slice of a queue that a broker has."""

    def __init__(
        self, part: Slice, options: SourceOptions, batches: Batches, losses: Losses
    ) -> None:
        self._part = part
        self._batches = batches
        self._losses = losses
        self._link = link_to(options.connection)
        queue = MessageQueue(part.wire_topic, part.broker, QueueId(part.queue_id))
        expression = sql(options.sql92) if options.sql92 else (options.tags or "*")
        self._pulls = Pulls(self._link, queue, options.pull_count, expression)
        self._is_filtered = expression != "*"

    def read(self, row_filter: RowFilter) -> Iterator[object]:
        """Yield the batches of the slice.

        Raises:
            DataLoss: something is not there, and that matters.
            GantryError: it cannot be had from the broker.
        """
        part = self._part
        is_dense = row_filter.is_all and not self._is_filtered
        sequence = Sequence(part.queue, part.begin, self._losses, is_dense=is_dense)
        coming: Call[Chunk] | None = self._begin(part.begin)
        try:
            while coming is not None:
                chunk = self._link.thread.wait(coming)
                coming = None
                if not chunk.ended and chunk.next < part.end:
                    coming = self._begin(chunk.next)
                yield from self._decoded(chunk, sequence)
        finally:
            if coming is not None:
                coming.cancel()
        sequence.finish(part.end)

    def _begin(self, offset: int) -> Call[Chunk]:
        return self._link.thread.begin(self._pulls.chunk(offset, self._part.end))

    def _decoded(self, chunk: Chunk, sequence: Sequence) -> Iterator[object]:
        """Yield the batches of a chunk, and say what is missing of it."""
        part = self._part
        for begin, end in chunk.moved:
            if not sequence.is_dense:  # where it is, gaps are seen in the offsets
                lost_end = part.end if end < begin else min(end, part.end)
                sequence.pass_over(begin, lost_end, f"the broker goes on at {end}")
        if chunk.ended and not sequence.is_dense and chunk.next < part.end:
            sequence.pass_over(chunk.next, part.end, "the broker says that the queue ends there")
        records = chunk.bodies[0] if len(chunk.bodies) == 1 else b"".join(chunk.bodies)
        try:
            for batch, rows in self._batches.of(records, part, part.end):
                sequence.take(rows)
                yield batch
        except BadRecord as error:
            raise GantryError(
                f"{part.queue}: among the messages from {sequence.next} on that the broker sent is "
                f"one that is none ({error.why}); run `gantrymq store verify` on its store"
            ) from error
