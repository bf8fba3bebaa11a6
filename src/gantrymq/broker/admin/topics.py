"""Topics: made, changed, deleted, listed, and how much their queues hold."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from gantrymq.broker.admin.deletion import delete_topic
from gantrymq.broker.admin.paging import page_of
from gantrymq.broker.admin.parts import Rows, body_answer
from gantrymq.broker.answers import answer
from gantrymq.broker.attributes import parse_changes
from gantrymq.broker.questions import ask
from gantrymq.errors import InvalidValue, shown
from gantrymq.model.names import check_topic
from gantrymq.model.topic import FilterType, Perm, TopicConfig
from gantrymq.store.broker_statistics import Stat
from gantrymq.store.questions import Questions
from gantrymq.wire.bodies.stats import TOPIC_STATS, TopicOffset, TopicStats
from gantrymq.wire.bodies.topic import (
    MAPPED_TOPIC_CONFIG,
    TOPIC_CONFIG_LIST,
    TOPIC_LIST,
    TOPIC_TABLE,
    MappedTopicConfig,
    TopicList,
    TopicTable,
)
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.targets import TopicRequest
from gantrymq.wire.headers.topic import (
    CreateTopicRequest,
    GetAllTopicConfigRequest,
    GetAllTopicConfigResponse,
    GetTopicConfigRequest,
)
from gantrymq.wire.response_errors import InvalidParameter, TopicNotExist

if TYPE_CHECKING:
    from gantrymq.broker.admin.parts import AdminParts
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Handler, Peer, Pending

TOPICS_AT_ONCE_MAX: Final = 10_000
"""Topics of one request to create several."""
_FILTER_TYPES: Final = {kind.name: kind for kind in FilterType}
_HINT: Final = "; ask with topicSeq and maxTopicNum, as 5.5 tools do"


class TopicRequests:
    """Answers requests about topics."""

    def __init__(self, parts: AdminParts) -> None:
        self._parts = parts
        self._topics = parts.tables.topics
        self._encoded = parts.tables.topics.encoded.encode

    @property
    def handlers(self) -> dict[int, Handler]:
        """Return what is handled here."""
        return {
            RequestCode.UPDATE_AND_CREATE_TOPIC: self.change,
            RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: self.change_several,
            RequestCode.DELETE_TOPIC_IN_BROKER: self.delete,
            RequestCode.GET_TOPIC_CONFIG: self.one,
            RequestCode.GET_ALL_TOPIC_CONFIG: self.all,
            RequestCode.GET_TOPIC_STATS_INFO: self.statistics,
            RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: self.system,
            RequestCode.CLEAN_UNUSED_TOPIC: self.clean_unused,
        }

    # -- change -----------------------------------------------------------------------------------

    def change(self, request: Command, _peer: Peer) -> Pending:
        """Make a topic, or change it."""
        self._parts.check_master()
        header = CreateTopicRequest.decode(request.fields)
        try:
            config = TopicConfig(
                name=header.topic,
                read_queues=header.read_queue_nums,
                write_queues=header.write_queue_nums,
                perm=_perm(header.perm),
                filter_type=_filter_type(header.topic_filter_type),
                system_flags=header.topic_sys_flag or 0,
                order=header.order,
                attributes=parse_changes(header.attributes),
            )
            self._check(config)
            self._topics.change(config)
        except InvalidValue as error:
            raise InvalidParameter(str(error)) from None
        return self._parts.saved(request, self._topics)

    def change_several(self, request: Command, _peer: Peer) -> Pending:
        """Make or change several topics; if one of them cannot be, none is."""
        self._parts.check_master()
        listed = TOPIC_CONFIG_LIST.decode(request.body).topic_config_list
        if len(listed) > TOPICS_AT_ONCE_MAX:
            raise InvalidParameter(
                f"{len(listed)} topics in one request: give at most {TOPICS_AT_ONCE_MAX}"
            )
        try:
            for config in listed:
                self._check(config)
                _perm(config.perm)
            for config in listed:
                self._topics.change(config)
        except InvalidValue as error:
            raise InvalidParameter(str(error)) from None
        return self._parts.saved(request, self._topics)

    def _check(self, config: TopicConfig) -> None:
        """Refuse what may not be a topic of an operator's.

        Raises:
            InvalidValue: says why.
        """
        check_topic(config.name)
        if self._topics.is_system(config.name):
            raise InvalidValue(f"The topic[{config.name}] is conflict with system topic.")

    def delete(self, request: Command, _peer: Peer) -> Pending:
        """Delete a topic and what belongs to it; one that is not there is gone already."""
        self._parts.check_master()
        topic = TopicRequest.decode(request.fields).topic
        if not topic.strip():
            raise InvalidParameter("The specified topic is blank.")
        if self._topics.is_system(topic):
            raise InvalidParameter(f"The topic[{topic}] is conflict with system topic.")
        try:
            delete_topic(self._parts, topic)
        except InvalidValue as error:
            raise InvalidParameter(str(error)) from None
        tables = self._parts.tables
        return self._parts.saved(
            request, self._topics, tables.offsets, tables.modes, tables.saved_filters
        )

    def clean_unused(self, request: Command, _peer: Peer) -> Answer:
        """Remove queues of topics that have no settings, such as an earlier delete left behind."""
        self._parts.check_master()
        for topic in self._parts.store.queues.topics():
            if self._topics.find(topic) is None and not self._topics.is_system(topic):
                delete_topic(self._parts, topic)
        return answer(request)

    # -- ask --------------------------------------------------------------------------------------

    def one(self, request: Command, _peer: Peer) -> Answer:
        """Answer the settings of a topic."""
        header = GetTopicConfigRequest.decode(request.fields)
        found = self._topics.find(header.topic)
        if found is None:
            raise TopicNotExist(f"No topic in this broker. topic: {header.topic}")
        mapped = MappedTopicConfig(
            name=found.name,
            read_queues=found.read_queues,
            write_queues=found.write_queues,
            perm=found.perm,
            filter_type=found.filter_type,
            system_flags=found.system_flags,
            order=found.order,
            attributes=found.attributes,
        )
        return answer(request, body=MAPPED_TOPIC_CONFIG.encode(mapped))

    def all(self, request: Command, _peer: Peer) -> Answer:
        """Answer all topics, or one page of them."""
        header = GetAllTopicConfigRequest.decode(request.fields)
        table = self._topics.all()
        version = self._topics.data_version
        page = page_of(
            table,
            version,
            start=header.topic_seq,
            most=header.max_topic_num,
            known=header.data_version,
        )
        wanted = TopicTable(data_version=version, topic_config_table=page)
        body = TOPIC_TABLE.encode(wanted) if len(page) < len(table) else self._encoded(wanted)
        total = GetAllTopicConfigResponse(total_topic_num=len(table))
        return body_answer(request, body, total.encode(), hint=_HINT)

    async def statistics(self, request: Command, _peer: Peer) -> Answer:
        """Answer what each queue of a topic holds."""
        topic = self._parts.topic(TopicRequest.decode(request.fields).topic)
        reads = self._parts.store.reads
        rows = Rows("this topic has too many")
        table = {}
        for queue_id in range(max(topic.read_queues, topic.write_queues)):
            await rows.next()
            most = reads.max_offset(topic.name, queue_id)
            last = None
            if most > 0:
                newest = partial(Questions.stored_at, topic=topic.name, queue_id=queue_id)
                last = await ask(self._parts.store, partial(newest, offset=most - 1))
            table[self._parts.queue(topic.name, queue_id)] = TopicOffset(
                min_offset=reads.min_offset(topic.name, queue_id),
                max_offset=most,
                last_update_timestamp=last or 0,
            )
        put = self._parts.counting.broker.view(Stat.TOPIC_PUT_NUMS.name, topic.name)
        tps = 0.0 if put is None else put.stats_minute.tps
        return body_answer(
            request, TOPIC_STATS.encode(TopicStats(offset_table=table, topic_put_tps=tps))
        )

    def system(self, request: Command, _peer: Peer) -> Answer:
        """Answer which topics this broker reserves."""
        names = tuple(sorted(self._topics.system_names()))
        return answer(request, body=TOPIC_LIST.encode(TopicList(topic_list=names)))


def _perm(number: int) -> Perm:
    """Return the permission of a topic.

    Raises:
        InvalidValue: there is no such one.
    """
    if not 0 <= number < Perm.PRIORITY:
        raise InvalidValue(f"perm is {number}: give 2 to write, 4 to read, 6 for both, 0 for none")
    return Perm(number)


def _filter_type(text: str) -> FilterType:
    kind = _FILTER_TYPES.get(text)
    if kind is None:
        raise InvalidValue(
            f"topicFilterType is {shown(text)!r}: give one of {', '.join(_FILTER_TYPES)}"
        )
    return kind
