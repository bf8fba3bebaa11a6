"""Which half messages are still open, in as little memory as that takes.

Both queues are read from a place on: `base` in the half queue, before which everything is done
with, and `op_base` in the op queue, before which every record is about such half messages. These
two are what is saved, so that after a restart the op records from `op_base` on tell the rest.

Between `base` and the end of the half queue there is one byte for each offset: OPEN, TAKEN while
its message is on its way to safety, or one of those that are DONE or above, which say why it is
done with if this process knows. Offsets that nothing is known of are open. At most `window` bytes
are kept. Op records about what is behind the window are not remembered: `reread` says from where
the op queue has to be read again when the window has moved on.

A half message that was stored again has another offset; `moved` knows the last of these moves, so
that a late answer about the old offset counts for the new one.

Owned by the event loop's task.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

OPEN: Final = 0
TAKEN: Final = 1
DONE: Final = 2
"""Decided, stored again or given up; an op record does not say which."""
COMMITTED: Final = 3
ROLLED_BACK: Final = 4

WINDOW: Final = 4_000_000
"""Half messages between the oldest that is open and the newest that a decision is taken for: more
than a broker stores in the minute between two rounds."""
MOVES_MAX: Final = 65_536
_NEVER: Final = -1


class Ledger:
    """Knows which half messages are open."""

    def __init__(self, window: int = WINDOW) -> None:
        self.window = window
        self.is_loaded = False
        """False until the op queue has been read to its end."""
        self._start(0, 0)

    def _start(self, half_offset: int, op_offset: int) -> None:
        self.base = half_offset
        self._states = bytearray()
        self.op_base = op_offset
        self.reread: int | None = None
        self._last_halves = array("q")
        """For each op record from `op_base` on, the last half message that it is about."""
        self._moved: dict[int, int] = {}

    def restart(self, half_offset: int, op_offset: int) -> None:
        """Forget everything; begin at these offsets."""
        self.is_loaded = False
        self._start(half_offset, op_offset)

    # -- half messages --------------------------------------------------------------------------

    def state(self, offset: int) -> int:
        """Return OPEN, TAKEN, or what is at least DONE."""
        index = offset - self.base
        if index < 0:
            return DONE
        return self._states[index] if index < len(self._states) else OPEN

    @property
    def done_count(self) -> int:
        """Return how many behind `base` are done with."""
        states = self._states
        return len(states) - states.count(OPEN) - states.count(TAKEN)

    def has_room(self, offset: int) -> bool:
        """Tell whether an offset is within the window."""
        return offset - self.base < self.window

    def mark(self, offset: int, state: int) -> None:
        """Note the state of an offset within the window; one that is done with stays so."""
        index = offset - self.base
        if index < 0 or index >= self.window or self.state(offset) >= DONE:
            return
        missing = index + 1 - len(self._states)
        if missing > 0:
            self._states.extend(bytes(missing))
        self._states[index] = state

    def pass_over(self, start: int, end: int) -> None:
        """Note that there are no messages at some offsets: they are done with."""
        if start <= self.base:
            # The window begins behind them.
            del self._states[: max(0, end - self.base)]
            self.base = max(self.base, end)
            return
        for offset in range(start, min(end, self.base + self.window)):
            self.mark(offset, DONE)

    def open_run(self, start: int, end: int, count_max: int) -> tuple[int, int]:
        """Return the first open offset of a range and how many are open from there on; 0: none."""
        known = self.base + len(self._states)
        first = max(start, self.base)
        if first < known:
            index = self._states.find(OPEN, first - self.base)
            first = known if index < 0 else self.base + index
        stop = min(first + count_max, end)
        count = 0
        while first + count < stop and self.state(first + count) == OPEN:
            count += 1
        return first, count

    # -- moves ----------------------------------------------------------------------------------

    def move(self, before: int, after: int) -> None:
        """Note that a half message was stored again."""
        if before not in self._moved and len(self._moved) >= MOVES_MAX:
            del self._moved[next(iter(self._moved))]
        if after > before:
            self._moved[before] = after

    def current(self, offset: int) -> int:
        """Return where a half message is now; every move leads further back in the queue."""
        while offset in self._moved:
            offset = self._moved[offset]
        return offset

    # -- op records -----------------------------------------------------------------------------

    @property
    def next_op(self) -> int:
        """Return the offset of the first op record that has not been taken in."""
        return self.op_base + len(self._last_halves)

    def take_op(self, op_offset: int, halves: Collection[int], state: int = DONE) -> None:
        """Take in an op record; one further on than `next_op` has still to be read in its turn."""
        for offset in halves:
            if self.has_room(offset):
                self.mark(offset, state)
            elif self.reread is None:
                self.reread = op_offset
        if op_offset == self.next_op:
            self._last_halves.append(max(halves, default=_NEVER))

    def pass_over_ops(self, end: int) -> None:
        """Note that the op records before an offset are gone from the store."""
        if end > self.next_op:
            self.op_base = end
            self._last_halves = array("q")

    def read_ops_again(self) -> None:
        """Go back to the first op record that the window had no room for."""
        if self.reread is not None:
            again = max(self.reread, self.op_base)
            del self._last_halves[again - self.op_base :]
            self.reread = None
            self.is_loaded = False

    # -- progress -------------------------------------------------------------------------------

    def trim(self) -> tuple[int, int]:
        """Let go of what is done with at the front; return `base` and `op_base`."""
        states = self._states
        first_open = states.find(OPEN)
        stop = len(states) if first_open < 0 else first_open
        taken = states.find(TAKEN, 0, stop)
        stop = stop if taken < 0 else taken
        del states[:stop]
        self.base += stop
        done = 0
        limit = len(self._last_halves)
        if self.reread is not None:
            limit = min(limit, self.reread - self.op_base)
        while done < limit and self._last_halves[done] < self.base:
            done += 1
        del self._last_halves[:done]
        self.op_base += done
        return self.base, self.op_base
