"""The check points of one revive queue that are not settled, and how far the queue is done with.

Owned by the event loop's task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.broker.pop.records import CheckPoint, parse
from gantrymq.broker.stored_again import decode
from gantrymq.wire.properties import TAGS, decode_properties

if TYPE_CHECKING:
    from gantrymq.broker.pop.records import PointKey
    from gantrymq.kernel.interface import Buffer

POINTS_MAX: Final = 50_000
"""Of one queue in memory; then it is not read further until some are settled."""


class OpenPoint:
    """A check point, and which of its messages are not acknowledged."""

    __slots__ = ("left", "offset", "point")

    def __init__(self, point: CheckPoint, offset: int) -> None:
        self.point = point
        self.offset = offset
        self.left = dict.fromkeys(point.offsets)


class ReviveQueue:
    """One queue of the revive topic."""

    def __init__(self, queue_id: int, committed: int) -> None:
        """Begin behind the last offset that is done with; -1 is none."""
        self.queue_id = queue_id
        self.next_offset = committed + 1
        self._points: dict[PointKey, OpenPoint] = {}
        self.is_busy = False

    @property
    def is_full(self) -> bool:
        """Tell whether it must not be read further now."""
        return len(self._points) >= POINTS_MAX

    @property
    def done_offset(self) -> int:
        """Return the last offset that is done with; -1 is none."""
        first = next(iter(self._points.values()), None)
        return (self.next_offset if first is None else first.offset) - 1

    def take_in(self, raw: Buffer) -> None:
        """Take in a record of the queue."""
        record = decode(raw)
        tag = decode_properties(record.properties).get(TAGS, "")
        value = parse(tag, record.body)
        if isinstance(value, CheckPoint):
            # The first one stays: one that was delivered twice has its acknowledgements between.
            self._points.setdefault(value.key, OpenPoint(value, record.queue_offset))
        elif value is not None:
            point = self._points.get(value.key)
            if point is not None:
                for offset in value.offsets:
                    point.left.pop(offset, None)

    def due(self, limit_ms: int) -> list[OpenPoint]:
        """Return the check points whose time was over before a moment."""
        return [one for one in self._points.values() if one.point.revive_ms < limit_ms]

    def settled(self, point: OpenPoint) -> None:
        """Forget a check point: nothing of it is left to be done."""
        self._points.pop(point.point.key, None)

    @property
    def is_idle(self) -> bool:
        """Tell whether there is nothing to wait for."""
        return not self._points and not self.is_busy
