"""Brokers as a planner sees them: routes from a name server, offsets from the brokers."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from gantrymq.client.errors import NoRoute, NoRouteCause
from gantrymq.kernel import kernel
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.spark.backend import Bounds, Choice
from gantrymq.spark.link import link_to
from gantrymq.spark.pulls import Pulls
from gantrymq.spark.slices import Queue, Slice, Span
from gantrymq.wire.bodies.topic import TOPIC_LIST
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.command import Command
from gantrymq.wire.record import decode_records
from gantrymq.wire.response_errors import error_for

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from gantrymq.spark.offsets import Offsets
    from gantrymq.spark.options import SourceOptions

QUESTIONS_MAX: Final = 64
"""Questions to brokers at the same time."""
_GONE: Final = frozenset({NoRouteCause.UNKNOWN_TOPIC, NoRouteCause.NOT_READABLE})


class BrokerBackend:
    """The queues of some topics, wherever their brokers are."""

    def __init__(self, options: SourceOptions) -> None:
        self._choice = Choice(options)
        self._link = link_to(options.connection)

    def bounds(self, *, missing_ok: bool = False) -> dict[Queue, Bounds]:
        """Return all queues that are to be read, as they are now."""
        return self._link.run(self._bounds(missing_ok=missing_ok))

    async def _bounds(self, *, missing_ok: bool) -> dict[Queue, Bounds]:
        topics = self._choice.topics
        if self._choice.has_pattern:
            topics = tuple(self._choice.matching(await self._topic_names()))
        queues = []
        for topic in topics:
            try:
                queues += await self._queues(topic)
            except NoRoute as error:
                if not missing_ok or error.cause not in _GONE:
                    raise
        gate = asyncio.Semaphore(QUESTIONS_MAX)

        async def ask(queue: Queue) -> Bounds:
            asked, calls = self._message_queue(queue), self._link.calls
            async with gate:
                least = await self._link.patiently(asked.topic, partial(calls.min_offset, asked))
                most = await self._link.patiently(asked.topic, partial(calls.max_offset, asked))
            return Bounds(min(least, most), most)

        found = await asyncio.gather(*map(ask, queues))
        return self._choice.chosen(dict(zip(queues, found, strict=True)), missing_ok=missing_ok)

    async def _topic_names(self) -> list[str]:
        request = Command.request(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, 0)
        servers = self._link.core.name_servers
        reply = await self._link.patiently(None, lambda: servers.ask(request))
        if reply.code:
            raise error_for(reply.code, reply.remark)
        unwrap = self._link.core.namespace.unwrap
        return [unwrap(name) for name in TOPIC_LIST.decode(reply.body).topic_list]

    async def _queues(self, topic: str) -> list[Queue]:
        full = self._link.full_name(topic)
        route = await self._link.route(full, refresh=True)
        if not route.read_queues:
            raise NoRoute(full, NoRouteCause.NOT_READABLE, "no broker lets it be read")
        return [Queue(topic, one.broker_name, one.queue_id) for one in route.read_queues]

    def _message_queue(self, queue: Queue) -> MessageQueue:
        return MessageQueue(
            self._link.full_name(queue.topic), queue.broker, QueueId(queue.queue_id)
        )

    def stored_at(self, queue: Queue, offset: int) -> int | None:
        """Return when the first message at or behind an offset was stored; None without one."""
        found = self._samples(queue, offset, 1)
        return found[0][1] if found else None

    def _samples(self, queue: Queue, offset: int, count: int) -> list[tuple[int, int]]:
        """Return size and store time of some messages from an offset on."""
        pulls = Pulls(self._link, self._message_queue(queue), count)
        body = self._link.run(pulls.first(offset))
        return [
            (kernel.record_bytes(record.raw), record.raw.store_timestamp)
            for record in decode_records(body)
        ]

    def rows_within(self, queue: Queue, span: Span, bytes_max: int) -> int:
        """Return about how many messages from the begin of a range have so many bytes."""
        return min(max(bytes_max // self.record_bytes(queue, span), 1), span.end - span.begin)

    def record_bytes(self, queue: Queue, span: Span) -> int:
        """Return about how many bytes a message of a range has: a sample of its first ones."""
        sizes = [size for size, _time in self._samples(queue, span.begin, 8)]
        return max(sum(sizes) // len(sizes), 1) if sizes else 1

    def committed(self, group: str, queues: Collection[Queue]) -> Offsets:
        """Return what a group has committed, for those queues for which it has."""
        return self._link.run(self._committed(group, queues))

    async def _committed(self, group: str, queues: Collection[Queue]) -> Offsets:
        from gantrymq.client.consuming.calls import ConsumerCalls  # noqa: PLC0415

        calls = ConsumerCalls(self._link.core, self._link.full_name(group))
        found: Offsets = {}
        for queue in queues:
            asked = self._message_queue(queue)
            offset = await self._link.patiently(asked.topic, partial(calls.committed, asked))
            if offset is not None:
                found[queue] = offset
        return found

    def slices(self, parts: Iterable[tuple[Queue, Span]]) -> list[Slice]:
        """Return parts of queues as tasks get them."""
        return [
            Slice(*queue, span.begin, span.end, self._link.full_name(queue.topic))
            for queue, span in parts
        ]

    def close(self) -> None:
        """Do nothing: connections stay for the next question."""
