"""Which queues to take up and which to give back: the decision, without anything done about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

    from gantrymq.client.consuming.strategies import Strategy
    from gantrymq.model.queue import MessageQueue


class Change(NamedTuple):
    """What a rebalance does to the queues of one topic."""

    add: tuple[MessageQueue, ...]
    drop: tuple[MessageQueue, ...]

    def __bool__(self) -> bool:
        """Tell whether there is anything to do."""
        return bool(self.add or self.drop)


def decide(owned: Collection[MessageQueue], wanted: Collection[MessageQueue]) -> Change:
    """Return how to get from the queues that are owned to those that are wanted, both sorted."""
    now, then = set(owned), set(wanted)
    return Change(tuple(sorted(then - now)), tuple(sorted(now - then)))


def wanted_queues(
    client_id: str,
    members: Collection[str] | None,
    queues: Collection[MessageQueue],
    strategy: Strategy,
) -> list[MessageQueue] | None:
    """Return the queues of this member, or None: nothing is known, so nothing changes.

    `members` is None in broadcasting, where every member reads all. A list of members without this
    one says that the broker has not had its heartbeat yet. Java gives all queues up then; here
    they are kept until the broker knows better, since giving up and taking up again costs
    duplicates and gains nothing.
    """
    if members is None:
        return sorted(queues)
    if client_id not in members:
        return None
    return strategy.queues_of(client_id, members, queues)
