"""Slices: which part of a queue one task reads, and how ranges are cut into them.

A queue's offsets say everything, so any range of them can be a task of its own: one hot queue keeps
all cores busy. Spark gives a slice to an executor as a pickled value.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql.datasource import InputPartition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROWS_MAX: Final = 250_000
"""Messages that one task reads, unless the options say otherwise."""
BYTES_MAX: Final = 64 << 20
PACK_ROWS_MAX: Final = 10_000
"""Messages of small slices that one task reads together."""
SLICES_MAX: Final = 100_000


class Queue(NamedTuple):
    """One queue of a topic."""

    topic: str
    broker: str
    queue_id: int

    def __str__(self) -> str:
        """Return it as errors name it."""
        return f"{self.topic}@{self.broker}:{self.queue_id}"


class Span(NamedTuple):
    """Offsets of a queue, the end not among them."""

    begin: int
    end: int


@dataclass(frozen=True)
class Slice(InputPartition):
    """What one task reads."""

    topic: str
    broker: str
    queue_id: int
    begin: int
    end: int
    wire_topic: str = ""
    """The topic as brokers and stores know it, with its namespace."""
    path: str = ""
    """The store directory, in mode=store."""
    is_recovered: bool = False
    """Whether the store must be recovered in memory before it is read."""

    @property
    def queue(self) -> Queue:
        """Return whose slice it is."""
        return Queue(self.topic, self.broker, self.queue_id)


@dataclass(frozen=True)
class Pack(InputPartition):
    """What one task reads: a slice, or several small ones."""

    slices: tuple[Slice, ...]


def pack(slices: Sequence[Slice], *, slices_min: int | None) -> list[InputPartition]:
    """Put small slices together: a task costs more than reading a few messages does.

    Whoever asks for a number of partitions gets them.
    """
    packs: list[InputPartition] = []
    small: list[Slice] = []
    rows = 0
    for one in slices:
        count = one.end - one.begin
        if slices_min or count >= PACK_ROWS_MAX:
            packs.append(Pack((one,)))
            continue
        if rows + count > PACK_ROWS_MAX:
            packs.append(Pack(tuple(small)))
            small, rows = [], 0
        small.append(one)
        rows += count
    if small:
        packs.append(Pack(tuple(small)))
    return packs


def cut(
    spans: Mapping[Queue, Span],
    *,
    record_bytes: Mapping[Queue, int],
    rows_max: int | None,
    slices_min: int | None,
) -> list[tuple[Queue, Span]]:
    """Cut ranges into slices of about equal numbers of messages, in the order of the queues.

    `record_bytes` is what a message of a queue takes, about.
    """
    total = sum(span.end - span.begin for span in spans.values())
    found: list[tuple[Queue, Span]] = []
    for queue, span in sorted(spans.items()):
        count = span.end - span.begin
        if count <= 0:
            continue
        most = rows_max or max(min(ROWS_MAX, BYTES_MAX // max(record_bytes.get(queue, 1), 1)), 1)
        parts = -(-count // most)
        if slices_min and total:
            # Each queue gets its share of the slices, and at least one.
            parts = max(parts, -(-slices_min * count // total))
        parts = min(parts, count, SLICES_MAX)
        edges = [span.begin + count * number // parts for number in range(parts + 1)]
        found += [(queue, Span(*edge)) for edge in pairwise(edges)]
    return found
