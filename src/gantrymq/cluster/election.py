"""What a member of a group does next, decided from what it sees; no clock, no socket.

    no state yet                     member 1 begins the group; everybody else waits
    I am its master                  go on
    its master lives                 follow it, after dropping what is not of its history
    its master is gone, I am in sync and whole        become master in the next epoch
    its master is gone otherwise     wait; an operator may allow an unsafe election

**In sync** is who the state says. **Whole** is a member that certainly has what it has reported:
its process has run since, or it was stopped cleanly, or it forces before it reports. A broker that
comes back after a power cut may have lost what it once acknowledged, so it leaves the in-sync set
first, unless it is alone in it; whoever is let in again has been seen to have everything.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from gantrymq.cluster.group_state import first_state

if TYPE_CHECKING:
    from gantrymq.cluster.group_state import GroupState, View

FOUNDER = 1
"""The member that begins a group: where there was a master before, it has this id."""


class Kind(Enum):
    """What to do."""

    WAIT = "wait"
    REIGN = "reign"
    FOLLOW = "follow"
    CAMPAIGN = "campaign"
    LEAVE = "leave"


class Me(NamedTuple):
    """A member as it knows itself."""

    member: int
    session: str
    epoch: int
    """In which its log was last written; 0 if never."""
    end: int
    """Where its last whole record ends."""
    is_whole: bool
    may_be_unsafe: bool = False
    """An operator allows an election that may lose what was acknowledged."""
    is_drained: bool = False
    """An operator wants another one to be master, if there is one."""


class Decision(NamedTuple):
    """What to do, and with what."""

    kind: Kind
    why: str = ""
    proposed: GroupState | None = None
    """CAMPAIGN, LEAVE: to be put in place of the state that was seen."""
    keep: int = 0
    """FOLLOW: how much of the own log is the group's; the rest is dropped first."""


def decide(view: View, me: Me) -> Decision:
    """Return what a member does next."""
    state = view.state
    if state is None:
        return _begin(me)
    if state.master == me.member and state.session == me.session:
        return Decision(Kind.REIGN)
    others = frozenset(state.in_sync) - {me.member}
    if me.member in state.in_sync and others and not me.is_whole:
        why = "this broker may have lost its last messages: it leaves the in-sync set first"
        return Decision(Kind.LEAVE, why, state.with_in_sync(others))
    if view.master is not None:
        return _follow(state, me)
    why_not = _why_not_master(view, state, me)
    if why_not is not None:
        return Decision(Kind.WAIT, why_not)
    return Decision(Kind.CAMPAIGN, proposed=state.begun(me.member, me.session, me.end))


def _begin(me: Me) -> Decision:
    if me.member != FOUNDER:
        return Decision(Kind.WAIT, f"member {FOUNDER} has not begun the group yet")
    return Decision(Kind.CAMPAIGN, proposed=first_state(me.member, me.session, me.end))


def _follow(state: GroupState, me: Me) -> Decision:
    keep = state.shared_end(me.epoch, me.end) if me.end else 0
    if keep is None:
        return Decision(
            Kind.WAIT,
            f"this broker was last written in epoch {me.epoch}, and the group remembers no epoch "
            f"before {state.history[0].number}: it has to begin with an empty store",
        )
    return Decision(Kind.FOLLOW, keep=keep)


def _why_not_master(view: View, state: GroupState, me: Me) -> str | None:
    if me.may_be_unsafe and not any(map(view.lives, state.in_sync)):
        return None
    if me.member not in state.in_sync:
        return f"members {list(state.in_sync)} are in sync with the last master, this one is not"
    others = frozenset(state.in_sync) - {me.member}
    if me.is_drained and any(map(view.stays, others)):
        return "this broker is drained: another member of the in-sync set is to be master"
    # One that was elected and died before it could note that has written nothing since.
    was_elected = state.master == me.member and me.end == state.history[-1].start
    if me.epoch != state.epoch and not was_elected:
        return f"this broker was last written in epoch {me.epoch}, the group is in {state.epoch}"
    return None
