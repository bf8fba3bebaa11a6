"""The in-sync set as its master keeps it: who has to have a message before it is acknowledged.

    required = (in-sync set in etcd) united with (what is being proposed), without the master

Everybody required must have reported a message. A member joins the proposal when it has reported
the log's end as of the last look and all that was acknowledged; it counts from that moment, before
etcd knows. A member that has gone, or has not been level for too long, is
proposed to leave; it counts until etcd has said yes. While it is not known whether etcd took a
proposal, it stands. Nobody leaves before this master has forced what was acknowledged: it may soon
be the only one that has it.

The same holds for what consumers are shown: one that had read what the next master does not have
would skip what that writes in its place. So nobody comes in who lacks what was shown. For a member
that is near to find the place where it lacks nothing, no more is shown than it has.

Values in, values out; owned by the master's task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.cluster.group_state import GroupState

GONE_S_MAX: Final = 1.0
"""A member without a connection leaves the set after it."""
BEHIND_S_MAX: Final = 10.0
"""So does one that has not been level for so long."""


class Progress(NamedTuple):
    """How far everybody is, at one moment."""

    reported: Mapping[int, int]
    """Members that are connected, and what they have."""
    end: int
    """Where the master's log ends."""
    acknowledged: int
    """How much of it producers were told is on slaves."""
    shown: int
    """How much of it consumers may have read."""
    forced: int
    """How much of it is on the master's disk."""


class InSyncSet:
    """Who is in sync with this master, in one epoch."""

    def __init__(self, member: int, state: GroupState, now: float) -> None:
        self._member = member
        self.state = state
        self._proposed: frozenset[int] | None = None
        self._near: set[int] = set()
        """Members that are about to come in."""
        self._last_end: int | None = None
        self._level_at: dict[int, float] = dict.fromkeys(state.in_sync, now)
        self._seen_at: dict[int, float] = dict.fromkeys(state.in_sync, now)

    @property
    def required(self) -> frozenset[int]:
        """Return who must have reported a message before it is acknowledged."""
        return (frozenset(self.state.in_sync) | (self._proposed or frozenset())) - {self._member}

    def replicated(self, reported: Mapping[int, int]) -> int | None:
        """Return how far everybody required has reported; None if there is nobody, or one gone."""
        required = self.required
        if not required or not required <= reported.keys():
            return None
        return min(reported[member] for member in required)

    def shown_until(self, reported: Mapping[int, int]) -> int | None:
        """Return how far messages may be shown; None: all of them. 0, no more, if one is gone."""
        required = self.required
        if not required <= reported.keys():
            return 0
        offsets = [reported[one] for one in (required | self._near) & reported.keys()]
        return min(offsets, default=None)

    def look(self, progress: Progress, now: float) -> frozenset[int] | None:
        """Return the set to propose to etcd, or None; `settled` must be called with the outcome."""
        level, self._last_end = self._last_end, progress.end
        reported, near = progress.reported, set[int]()
        for member, offset in reported.items():
            self._seen_at[member] = now
            if level is not None and offset >= max(level, progress.acknowledged):
                near.add(member)
                if offset >= progress.shown:
                    self._level_at[member] = now
        self._near = near
        if self._proposed is not None:
            return None
        current = frozenset(self.state.in_sync)
        wanted = {
            member
            for member in current | reported.keys()
            if member == self._member or self._belongs(member, member in current, now)
        }
        if progress.forced < progress.acknowledged:
            wanted |= current
        if wanted == current:
            return None
        self._proposed = frozenset(wanted)
        return self._proposed

    def _belongs(self, member: int, is_in: bool, now: float) -> bool:
        if not is_in:
            return self._level_at.get(member) == now
        gone = now - self._seen_at.get(member, now) > GONE_S_MAX
        behind = now - self._level_at.get(member, now) > BEHIND_S_MAX
        return not (gone or behind)

    def left(self, state: GroupState) -> None:
        """Note that members have left the set by themselves, which only makes it smaller."""
        if self._proposed is None and state.epoch == self.state.epoch:
            self.state = state

    def settled(self, state: GroupState | None) -> None:
        """Note that etcd has taken the proposal, which makes `state`; or has not (None)."""
        self._proposed = None
        if state is not None:
            self.state = state
