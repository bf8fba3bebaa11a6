"""What brokers ask of a consumer: news of its members, its insides, its offsets, one message.

40   members came or went               look at the balance soon
220  read on from other offsets         what `resetOffsetByTime` of an operator comes to
221  how far are you                    offsets by queue
307  what are you doing                 queues, rates, settings: `consumerStatus`
309  take this message now              an operator sends one message past the queue
"""

from __future__ import annotations

import asyncio
import traceback
from typing import TYPE_CHECKING, Final

from gantrymq.client.consuming.handling import ConsumeStatus, Later
from gantrymq.client.consuming.process_queue import MIB
from gantrymq.client.received import ReceivedMessage
from gantrymq.model.names import is_retry_topic
from gantrymq.version import VERSION
from gantrymq.wire import properties as names
from gantrymq.wire.bodies.offsets import CONSUMER_STATUS, ConsumerStatus
from gantrymq.wire.bodies.reset import RESET_OFFSETS
from gantrymq.wire.bodies.running import (
    CONSUMER_RUNNING_INFO,
    DIRECT_CONSUMPTION,
    ConsumeResult,
    ConsumerRunningInfo,
    DirectConsumption,
    PopProcessQueue,
    ProcessQueue,
)
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.client import (
    ConsumeMessageDirectlyRequest,
    ConsumerRunningInfoRequest,
)
from gantrymq.wire.headers.offset import ConsumerStatusRequest, ResetOffsetRequest
from gantrymq.wire.headers.targets import ConsumerGroupRequest
from gantrymq.wire.record import decode_record
from gantrymq.wire.response_errors import SystemFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.client.consuming.member import Member
    from gantrymq.client.consuming.process_queue import ProcessQueue as Mine
    from gantrymq.client.consuming.rebalancing import Rebalancing
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Peer

_STACKS_MAX: Final = 200
"""Tasks whose stacks are told."""


class BrokerRequests:
    """Answers brokers on behalf of one consumer."""

    def __init__(
        self,
        member: Member,
        rebalancing: Rebalancing,
        properties: Mapping[str, str],
        *,
        orderly: bool,
        takes_lists: bool,
    ) -> None:
        self._member = member
        self._rebalancing = rebalancing
        self._properties = dict(properties)
        self._orderly = orderly
        self._takes_lists = takes_lists

    def register(self) -> None:
        """Begin to answer."""
        incoming = self._member.calls.core.incoming
        incoming.on(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, self.members_changed)
        incoming.on(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, self.reset)
        incoming.on(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, self.status)
        incoming.on(RequestCode.GET_CONSUMER_RUNNING_INFO, self.running_info)
        incoming.on(RequestCode.CONSUME_MESSAGE_DIRECTLY, self.consume)

    def _check_group(self, group: str) -> None:
        if group != self._member.calls.group:
            raise SystemFailure(f"this client is no member of {group!r}")

    def members_changed(self, request: Command, _peer: Peer) -> None:
        """Look at the balance soon."""
        told = ConsumerGroupRequest.decode(request.fields).consumer_group
        if told == self._member.calls.group:
            self._rebalancing.soon()

    async def reset(self, request: Command, _peer: Peer) -> None:
        """Read on from other offsets."""
        self._check_group(ResetOffsetRequest.decode(request.fields).group)
        table = RESET_OFFSETS.decode(request.body).offset_table
        await asyncio.gather(*(self._member.move(queue, at) for queue, at in table.items()))

    def status(self, request: Command, _peer: Peer) -> Command:
        """Say how far the queues of a topic are."""
        asked = ConsumerStatusRequest.decode(request.fields)
        self._check_group(asked.group)
        table = {
            queue: reader.queue.commit_offset
            for queue, reader in self._member.readers.items()
            if queue.topic == asked.topic
        }
        body = CONSUMER_STATUS.encode(
            ConsumerStatus(message_queue_table=table)  # type: ignore[arg-type]
        )
        return request.response(body=body)

    # -- 307 ------------------------------------------------------------------------------------

    def running_info(self, request: Command, _peer: Peer) -> Command:
        """Say what the consumer is doing."""
        asked = ConsumerRunningInfoRequest.decode(request.fields)
        self._check_group(asked.consumer_group)
        member = self._member
        now = member.calls.core.clock.monotonic()
        counters = member.statistics.topics
        popping = member.popping
        info = ConsumerRunningInfo(
            properties={**self._properties, "PROP_CLIENT_VERSION": f"gantrymq {VERSION}"},
            subscription_set=member.subscriptions.data(),
            mq_table={
                queue: self._queue_info(reader.queue)
                for queue, reader in sorted(member.readers.items())
            },
            mq_pop_table={
                queue: PopProcessQueue(wait_ack_count=count, last_pop_timestamp=at_ms)
                for queue, count, at_ms in (popping.overview() if popping is not None else ())
            },
            status_table={
                one.topic: counters[one.name].status(now)
                for one in member.subscriptions
                if one.name in counters
            },
            jstack=_stacks() if asked.jstack_enable else None,
        )
        return request.response(body=CONSUMER_RUNNING_INFO.encode(info))

    def _queue_info(self, mine: Mine) -> ProcessQueue:
        locks = self._member.locks
        return ProcessQueue(
            commit_offset=mine.commit_offset,
            cached_msg_min_offset=mine.oldest or 0,
            cached_msg_max_offset=mine.newest or 0,
            cached_msg_count=len(mine),
            cached_msg_size_in_mib=mine.bytes_held // MIB,
            locked=locks is not None and locks.holds(mine),
            try_unlock_times=0,
            last_lock_timestamp=self._wall_ms(mine.locked_at),
            droped=mine.dropped,
            last_pull_timestamp=mine.last_pulled_ms,
            last_consume_timestamp=mine.last_consumed_ms,
        )

    def _wall_ms(self, monotonic: float | None) -> int:
        if monotonic is None:
            return 0
        clock = self._member.calls.core.clock
        return clock.now_ms() - int((clock.monotonic() - monotonic) * 1000)

    # -- 309 ------------------------------------------------------------------------------------

    async def consume(self, request: Command, _peer: Peer) -> Command:
        """Give one message to its handler and say what came of it."""
        asked = ConsumeMessageDirectlyRequest.decode(request.fields)
        self._check_group(asked.consumer_group)
        record, _end = decode_record(request.body, 0, len(request.body))
        core, member = self._member.calls.core, self._member
        topic = record.topic
        if is_retry_topic(topic):
            topic = record.properties.get(names.RETRY_TOPIC, topic)
        subscribed = member.subscriptions.find(topic)
        if subscribed is None or subscribed.iterates:
            raise SystemFailure(f"this consumer has no handler for {topic!r}")
        message = ReceivedMessage(record, asked.broker_name or "", subscribed.name)
        began = core.clock.monotonic()
        result, remark = ConsumeResult.CR_SUCCESS, None
        try:
            argument: object = [message] if self._takes_lists else message
            if await subscribed.run(argument) is ConsumeStatus.LATER:
                result = ConsumeResult.CR_LATER
        except Later:
            result = ConsumeResult.CR_LATER
        except Exception as error:  # noqa: BLE001 - it is told to who asked
            result, remark = ConsumeResult.CR_THROW_EXCEPTION, f"{type(error).__name__}: {error}"
        outcome = DirectConsumption(
            order=self._orderly,
            consume_result=result,
            remark=remark,
            spent_time_mills=int((core.clock.monotonic() - began) * 1000),
        )
        return request.response(body=DIRECT_CONSUMPTION.encode(outcome))


def _stacks() -> str:
    """Return where every task of the loop is: what Java's tool calls jstack."""
    lines: list[str] = []
    for task in list(asyncio.all_tasks())[:_STACKS_MAX]:
        lines.append(f"task {task.get_name()}")
        for frame in task.get_stack(limit=8):
            lines.extend(line.rstrip() for line in traceback.format_stack(frame, limit=1))
    return "\n".join(lines)
