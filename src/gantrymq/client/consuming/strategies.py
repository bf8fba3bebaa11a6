"""Which member of a group reads which queues: five ways, with the results of Java's client.

Every member works it out by itself from the same two sorted lists, so that members written in Java
and in Python can be in one group: each result here is the one of Java's class of that name.

    average           AllocateMessageQueueAveragely            neighbouring queues, evenly
    circle            AllocateMessageQueueAveragelyByCircle    dealt out one by one
    consistent_hash   AllocateMessageQueueConsistentHash       few queues move when a member does
    machine_room      AllocateMessageQueueByMachineRoom        brokers `room@name` of chosen rooms
    configured        AllocateMessageQueueByConfig             always these, whoever else is there

A strategy of one's own is any function of the same shape in a `Strategy`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from gantrymq.errors import InvalidValue
from gantrymq.model.queue import MessageQueue
from gantrymq.model.sharing import (
    VIRTUAL_NODES,
    averagely,
    by_circle,
    by_consistent_hash,
    java_order,
)

Share: TypeAlias = Callable[[str, Sequence[str], Sequence[MessageQueue]], list[MessageQueue]]
"""(client id, sorted members that include it, sorted queues) to the queues of that client."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to share out queues, under the name by which brokers know it (`AVG`…)."""

    name: str
    share: Share

    def queues_of(
        self, client_id: str, members: Collection[str], queues: Iterable[MessageQueue]
    ) -> list[MessageQueue]:
        """Return the queues of one member; none for a client that is no member."""
        if client_id not in members:
            return []
        return self.share(client_id, sorted(members, key=java_order), sorted(queues))


average: Final = Strategy("AVG", averagely)
"""Neighbouring queues, evenly: the default of every client."""
circle: Final = Strategy("AVG_BY_CIRCLE", by_circle)
"""Queues dealt out one by one."""


def consistent_hash(virtual_nodes: int = VIRTUAL_NODES) -> Strategy:
    """Return the strategy by which few queues change hands when a member comes or goes.

    Raises:
        InvalidValue: there is no point on the ring.
    """
    if virtual_nodes < 1:
        raise InvalidValue(f"{virtual_nodes} points for each member: give at least 1")

    return Strategy("CONSISTENT_HASH", partial(by_consistent_hash, virtual_nodes=virtual_nodes))


def machine_room(rooms: Collection[str]) -> Strategy:
    """Return the strategy that reads only brokers named `room@name` whose room is among these.

    The first members get the queues that are over, one each.

    Raises:
        InvalidValue: no room is given.
    """
    chosen = frozenset((rooms,) if isinstance(rooms, str) else rooms)
    if not chosen:
        raise InvalidValue("no machine room is given: nothing would be read")

    def share(
        client_id: str, members: Sequence[str], queues: Sequence[MessageQueue]
    ) -> list[MessageQueue]:
        near = [queue for queue in queues if _room_of(queue) in chosen]
        place = members.index(client_id)
        size, rest = divmod(len(near), len(members))
        mine = near[place * size : (place + 1) * size]
        if place < rest:
            mine.append(near[place + size * len(members)])
        return mine

    return Strategy("MACHINE_ROOM", share)


def _room_of(queue: MessageQueue) -> str | None:
    """Return the part before the `@` of a broker's name, or None without one."""
    # As Java splits: empty parts at the end do not count, those before do.
    parts = queue.broker_name.split("@")
    while parts and not parts[-1]:
        parts.pop()
    return parts[0] if len(parts) == 2 else None


def configured(queues: Iterable[MessageQueue]) -> Strategy:
    """Return the strategy that always reads these queues, whoever else is in the group.

    As in Java, all of them are this member's in every topic that it balances: name queues of the
    topics that the consumer subscribes to.
    """
    given = tuple(queues)

    def share(
        _client_id: str, _members: Sequence[str], queues: Sequence[MessageQueue]
    ) -> list[MessageQueue]:
        topics = {queue.topic for queue in queues}
        return [queue for queue in given if queue.topic in topics]

    return Strategy("CONFIG", share)
