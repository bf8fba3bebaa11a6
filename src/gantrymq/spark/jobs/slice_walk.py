"""The walk over one slice of a log: where its records begin, what they are, and what is damaged.

What is made of the records is up to whoever walks: a look (`dispatching`, `auditing`) is one call
of the kernel for a range, which says how far it came and why it stopped.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeAlias, TypeVar

from gantrymq.kernel import Stop, kernel
from gantrymq.spark.jobs.log_slices import Damage, Edge

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gantrymq.kernel import Audit, Dispatch
    from gantrymq.spark.jobs.log_slices import LogSlice

RECORDS_MAX: Final = 65536
"""Records in one call of the kernel: bounds what it holds at once."""
HEADER_BYTES: Final = 36
"""What `find_record` looks at."""
_CHUNK_BYTES: Final = 1 << 20
_ZEROS: Final = bytes(_CHUNK_BYTES)


class Part(Protocol):
    """What every look at a range says: how far it came, and why it stopped."""

    @property
    def end(self) -> int: ...

    @property
    def records(self) -> int: ...

    @property
    def stop(self) -> Stop: ...


PartT = TypeVar("PartT", bound=Part)
Look: TypeAlias = Callable[[mmap.mmap, int, int, int, int], PartT]
"""Called with a log, begin and end of a range, the log offset of position 0, and a bound."""


def dispatching(delays_ms: Sequence[int]) -> Look[Dispatch]:
    """Return the look that makes queue units and index keys."""
    return lambda log, start, end, base, most: kernel.dispatch_records(
        log, start, end, base, True, most, delays_ms
    )


def auditing(delays_ms: Sequence[int]) -> Look[Audit]:
    """Return the look that makes what an audit compares and counts."""
    return lambda log, start, end, base, most: kernel.audit_records(
        log, start, end, base, most, delays_ms
    )


class SliceWalk(Generic[PartT]):
    """One walk over one slice; `edge` is complete when `parts` is used up."""

    def __init__(self, piece: LogSlice, look: Look[PartT]) -> None:
        self._piece = piece
        self._look = look
        self.edge = Edge(piece.number, -1, -1)
        self.part_begin = 0
        """Where in the file the part begins that was yielded last."""

    def parts(self) -> Iterator[PartT]:
        """Yield what the records of the slice make, with their check sums checked."""
        path = Path(self._piece.path)
        if not path.stat().st_size:
            return
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as log:
            # No advice: reading ahead as the system does by itself was the fastest, warm and cold.
            yield from self._walk(log)

    def _walk(self, log: mmap.mmap) -> Iterator[PartT]:
        piece, edge = self._piece, self.edge
        base, limit = piece.log_base, min(piece.limit, len(log))
        end = min(piece.end, limit)
        position = self._first(log, limit)
        if position < 0:
            return
        edge.begin = edge.end = base + position
        while position < end:
            found = self._look(log, position, end, base, RECORDS_MAX)
            if found.stop is Stop.INCOMPLETE and not found.records and piece.end < limit:
                found = self._look(log, position, limit, base, 1)
            if found.records:
                self.part_begin = position
                yield found
                position = found.end
                edge.end = base + position
                continue
            if found.stop is Stop.BLANK:
                edge.is_blank = True
                return
            position = self._pass_over(log, position, found.stop)
        if not edge.is_open and piece.end <= position < limit:
            # A blank record that follows would be nobody's: no slice looks for one.
            edge.is_blank = self._look(log, position, limit, base, 1).stop is Stop.BLANK

    def _first(self, log: mmap.mmap, limit: int) -> int:
        piece = self._piece
        if piece.is_exact:
            return piece.begin
        if is_zeros(log, piece.begin, min(piece.end, limit)):
            return -1
        return self._find(log, piece.begin, limit)

    def _find(self, log: mmap.mmap, start: int, limit: int) -> int:
        """Return the first record that begins within the slice, or -1."""
        piece = self._piece
        end = min(piece.end + HEADER_BYTES - 1, limit)
        found = kernel.find_record(log, start, end, piece.log_base) if start < end else -1
        return found if found < piece.end else -1

    def _pass_over(self, log: mmap.mmap, position: int, stop: Stop) -> int:
        """Note damage at a position; return where the walk goes on."""
        piece, edge = self._piece, self.edge
        limit = min(piece.limit, len(log))
        end = min(piece.end, limit)
        zeros = is_zeros(log, position, end)
        behind = -1 if zeros else self._find(log, position + 1, limit)
        if behind < 0:
            edge.is_open = True
            behind = end
        else:
            zeros = is_zeros(log, position, behind)
        edge.end = piece.log_base + position
        edge.damages.append(Damage(piece.log_base + position, stop.name, behind - position, zeros))
        return behind


def is_zeros(log: mmap.mmap, begin: int, end: int) -> bool:
    """Tell whether a range holds nothing but zeros."""
    for start in range(begin, end, _CHUNK_BYTES):
        size = min(_CHUNK_BYTES, end - start)
        if log[start : start + size] != _ZEROS[:size]:
            return False
    return True
