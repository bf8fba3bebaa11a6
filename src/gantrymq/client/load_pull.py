"""Reads a topic from its first offset to its end, one pull in flight for each queue."""

from __future__ import annotations

import asyncio
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gantrymq.client.load import ASK_S, GROUP, PROGRESS_S, LoadFailed, Measured
from gantrymq.transport.addresses import split_address
from gantrymq.transport.requester import connect
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import BINARY_HEADER, Command
from gantrymq.wire.headers.offset import OffsetResponse
from gantrymq.wire.headers.pull import PullMessageRequest, PullMessageResponse
from gantrymq.wire.headers.targets import QueueRequest
from gantrymq.wire.peer import PeerGone, PeerLate
from gantrymq.wire.sysflag import PullFlag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.client.load import Progress
    from gantrymq.clock import Clock
    from gantrymq.transport.connection import Connection

_SIZE: Final = struct.Struct(">i")
_RECORD_BYTES_MIN: Final = 50


@dataclass(frozen=True, kw_only=True)
class PullPlan:
    """What is read."""

    topic: str
    queues: int = 8
    count: int = 32
    """Messages asked for at once."""
    seconds: float = 60.0
    """At most; it is over when every queue has been read."""


def pull_request(
    plan: PullPlan, queue_id: int, offset: int, *, hold_ms: int = 0
) -> PullMessageRequest:
    """Return a pull that names its subscription; with `hold_ms` one that waits for a message."""
    flag = PullFlag.SUBSCRIPTION | (PullFlag.SUSPEND if hold_ms else 0)
    return PullMessageRequest(
        consumer_group=GROUP,
        topic=plan.topic,
        queue_id=queue_id,
        queue_offset=offset,
        max_msg_nums=plan.count,
        sys_flag=flag,
        commit_offset=0,
        suspend_timeout_millis=hold_ms,
        sub_version=0,
        subscription="*",
        expression_type="TAG",
    )


def count_records(body: bytes) -> int:
    """Return how many records stand back to back in a body.

    Raises:
        LoadFailed: it is something else.
    """
    found, position = 0, 0
    while position < len(body):
        if len(body) - position < _RECORD_BYTES_MIN:
            raise LoadFailed("the answer to a pull does not end with a record")
        (size,) = _SIZE.unpack_from(body, position)
        if size < _RECORD_BYTES_MIN:
            raise LoadFailed(f"the answer to a pull has a record of {size} bytes")
        position += size
        found += 1
    return found


class PullLoad:
    """One run of pulls."""

    def __init__(self, plan: PullPlan, clock: Clock) -> None:
        self.plan = plan
        self.clock = clock
        self.measured = Measured()
        self._until = 0.0

    async def run(self, brokers: Sequence[str], progress: Progress) -> Measured:
        """Read every queue of every broker; return what was measured.

        Raises:
            LoadFailed: a broker cannot be reached, refuses, or stops answering.
        """
        lines: list[Connection] = []
        begun = self.clock.monotonic()
        self._until = begun + self.plan.seconds
        tasks: list[asyncio.Task[None]] = []
        try:
            for address in brokers:
                for queue_id in range(self.plan.queues):
                    lines.append(await connect(*split_address(address)))
                    tasks.append(asyncio.create_task(self._read(lines[-1], queue_id)))
            await self._wait(tasks, begun, progress)
        except (PeerGone, PeerLate) as error:
            raise LoadFailed(str(error)) from None
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for line in lines:
                line.close("the load is over")
        self.measured.seconds = self.clock.monotonic() - begun
        return self.measured

    async def _wait(
        self, tasks: Sequence[asyncio.Task[None]], begun: float, progress: Progress
    ) -> None:
        while True:
            done, pending = await asyncio.wait(
                tasks, timeout=PROGRESS_S, return_when=asyncio.FIRST_EXCEPTION
            )
            for one in done:
                one.result()
            if not pending:
                return
            progress(self.clock.monotonic() - begun, self.measured.messages)

    async def _read(self, line: Connection, queue_id: int) -> None:
        """Read one queue to its end."""
        offset, measured = await self._first_offset(line, queue_id), self.measured
        while (asked_at := self.clock.monotonic()) < self._until:
            header = pull_request(self.plan, queue_id, offset)
            request = Command.request(
                RequestCode.PULL_MESSAGE, 0, header.encode(), serialize_type=BINARY_HEADER
            )
            reply = await line.ask(request, ASK_S)
            measured.requests += 1
            measured.note(self.clock.monotonic() - asked_at)
            if reply.code == ResponseCode.PULL_NOT_FOUND:
                return
            if reply.code not in {
                ResponseCode.SUCCESS,
                ResponseCode.PULL_RETRY_IMMEDIATELY,
                ResponseCode.PULL_OFFSET_MOVED,
            }:
                measured.refuse(reply.code, reply.remark)
                return
            measured.messages += count_records(reply.body)
            measured.body_bytes += len(reply.body)
            following = PullMessageResponse.decode(reply.fields).next_begin_offset
            if following == offset:
                return
            offset = following

    async def _first_offset(self, line: Connection, queue_id: int) -> int:
        header = QueueRequest(topic=self.plan.topic, queue_id=queue_id)
        request = Command.request(RequestCode.GET_MIN_OFFSET, 0, header.encode())
        reply = await line.ask(request, ASK_S)
        if reply.code != ResponseCode.SUCCESS:
            raise LoadFailed(f"{line.address} answered {reply.code}: {reply.remark}")
        return max(OffsetResponse.decode(reply.fields).offset, 0)
