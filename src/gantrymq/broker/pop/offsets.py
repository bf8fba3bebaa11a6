"""Where groups pop next, which may be ahead of what is committed.

A pop moves a group on at once, but that is committed only when the log is on the disk up to the
check point: else a power cut could keep the offset and take the check point, and nobody would hand
the messages out again.

Owned by the event loop's task.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.broker.consumer_offsets import ConsumerOffsets

MOVES_MAX: Final = 1024
"""Of one queue; what comes on top waits for the last of them."""


class QueueKey(NamedTuple):
    """A group's queue."""

    group: str
    topic: str
    queue_id: int


class PopOffsets:
    """The offsets of all groups that pop."""

    def __init__(self, offsets: ConsumerOffsets, flushed: Callable[[], int]) -> None:
        """Learn from `flushed` how far the log is on the disk."""
        self._offsets = offsets
        self._flushed = flushed
        self._moves: dict[QueueKey, deque[tuple[int, int]]] = {}

    @property
    def is_settled(self) -> bool:
        """Tell whether everything is committed."""
        return not self._moves

    def find(self, key: QueueKey) -> int:
        """Return where a group pops next; negative if it never did."""
        moves = self._moves.get(key)
        committed = self._offsets.find(key.group, key.topic, key.queue_id)
        return max(moves[-1][1], committed) if moves else committed

    def move(self, key: QueueKey, offset: int, log_end: int) -> None:
        """Move a group on, to be committed when the log is on the disk up to `log_end`."""
        moves = self._moves.setdefault(key, deque())
        if len(moves) >= MOVES_MAX:
            moves.pop()
        moves.append((log_end, offset))

    def commit(self, key: QueueKey, offset: int, who: str = "") -> None:
        """Put a group somewhere, whatever it was moved to."""
        self._moves.pop(key, None)
        self._offsets.commit(key.group, key.topic, key.queue_id, offset, who=who)

    def take_reset(self, key: QueueKey) -> int | None:
        """Return where an operator has sent a group, once, and put it there."""
        reset = self._offsets.pending_reset(key.group, key.topic, key.queue_id)
        if reset is not None:
            self.commit(key, reset, "reset")
        return reset

    def has_reset(self, key: QueueKey) -> bool:
        """Tell whether an operator has sent a group somewhere, and it does not know."""
        return self._offsets.has_reset(key.group, key.topic, key.queue_id)

    def forget(self, is_gone: Callable[[QueueKey], bool]) -> None:
        """Commit nothing more of queues whose topic or group was deleted."""
        for key in [key for key in self._moves if is_gone(key)]:
            del self._moves[key]

    def settle(self, *, everything: bool = False) -> None:
        """Commit what the disk has."""
        flushed = self._flushed()
        for key, moves in list(self._moves.items()):
            offset = -1
            while moves and (everything or moves[0][0] <= flushed):
                offset = moves.popleft()[1]
            if offset >= 0 and not self._offsets.has_reset(key.group, key.topic, key.queue_id):
                self._offsets.commit(key.group, key.topic, key.queue_id, offset, who="pop")
            if not moves:
                del self._moves[key]
