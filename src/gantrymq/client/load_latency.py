"""How long one message takes when there is no other: to its answer, and to a waiting consumer.

A pull is parked at the end of a queue, then a message is sent to it. The two times are from the
moment of the send to its answer, and to the answer of the pull.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.client.load import ASK_S, PROGRESS_S, LoadFailed, Measured, send_header
from gantrymq.client.load_pull import PullPlan, pull_request
from gantrymq.transport.addresses import split_address
from gantrymq.transport.requester import connect
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.headers.offset import GetMaxOffsetRequest, OffsetResponse
from gantrymq.wire.headers.pull import PullMessageResponse
from gantrymq.wire.peer import PeerGone, PeerLate

if TYPE_CHECKING:
    from gantrymq.client.load import Progress
    from gantrymq.clock import Clock
    from gantrymq.transport.connection import Connection

HOLD_MS: Final = 5_000
SETTLE_S: Final = 0.005
"""Given to a pull to be parked before a message is sent to it."""
QUEUE: Final = 0
BUILT_TRIES: Final = 200
_WAITING: Final = frozenset(
    {ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY}
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LatencyPlan:
    """What is measured."""

    topic: str
    body_bytes: int = 128
    seconds: float = 10.0


class Latencies(NamedTuple):
    """What came of it."""

    sends: Measured
    deliveries: Measured


class LatencyLoad:
    """One run."""

    def __init__(self, plan: LatencyPlan, clock: Clock) -> None:
        self._plan = plan
        self._clock = clock
        self._body = b"x" * plan.body_bytes
        self._pulls = PullPlan(topic=plan.topic)
        self._found = Latencies(Measured(), Measured())

    async def run(self, broker: str, progress: Progress) -> Latencies:
        """Send one message after the other to a consumer that waits.

        Raises:
            LoadFailed: the broker cannot be reached, refuses, or does not deliver.
        """
        host, port = split_address(broker)
        lines: list[Connection] = []
        try:
            for _ in range(2):
                lines.append(await connect(host, port))  # noqa: PERF401  (closed if the next fails)
            await self._measure(lines[0], lines[1], progress)
        except (PeerGone, PeerLate) as error:
            raise LoadFailed(str(error)) from None
        finally:
            for line in lines:
                line.close("the load is over")
        return self._found

    async def _measure(
        self, producer: Connection, consumer: Connection, progress: Progress
    ) -> None:
        offset = await self._end_of_queue(producer)
        begun = told = self._clock.monotonic()
        until = begun + self._plan.seconds
        while (now := self._clock.monotonic()) < until:
            if now - told >= PROGRESS_S:
                told = now
                progress(now - begun, self._found.deliveries.messages)
            offset = await self._one(producer, consumer, offset)
        for measured in self._found:
            measured.seconds = self._clock.monotonic() - begun

    async def _one(self, producer: Connection, consumer: Connection, offset: int) -> int:
        """Deliver one message; return the offset behind it."""
        held = asyncio.ensure_future(self._delivered(consumer, offset))
        try:
            await asyncio.sleep(SETTLE_S)
            sent_at = self._clock.monotonic()
            reply = await producer.ask(self._send(), ASK_S)
            sends = self._found.sends
            sends.note(self._clock.monotonic() - sent_at)
            sends.requests += 1
            if reply.code != ResponseCode.SUCCESS:
                raise LoadFailed(f"a send was refused with code {reply.code}: {reply.remark}")
            sends.messages += 1
            following, moment = await held
        finally:
            held.cancel()
        deliveries = self._found.deliveries
        deliveries.note(max(moment - sent_at, 0.0))
        deliveries.requests += 1
        deliveries.messages += 1
        return following

    async def _delivered(self, consumer: Connection, offset: int) -> tuple[int, float]:
        """Wait for a message; return the offset behind it and the moment it was there."""
        until = self._clock.monotonic() + ASK_S
        while self._clock.monotonic() < until:
            header = pull_request(self._pulls, QUEUE, offset, hold_ms=HOLD_MS)
            request = Command.request(RequestCode.PULL_MESSAGE, 0, header.encode())
            reply = await consumer.ask(request, ASK_S + HOLD_MS / 1000)
            if reply.code == ResponseCode.SUCCESS:
                moment = self._clock.monotonic()
                return PullMessageResponse.decode(reply.fields).next_begin_offset, moment
            if reply.code not in _WAITING:
                raise LoadFailed(f"a pull was refused with code {reply.code}: {reply.remark}")
        raise LoadFailed(f"a message that was accepted has not been delivered in {ASK_S:g} s")

    async def _end_of_queue(self, line: Connection) -> int:
        """Return the offset behind the last message, when the queue of the first is built."""
        header = GetMaxOffsetRequest(topic=self._plan.topic, queue_id=QUEUE)
        request = Command.request(RequestCode.GET_MAX_OFFSET, 0, header.encode())
        for _ in range(BUILT_TRIES):
            reply = await line.ask(request, ASK_S)
            if reply.code != ResponseCode.SUCCESS:
                raise LoadFailed(f"{line.address} answered {reply.code}: {reply.remark}")
            offset = OffsetResponse.decode(reply.fields).offset
            if offset > 0:
                return offset
            await asyncio.sleep(SETTLE_S)  # Apache answers a send before its queue is built
        raise LoadFailed(f"topic {self._plan.topic!r} has no messages although one was accepted")

    def _send(self) -> Command:
        header = send_header(
            self._plan.topic, self._pulls.queues, QUEUE, "WAIT\x01true", self._clock.now_ms()
        )
        return Command.request(RequestCode.SEND_MESSAGE_V2, 0, header.encode(), self._body)
