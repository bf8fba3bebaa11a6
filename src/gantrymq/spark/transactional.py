"""The level transactional: rows become visible when the driver commits the batch, or never.

    tasks    half messages, marked as those of the level idempotent; handles go to the driver
    driver   1. a decision, with all handles, in the decision topic: from here on it is committed
             2. each half message is ended with commit, in its order within its queue
    abort    each is ended with rollback

A batch that is replayed after a crash sends new half messages. If the decision is found, the old
ones are finished and the new ones rolled back; otherwise the new ones count, and brokers forget the
old ones, as nobody answers for them. Ending a half message twice would make two messages on some
brokers, so on a replay the driver looks in the queues which marks are there and ends the others.

A batch job is not replayed: it has no decision, and one that dies while it commits has committed a
part of it.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from gantrymq.client.results import TransactionState
from gantrymq.client.transactions import Transactions
from gantrymq.errors import GantryError
from gantrymq.model.message import Message, OffsetId
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.spark.places import MARK, Place, group_of
from gantrymq.spark.pulls import Pulls
from gantrymq.spark.sending import GROUP, Numbered, Sender
from gantrymq.spark.tails import Tails
from gantrymq.wire import properties as names
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.transaction import EndTransactionRequest
from gantrymq.wire.record import decode_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gantrymq.spark.link import Link
    from gantrymq.spark.options import SinkOptions

HANDLES_A_RECORD: Final = 5000
HALVES_MAX: Final = 128
"""Half messages that are under way."""
KNOWN_LOOKS_MAX: Final = 100
"""How often it is looked whether a topic that was just made is known to the name server."""
_KNOWN_S: Final = 0.1
ENDS_MAX: Final = 16
"""Queues in which messages are ended at the same time."""


class Handle(NamedTuple):
    """A half message, as the driver can end it."""

    topic: str
    """With its namespace."""
    broker: str
    queue_id: int
    """Where it goes when it is committed."""
    half_offset: int
    log_offset: int
    message_id: str
    transaction_id: str
    partition: int
    number: int

    @property
    def queue(self) -> MessageQueue:
        """Return where it goes."""
        return MessageQueue(self.topic, self.broker, QueueId(self.queue_id))


class HalfSender(Sender):
    """Sends the rows of one task as half messages."""

    keeps_queue = True

    def __init__(self, link: Link, options: SinkOptions, place: Place) -> None:
        super().__init__(link, options, place)
        self.handles: list[Handle] = []
        self._tails = Tails(link, place.group)
        self._based: set[MessageQueue] = set()

    async def store(self, queue: MessageQueue, rows: list[Numbered]) -> None:
        """Store rows as half messages.

        Raises:
            GantryError: one is not stored.
        """
        if self.place.is_stream and queue not in self._based:
            self._based.add(queue)
            await self._tails.base(queue)
        gate = asyncio.Semaphore(HALVES_MAX)

        async def one(row: Numbered) -> Handle:
            async with gate:
                return await self._half(queue, row)

        self.handles += await asyncio.gather(*map(one, rows))
        self.sent += len(rows)

    async def _half(self, queue: MessageQueue, row: Numbered) -> Handle:
        mark = {MARK: self.place.mark(row.number)}
        message = replace(row.message, properties={**row.message.properties, **mark})
        group = self.link.full_name(self.options.connection.group or GROUP)
        extra = {names.TRANSACTION_PREPARED: "true", names.PRODUCER_GROUP: group}
        outgoing = await self.alone(message, extra)
        sent = await self.part(queue, Transactions.half(outgoing))
        return Handle(
            queue.topic,
            queue.broker_name,
            queue.queue_id,
            sent.offset,
            OffsetId.parse(sent.offset_id.partition(",")[0]).log_offset,
            sent.message_id,
            sent.transaction_id or sent.message_id,
            self.place.partition,
            row.number,
        )


class Endings:
    """The driver's part. Its coroutines run on the link's loop."""

    def __init__(self, link: Link, options: SinkOptions) -> None:
        self._link = link
        self._options = options
        self._group = link.full_name(options.connection.group or GROUP)

    async def commit_batch(self, query: str, batch: int, handles: Sequence[Handle]) -> None:
        """Commit a batch of a stream, which may be a replay.

        Raises:
            GantryError: it is not committed as a whole; Spark replays it.
        """
        decisions = Decisions(self._link, self._options, query)
        decided = await decisions.find(batch)
        if decided is None:
            tails = Tails(self._link, group_of(query))
            bases = {queue: await self._end_of(queue) for queue in _queues_of(handles)}
            first = await decisions.write(batch, handles)
            await self.end(handles, TransactionState.COMMIT)
            # Not behind the batch but before it: Spark may replay it.
            for queue, base in bases.items():
                await tails.set_base(queue, base)
            await decisions.move_base(first)
            return
        missing = await self._not_visible(query, batch, decided)
        await self.end(missing, TransactionState.COMMIT)
        old = {handle.message_id for handle in decided}
        new = [handle for handle in handles if handle.message_id not in old]
        await self.end(new, TransactionState.ROLLBACK)

    async def _end_of(self, queue: MessageQueue) -> int:
        return await self._link.patiently(queue.topic, partial(self._link.calls.max_offset, queue))

    async def _not_visible(self, query: str, batch: int, handles: Sequence[Handle]) -> list[Handle]:
        """Return the messages of a decision that are not in their queues yet."""
        tails, marks = Tails(self._link, group_of(query)), set[str]()
        for queue in _queues_of(handles):
            base = await tails.base(queue)
            await tails.marks(queue, base, lambda mark, _offset, _crc: marks.add(mark))
        place = Place(query, 0, batch, 0, is_stream=True, begun_ms=0)
        return [
            handle
            for handle in handles
            if place._replace(partition=handle.partition).mark(handle.number) not in marks
        ]

    async def end(self, handles: Sequence[Handle], state: TransactionState) -> None:
        """End half messages, those of a queue in their order.

        Raises:
            GantryError: a broker did not take it.
        """
        queues: dict[MessageQueue, list[Handle]] = {}
        for handle in sorted(handles, key=lambda one: (one.partition, one.number)):
            queues.setdefault(handle.queue, []).append(handle)
        gate = asyncio.Semaphore(ENDS_MAX)

        async def one(of_queue: list[Handle]) -> None:
            async with gate:
                for handle in of_queue:
                    await self._end(handle, state)

        await asyncio.gather(*map(one, queues.values()))

    async def _end(self, handle: Handle, state: TransactionState) -> None:
        header = EndTransactionRequest(
            producer_group=self._group,
            tran_state_table_offset=handle.half_offset,
            commit_log_offset=handle.log_offset,
            commit_or_rollback=int(state),
            from_transaction_check=False,
            msg_id=handle.message_id,
            transaction_id=handle.transaction_id,
            topic=handle.topic,
        )
        address = await self._link.calls.master(handle.queue)
        # Not made again: a broker may have done it, and would do it twice. A replay looks.
        await self._link.core.remote.call(
            address,
            RequestCode.END_TRANSACTION,
            header,
            timeout_s=self._link.options.timeout_s,
        )


class Decisions:
    """What a query has decided, in the first queue of the decision topic."""

    def __init__(self, link: Link, options: SinkOptions, query: str) -> None:
        self._link = link
        self._query = query
        self._tails = Tails(link, group_of(query))
        place = Place(query, 0, 0, 0, is_stream=True, begun_ms=0)
        self._sender = Sender(link, options, place)
        self._topic = options.decision_topic
        self._queue: MessageQueue | None = None

    async def _place(self) -> MessageQueue:
        if self._queue is None:
            self._queue = (await self._sender.queues(self._topic))[0]
        return self._queue

    async def write(self, batch: int, handles: Sequence[Handle]) -> int:
        """Note that a batch is to be committed; return an offset before the note.

        Raises:
            GantryError: it is not noted.
        """
        queue = await self._place()
        if not await self._known_topic(queue):
            await self._sender.store(queue, [self._record(batch, -1, 0, [])])
            for _ in range(KNOWN_LOOKS_MAX):
                if await self._known_topic(queue):
                    break
                await asyncio.sleep(_KNOWN_S)
        await self._tails.base(queue)
        calls = self._link.calls
        first = await self._link.patiently(queue.topic, partial(calls.max_offset, queue))
        parts = [
            list(handles[at : at + HANDLES_A_RECORD])
            for at in range(0, len(handles), HANDLES_A_RECORD)
        ]
        for number, part in enumerate(parts):
            await self._sender.store(queue, [self._record(batch, number, len(parts), part)])
        await self._sender.store(queue, [self._record(batch, len(parts), len(parts), [])])
        return first

    async def _known_topic(self, queue: MessageQueue) -> bool:
        """Tell whether the topic is there, and not only the promise of one."""
        route = await self._link.core.routes.get(queue.topic, refresh=True, template=True)
        return not route.is_template

    def _record(self, batch: int, number: int, parts: int, handles: list[Handle]) -> Numbered:
        told = {"query": self._query, "batch": batch, "number": number, "parts": parts}
        body = zlib.compress(json.dumps({**told, "handles": handles}).encode())
        return Numbered(number, Message(topic=self._topic, body=body, keys=(self._query,)))

    async def find(self, batch: int) -> list[Handle] | None:
        """Return the handles of a batch that was decided; None if it was not."""
        queue = await self._place()
        if not await self._known_topic(queue):
            return None
        found: dict[int, list[Handle]] = {}
        is_whole = False
        begin = await self._tails.base(queue)
        calls = self._link.calls
        end = await self._link.patiently(queue.topic, partial(calls.max_offset, queue))
        pulls = Pulls(self._link, queue, 32)
        while begin < end:
            chunk = await pulls.chunk(begin, end)
            for record in (one for body in chunk.bodies for one in decode_records(body)):
                told = json.loads(zlib.decompress(record.body))
                if (told["query"], told["batch"]) == (self._query, batch):
                    found[told["number"]] = [Handle(*handle) for handle in told["handles"]]
                    is_whole |= told["number"] == told["parts"]
            if chunk.ended or chunk.next <= begin:
                break
            begin = chunk.next
        if not is_whole:
            return None
        return [handle for number in sorted(found) for handle in found[number]]

    async def move_base(self, offset: int) -> None:
        """Note that nothing decided before an offset is needed any more."""
        await self._tails.set_base(await self._place(), offset)


def _queues_of(handles: Iterable[Handle]) -> list[MessageQueue]:
    return sorted({handle.queue for handle in handles})


def check_handles(handles: Sequence[Handle]) -> None:
    """Refuse what a driver cannot end.

    Raises:
        GantryError: a handle comes twice.
    """
    if len({handle.message_id for handle in handles}) < len(handles):
        raise GantryError("a half message was reported twice; the batch is not committed")
