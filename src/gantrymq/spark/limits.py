"""How much of what is there one micro-batch takes: by messages, by bytes, or not yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.spark.slices import Span

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.spark.backend import Backend
    from gantrymq.spark.offsets import Offsets
    from gantrymq.spark.slices import Queue


def share_rows(spans: Mapping[Queue, Span], rows_max: int) -> dict[Queue, Span]:
    """Cut ranges to so many messages together, each queue by its share of what waits.

    What rounding leaves goes to the queues with the most, so that the sum is exact and even a
    limit of one message gets on.
    """
    total = sum(span.end - span.begin for span in spans.values())
    if total <= rows_max:
        return dict(spans)
    shares = {queue: rows_max * (span.end - span.begin) // total for queue, span in spans.items()}
    left = rows_max - sum(shares.values())
    by_backlog = sorted(spans, key=lambda one: (spans[one].begin - spans[one].end, one))
    for queue in by_backlog:
        if not left:
            break
        if shares[queue] < spans[queue].end - spans[queue].begin:
            shares[queue] += 1
            left -= 1
    return {queue: Span(span.begin, span.begin + shares[queue]) for queue, span in spans.items()}


def share_bytes(spans: Mapping[Queue, Span], bytes_max: int, backend: Backend) -> dict[Queue, Span]:
    """Cut ranges to so many bytes together; a single message may have more."""
    waiting = {queue: span for queue, span in spans.items() if span.begin < span.end}
    total = sum(span.end - span.begin for span in waiting.values())
    cut = dict(spans)
    for queue, span in waiting.items():
        share = bytes_max * (span.end - span.begin) // total
        cut[queue] = Span(span.begin, span.begin + backend.rows_within(queue, span, share))
    if waiting and all(span.begin == span.end for span in cut.values()):
        queue, span = next(iter(sorted(waiting.items())))
        cut[queue] = Span(span.begin, span.begin + 1)
    return cut


def ends_of(spans: Mapping[Queue, Span]) -> Offsets:
    """Return where ranges end."""
    return {queue: span.end for queue, span in spans.items()}
