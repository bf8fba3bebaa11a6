"""Members of a group are told that it has changed (40), so that they share its queues anew.

The first change is told at once. Those that follow within `INTERVAL_S` are told together at the end
of it: whether ten members come or a thousand, each member hears of it a few times, and the broker's
work grows with their number and not with its square. Many members are told some at a time, and
other work of the loop has its turn in between.

Owned by the event loop's task.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from gantrymq.wire.codes import RequestCode
from gantrymq.wire.command import Command
from gantrymq.wire.headers.targets import ConsumerGroupRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gantrymq.clock import Clock
    from gantrymq.wire.peer import Peer

INTERVAL_S: Final = 0.1
"""Between two notices of one group."""
TELLS_MAX: Final = 128
"""Members that are told before other work of the loop has its turn."""


class Notices:
    """Tells the members of groups."""

    def __init__(self, members: Callable[[str], Iterable[Peer]], clock: Clock) -> None:
        """`members` says who is to be told of a group's changes."""
        self._members = members
        self._clock = clock
        self._told_at: dict[str, float] = {}
        """Groups that were told within the interval, in that order."""
        self._changed: set[str] = set()
        """Those of them that have changed since."""
        self._line: deque[tuple[Peer, Command]] = deque()
        self.sooner: Callable[[float], None] = lambda _due: None
        """Told when `tick` has something to do earlier than it last said."""

    def changed(self, group: str) -> None:
        """Tell the members of a group, now or at the end of its interval."""
        now = self._clock.monotonic()
        told_at = self._told_at.get(group)
        if told_at is None or now - told_at >= INTERVAL_S:
            self._tell(group, now)
            self._tell_some()
            self.sooner(now if self._line else now + INTERVAL_S)
        else:
            self._changed.add(group)

    def tick(self, now: float) -> float | None:
        """Tell what is due; return when to be called again."""
        while self._told_at:
            group, told_at = next(iter(self._told_at.items()))
            if now < told_at + INTERVAL_S:
                break
            del self._told_at[group]
            if group in self._changed:
                self._tell(group, now)
        self._tell_some()
        if self._line:
            return now
        return next((told_at + INTERVAL_S for told_at in self._told_at.values()), None)

    def _tell(self, group: str, now: float) -> None:
        self._changed.discard(group)
        self._told_at.pop(group, None)
        self._told_at[group] = now
        header = ConsumerGroupRequest(consumer_group=group)
        # One command for all of them: a connection that has just encoded it does not do so again.
        notice = Command.request(
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, 0, header.encode(), oneway=True
        )
        self._line.extend((peer, notice) for peer in self._members(group))

    def _tell_some(self) -> None:
        for _ in range(min(len(self._line), TELLS_MAX)):
            peer, notice = self._line.popleft()
            peer.tell(notice)
