"""The level idempotent: every row once, also after a task, an executor or the driver has died.

Rows are numbered in their partition, and a partition's rows have fixed queues. Before a task sends
to a queue it looks which of its numbers are there (`tails`), and leaves those out. After an error
that does not say whether a batch was stored, it looks again.

Two things must hold: Spark gives a partition of a batch the same rows in the same order each time,
which it does for plans without random numbers and unordered shuffles; and no two attempts of a task
run at once, so speculation is off. An attempt that follows another waits a moment, so that what the
first had sent just before it died has arrived.

That the rows are the same is looked at: a row that is left out must have the body that is there,
and whatever is there must be a row. Otherwise the task fails, for rows would be lost in silence.
"""

from __future__ import annotations

import asyncio
import zlib
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from gantrymq.client.errors import NoRoute, NoRouteCause, PeerGone, PeerLate
from gantrymq.errors import GantryError
from gantrymq.spark.places import MARK
from gantrymq.spark.sending import Numbered, Sender
from gantrymq.spark.tails import Tails

if TYPE_CHECKING:
    from gantrymq.model.queue import MessageQueue
    from gantrymq.spark.link import Link
    from gantrymq.spark.options import SinkOptions
    from gantrymq.spark.places import Place

SETTLE_S: Final = 1.0
"""How long a second attempt waits for what the first may have under way."""


class OtherRows(GantryError):
    """What was sent of a batch before is not what is to be sent now."""


class IdempotentSender(Sender):
    """Sends the rows of one task once."""

    keeps_queue = True

    def __init__(self, link: Link, options: SinkOptions, place: Place) -> None:
        super().__init__(link, options, place)
        self._tails = Tails(link, place.group)
        self._prefix = place.mark(0)[:-1]
        self._seen: dict[MessageQueue, dict[int, int]] = {}  # number -> CRC of the body
        self._own: dict[MessageQueue, set[int]] = {}
        self._looked: dict[MessageQueue, int] = {}  # how far the queue was looked at
        self._has_settled = place.attempt == 0

    async def store(self, queue: MessageQueue, rows: list[Numbered]) -> None:
        """Store those rows in a queue that are not there.

        Raises:
            GantryError: one is not stored.
        """
        if queue not in self._seen:
            await self._first_look(queue)
        self._own.setdefault(queue, set()).update(row.number for row in rows)
        for tries_left in reversed(range(self.link.options.retries + 1)):
            missing = self._missing(queue, rows)
            try:
                await self._send_marked(queue, missing)
            except GantryError as error:
                if not tries_left or not (
                    error.retriable or isinstance(error, PeerGone | PeerLate)
                ):
                    raise
                await asyncio.sleep(SETTLE_S)
                await self._look(queue)
            else:
                self.sent += len(missing)
                return

    async def finish(self) -> None:
        """Return when every row is stored, and nothing else of this task is there.

        Raises:
            OtherRows: something is; the first attempt had other rows, or sent them elsewhere.
            GantryError: a row is not stored.
        """
        await super().finish()
        for queue, seen in self._seen.items():
            strange = sorted(set(seen).difference(self._own.get(queue, ())))
            if strange:
                raise OtherRows(self._other_rows(queue, strange[0]))

    def _missing(self, queue: MessageQueue, rows: list[Numbered]) -> list[Numbered]:
        """Return the rows that are not in a queue."""
        seen, missing = self._seen[queue], []
        for row in rows:
            known = seen.get(row.number)
            if known is None:
                missing.append(row)
            elif known != _crc(row):
                raise OtherRows(self._other_rows(queue, row.number))
        return missing

    def _other_rows(self, queue: MessageQueue, number: int) -> str:
        return (
            f"{queue}: row {number} of partition {self.place.partition} of batch "
            f"{self.place.batch} was sent before, and was another one: the plan does not give the "
            "same rows in the same order each time (a shuffle without a sort, random numbers, "
            "other options, or source messages that are gone). Use a plan that does, with a new "
            "checkpoint"
        )

    async def _send_marked(self, queue: MessageQueue, rows: list[Numbered]) -> None:
        messages = [
            replace(
                row.message,
                properties={**row.message.properties, MARK: self.place.mark(row.number)},
            )
            for row in rows
        ]
        if not messages:
            return
        done = 0
        for part in await self.requests(messages):
            await self.once(queue, part)
            count = part.message_id.count(",") + 1
            self._seen[queue].update((row.number, _crc(row)) for row in rows[done : done + count])
            done += count

    async def _first_look(self, queue: MessageQueue) -> None:
        if not self._has_settled:
            self._has_settled = True
            await asyncio.sleep(SETTLE_S)
        self._seen[queue] = {}
        if self.place.is_stream:
            self._looked[queue] = await self._tails.base(queue)
            await self._look(queue)
        elif self.place.attempt:
            try:
                await self._look(queue)
            except NoRoute as error:
                if error.cause is not NoRouteCause.UNKNOWN_TOPIC:
                    raise
                # The first send makes the topic, and there was none.

    async def _look(self, queue: MessageQueue) -> None:
        """Find out which rows of this task are in a queue."""
        if queue not in self._looked:
            self._looked[queue] = await self._tails.since(queue, self.place.begun_ms)
        end = await self._tails.marks(queue, self._looked[queue], partial(self._take, queue))
        self._looked[queue] = end
        self.begins.setdefault(queue, end)

    def _take(self, queue: MessageQueue, mark: str, offset: int, crc: int) -> None:
        if mark.startswith(self._prefix):
            self._seen[queue][int(mark[len(self._prefix) :])] = crc
            self.begins.setdefault(queue, offset)


def _crc(row: Numbered) -> int:
    return zlib.crc32(row.message.body)
