"""How the members of a group share queues, with the results of Java's clients.

Members work it out for themselves from the same sorted lists, and a broker does it for those that
ask; so members of either kind, written in Java or in Python, agree. Each function takes a member,
all members in `java_order`, and all queues sorted, and returns the queues of that member.
"""

from __future__ import annotations

from bisect import bisect_left
from hashlib import md5
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.model.queue import MessageQueue

VIRTUAL_NODES: Final = 10
"""Points of each member on the ring of the consistent hash; all members must have as many."""


def java_order(text: str) -> bytes:
    """Order texts as Java does, by their UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")


def averagely(
    client_id: str, members: Sequence[str], queues: Sequence[MessageQueue]
) -> list[MessageQueue]:
    """Give each member neighbours; the first ones get one more where it does not come out."""
    place = members.index(client_id)
    size, rest = divmod(len(queues), len(members))
    start = place * size + min(place, rest)
    return list(queues[start : start + size + (place < rest)])


def by_circle(
    client_id: str, members: Sequence[str], queues: Sequence[MessageQueue]
) -> list[MessageQueue]:
    """Deal the queues out one by one."""
    return list(queues[members.index(client_id) :: len(members)])


def by_consistent_hash(
    client_id: str,
    members: Sequence[str],
    queues: Sequence[MessageQueue],
    virtual_nodes: int = VIRTUAL_NODES,
) -> list[MessageQueue]:
    """Give each queue to the next member on a ring, so that few move when one comes or goes."""
    points: dict[int, str] = {}
    for member in dict.fromkeys(members):
        copies = virtual_nodes * members.count(member)
        points.update((_ring_place(f"{member}-{copy}"), member) for copy in range(copies))
    ring = sorted(points)

    def owner(queue: MessageQueue) -> str:
        text = (
            f"MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, "
            f"queueId={queue.queue_id}]"
        )
        return points[ring[bisect_left(ring, _ring_place(text)) % len(ring)]]

    return [queue for queue in queues if owner(queue) == client_id]


def _ring_place(key: str) -> int:
    """Return the place of a text on the ring: not a secret, and Java's choice."""
    return int.from_bytes(md5(key.encode(errors="replace"), usedforsecurity=False).digest()[:4])
