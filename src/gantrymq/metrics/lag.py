"""How far groups are behind: in messages, which is arithmetic, and in time, which is a question.

The time of a message stands in its record, and the record that a slow group wants next may have
left the page cache long ago. So only those that are shown are asked about, the ones furthest behind
first, and no longer than `ASKING_S_MAX` in one scrape; an answer is remembered for as long as the
group stands where it is.

A queue in which a group has never committed anything does not count: nobody knows where the group
would begin. A topic that a live group no longer subscribes to does not count either.

Owned by the task of the scrape.
"""

from __future__ import annotations

from heapq import heappush, heappushpop
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from gantrymq.broker.questions import ask
from gantrymq.errors import GantryError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.broker.broker import Broker
    from gantrymq.clock import Clock
    from gantrymq.metrics.turns import Turns

ASKING_S_MAX: Final = 2.0
"""How long a scrape waits for the disk, in all."""


class QueueLag(NamedTuple):
    """A group in one queue; ordered by how far it is behind."""

    messages: int
    group: str
    topic: str
    queue_id: int
    committed: int
    pulled: int
    end: int


class GroupLag(NamedTuple):
    """A group in one topic; ordered in the same way."""

    messages: int
    group: str
    topic: str
    in_flight: int
    ready: int
    queues: Sequence[QueueLag]


Lag = TypeVar("Lag", QueueLag, GroupLag)


class Lags(NamedTuple):
    """What is shown, and the sum of the rest: messages, in flight, ready."""

    groups: list[GroupLag]
    queues: list[QueueLag]
    other: tuple[int, int, int]
    groups_left_out: int
    queues_left_out: int


class _Worst(Generic[Lag]):
    """Those furthest behind; the others are counted and forgotten, for there may be many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._heap: list[Lag] = []
        self.left_out = 0

    def add(self, one: Lag) -> Lag | None:
        """Take one in; return the one that is not among the worst, if there are enough."""
        if len(self._heap) < self._most:
            heappush(self._heap, one)
            return None
        self.left_out += 1
        return heappushpop(self._heap, one)

    def sorted(self) -> list[Lag]:
        """Return them, the worst first."""
        return sorted(self._heap, reverse=True)


async def measure(broker: Broker, shown_max: int, turns: Turns) -> Lags:
    """Return the groups and queues that are furthest behind, at most so many of each."""
    groups: _Worst[GroupLag] = _Worst(shown_max)
    queues: _Worst[QueueLag] = _Worst(shown_max)
    other = [0, 0, 0]
    offsets = broker.tables.offsets
    for topic in offsets.topics():
        for group in offsets.groups_of(topic):
            one = _of(broker, group, topic)
            if one is None:
                continue
            for queue in one.queues:
                queues.add(queue)
            rest = groups.add(one)
            if rest is not None:
                other[0] += rest.messages
                other[1] += rest.in_flight
                other[2] += rest.ready
            await turns.next()
    messages, in_flight, ready = other
    return Lags(
        groups.sorted(),
        queues.sorted(),
        (messages, in_flight, ready),
        groups.left_out,
        queues.left_out,
    )


def _of(broker: Broker, group: str, topic: str) -> GroupLag | None:
    """Return how far a group is behind in a topic; None if it has nothing to do with it."""
    tables = broker.tables
    config = tables.topics.find(topic)
    committed = tables.offsets.all_of(group, topic)
    if config is None or committed is None:
        return None
    state = tables.clients.consumer(group)
    if state is not None and state.subscriptions and topic not in state.subscriptions:
        return None
    queues = []
    for queue_id, offset in committed.items():
        if not 0 <= queue_id < config.read_queues:
            continue
        queue = broker.store.queues.find(topic, queue_id)
        end = 0 if queue is None else queue.max_offset
        at = max(offset, 0)
        pulled = max(tables.offsets.pull_offset(group, topic, queue_id), at)
        queues.append(QueueLag(max(0, end - at), group, topic, queue_id, at, pulled, end))
    return GroupLag(
        sum(queue.messages for queue in queues),
        group,
        topic,
        sum(max(0, min(queue.pulled, queue.end) - queue.committed) for queue in queues),
        sum(max(0, queue.end - queue.pulled) for queue in queues),
        queues,
    )


class Ages:
    """When the messages were stored that groups want next."""

    def __init__(self, broker: Broker, clock: Clock, kept_max: int) -> None:
        self._broker = broker
        self._clock = clock
        self._kept_max = kept_max
        self._known: dict[tuple[str, int, int], int | None] = {}
        self._asked: dict[tuple[str, int, int], int | None] = {}
        self._until = 0.0
        self.left_out = 0
        """Messages whose age was not found out in this scrape."""

    def begin(self) -> None:
        """Begin a scrape: what the one before did not ask for is forgotten."""
        self._known, self._asked = self._asked, {}
        self._until = self._clock.monotonic() + ASKING_S_MAX
        self.left_out = 0

    async def age_ms(self, topic: str, queue_id: int, offset: int, end: int) -> int | None:
        """Return how old the message of an offset is; 0 behind the end, None if nobody knows."""
        if offset >= end:
            return 0
        key = topic, queue_id, offset
        if key in self._asked:
            stored = self._asked[key]
        elif key in self._known:
            stored = self._asked[key] = self._known[key]
        elif len(self._asked) >= self._kept_max or self._clock.monotonic() >= self._until:
            self.left_out += 1
            return None
        else:
            stored = await self._stored_ms(topic, queue_id, offset)
            if stored is None:
                self.left_out += 1
                return None
            self._asked[key] = stored
        return None if stored is None else max(0, self._clock.now_ms() - stored)

    async def _stored_ms(self, topic: str, queue_id: int, offset: int) -> int | None:
        """Ask the store; a group that is behind what was deleted goes on at the first there is."""
        try:
            return await ask(
                self._broker.store,
                lambda store: store.stored_at(
                    topic, queue_id, max(offset, store.min_offset(topic, queue_id))
                ),
            )
        except (GantryError, OSError):
            return None  # the disk is busy, or the store is closing: the next scrape asks again

    async def oldest_ms(self, queues: Sequence[QueueLag], *, pulled: bool = False) -> int | None:
        """Return the age of the oldest message that is not committed, or not pulled."""
        oldest: int | None = 0
        for queue in queues:
            offset = queue.pulled if pulled else queue.committed
            age = await self.age_ms(queue.topic, queue.queue_id, offset, queue.end)
            if age is None:
                return None
            oldest = max(oldest or 0, age)
        return oldest
