"""What a consumer asks of brokers, as functions: offsets, members, locks, messages sent back.

Queues and topics here have their names on the wire, with the namespace. Errors are those of
`client.remote`: ResponseError, PeerGone, PeerLate, NoRoute.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from gantrymq.client.errors import NoRoute, NoRouteCause
from gantrymq.model.route import MASTER_ID
from gantrymq.wire.bodies.assignment import ASSIGNMENT_QUERY, ASSIGNMENTS, AssignmentQuery
from gantrymq.wire.bodies.heartbeat import CLIENT_CHECK, CONSUMER_IDS, ClientCheck
from gantrymq.wire.bodies.lock import LOCK_ANSWER, LOCK_REQUEST, LockRequest
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.offset import (
    GetMaxOffsetRequest,
    OffsetResponse,
    QueryConsumerOffsetRequest,
    SearchOffsetRequest,
    UpdateConsumerOffsetRequest,
)
from gantrymq.wire.headers.send import ConsumerSendMessageBackRequest
from gantrymq.wire.headers.targets import ConsumerGroupRequest, QueueRequest
from gantrymq.wire.response_errors import QueryNotFound

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gantrymq.client.core import ClientCore
    from gantrymq.model.group import MessageModel, Subscription
    from gantrymq.model.queue import MessageQueue
    from gantrymq.wire.bodies.assignment import QueueAssignment

DLQ_LEVEL: Final = -1
"""The delay level that means: no more attempts."""


class ConsumerCalls:
    """The questions of one consumer group's member."""

    def __init__(self, core: ClientCore, group: str) -> None:
        self.core = core
        self.group = group
        """With its namespace."""

    @property
    def _timeout_s(self) -> float:
        return self.core.settings.request_timeout_s

    # -- where ----------------------------------------------------------------------------------

    async def master(self, queue: MessageQueue) -> str:
        """Return the address of a queue's master; a slave's, if reading is all that is left.

        Raises:
            NoRoute: no broker of the group is there.
        """
        return await self.address(queue, MASTER_ID)

    async def address(self, queue: MessageQueue, broker_id: int) -> str:
        """Return the address of one broker of the queue's group, or of another in its place.

        Raises:
            NoRoute: no broker of the group is there.
        """
        route = await self.core.routes.get(queue.topic)
        name = queue.broker_name
        found = (
            route.address(name, broker_id)
            or (route.address(name, broker_id + 1) if broker_id != MASTER_ID else None)
            or route.any_address(name)
        )
        if found is None:
            problem = f"broker {name!r} is not in its route; it may be starting again"
            raise NoRoute(queue.topic, NoRouteCause.NO_MASTER, problem)
        return found

    async def any_broker(self, topic: str) -> str:
        """Return the address of a broker of the topic, another one each time.

        Raises:
            NoRoute: there is none.
        """
        route = await self.core.routes.get(topic)
        names = sorted({queue.broker_name for queue in route.read_queues})
        addresses = [found for name in names if (found := route.any_address(name)) is not None]
        if not addresses:
            raise NoRoute(topic, NoRouteCause.NOT_READABLE, "no broker of it can be reached")
        return random.choice(addresses)  # noqa: S311 - spreads load, keeps no secret

    # -- who ------------------------------------------------------------------------------------

    async def members(self, topic: str) -> tuple[str, ...]:
        """Return the client ids of the group, as one broker of the topic knows them."""
        answered = await self.core.remote.call(
            await self.any_broker(topic),
            RequestCode.GET_CONSUMER_LIST_BY_GROUP,
            ConsumerGroupRequest(consumer_group=self.group),
            timeout_s=self._timeout_s,
        )
        # Apache's brokers name a member twice that has come back on a new connection before they
        # noticed that the old one is dead. Half of its queues would be nobody's.
        return tuple(dict.fromkeys(CONSUMER_IDS.decode(answered.body).consumer_id_list))

    async def assignment(
        self, topic: str, strategy: str, model: MessageModel
    ) -> tuple[QueueAssignment, ...] | None:
        """Return the queues that a 5.x broker gives this member; None where it knows no route."""
        asked = AssignmentQuery(
            topic=topic,
            consumer_group=self.group,
            client_id=self.core.client_id,
            strategy_name=strategy,
            message_model=model,
        )
        answered = await self.core.remote.call(
            await self.any_broker(topic),
            RequestCode.QUERY_ASSIGNMENT,
            None,
            ASSIGNMENT_QUERY.encode(asked),
            timeout_s=self._timeout_s,
        )
        return ASSIGNMENTS.decode(answered.body).message_queue_assignments

    async def check(self, subscription: Subscription) -> None:
        """Have a broker of the topic look at an SQL92 expression.

        Raises:
            SubscriptionParseFailed: it is not SQL92.
        """
        asked = ClientCheck(
            client_id=self.core.client_id, group=self.group, subscription_data=subscription
        )
        await self.core.remote.call(
            await self.any_broker(subscription.topic),
            RequestCode.CHECK_CLIENT_CONFIG,
            None,
            CLIENT_CHECK.encode(asked),
            timeout_s=self._timeout_s,
        )

    # -- offsets --------------------------------------------------------------------------------

    async def committed(self, queue: MessageQueue) -> int | None:
        """Return the offset that the group has committed; None if it never has."""
        header = QueryConsumerOffsetRequest(
            consumer_group=self.group, topic=queue.topic, queue_id=queue.queue_id
        )
        try:
            answered = await self.core.remote.call(
                await self.master(queue),
                RequestCode.QUERY_CONSUMER_OFFSET,
                header,
                timeout_s=self._timeout_s,
                answer=OffsetResponse,
            )
        except QueryNotFound:
            return None
        offset = answered.header.offset
        return offset if offset >= 0 else None

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Tell the broker how far the group is."""
        header = UpdateConsumerOffsetRequest(
            consumer_group=self.group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=offset,
        )
        await self.core.remote.call(
            await self.master(queue),
            RequestCode.UPDATE_CONSUMER_OFFSET,
            header,
            timeout_s=self._timeout_s,
        )

    async def max_offset(self, queue: MessageQueue) -> int:
        """Return the offset that the queue's next message gets."""
        header = GetMaxOffsetRequest(topic=queue.topic, queue_id=queue.queue_id)
        answered = await self.core.remote.call(
            await self.master(queue),
            RequestCode.GET_MAX_OFFSET,
            header,
            timeout_s=self._timeout_s,
            answer=OffsetResponse,
        )
        return answered.header.offset

    async def min_offset(self, queue: MessageQueue) -> int:
        """Return the offset of the oldest message that is still stored."""
        header = QueueRequest(topic=queue.topic, queue_id=queue.queue_id)
        answered = await self.core.remote.call(
            await self.master(queue),
            RequestCode.GET_MIN_OFFSET,
            header,
            timeout_s=self._timeout_s,
            answer=OffsetResponse,
        )
        return max(answered.header.offset, 0)

    async def offset_at(self, queue: MessageQueue, time_ms: int) -> int:
        """Return the offset of the first message that was stored at a time, or later."""
        header = SearchOffsetRequest(topic=queue.topic, queue_id=queue.queue_id, timestamp=time_ms)
        answered = await self.core.remote.call(
            await self.master(queue),
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
            header,
            timeout_s=self._timeout_s,
            answer=OffsetResponse,
        )
        return answered.header.offset

    # -- locks ----------------------------------------------------------------------------------

    async def lock(self, broker: MessageQueue, queues: Iterable[MessageQueue]) -> set[MessageQueue]:
        """Lock queues of one broker, which `broker` is any queue of; return those that are ours."""
        answered = await self.core.remote.call(
            await self.master(broker),
            RequestCode.LOCK_BATCH_MQ,
            None,
            self._lock_body(queues),
            timeout_s=self._timeout_s,
        )
        return set(LOCK_ANSWER.decode(answered.body).lock_ok_mq_set)

    async def unlock(self, broker: MessageQueue, queues: Iterable[MessageQueue]) -> None:
        """Give locks of one broker back."""
        await self.core.remote.call(
            await self.master(broker),
            RequestCode.UNLOCK_BATCH_MQ,
            None,
            self._lock_body(queues),
            timeout_s=self._timeout_s,
        )

    def _lock_body(self, queues: Iterable[MessageQueue]) -> bytes:
        return LOCK_REQUEST.encode(
            LockRequest(
                consumer_group=self.group,
                client_id=self.core.client_id,
                mq_set=tuple(sorted(queues)),
            )
        )

    # -- failures -------------------------------------------------------------------------------

    async def send_back(
        self,
        queue: MessageQueue,
        log_offset: int,
        delay_level: int,
        reconsume_max: int,
        *,
        message_id: str,
    ) -> None:
        """Have the broker deliver a message again later, or put it among the dead letters."""
        header = ConsumerSendMessageBackRequest(
            offset=log_offset,
            group=self.group,
            delay_level=delay_level,
            origin_msg_id=message_id,
            origin_topic=queue.topic,
            unit_mode=False,
            max_reconsume_times=reconsume_max,
        )
        await self.core.remote.call(
            await self.master(queue),
            RequestCode.CONSUMER_SEND_MSG_BACK,
            header,
            timeout_s=self._timeout_s,
        )
