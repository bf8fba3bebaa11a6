"""What the members of a broker group agree on, kept in etcd; values only.

    state       one record: the epoch, its master, who is in sync with it, where each epoch began
    members     one record for each live session of a broker, which etcd removes with its lease

Every change of the state is a compare-and-swap on the revision that was read, so that there is one
sequence of states, one master in each epoch, and no master that can change anything after the next
epoch has begun.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

EPOCHS_KEPT: Final = 1000
"""Beginnings of epochs that the state remembers."""


class Epoch(msgspec.Struct, frozen=True):
    """A master's reign."""

    number: int
    start: int
    """Log offset at which it began: everything before is of the epochs before."""


class GroupState(msgspec.Struct, frozen=True):
    """The one record that decides."""

    epoch: int
    master: int
    """The member that is master in this epoch."""
    session: str
    """The master's lease when it was elected: a process that was started again has another."""
    in_sync: tuple[int, ...]
    """Members that have everything that was acknowledged; the master is one of them."""
    history: tuple[Epoch, ...]
    """Where epochs began, oldest first, the present one last."""

    def begun(self, master: int, session: str, start: int) -> GroupState:
        """Return the state of the next epoch."""
        epoch = self.epoch + 1
        history = (*self.history, Epoch(epoch, start))[-EPOCHS_KEPT:]
        return GroupState(epoch, master, session, (master,), history)

    def with_in_sync(self, members: frozenset[int]) -> GroupState:
        """Return the state with another in-sync set."""
        return msgspec.structs.replace(self, in_sync=tuple(sorted(members)))

    def shared_end(self, epoch: int, end: int) -> int | None:
        """Return how much of a log is a beginning of the group's log.

        The log ends at `end` and was last written in `epoch`. Everything before the first epoch
        after it began is shared; None if that is no longer known.
        """
        later = [one for one in self.history if one.number > epoch]
        if not later:
            return end
        if later[0].number != epoch + 1 and later[0] is self.history[0]:
            return None
        return min(end, later[0].start)


def first_state(master: int, session: str, start: int) -> GroupState:
    """Return the state of a group that begins."""
    return GroupState(1, master, session, (master,), (Epoch(1, start),))


class Member(msgspec.Struct, frozen=True):
    """A live broker of the group."""

    number: int
    session: str
    address: str
    ha_address: str
    is_leaving: bool = False
    """It stops, or an operator drains it: another one is to be master."""


class View(msgspec.Struct, frozen=True):
    """What etcd had at one moment."""

    state: GroupState | None
    revision: int
    """Of the state; 0 if there is none."""
    members: Mapping[str, Member]
    """By session: the record of one that has ended must never stand in for its successor's."""

    @property
    def master(self) -> Member | None:
        """Return the master of the present epoch, if it holds its lease."""
        return None if self.state is None else self.members.get(self.state.session)

    def lives(self, number: int) -> bool:
        """Tell whether a member has a live session."""
        return any(one.number == number for one in self.members.values())

    def stays(self, number: int) -> bool:
        """Tell whether a member lives and is not about to leave."""
        return any(one.number == number and not one.is_leaving for one in self.members.values())
