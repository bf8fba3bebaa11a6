"""The sends of a redrive: at a pace, each with a mark, and an outcome for every one of them."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from gantrymq.admin.redrive_marks import already_sent
from gantrymq.admin.redrive_plan import FROM, JOB, TIMES, place_of, queue_name, times
from gantrymq.errors import GantryError, InvalidValue
from gantrymq.wire.codes import ResponseCode
from gantrymq.wire.peer import PeerGone, PeerLate
from gantrymq.wire.response_errors import MessageIllegal, ResponseError
from gantrymq.wire.sysflag import compression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gantrymq.admin.journal import Journal
    from gantrymq.admin.redrive_marks import Ends
    from gantrymq.admin.redrive_plan import Order, Progress
    from gantrymq.admin.sending import Copier
    from gantrymq.admin.session import Session
    from gantrymq.model.queue import MessageQueue
    from gantrymq.wire.record import MessageRecord

    _Parts = list[list[MessageRecord]]
    _Fate = tuple[str | None, str]
    """What became of a message, None for nobody knows; its new id, or why not."""

SENDS_AT_ONCE: Final = 500
SOME_UNDER_WAY: Final = 2
"""Times so many: a broker stores some while the next ones are made."""
BATCH: Final = 100
BATCH_BYTES: Final = 1 << 20
"""Of records in a batch, a quarter of what a broker takes unless it is told otherwise."""
TRIES: Final = 3
SETTLE_MS: Final = 3_000
"""After it, a request of a process that was killed has arrived or never will."""
NOT_NOW: Final = frozenset(
    {ResponseCode.SYSTEM_BUSY, ResponseCode.SERVICE_NOT_AVAILABLE, ResponseCode.GO_AWAY}
)
"""Answers that say: not stored, try later."""


class Sends:
    """Sends dead letters of one run, and notes what became of each."""

    def __init__(
        self,
        session: Session,
        order: Order,
        progress: Progress,
        watch: Callable[[Progress], None],
        journal: Journal,
        copier: Copier,
    ) -> None:
        self.session = session
        self.order = order
        self.progress = progress
        self.watch = watch
        self.journal = journal
        self.copier = copier
        self.name = journal.id
        self.sent = 0
        """By this run; what earlier ones sent does not count against its number."""
        self._paced_from = session.clock.monotonic()
        self._paced = 0
        self._takes_no_batch: set[str] = set()
        """Targets whose broker has refused one."""

    @property
    def room(self) -> int | None:
        """Return how many more this run may send; None is no limit."""
        return max(self.order.count_max - self.sent, 0) if self.order.count_max else None

    async def send_all(self, queue: MessageQueue, records: list[MessageRecord], ends: Ends) -> None:
        """Send messages, and those whose fate is not known again if they have not arrived."""
        left = records
        for attempt in range(TRIES):
            left = await self._send_once(queue, left)
            if not left:
                return
            await asyncio.sleep(SETTLE_MS / 1000)
            sent = await already_sent(self.session, self.name, ends)
            arrived = [r for r in left if place_of(queue, r) in sent]
            self.note(queue, [
                (r.queue_offset, "sent", sent[place_of(queue, r)]) for r in arrived
            ])  # fmt: skip
            known = {record.queue_offset for record in arrived}
            left = [record for record in left if record.queue_offset not in known]
            if attempt == TRIES - 1 and left:
                raise GantryError(
                    f"{len(left)} sends got no answer, {TRIES} times: the brokers are in trouble;"
                    " run the same command again to go on"
                )

    async def _send_once(
        self, queue: MessageQueue, records: list[MessageRecord]
    ) -> list[MessageRecord]:
        """Send messages, some at a time; return those of which nobody knows."""
        doubtful: list[MessageRecord] = []
        under_way: deque[tuple[_Parts, asyncio.Future[list[list[_Fate]]]]] = deque()

        async def end_first() -> None:
            parts, going = under_way[0]
            doubtful.extend(self._note_parts(queue, parts, await going))
            under_way.popleft()

        try:
            for at in range(0, len(records), SENDS_AT_ONCE):
                some = records[at : at + SENDS_AT_ONCE]
                await self._pace(len(some))
                parts = self._parts(some)
                going = asyncio.gather(*(self._send_part(queue, part) for part in parts))
                under_way.append((parts, going))
                if len(under_way) == SOME_UNDER_WAY:  # the next ones are made while these go
                    await end_first()
            while under_way:
                await end_first()
        finally:
            for _parts, going in under_way:
                going.cancel()
        return doubtful

    def _note_parts(
        self, queue: MessageQueue, parts: _Parts, told: list[list[_Fate]]
    ) -> list[MessageRecord]:
        """Write down what became of messages; return those of which nobody knows."""
        doubtful: list[MessageRecord] = []
        outcomes: list[tuple[int, str, str | None]] = []
        for part, fates in zip(parts, told, strict=True):
            for record, (result, text) in zip(part, fates, strict=True):
                if result is None:
                    doubtful.append(record)
                else:
                    outcomes.append((record.queue_offset, result, text))
        self.note(queue, outcomes)
        self.watch(self.progress)
        return doubtful

    def _parts(self, records: list[MessageRecord]) -> _Parts:
        """Return what goes together: messages of one target, as many as a batch may have."""
        by_topic: dict[str, list[MessageRecord]] = {}
        for record in records:
            by_topic.setdefault(self.order.target(record), []).append(record)
        return [part for found in by_topic.values() for part in in_batches(found)]

    async def _send_part(self, queue: MessageQueue, part: list[MessageRecord]) -> list[_Fate]:
        """Send messages of one target; return what became of each."""
        topic = self.order.target(part[0])
        if not topic:
            return [("failed", "it does not say which topic it came from")] * len(part)
        if len(part) > 1 and topic not in self._takes_no_batch:
            pairs = [(record, self._mark(queue, record)) for record in part]
            try:
                return [("sent", new) for new in await self.copier.copy_batch(pairs, topic)]
            except MessageIllegal:
                # Nothing of it is stored. Apache's brokers take no batch for a retry topic, and an
                # operator may have set a smaller limit: one by one each gets its own answer.
                self._takes_no_batch.add(topic)
            except GantryError as error:
                return [_fate_of(error)] * len(part)
        return await asyncio.gather(*(self._send_one(queue, record, topic) for record in part))

    async def _send_one(self, queue: MessageQueue, record: MessageRecord, topic: str) -> _Fate:
        try:
            sent = await self.copier.copy(record, topic, self._mark(queue, record))
        except GantryError as error:
            return _fate_of(error)
        return "sent", sent.message_id

    def _mark(self, queue: MessageQueue, record: MessageRecord) -> dict[str, str]:
        return {
            JOB: self.name,
            FROM: place_of(queue, record),
            TIMES: str(times(record) + 1),
        }

    async def _pace(self, count: int) -> None:
        """Wait until so many more may go."""
        if not self.order.rate:
            return
        now = self.session.clock.monotonic()
        due = self._paced_from + self._paced / self.order.rate
        if due > now:
            await asyncio.sleep(due - now)
        elif now - due > 1.0:  # what was not used a second ago is not caught up with
            self._paced_from, self._paced = now, 0
        self._paced += count

    # -- outcomes ---------------------------------------------------------------------------------

    def note(self, queue: MessageQueue, outcomes: Sequence[tuple[int, str, str | None]]) -> None:
        """Write outcomes down: offset, what became of it, its new id or why not."""
        name = queue_name(queue)
        self.journal.add(
            {"q": name, "o": offset, "r": result, **({} if text is None else {"t": text})}
            for offset, result, text in outcomes
        )
        for offset, result, text in outcomes:
            self.sent += result == "sent"
            self.progress.outcomes[result] += 1
            if result == "failed" and len(self.progress.examples) < 3:
                self.progress.examples.append(f"{name}:{offset}: {text}")


def in_batches(records: list[MessageRecord]) -> Iterator[list[MessageRecord]]:
    """Give messages in parts, each bounded in number and in bytes.

    One that is compressed goes alone, as it is: what it would be in a batch may be of any size.
    """
    part: list[MessageRecord] = []
    size = 0
    for record in records:
        if compression(record.raw.sys_flag) is not None:
            yield [record]
            continue
        if part and (len(part) == BATCH or size + record.stored_bytes > BATCH_BYTES):
            yield part
            part, size = [], 0
        part.append(record)
        size += record.stored_bytes
    if part:
        yield part


def _fate_of(error: GantryError) -> _Fate:
    """Return what an error says about a message that was sent.

    Raises:
        GantryError: it says nothing about a message; there is nobody to send to.
    """
    if isinstance(error, PeerGone | PeerLate):
        return None, ""
    if isinstance(error, ResponseError):
        return (None if error.code in NOT_NOW else "failed"), str(error)
    if isinstance(error, InvalidValue):
        return "failed", str(error)
    raise error
