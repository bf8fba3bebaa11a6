"""Sends as fast as a broker answers: so many connections, so many requests in flight on each.

A request's opaque is its slot: a number below the window, free again when the answer has come. So a
connection needs no table, and what is under way has a bound. Frames are made from templates, one
for each queue, because encoding a request anew would measure the encoder.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import count, cycle
from typing import TYPE_CHECKING, Final, cast

from gantrymq.client.load import PROGRESS_S, LoadFailed, Measured, send_header
from gantrymq.errors import GantryError
from gantrymq.transport.addresses import split_address
from gantrymq.wire.batch import BatchMessage, encode_batch
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import BINARY_HEADER, Command
from gantrymq.wire.frame import FrameParser
from gantrymq.wire.template import UNIQUE_KEY, FrameTemplate, quick_answers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.client.load import Progress
    from gantrymq.clock import Clock

CONNECT_S: Final = 5.0
LAST_ANSWERS_S: Final = 10.0
"""How long answers may take when nothing more is sent."""
PROPERTIES: Final = f"UNIQ_KEY\x01{UNIQUE_KEY}\x02WAIT\x01true\x02TAGS\x01bench"
IN_FLIGHT_BYTES_MAX: Final = 1 << 30


@dataclass(frozen=True, kw_only=True)
class SendPlan:
    """What is sent."""

    topic: str
    queues: int = 8
    connections: int = 8
    window: int = 64
    body_bytes: int = 128
    batch: int = 1
    seconds: float = 10.0

    @property
    def in_flight_bytes(self) -> int:
        """Return how much may be under way at once, about."""
        return self.connections * self.window * self.batch * (self.body_bytes + 100)


def templates(plan: SendPlan, born_ms: int) -> list[FrameTemplate]:
    """Return a request for each queue.

    Raises:
        InvalidValue: it cannot be encoded.
    """
    body = b"x" * plan.body_bytes
    properties, code = PROPERTIES, RequestCode.SEND_MESSAGE_V2
    if plan.batch > 1:
        body = encode_batch([BatchMessage(0, body, PROPERTIES.encode())] * plan.batch)
        properties, code = "WAIT\x01true", RequestCode.SEND_BATCH_MESSAGE
    return [
        FrameTemplate(
            Command.request(
                code,
                0,
                send_header(
                    plan.topic, plan.queues, queue_id, properties, born_ms, batch=plan.batch > 1
                ).encode(),
                body,
                serialize_type=BINARY_HEADER,
            )
        )
        for queue_id in range(plan.queues)
    ]


class _Sending(asyncio.Protocol):
    """One connection that keeps its window full until it is told to stop."""

    def __init__(self, load: SendLoad, first_queue: int) -> None:
        self._load = load
        self._turns = count(first_queue)
        self._sent_at = [0.0] * load.plan.window
        self._kept = b""
        self._transport: asyncio.Transport | None = None
        self._in_flight = 0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass

    def begin(self) -> None:
        """Fill the window."""
        self._send(range(self._load.plan.window))

    def _send(self, slots: Sequence[int]) -> None:
        load = self._load
        now = load.clock.monotonic()
        frames = []
        for slot in slots:
            self._sent_at[slot] = now
            frames.append(load.next_frame(slot, next(self._turns)))
        self._in_flight += len(frames)
        if self._transport is not None:
            self._transport.writelines(frames)

    def data_received(self, data: bytes) -> None:
        try:
            self._take(self._kept + data if self._kept else data)
        except GantryError as error:
            self._end(error)

    def _take(self, data: bytes) -> None:
        answers, behind = quick_answers(data)
        self._kept = data[behind:]
        load, now = self._load, self._load.clock.monotonic()
        for answer in answers:
            if not 0 <= answer.opaque < len(self._sent_at):
                raise LoadFailed(f"an answer to a request that nobody made: {answer.opaque}")
            load.measured.note(now - self._sent_at[answer.opaque])
            if answer.code == ResponseCode.SUCCESS:
                load.measured.messages += load.plan.batch
            else:
                (reply,) = FrameParser().feed(data[answer.start : answer.end])
                load.measured.refuse(reply.code, reply.remark)
        load.measured.requests += len(answers)
        self._in_flight -= len(answers)
        if not load.is_over(now):
            self._send([answer.opaque for answer in answers])
        elif self._in_flight == 0:
            self._end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(LoadFailed(f"the broker closed a connection under load: {exc or 'no reason'}"))

    def _end(self, error: Exception | None) -> None:
        if not self.ended.done():
            if error is None:
                self.ended.set_result(None)
            else:
                self.ended.set_exception(error)

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.abort()


class SendLoad:
    """One run of sends."""

    def __init__(self, plan: SendPlan, clock: Clock) -> None:
        self.plan = plan
        self.clock = clock
        self.measured = Measured()
        self._templates = templates(plan, clock.now_ms())
        self._key = 0
        self._until = 0.0

    def next_frame(self, slot: int, turn: int) -> bytes:
        """Return the next request for a slot."""
        template = self._templates[turn % len(self._templates)]
        first, self._key = self._key, self._key + template.keys
        return template.numbered(slot, first)

    def is_over(self, now: float) -> bool:
        """Tell whether nothing more is to be sent."""
        return now >= self._until

    async def run(self, brokers: Sequence[str], progress: Progress) -> Measured:
        """Send; return what was measured.

        Raises:
            LoadFailed: a broker cannot be reached, closes a connection, or stops answering.
        """
        lines: list[_Sending] = []
        try:
            for number, address in zip(range(self.plan.connections), cycle(brokers), strict=False):
                lines.append(await self._connect(address, number))
            begun = self.clock.monotonic()
            self._until = begun + self.plan.seconds
            for line in lines:
                line.begin()
            await self._wait(lines, begun, progress)
            self.measured.seconds = self.clock.monotonic() - begun
        finally:
            for line in lines:
                line.close()
                if line.ended.done() and not line.ended.cancelled():
                    line.ended.exception()  # one of several is raised; the others have been seen
        self.measured.body_bytes = self.measured.messages * self.plan.body_bytes
        return self.measured

    async def _connect(self, address: str, number: int) -> _Sending:
        host, port = split_address(address)
        loop = asyncio.get_running_loop()
        line = _Sending(self, number)
        try:
            async with asyncio.timeout(CONNECT_S):
                await loop.create_connection(lambda: line, host, port)
        except (OSError, TimeoutError) as error:
            raise LoadFailed(f"{address}: cannot connect: {str(error) or 'too late'}") from None
        return line

    async def _wait(self, lines: Sequence[_Sending], begun: float, progress: Progress) -> None:
        """Wait until every connection has had its last answer."""
        ends = [line.ended for line in lines]
        deadline = self._until + LAST_ANSWERS_S
        while True:
            done, pending = await asyncio.wait(
                ends, timeout=PROGRESS_S, return_when=asyncio.FIRST_EXCEPTION
            )
            for one in done:
                one.result()
            if not pending:
                return
            now = self.clock.monotonic()
            progress(now - begun, self.measured.messages)
            if now > deadline:
                raise LoadFailed(
                    f"{len(pending)} connections wait for answers {LAST_ANSWERS_S:g} s after the "
                    "last request: look at the broker's log"
                )
