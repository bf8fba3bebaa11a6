"""From offsets to slices: what a batch reads, and what one micro-batch does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.spark.losses import Losses
from gantrymq.spark.options import Positions
from gantrymq.spark.positions import resolve
from gantrymq.spark.slices import Span, cut

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.spark.backend import Backend, Bounds
    from gantrymq.spark.options import SourceOptions
    from gantrymq.spark.slices import Queue, Slice

REPLAYED_BYTES = 1024
"""What a message of a stream is taken to have, when its ranges are cut."""
EXPIRED = "they are older than the oldest that is stored: expired, or removed to make room"


def losses_of(options: SourceOptions) -> Losses:
    """Return what the options say about messages that are gone."""
    return Losses(options.on_loss, options.lost_ranges_path)


def batch_slices(options: SourceOptions, backend: Backend) -> list[Slice]:
    """Return the slices of a batch read: from its starting offsets to its ending offsets, now.

    Raises:
        DataLoss: offsets that were asked for are not there.
        InvalidValue: they are for queues that are not read.
    """
    bounds = backend.bounds()
    starting = options.starting or Positions("earliest")
    starts = resolve(starting, bounds, backend, "startingOffsets")
    ends = resolve(options.ending, bounds, backend, "endingOffsets")
    losses = losses_of(options)
    spans = {}
    for queue, (least, most) in bounds.items():
        begin, end = starts[queue], ends[queue]
        if end > most:
            losses.lost(queue, max(begin, most), end, f"the queue ends at {most}")
        if begin > most:
            losses.lost(queue, most, begin, f"the queue ends at {most}; was the topic made again?")
        if begin < min(least, end):
            losses.lost(queue, begin, min(least, end), EXPIRED)
        spans[queue] = Span(max(begin, least), min(end, most))
    return slices_of(options, backend, spans)


def slices_of(
    options: SourceOptions,
    backend: Backend,
    spans: Mapping[Queue, Span],
    *,
    is_replayable: bool = False,
) -> list[Slice]:
    """Cut ranges of queues into slices.

    What is `is_replayable` is always cut the same way: sinks name a row by its partition and its
    number there. So nothing counts that may be another thing next time, as sampled sizes may.
    """
    spans = {queue: span for queue, span in spans.items() if span.begin < span.end}
    if is_replayable:
        sizes = dict.fromkeys(spans, REPLAYED_BYTES)
    else:
        sizes = {queue: backend.record_bytes(queue, span) for queue, span in spans.items()}
    parts = cut(
        spans,
        record_bytes=sizes,
        rows_max=options.slice_rows_max,
        slices_min=options.slices_min,
    )
    return backend.slices(parts)


def checked_begin(queue: Queue, begin: int, end: int, bounds: Bounds, losses: Losses) -> int:
    """Return where a micro-batch can begin that should begin at an offset.

    Raises:
        DataLoss: messages before that are gone, and that matters.
    """
    least, most = bounds
    if begin > most:
        # Offsets never go back in a queue, so it is another one under the same name.
        losses.lost(
            queue, begin, begin + 1,
            f"the queue ends at {most}, before what was read of it: the topic was deleted and "
            "made again, or the broker lost messages",
        )  # fmt: skip
        return min(least, end)
    if begin < least:
        losses.lost(queue, begin, min(least, max(end, begin)), EXPIRED)
        return min(least, max(end, begin))
    return begin
