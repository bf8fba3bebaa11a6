"""How large messages are, learnt from the units of consume queues and not on the way of a send.

A unit has the size of its record. What has come into the queues of a topic since the last scrape is
read a few thousand units at a time and counted without a look at any single one: the bytes of all
sizes that stand at the same place are one long number each, and a bound that is a power of two is a
question about those (`_at_least`). So a record that is exactly as large as a bound counts as above
it.

Owned by the task of the scrape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.broker.questions import ask
from gantrymq.errors import GantryError

if TYPE_CHECKING:
    from collections.abc import Collection

    from gantrymq.metrics.turns import Turns
    from gantrymq.store.consume_queue import ConsumeQueue
    from gantrymq.store.message_store import MessageStore

BOUNDS: Final = (1 << 10, 4 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20)
"""Apache's."""
UNITS_AT_ONCE: Final = 4096
UNITS_MAX: Final = 4_000_000
"""Read in one scrape; the rest is for the next one."""
_UNIT_BYTES: Final = 20
_SIZE_AT: Final = 8


class Sizes:
    """The records of one topic."""

    def __init__(self) -> None:
        self.below = [0] * (len(BOUNDS) + 1)
        self.total = 0

    def add(self, units: bytes) -> None:
        """Count the records of some units."""
        columns = [units[_SIZE_AT + place :: _UNIT_BYTES] for place in range(4)]
        count = len(columns[0])
        for place, bound in enumerate(BOUNDS):
            self.below[place] += count - _at_least(columns, bound)
        self.below[-1] += count
        self.total += sum(sum(column) << (24 - 8 * place) for place, column in enumerate(columns))


def _at_least(columns: list[bytes], bound: int) -> int:
    """Return how many numbers are `bound`, a power of two, or more."""
    place = 3 - (bound.bit_length() - 1) // 8
    least = bound >> (24 - 8 * place)
    marks = int.from_bytes(columns[place].translate(_marks_from(least)))
    for higher in columns[:place]:
        marks |= int.from_bytes(higher.translate(_marks_from(1)))
    return marks.bit_count()


_TABLES: Final[dict[int, bytes]] = {}


def _marks_from(least: int) -> bytes:
    """Return a table that makes 1 of every byte from one on, and 0 of the others."""
    if least not in _TABLES:
        _TABLES[least] = bytes(byte >= least for byte in range(256))
    return _TABLES[least]


class MessageSizes:
    """The sizes of the topics that are shown, since this process began."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._begins = store.queues.ends()
        """Where queues ended when this began; a queue that is not among them began empty."""
        self._read: dict[tuple[str, int], int] = {}
        self.by_topic: dict[str, Sizes] = {}

    async def look(self, topics: Collection[str], turns: Turns) -> None:
        """Count what has come since the last time."""
        for topic in self.by_topic.keys() - set(topics):
            del self.by_topic[topic]
        left = UNITS_MAX
        for topic in topics:
            sizes = self.by_topic.setdefault(topic, Sizes())
            for queue in self._store.queues.queues(topic):
                left -= await self._take(queue, sizes, left, turns)

    async def _take(self, queue: ConsumeQueue, sizes: Sizes, most: int, turns: Turns) -> int:
        key = queue.topic, queue.queue_id
        start = self._read.get(key)
        if start is None:
            start = self._begins.get(key, 0)
        position = min(max(start, queue.min_offset), queue.max_offset)
        end = min(queue.max_offset, position + most)
        begun = position
        while position < end:
            count = min(UNITS_AT_ONCE, end - position)
            units = await self._units(queue, position, count)
            sizes.add(units)
            if len(units) < _UNIT_BYTES:
                break
            position += len(units) // _UNIT_BYTES
            await turns.next()
        self._read[key] = position
        return position - begun

    async def _units(self, queue: ConsumeQueue, offset: int, count: int) -> bytes:
        try:
            return await ask(
                self._store,
                lambda store: store.units(queue.topic, queue.queue_id, offset, count),
            )
        except (GantryError, OSError):
            return b""  # the disk is busy: the next scrape reads on here
