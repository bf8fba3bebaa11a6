"""Questions about queues and messages: offsets by place and by time, messages by key and by id.

What an unknown queue answers differs from question to question, as it does in an Apache broker;
clients rely on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.broker.answers import answer
from gantrymq.broker.questions import copied, then
from gantrymq.errors import InvalidValue, shown
from gantrymq.store.search import Boundary
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.headers.offset import (
    EarliestStoreTimeResponse,
    GetMaxOffsetRequest,
    OffsetResponse,
    QueryConsumerOffsetRequest,
    SearchOffsetRequest,
    UpdateConsumerOffsetRequest,
)
from gantrymq.wire.headers.query import (
    QueryMessageRequest,
    QueryMessageResponse,
    ViewMessageRequest,
)
from gantrymq.wire.headers.targets import QueueRequest
from gantrymq.wire.response_errors import (
    InvalidParameter,
    QueryNotFound,
    SubscriptionGroupNotExist,
    SystemFailure,
    TopicNotExist,
)

if TYPE_CHECKING:
    from gantrymq.broker.tables import Tables
    from gantrymq.store.message_store import MessageStore
    from gantrymq.store.query import FoundByKey
    from gantrymq.store.questions import Questions
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Handler, Peer, Pending

UNIQUE_KEY_HITS_MAX: Final = 32
"""`defaultQueryMaxNum`: what a search by unique key returns at most."""
NONE: Final = -1


class Queries:
    """Answers questions about queues and messages."""

    def __init__(self, store: MessageStore, tables: Tables) -> None:
        self._store = store
        self._offsets = tables.offsets
        self._groups = tables.groups
        self._topics = tables.topics

    @property
    def handlers(self) -> dict[int, Handler]:
        """Return what is handled here."""
        return {
            RequestCode.QUERY_CONSUMER_OFFSET: self.consumer_offset,
            RequestCode.UPDATE_CONSUMER_OFFSET: self.commit_offset,
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: self.offset_at,
            RequestCode.GET_MAX_OFFSET: self.max_offset,
            RequestCode.GET_MIN_OFFSET: self.min_offset,
            RequestCode.GET_EARLIEST_MSG_STORETIME: self.earliest,
            RequestCode.VIEW_MESSAGE_BY_ID: self.by_id,
            RequestCode.QUERY_MESSAGE: self.by_key,
        }

    # -- offsets --------------------------------------------------------------------------------

    def consumer_offset(self, request: Command, _peer: Peer) -> Pending:
        """Answer how far a group has come in a queue.

        A group that is new to a young topic begins at its first message, wherever it wants to begin
        otherwise: 0 is the answer while nothing of the queue has been deleted or gone cold.
        """
        header = QueryConsumerOffsetRequest.decode(request.fields)
        offset = self._offsets.find(header.consumer_group, header.topic, header.queue_id)
        if offset >= 0:
            return answer(request, fields=OffsetResponse(offset=offset).encode())

        def reply(is_young: bool) -> Answer:
            # Meanwhile somebody may have committed.
            offset = self._offsets.find(header.consumer_group, header.topic, header.queue_id)
            if offset < 0 and not is_young:
                raise QueryNotFound(
                    "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
                )
            return answer(request, fields=OffsetResponse(offset=max(offset, 0)).encode())

        if header.set_zero_if_not_found is False:
            return reply(False)
        reads = self._store.reads
        return then(
            self._store, lambda store: reads.is_young(store, header.topic, header.queue_id), reply
        )

    def commit_offset(self, request: Command, peer: Peer) -> Answer:
        """Keep how far a group has come in a queue.

        Not for a group or topic that is not there, as 5.x has it: one that is made later would
        begin behind messages that nobody has read.
        """
        header = UpdateConsumerOffsetRequest.decode(request.fields)
        if self._groups.find(header.consumer_group) is None:
            raise SubscriptionGroupNotExist(f"Group {shown(header.consumer_group)} not exist!")
        if self._topics.find(header.topic) is None:
            raise TopicNotExist(f"Topic {shown(header.topic)} not exist!")
        if self._offsets.has_reset(header.consumer_group, header.topic, header.queue_id):
            # The member has not heard of it yet, and would commit its old place over it.
            return answer(request, remark="Offset has been previously reset")
        try:
            self._offsets.commit(
                header.consumer_group,
                header.topic,
                header.queue_id,
                header.commit_offset,
                who=peer.address,
            )
        except InvalidValue as error:
            raise InvalidParameter(str(error)) from None
        return answer(request)

    def offset_at(self, request: Command, _peer: Peer) -> Pending:
        """Answer which offset belongs to a moment."""
        header = SearchOffsetRequest.decode(request.fields)
        # Without a wish the first message that is not older, as 5.5.0 has it: 4.9 takes the nearer
        # one, which may be behind messages that were asked for.
        wants_last = (header.boundary_type or "").lower() == "upper"
        boundary = Boundary.UPPER if wants_last else Boundary.LOWER
        return then(
            self._store,
            lambda store: store.offset_at(
                header.topic, header.queue_id, header.timestamp, boundary
            ),
            lambda offset: answer(request, fields=OffsetResponse(offset=offset).encode()),
        )

    def max_offset(self, request: Command, _peer: Peer) -> Answer:
        """Answer which offset the next message of a queue gets."""
        header = GetMaxOffsetRequest.decode(request.fields)
        offset = self._store.reads.max_offset(header.topic, header.queue_id)
        return answer(request, fields=OffsetResponse(offset=offset).encode())

    def min_offset(self, request: Command, _peer: Peer) -> Answer:
        """Answer the first offset of a queue; -1 if there is no queue."""
        header = QueueRequest.decode(request.fields)
        known = self._store.queues.find(header.topic, header.queue_id) is not None
        offset = self._store.reads.min_offset(header.topic, header.queue_id) if known else NONE
        return answer(request, fields=OffsetResponse(offset=offset).encode())

    def earliest(self, request: Command, _peer: Peer) -> Pending:
        """Answer when the first message of a queue was stored."""
        header = QueueRequest.decode(request.fields)

        def reply(stored: int | None) -> Answer:
            time = EarliestStoreTimeResponse(timestamp=NONE if stored is None else stored)
            return answer(request, fields=time.encode())

        return then(
            self._store, lambda store: store.earliest_stored(header.topic, header.queue_id), reply
        )

    # -- messages -------------------------------------------------------------------------------

    def by_id(self, request: Command, _peer: Peer) -> Pending:
        """Answer the message at a log offset."""
        header = ViewMessageRequest.decode(request.fields)

        def reply(record: bytes | None) -> Answer:
            if record is None:
                raise SystemFailure(f"can not find message by the offset, {header.offset}")
            return answer(request, body=record)

        return then(self._store, lambda store: copied(store.record_at(header.offset)), reply)

    def by_key(self, request: Command, _peer: Peer) -> Pending:
        """Answer the messages of a topic with a key."""
        header = QueryMessageRequest.decode(request.fields)
        hits_max = UNIQUE_KEY_HITS_MAX if header.unique_key_query else header.max_num

        def question(store: Questions) -> tuple[FoundByKey, bytes]:
            found = store.query_by_key(
                header.topic, header.key, hits_max, header.begin_timestamp, header.end_timestamp
            )
            return found._replace(records=[]), b"".join(found.records)

        def reply(answered: tuple[FoundByKey, bytes]) -> Answer:
            found, body = answered
            fields = QueryMessageResponse(
                index_last_update_timestamp=found.index_timestamp,
                index_last_update_phyoffset=found.index_log_offset,
            ).encode()
            if not body:
                remark = "can not find message, maybe time range not correct"
                return answer(request, ResponseCode.QUERY_NOT_FOUND, fields, remark=remark)
            return answer(request, fields=fields, body=body)

        return then(self._store, question, reply)
