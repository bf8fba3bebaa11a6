"""How far groups have come: lag by queue, times, corrections, and offsets taken over."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from gantrymq.broker.admin.parts import Rows, body_answer
from gantrymq.broker.answers import answer
from gantrymq.broker.questions import ask
from gantrymq.errors import InvalidValue
from gantrymq.model.queue import QueueId, QueueOffset
from gantrymq.wire.bodies.offsets import CORRECTION_OFFSETS, CorrectionOffsets
from gantrymq.wire.bodies.stats import (
    BROKER_CONSUME_STATS,
    CONSUME_STATS,
    CONSUME_TIME_SPAN,
    BrokerConsumeStats,
    ConsumeStats,
    ConsumeTimeSpan,
    OffsetProgress,
    QueueTimeSpan,
)
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.offset import CloneGroupOffsetRequest, QueryCorrectionOffsetRequest
from gantrymq.wire.headers.query import (
    GetBrokerConsumeStatsRequest,
    GetConsumeStatsRequest,
    QueryConsumeTimeSpanRequest,
)
from gantrymq.wire.response_errors import InvalidParameter

if TYPE_CHECKING:
    from gantrymq.broker.admin.parts import AdminParts
    from gantrymq.model.queue import MessageQueue
    from gantrymq.store.questions import Questions
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Handler, Peer, Pending

FAR_BEHIND: Final = QueueOffset(2**63 - 1)
"""The correction of a queue in which the group is behind all others."""
_ONE_GROUP: Final = "ask for one topic of the group"
_ONE_BROKER: Final = "ask by group with consumerProgress"


class ConsumptionRequests:
    """Answers how far groups have come."""

    def __init__(self, parts: AdminParts) -> None:
        self._parts = parts
        self._topics = parts.tables.topics
        self._offsets = parts.tables.offsets
        self._clients = parts.tables.clients

    @property
    def handlers(self) -> dict[int, Handler]:
        """Return what is handled here."""
        return {
            RequestCode.GET_CONSUME_STATS: self.of_group,
            RequestCode.GET_BROKER_CONSUME_STATS: self.of_all,
            RequestCode.QUERY_CONSUME_TIME_SPAN: self.times,
            RequestCode.QUERY_CORRECTION_OFFSET: self.correction,
            RequestCode.CLONE_GROUP_OFFSET: self.clone,
        }

    # -- lag --------------------------------------------------------------------------------------

    async def of_group(self, request: Command, _peer: Peer) -> Answer:
        """Answer how far a group is behind in its topics, or in those that are named."""
        header = GetConsumeStatsRequest.decode(request.fields)
        group, rows = header.consumer_group, Rows(_ONE_GROUP)
        named = [name for name in (header.topic_list or "").split(";") if name.strip()]
        if named:
            topics = named
        elif header.topic and header.topic.strip():
            topics = [name for name in (header.topic,) if self._takes(group, name)]
        else:
            topics = [name for name in self._topics_of(group) if self._takes(group, name)]
        table: dict[MessageQueue, OffsetProgress] = {}
        tps = 0.0
        for name in dict.fromkeys(topics):
            topic = self._topics.find(name)
            if topic is None:
                continue
            for queue_id in range(topic.read_queues):
                await rows.next()
                progress = await self._progress(group, name, queue_id)
                table[self._parts.queue(name, queue_id)] = progress
            tps += self._parts.counting.broker.group_get_tps(group, name)
        stats = ConsumeStats(consume_tps=tps, offset_table=table)
        return body_answer(request, CONSUME_STATS.encode(stats), hint=f"; {_ONE_GROUP}")

    def _topics_of(self, group: str) -> list[str]:
        return sorted(self._offsets.topics_of(group))

    def _takes(self, group: str, topic: str) -> bool:
        """Tell whether a group takes a topic: its members say so, or it has none to ask."""
        state = self._clients.consumer(group)
        return state is None or not state.subscriptions or topic in state.subscriptions

    async def _progress(self, group: str, topic: str, queue_id: int) -> OffsetProgress:
        reads = self._parts.store.reads
        consumed = max(self._offsets.find(group, topic, queue_id), 0)
        last = None
        if consumed:
            last = await ask(
                self._parts.store, lambda store: store.stored_at(topic, queue_id, consumed - 1)
            )
        return OffsetProgress(
            broker_offset=reads.max_offset(topic, queue_id),
            consumer_offset=consumed,
            pull_offset=max(consumed, self._offsets.pull_offset(group, topic, queue_id)),
            last_timestamp=last or 0,
        )

    async def of_all(self, request: Command, _peer: Peer) -> Answer:
        """Answer how far every group of this broker is behind, topic by topic."""
        is_order = GetBrokerConsumeStatsRequest.decode(request.fields).is_order
        rows, listed, behind, in_flight = Rows(_ONE_BROKER), [], 0, 0
        for group in list(self._parts.tables.groups.all()):
            of_topics = []
            for name in self._topics_of(group):
                topic = self._topics.find(name)
                if topic is None or (is_order and not topic.order) or not self._takes(group, name):
                    continue
                table: dict[MessageQueue, OffsetProgress] = {}
                for queue_id in range(topic.write_queues):
                    await rows.next()
                    progress = await self._progress(group, name, queue_id)
                    table[self._parts.queue(name, queue_id)] = progress
                    behind += progress.broker_offset - progress.consumer_offset
                    in_flight += progress.pull_offset - progress.consumer_offset
                tps = self._parts.counting.broker.group_get_tps(group, name)
                of_topics.append(ConsumeStats(consume_tps=tps, offset_table=table))
            listed.append({group: tuple(of_topics)})
        stats = BrokerConsumeStats(
            consume_stats_list=tuple(listed),
            broker_addr=self._parts.address,
            total_diff=behind,
            total_inflight_diff=in_flight,
        )
        return body_answer(request, BROKER_CONSUME_STATS.encode(stats), hint=f"; {_ONE_BROKER}")

    async def times(self, request: Command, _peer: Peer) -> Answer:
        """Answer when the first, the last and the next message of a group's queues were stored."""
        header = QueryConsumeTimeSpanRequest.decode(request.fields)
        topic = self._parts.topic(header.topic)
        rows, spans = Rows("this topic has too many"), []
        for queue_id in range(topic.write_queues):
            await rows.next()
            consumed = self._offsets.find(header.group, topic.name, queue_id)
            spans.append(
                await ask(self._parts.store, partial(self._span, topic.name, queue_id, consumed))
            )
        body = CONSUME_TIME_SPAN.encode(ConsumeTimeSpan(consume_time_span_set=tuple(spans)))
        return body_answer(request, body)

    def _span(self, topic: str, queue_id: int, consumed: int, reads: Questions) -> QueueTimeSpan:
        def stored(offset: int) -> int:
            found = reads.stored_at(topic, queue_id, offset) if offset >= 0 else None
            return -1 if found is None else found

        first = reads.earliest_stored(topic, queue_id)
        earliest = -1 if first is None else first
        most = reads.max_offset(topic, queue_id)
        following = stored(max(consumed, reads.min_offset(topic, queue_id)))
        is_behind = consumed < most and following >= 0
        return QueueTimeSpan(
            message_queue=self._parts.queue(topic, queue_id),
            min_time_stamp=earliest,
            max_time_stamp=stored(most - 1),
            consume_time_stamp=stored(consumed - 1) if consumed > 0 else earliest,
            delay_time=self._parts.clock.now_ms() - following if is_behind else 0,
        )

    # -- corrections ------------------------------------------------------------------------------

    def correction(self, request: Command, _peer: Peer) -> Answer:
        """Answer by queue where the slowest group is, to be compared with one group's offsets."""
        header = QueryCorrectionOffsetRequest.decode(request.fields)
        without = [name for name in (header.filter_groups or "").split(",") if name.strip()]
        slowest = self._offsets.slowest(
            header.topic, self._parts.store.reads.min_offset, without=without
        )
        corrections = {
            QueueId(queue_id): QueueOffset(offset) for queue_id, offset in slowest.items()
        }
        compared = self._offsets.all_of(header.compare_group, header.topic) or {}
        for queue_id, offset in compared.items():
            if queue_id not in slowest or slowest[queue_id] > offset:
                corrections[QueueId(queue_id)] = FAR_BEHIND
        body = CORRECTION_OFFSETS.encode(CorrectionOffsets(correction_offsets=corrections))
        return body_answer(request, body)

    def clone(self, request: Command, _peer: Peer) -> Pending:
        """Give one group the offsets of another, in one topic or in all."""
        self._parts.check_master()
        header = CloneGroupOffsetRequest.decode(request.fields)
        if header.topic and header.topic.strip():
            topics = [header.topic]
        else:
            topics = self._topics_of(header.src_group)
        try:
            for name in topics:
                if self._topics.find(name) is not None and (
                    header.offline or self._takes(header.src_group, name)
                ):
                    self._offsets.clone(header.src_group, header.dest_group, name)
        except InvalidValue as error:
            raise InvalidParameter(str(error)) from None
        return self._parts.saved(request, self._offsets) if topics else answer(request)
