"""Messages: found by id, key or place, read out of queues, sent, and asked who has had them."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.admin import groups as groups_of
from gantrymq.admin import topics as topics_of
from gantrymq.errors import GantryError
from gantrymq.model.group import SUBSCRIBE_ALL, ConsumeType, MessageModel
from gantrymq.model.message import OffsetId
from gantrymq.wire.bodies.running import DIRECT_CONSUMPTION
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.compression import plain_start
from gantrymq.wire.headers.client import ConsumeMessageDirectlyRequest
from gantrymq.wire.headers.offset import GetMaxOffsetRequest, OffsetResponse, SearchOffsetRequest
from gantrymq.wire.headers.pull import PullMessageRequest, PullMessageResponse
from gantrymq.wire.headers.query import QueryMessageRequest, ViewMessageRequest
from gantrymq.wire.headers.targets import QueueRequest
from gantrymq.wire.record import MessageRecord, decode_records
from gantrymq.wire.response_errors import ConsumerNotOnline, NoMessage, QueryNotFound
from gantrymq.wire.sysflag import PullFlag

if TYPE_CHECKING:
    from gantrymq.admin.session import Gathered, Session
    from gantrymq.model.message import Host
    from gantrymq.model.queue import MessageQueue
    from gantrymq.wire.bodies.running import DirectConsumption

TOOLS_GROUP: Final = "TOOLS_CONSUMER"
PULL_COUNT: Final = 32
PULL_TIMEOUT_S: Final = 20.0
FOREVER_MS: Final = 2**63 - 1
KEY_MATCHES_MAX: Final = 64
PULLED: Final = (
    ResponseCode.SUCCESS,
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
)


class Found(NamedTuple):
    """A message and the broker that has it; the name is empty where it is not known."""

    record: MessageRecord
    broker_name: str


class Pulled(NamedTuple):
    """What a pull gave, and where to go on."""

    records: list[MessageRecord]
    next_offset: int
    min_offset: int
    max_offset: int


class QueueEnds(NamedTuple):
    """The first offset that is still stored, and the one that the next message gets."""

    min_offset: int
    max_offset: int


class TrackType(Enum):
    """What became of a message in one group; the names are mqadmin's."""

    CONSUMED = "CONSUMED"
    CONSUMED_BUT_FILTERED = "CONSUMED_BUT_FILTERED"
    PULL = "PULL"
    NOT_CONSUME_YET = "NOT_CONSUME_YET"
    NOT_ONLINE = "NOT_ONLINE"
    CONSUME_BROADCASTING = "CONSUME_BROADCASTING"
    UNKNOWN = "UNKNOWN"


class Track(NamedTuple):
    """What became of a message in one group."""

    group: str
    kind: TrackType
    why: str | None = None


# -- one message -----------------------------------------------------------------------------------


async def view(session: Session, offset_id: str, topic: str | None = None) -> MessageRecord:
    """Return the message with an offset id, which says which broker has it.

    Whatever host an id says is dialled: for an operator's own command line, and for nobody else's
    ids. `explaining.viewed` asks known brokers only.

    Raises:
        InvalidValue: it is no offset id.
        ResponseError: the broker has no such message.
    """
    where = OffsetId.parse(offset_id)
    return await view_at(session, address_text(where.host), where.log_offset, topic)


def address_text(host: Host) -> str:
    """Return a host as addresses are dialled and registered: IPv6 in brackets."""
    return f"[{host.address}]:{host.port}" if ":" in host.address else host.text


async def view_at(
    session: Session, address: str, log_offset: int, topic: str | None = None
) -> MessageRecord:
    """Return the message at an offset of a broker's log.

    Raises:
        ResponseError: the broker has no such message.
    """
    answered = await session.remote.call(
        address,
        RequestCode.VIEW_MESSAGE_BY_ID,
        ViewMessageRequest(offset=log_offset, topic=topic),
    )
    records = decode_records(answered.body)
    if not records:
        raise NoMessage(f"{address} answered without a message at {log_offset}")
    return records[0]


async def query(
    session: Session,
    topic: str,
    key: str,
    *,
    unique: bool = False,
    count: int = KEY_MATCHES_MAX,
    begin_ms: int = 0,
    end_ms: int = FOREVER_MS,
    cluster: str | None = None,
) -> Gathered[str, list[MessageRecord]]:
    """Return the messages of a topic with a key, by broker name; those with its hash are left out.

    Raises:
        TopicNotExist: no name server knows the topic.
        ResponseError: no broker answered well.
    """
    route = await session.route(topic)
    brokers = {
        broker.name: broker.addresses[min(broker.addresses)]
        for broker in route.brokers
        if broker.addresses and cluster in {None, broker.cluster}
    }
    header = QueryMessageRequest(
        topic=topic,
        key=key,
        max_num=count,
        begin_timestamp=begin_ms,
        end_timestamp=end_ms,
        unique_key_query=True if unique else None,
        index_type="U" if unique else "K",
    )

    async def ask(name: str) -> list[MessageRecord]:
        try:
            answered = await session.remote.call(
                brokers[name], RequestCode.QUERY_MESSAGE, header, timeout_s=15.0
            )
        except QueryNotFound:
            return []
        records = decode_records(answered.body)
        return [one for one in records if one.topic == topic and _has_key(one, key, unique=unique)]

    answers = await session.gather(brokers, ask)
    answers.check()
    return answers


def _has_key(record: MessageRecord, key: str, *, unique: bool) -> bool:
    if unique:
        return record.unique_key == key
    return key in record.keys or record.unique_key == key


def found_in(answers: Gathered[str, list[MessageRecord]]) -> list[Found]:
    """Return all messages of a query, oldest first."""
    found = [Found(one, name) for name, records in answers.found.items() for one in records]
    return sorted(found, key=lambda each: each.record.raw.store_timestamp)


def surely_found_in(answers: Gathered[str, list[MessageRecord]]) -> list[Found]:
    """Return all messages of a query; that there is none must have been said by everybody.

    Raises:
        GantryError: nothing was found, and a broker that may have it did not answer.
    """
    found = found_in(answers)
    if not found:
        for error in answers.problems.values():
            raise error
    return found


# -- queues ----------------------------------------------------------------------------------------


async def pull(
    session: Session,
    address: str,
    queue: MessageQueue,
    offset: int,
    *,
    count: int = PULL_COUNT,
    expression: str = SUBSCRIBE_ALL,
    group: str = TOOLS_GROUP,
) -> Pulled:
    """Return messages of a queue from an offset on; nothing is waited for, nothing committed."""
    answered = await session.remote.call(
        address,
        RequestCode.PULL_MESSAGE,
        PullMessageRequest(
            consumer_group=group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_msg_nums=count,
            sys_flag=int(PullFlag.SUBSCRIPTION),
            commit_offset=0,
            suspend_timeout_millis=0,
            sub_version=0,
            subscription=expression,
            expression_type="TAG",
        ),
        timeout_s=PULL_TIMEOUT_S,
        answer=PullMessageResponse,
        accept=PULLED,
    )
    is_found = answered.code == ResponseCode.SUCCESS
    records = decode_records(answered.body) if is_found else []
    header = answered.header
    return Pulled(records, header.next_begin_offset, header.min_offset, header.max_offset)


async def ends(session: Session, address: str, topic: str, queue_id: int) -> QueueEnds:
    """Return where a queue begins and ends."""
    least = await session.remote.call(
        address,
        RequestCode.GET_MIN_OFFSET,
        QueueRequest(topic=topic, queue_id=queue_id),
        answer=OffsetResponse,
    )
    most = await session.remote.call(
        address,
        RequestCode.GET_MAX_OFFSET,
        GetMaxOffsetRequest(topic=topic, queue_id=queue_id),
        answer=OffsetResponse,
    )
    return QueueEnds(max(least.header.offset, 0), most.header.offset)


async def offset_at(session: Session, address: str, topic: str, queue_id: int, time_ms: int) -> int:
    """Return the offset of a queue's first message of a time or later."""
    answered = await session.remote.call(
        address,
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
        SearchOffsetRequest(topic=topic, queue_id=queue_id, timestamp=time_ms),
        answer=OffsetResponse,
    )
    return answered.header.offset


async def at_offset(
    session: Session, topic: str, broker_name: str, queue_id: int, offset: int
) -> Found:
    """Return the message at a place.

    Raises:
        NoMessage: there is none.
    """
    address = (await session.masters_of_topic(topic)).get(broker_name)
    if address is None:
        address = await session.master_of(broker_name)
    queue = topic_queue(topic, broker_name, queue_id)
    pulled = await pull(session, address, queue, offset, count=1)
    if not pulled.records or pulled.records[0].queue_offset != offset:
        raise NoMessage(
            f"queue {queue} has no message at {offset}: it holds {pulled.min_offset} to"
            f" {pulled.max_offset - 1}"
        )
    return Found(pulled.records[0], broker_name)


def topic_queue(topic: str, broker_name: str, queue_id: int) -> MessageQueue:
    """Return the name of a queue."""
    from gantrymq.model.queue import MessageQueue, QueueId  # noqa: PLC0415

    return MessageQueue(topic, broker_name, QueueId(queue_id))


# -- who has had it --------------------------------------------------------------------------------


async def tracks(session: Session, record: MessageRecord) -> list[Track]:
    """Return what became of a message in every group that reads its topic."""
    answers = await topics_of.consumers_of(session, record.topic)
    answers.check()
    listed = dict.fromkeys(group for told in answers.found.values() for group in told)

    async def ask(group: str) -> Track:
        return await track(session, record, group)

    gathered = await session.gather(listed, ask)
    failed = [
        Track(group, TrackType.UNKNOWN, str(error)) for group, error in gathered.problems.items()
    ]
    return sorted([*gathered.found.values(), *failed])


async def track(session: Session, record: MessageRecord, group: str) -> Track:
    """Return what became of a message in one group."""
    try:
        told = (await groups_of.members(session, group)).told
    except ConsumerNotOnline as error:
        return Track(group, TrackType.NOT_ONLINE, str(error))
    if told.message_model is MessageModel.BROADCASTING:
        return Track(group, TrackType.CONSUME_BROADCASTING)
    if told.consume_type is ConsumeType.CONSUME_ACTIVELY:
        return Track(group, TrackType.PULL)
    if not await is_consumed(session, record, group):
        return Track(group, TrackType.NOT_CONSUME_YET)
    taken = told.subscription_table.get(record.topic)
    if taken is not None and taken.tags and record.tags not in taken.tags:
        return Track(group, TrackType.CONSUMED_BUT_FILTERED)
    return Track(group, TrackType.CONSUMED)


async def is_consumed(session: Session, record: MessageRecord, group: str) -> bool:
    """Tell whether a group has committed an offset behind a message."""
    told = await groups_of.progress(session, group, record.topic)
    address = record.store_host.text
    names = {name for name, at in (await session.masters_of_topic(record.topic)).items()
             if at == address}  # fmt: skip
    return any(
        each.consumer_offset > record.queue_offset
        for each in told.queues
        if each.queue.topic == record.topic
        and each.queue.queue_id == record.queue_id
        and (not names or each.queue.broker_name in names)
    )


async def consume_directly(
    session: Session, address: str, group: str, client_id: str, record: MessageRecord
) -> DirectConsumption:
    """Have one member take a message now, whatever its offsets say; `address` is its broker's.

    Raises:
        ResponseError: it is not online, or did not answer in time.
    """
    header = ConsumeMessageDirectlyRequest(
        consumer_group=group, client_id=client_id, msg_id=record.offset_id, topic=record.topic
    )
    answered = await session.remote.call(
        address, RequestCode.CONSUME_MESSAGE_DIRECTLY, header, timeout_s=15.0
    )
    return DIRECT_CONSUMPTION.decode(answered.body)


def readable_body(record: MessageRecord) -> bytes:
    """Return the body as the producer gave it; as it is stored where that cannot be."""
    try:
        return record.plain_body()
    except GantryError:
        return record.body


def readable_start(record: MessageRecord, bytes_max: int) -> bytes:
    """Return the first bytes of a body, read as `readable_body` does; no more is decompressed."""
    try:
        return plain_start(record.body, record.raw.sys_flag, bytes_max)
    except GantryError:
        return record.body[:bytes_max]
