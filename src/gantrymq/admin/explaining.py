"""The whole life of a message, and the whole state of a group, out of many questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.admin import checkup, messages, traces
from gantrymq.admin import groups as groups_of
from gantrymq.admin import topics as topics_of
from gantrymq.admin.session import Gathered
from gantrymq.errors import GantryError, InvalidValue
from gantrymq.model.message import OffsetId
from gantrymq.model.names import dlq_topic, retry_topic
from gantrymq.wire.properties import ORIGIN_MESSAGE_ID, RETRY_TOPIC
from gantrymq.wire.response_errors import (
    ConsumerNotOnline,
    NoMessage,
    TopicNotExist,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.admin.checkup import Finding
    from gantrymq.admin.groups import GroupMembers, GroupProgress, QueueProgress
    from gantrymq.admin.messages import Found, Track
    from gantrymq.admin.session import Session
    from gantrymq.admin.traces import Trace
    from gantrymq.model.group import SubscriptionGroup

TOPICS_ASKED_MAX: Final = 1_000
TOPICS_AT_ONCE: Final = 64


class Copy(NamedTuple):
    """A later copy of a message: a retry of a group, or its dead letter."""

    group: str
    kind: str
    """retry or dead letter."""
    found: Found


class MessageLife(NamedTuple):
    """Where a message is stored, who had it, what was retried, and what clients traced."""

    found: Found
    tracks: list[Track]
    copies: list[Copy]
    traces: list[Trace]
    problems: list[str]


class GroupLife(NamedTuple):
    """Everything about a group."""

    group: str
    settings: dict[str, SubscriptionGroup]
    progress: GroupProgress | None
    members: GroupMembers | None
    owners: dict[str, str]
    """`topic@broker:queue` to the client that reads it."""
    waiting: dict[str, int | None]
    """The same to the store time of the oldest message that waits; None if none does."""
    retries: int
    dead_letters: int
    findings: list[Finding]
    problems: list[str]


async def find_message(session: Session, message_id: str, topic: str | None) -> Found:
    """Return a message by either of its ids; without a topic, many topics are asked.

    Raises:
        NoMessage: nobody has it; it says how many topics were asked, and whether there are more.
    """
    by_place = await viewed(session, message_id)
    if by_place is not None:
        return by_place
    if topic:
        answers = await _ask_topics(session, message_id, [topic])
        where = f"topic {topic}"
    else:
        async with session.broad_searches:
            names = await _topics_to_ask(session)
            answers = await _ask_topics(session, message_id, names[:TOPICS_ASKED_MAX])
        where = f"{len(names)} topics"
        if len(names) > TOPICS_ASKED_MAX:
            where = f"the first {TOPICS_ASKED_MAX} of {where}: name the topic that it is in"
    found = [each for one in answers.found.values() for each in one]
    if not found:
        answers.check()
        doubts = "".join(f"; but who may have it did not answer: {each}"
                         for each in answers.complaints[:1])  # fmt: skip
        raise NoMessage(f"no message has the id {message_id} in {where}{doubts}")
    return next((each for each in found if _is_own(each.record.topic)), found[0])


def _is_own(topic: str) -> bool:
    """Tell whether a topic has messages of its own, and not copies for a group."""
    return not topic.startswith("%")


async def _topics_to_ask(session: Session) -> list[str]:
    """Return all topics; first those in which messages are, and then those with copies."""
    names = await topics_of.topic_names(session)
    known = [name for name in names if not name.startswith("rmq_sys_")]
    return sorted(known, key=lambda name: not _is_own(name))


async def _ask_topics(
    session: Session, message_id: str, names: list[str]
) -> Gathered[str, list[Found]]:
    """Ask topics for a message, some at a time, until one of them has it."""

    async def ask(name: str) -> list[Found]:
        told = await messages.query(session, name, message_id, unique=True)
        return messages.surely_found_in(told)

    answers: Gathered[str, list[Found]] = Gathered()
    for at in range(0, len(names), TOPICS_AT_ONCE):
        some = await session.gather(names[at : at + TOPICS_AT_ONCE], ask)
        answers.found.update(some.found)
        answers.problems.update(some.problems)
        if any(found and _is_own(name) for name, found in some.found.items()):
            break
    return answers


async def viewed(
    session: Session, message_id: str, known: Mapping[str, str] | None = None
) -> Found | None:
    """Return the message with an offset id, or None if it is none of this cluster.

    A client's id may read as the offset id of a host that is no broker, so only brokers that the
    name servers know are asked. A broker may be known by another address than it stores: then the
    port tells. `known` are the addresses of the session, where they were asked for already.
    """
    try:
        where = OffsetId.parse(message_id)
    except InvalidValue:
        return None
    if known is None:
        known = await session.addresses()
    told = messages.address_text(where.host)
    port = f":{where.host.port}"
    likely = [told] if told in known else [
        address for address in known if address.endswith(port)
    ]  # fmt: skip
    for address in likely:
        try:
            record = await messages.view_at(session, address, where.log_offset)
        except GantryError:
            continue
        if record.offset_id.lower() == message_id.lower():
            return messages.Found(record, known[address])
    return None


async def broker_address(session: Session, found: Found) -> str:
    """Return where the broker is that a message was found on, as the name servers know it.

    Raises:
        NoMessage: no broker that they know has it.
        NoSuchTarget: it has no master now.
    """
    name = found.broker_name
    if not name:
        again = await viewed(session, found.record.offset_id)
        if again is None:
            raise NoMessage(f"no broker of this cluster has {found.record.offset_id}")
        name = again.broker_name
    return await session.master_of(name)


async def message_life(session: Session, message_id: str, topic: str | None = None) -> MessageLife:
    """Return the whole life of a message.

    Raises:
        NoMessage: nobody has it.
    """
    found = await find_message(session, message_id, topic)
    record = found.record
    problems: list[str] = []
    tracks: list[Track] = []
    try:
        tracks = await messages.tracks(session, record)
    except GantryError as error:
        problems.append(f"who has had it is not known: {error}")
    copies: list[Copy] = []
    for track in tracks:
        for kind, name in (("retry", retry_topic(track.group)), (
                "dead letter", dlq_topic(track.group))):  # fmt: skip
            try:
                copies += [
                    Copy(track.group, kind, each)
                    for each in await _copies(session, name, found, problems)
                ]
            except TopicNotExist:
                continue
            except GantryError as error:
                problems.append(f"{name}: {error}")
    told: list[Trace] = []
    try:
        key = record.unique_key or record.offset_id
        told = await traces.traces_of(session, key, problems=problems)
    except TopicNotExist:
        pass
    except GantryError as error:
        problems.append(f"traces: {error}")
    return MessageLife(found, tracks, copies, told, problems)


async def _copies(session: Session, topic: str, found: Found, problems: list[str]) -> list[Found]:
    """Return the copies of a message in a retry or dead-letter topic: they keep its unique key."""
    record = found.record
    key = record.unique_key
    if key is None:
        return []
    answers = await messages.query(session, topic, key, unique=True)
    problems += [f"{topic}: {each}" for each in answers.complaints]
    return [
        each for each in messages.found_in(answers)
        if each.record.properties.get(RETRY_TOPIC) in {None, record.topic}
        or each.record.properties.get(ORIGIN_MESSAGE_ID) in {key, record.offset_id}
    ]  # fmt: skip


def queue_key(each: QueueProgress) -> str:
    """Return a queue as the tables of a group's life have it."""
    return str(each.queue)


async def group_life(session: Session, group: str) -> GroupLife:
    """Return everything about a group.

    Raises:
        ResponseError: nobody knows it.
    """
    problems: list[str] = []
    told = await groups_of.group_settings(session, group)
    problems += told.complaints
    settings = {name: each for name, each in told.found.items() if each is not None}
    progress = None
    try:
        progress = await groups_of.progress(session, group)
        problems += [f"{name}: {error}" for name, error in progress.problems.items()]
    except TopicNotExist:
        if not settings:
            raise
    members, owners = None, {}
    try:
        members = await groups_of.members(session, group)
        owners = await owners_of(session, group, members, problems)
    except (ConsumerNotOnline, TopicNotExist):
        pass
    waiting = await waiting_since(session, progress, problems) if progress is not None else {}
    counts = []
    for topic in (retry_topic(group), dlq_topic(group)):
        try:
            status = await topics_of.topic_status(session, topic)
            problems += [f"{topic}: {each}" for each in status.answers.complaints]
            counts.append(sum(each.max_offset - each.min_offset for each in status.queues))
        except TopicNotExist:
            counts.append(0)
        except GantryError as error:
            problems.append(f"{topic}: {error}")
            counts.append(0)
    findings = await checkup.group_findings(session, group) if progress is not None else []
    return GroupLife(
        group, settings, progress, members, owners, waiting, counts[0], counts[1], findings,
        problems,
    )  # fmt: skip


async def owners_of(
    session: Session, group: str, members: GroupMembers, problems: list[str]
) -> dict[str, str]:
    """Return queue to the member that reads it, as the members say."""

    async def ask(client_id: str) -> list[str]:
        info = await groups_of.running_info(session, group, client_id)
        return [str(queue) for queue in (*info.mq_table, *(info.mq_pop_table or ()))]

    answers = await session.gather([each.client_id for each in members.connections], ask)
    problems += answers.complaints
    return {queue: client for client, queues in answers.found.items() for queue in queues}


async def waiting_since(
    session: Session, progress: GroupProgress, problems: list[str]
) -> dict[str, int | None]:
    """Return when the oldest message was stored that each queue still has for the group."""
    behind = {queue_key(each): each for each in progress.queues if each.behind > 0}
    masters = await session.masters()

    async def ask(name: str) -> int | None:
        each = behind[name]
        address = masters[each.queue.broker_name]
        pulled = await messages.pull(session, address, each.queue, each.consumer_offset, count=1)
        return pulled.records[0].raw.store_timestamp if pulled.records else None

    known = [name for name, each in behind.items() if each.queue.broker_name in masters]
    answers = await session.gather(known, ask)
    problems += answers.complaints
    return {**{queue_key(each): None for each in progress.queues}, **answers.found}
