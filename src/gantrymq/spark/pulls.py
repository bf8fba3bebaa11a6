"""Pulls of a known range of a queue, many at once.

A broker gives 32 messages to a pull, unless it is set otherwise, so a range is a long row of pulls.
Asked one after the other, each would wait for the way there and back. But offsets in a queue follow
one another: once the first answer has shown how many messages a broker gives, the next ones can be
asked for before it has answered. They leave in one write, and what falls short is asked for again.

With a filter nobody knows where the next answer begins, and pulls follow one another.

A slave may be behind its master. That messages are not there is believed of a master alone.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.client.consuming.pull_requests import PullRequests, read_answer
from gantrymq.client.consuming.statistics import TopicCounters
from gantrymq.client.consuming.subscribed import Subscribed
from gantrymq.client.consuming.subscription import subscription_of
from gantrymq.client.errors import PeerLate
from gantrymq.model.route import MASTER_ID
from gantrymq.wire.codes import ResponseCode
from gantrymq.wire.command import Command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.client.consuming.pull_requests import Pulled
    from gantrymq.client.consuming.subscription import Expression
    from gantrymq.model.queue import MessageQueue
    from gantrymq.spark.link import Link

ROW_MAX: Final = 256
"""Pulls that are under way for one range."""
CHUNK_MESSAGES: Final = 8192
CHUNK_BYTES: Final = 8 << 20
RELEARN_CHUNKS: Final = 32
"""After so many it is looked again how many messages a broker gives: cold ones are fewer."""
_SUCCESS: Final = int(ResponseCode.SUCCESS)
_MOVED: Final = int(ResponseCode.PULL_OFFSET_MOVED)
STILL_MAX: Final = 20
"""Answers that bring neither messages nor another offset, before that is an error."""
_STILL_S: Final = 0.05


class Moved(NamedTuple):
    """A broker says that messages of a range are not there."""

    begin: int
    end: int


class Chunk(NamedTuple):
    """Some messages of a range."""

    bodies: list[bytes]
    """Records, in order."""
    next: int
    """Where the next chunk begins."""
    moved: list[Moved]
    ended: bool
    """The queue has no more, whatever the range says."""


class Pulls:
    """The pulls of one queue. Its coroutines run on the link's loop."""

    def __init__(
        self,
        link: Link,
        queue: MessageQueue,
        count: int,
        expression: Expression = "*",
        *,
        group: str | None = None,
    ) -> None:
        self._link = link
        self._group = group or link.group
        self._queue = queue
        self._count = count
        told = subscription_of(queue.topic, expression, 0)
        self._subscribed = Subscribed(queue.topic, told, None, TopicCounters())
        self._is_filtered = bool(told.tags) or expression != "*"
        self._requests = self._made(count)
        self._broker_id = MASTER_ID
        self._is_masters = True  # whether the last answers were
        self._stride = 0  # how many messages an answer has; 0: not known yet
        self._answer_bytes = 1
        self._chunks = 0

    def _made(self, count: int) -> PullRequests:
        return PullRequests(
            self._group,
            self._queue,
            self._subscribed,
            count,
            suspend_s=0,
            names_subscription=True,
        )

    async def first(self, offset: int) -> bytes:
        """Return the messages at an offset, or behind it if there are none at it."""
        found = await self._link.patiently(self._queue.topic, lambda: self._chain(offset, 2**62, 1))
        return b"".join(found.bodies)

    async def probe(self, offset: int) -> None:
        """Pull once, whatever comes of it."""
        await self._ask((offset,))

    async def chunk(self, begin: int, end: int) -> Chunk:
        """Return the messages of the front of a range.

        Raises:
            GantryError: it did not work, also when tried again.
        """
        return await self._link.patiently(self._queue.topic, lambda: self._chunk(begin, end))

    async def _chunk(self, begin: int, end: int) -> Chunk:
        self._chunks += 1
        if self._chunks % RELEARN_CHUNKS == 0:
            self._stride, self._requests = 0, self._made(self._count)
        try:
            if self._is_filtered or not self._stride:
                return await self._chain(begin, end)
            return await self._row(begin, end)
        except BaseException:
            self._broker_id = MASTER_ID
            raise

    async def _row(self, begin: int, end: int) -> Chunk:
        """Ask for many parts of a range at once."""
        stride = self._stride
        pulls = max(min(CHUNK_MESSAGES // stride, ROW_MAX, CHUNK_BYTES // self._answer_bytes), 1)
        stop = min(begin + pulls * stride, end)
        starts = range(begin, stop, stride)
        found = Chunk([], begin, [], ended=False)
        answers = await self._ask(starts)
        are_masters = self._is_masters
        for start, pulled in zip(starts, answers, strict=True):
            part_end = min(start + stride, stop)
            self._is_masters = are_masters
            self._note(pulled)
            if pulled.code == _SUCCESS and pulled.body and pulled.next_offset >= part_end:
                found.bodies.append(pulled.body)
                continue
            if pulled.body:
                self._learn(pulled.next_offset - start, len(pulled.body))
            part = await self._chain(start, part_end, first=pulled)
            found.bodies.extend(part.bodies)
            found.moved.extend(part.moved)
            if part.ended:
                return found._replace(next=part.next, ended=True)
            if part.next > part_end:
                # Nothing is there for a while; what was asked for meanwhile may lie before it.
                return found._replace(next=part.next)
        return found._replace(next=stop)

    async def _chain(
        self, begin: int, end: int, messages: int = 0, first: Pulled | None = None
    ) -> Chunk:
        """Ask for one part of a range after the other, up to a chunk of it."""
        found, position, size, still = Chunk([], begin, [], ended=False), begin, 0, 0
        learns = not self._is_filtered and not self._stride and not messages
        while position < end and size < CHUNK_BYTES and len(found.bodies) < ROW_MAX:
            pulled = first or (await self._ask((position,)))[0]
            first = None
            self._note(pulled)
            if not self._is_masters and _denies(pulled, position):
                pulled = await self._ask_master(position)
                self._note(pulled)
            if pulled.body:
                found.bodies.append(pulled.body)
                size += len(pulled.body)
                if learns:
                    self._learn(pulled.next_offset - position, len(pulled.body))
            elif pulled.code == _MOVED:
                found.moved.append(Moved(position, pulled.next_offset))
            if pulled.next_offset > position:
                position, still = pulled.next_offset, 0
                if (messages or learns) and found.bodies:
                    break
            elif _denies(pulled, position):
                return found._replace(next=position, ended=True)
            else:
                still += 1
                if still > STILL_MAX:
                    raise PeerLate(f"{self._queue} stands still at {position}")
                await asyncio.sleep(_STILL_S)
        return found._replace(next=position)

    def _learn(self, count: int, size: int) -> None:
        """Note how many messages an answer has, so that the next ones can be asked for ahead."""
        if 1 <= count <= self._count:
            self._stride, self._answer_bytes = count, max(size, 1)
            self._requests = self._made(count)

    def _note(self, pulled: Pulled) -> None:
        self._broker_id = max(pulled.suggested_id, MASTER_ID)

    async def _ask_master(self, offset: int) -> Pulled:
        """Return a master's answer to a pull.

        Raises:
            PeerLate: there is none; another attempt may find it.
        """
        self._broker_id = MASTER_ID
        (pulled,) = await self._ask((offset,))
        if not self._is_masters and _denies(pulled, offset):
            raise PeerLate(
                f"{self._queue} has no master now, and the slave that answers for it has only "
                f"{pulled.min_offset} to {pulled.max_offset}, not {offset}"
            )
        return pulled

    async def _ask(self, offsets: Sequence[int]) -> list[Pulled]:
        """Return the answers to pulls, in order."""
        core, queue = self._link.core, self._queue
        address = await self._link.calls.address(queue, self._broker_id)
        route = await core.routes.get(queue.topic)
        self._is_masters = address == route.address(queue.broker_name)
        if core.settings.credentials is None:
            return await asyncio.to_thread(self._link.lines.ask, address, self._requests, offsets)
        # Each is signed by itself.
        wait_s = self._link.options.timeout_s
        asked = [core.remote.ask(address, self._requests.at(one), wait_s) for one in offsets]
        replies = await asyncio.gather(*asked, return_exceptions=True)
        for reply in replies:
            if isinstance(reply, BaseException):
                raise reply
        return [read_answer(reply) for reply in replies if isinstance(reply, Command)]


def _denies(pulled: Pulled, offset: int) -> bool:
    """Tell whether an answer says that there is no message at an offset."""
    return not pulled.body and (pulled.code == _MOVED or offset >= pulled.max_offset)
