"""Consumer groups: their settings, their members, how far they are; and who produces."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gantrymq.admin.protected import check_may_change_group
from gantrymq.model.names import RETRY_PREFIX, retry_topic
from gantrymq.wire.bodies.connections import (
    CONSUMER_CONNECTIONS,
    PRODUCER_CONNECTIONS,
    PRODUCER_TABLE,
)
from gantrymq.wire.bodies.group import (
    GROUP_CONFIG,
    GROUP_CONFIG_LIST,
    GROUP_TABLE,
    GroupConfigList,
)
from gantrymq.wire.bodies.running import CONSUMER_RUNNING_INFO
from gantrymq.wire.bodies.stats import CONSUME_STATS
from gantrymq.wire.bodies.topic import DATA_VERSION
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.client import ConsumerRunningInfoRequest, ProducerGroupRequest
from gantrymq.wire.headers.group import (
    DeleteSubscriptionGroupRequest,
    GetAllSubscriptionGroupRequest,
    GetAllSubscriptionGroupResponse,
)
from gantrymq.wire.headers.query import GetConsumeStatsRequest
from gantrymq.wire.headers.targets import ConsumerGroupRequest
from gantrymq.wire.response_errors import ConsumerNotOnline, TopicNotExist

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gantrymq.admin.session import Gathered, Session
    from gantrymq.model.group import SubscriptionGroup
    from gantrymq.model.queue import MessageQueue
    from gantrymq.wire.bodies.connections import Connection, ConsumerConnections, ProducerInfo
    from gantrymq.wire.bodies.running import ConsumerRunningInfo
    from gantrymq.wire.bodies.stats import ConsumeStats

PAGE_GROUPS = 2_000
PAGES_MAX = 1_000
RUNNING_INFO_TIMEOUT_S = 12.0
"""A broker waits 10 s for the client that it asks."""


class QueueProgress(NamedTuple):
    """How far a group is in one queue."""

    queue: MessageQueue
    broker_offset: int
    consumer_offset: int
    pull_offset: int
    last_ms: int
    """When the last message that it took was stored; 0 if it took none."""

    @property
    def behind(self) -> int:
        """Return how many messages it has not taken."""
        return self.broker_offset - self.consumer_offset


class GroupProgress(NamedTuple):
    """How far a group is."""

    queues: list[QueueProgress]
    tps: float
    problems: dict[str, Exception]

    @property
    def behind(self) -> int:
        """Return how many messages it has not taken, over all queues."""
        return sum(queue.behind for queue in self.queues)


class GroupMembers(NamedTuple):
    """Who is in a group: as one broker says, and all its connections over all brokers."""

    told: ConsumerConnections
    connections: list[Connection]
    by_broker: dict[str, ConsumerConnections]
    problems: dict[str, Exception]


def groups_in(topics: Iterable[str]) -> list[str]:
    """Return the groups that have a retry topic: that is how name servers know of groups."""
    return sorted(
        topic.removeprefix(RETRY_PREFIX) for topic in topics if topic.startswith(RETRY_PREFIX)
    )


async def brokers_of(session: Session, group: str) -> dict[str, str]:
    """Return broker name to address of the brokers that know a group.

    Raises:
        TopicNotExist: no name server knows its retry topic, which every group gets.
    """
    try:
        return await session.masters_of_topic(retry_topic(group))
    except TopicNotExist:
        raise TopicNotExist(
            f"No topic route info in name server for the topic: {retry_topic(group)}; a group is"
            " known once a member of it was online"
        ) from None


# -- settings --------------------------------------------------------------------------------------


class GroupTable(NamedTuple):
    """All groups of a broker, and the version of its table by which the next look is cheap."""

    groups: dict[str, SubscriptionGroup]
    version: str | None


async def read_groups(
    session: Session, address: str, known: GroupTable | None = None
) -> GroupTable:
    """Return all groups of one broker; 5.5 tells them page by page, as long as none changes.

    What is `known` already is not sent again by such a broker, or ours, if it is still so.
    """
    found = dict(known.groups) if known is not None else {}
    version = known.version if known is not None else None
    for _page in range(PAGES_MAX):
        header = GetAllSubscriptionGroupRequest(
            group_seq=len(found), data_version=version, max_group_num=PAGE_GROUPS
        )
        answered = await session.remote.call(
            address,
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
            header,
            answer=GetAllSubscriptionGroupResponse,
        )
        table = GROUP_TABLE.decode(answered.body)
        told = DATA_VERSION.encode(table.data_version).decode()
        total = answered.header.total_group_num
        if total is None or version not in {None, told}:  # it is whole, or begins anew
            found.clear()
        before, version = len(found), told
        found.update(table.subscription_group_table)
        if total is None or len(found) >= total or len(found) == before:
            break
    return GroupTable(found, version)


async def group_table(session: Session, address: str) -> dict[str, SubscriptionGroup]:
    """Return all groups of one broker."""
    return (await read_groups(session, address)).groups


async def group_settings(session: Session, group: str) -> Gathered[str, SubscriptionGroup | None]:
    """Return a group's settings by broker name; None where the broker does not have it."""
    masters = await session.masters()

    async def ask(name: str) -> SubscriptionGroup | None:
        return (await group_table(session, masters[name])).get(group)

    return await session.gather(masters, ask)


async def create_group(session: Session, address: str, group: SubscriptionGroup) -> None:
    """Make a group on one broker, or change it."""
    check_may_change_group(group.name)
    body = GROUP_CONFIG.encode(group)
    await session.remote.call(address, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, body)


async def create_groups(
    session: Session, address: str, groups: Iterable[SubscriptionGroup]
) -> None:
    """Make several groups on one broker with one request (5.x)."""
    listed = tuple(groups)
    for group in listed:
        check_may_change_group(group.name)
    body = GROUP_CONFIG_LIST.encode(GroupConfigList(group_config_list=listed))
    await session.remote.call(
        address, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, None, body
    )


async def delete_group(
    session: Session, address: str, group: str, *, remove_offsets: bool = False
) -> None:
    """Delete a group from one broker, with its offsets if asked."""
    check_may_change_group(group)
    await session.remote.call(
        address,
        RequestCode.DELETE_SUBSCRIPTIONGROUP,
        DeleteSubscriptionGroupRequest(
            group_name=group, clean_offset=remove_offsets, remove_offset=remove_offsets
        ),
    )


# -- members ---------------------------------------------------------------------------------------


async def members(session: Session, group: str, address: str | None = None) -> GroupMembers:
    """Return who is in a group.

    Raises:
        TopicNotExist: nobody knows the group.
        ConsumerNotOnline: it has no members now.
        ResponseError: no broker answered well.
    """
    brokers = {address: address} if address else await brokers_of(session, group)

    async def ask(name: str) -> ConsumerConnections:
        answered = await session.remote.call(
            brokers[name],
            RequestCode.GET_CONSUMER_CONNECTION_LIST,
            ConsumerGroupRequest(consumer_group=group),
        )
        return CONSUMER_CONNECTIONS.decode(answered.body)

    answers = await session.gather(brokers, ask)
    offline = {k: e for k, e in answers.problems.items() if isinstance(e, ConsumerNotOnline)}
    if not answers.found:
        real = {k: e for k, e in answers.problems.items() if k not in offline}
        raise next(iter((real or offline).values()))
    problems: dict[str, Exception] = {
        name: error for name, error in answers.problems.items() if name not in offline
    }
    told = next(iter(answers.found.values()))
    connections = {
        each.client_id: each for one in answers.found.values() for each in one.connection_set
    }
    return GroupMembers(told, list(connections.values()), answers.found, problems)


async def running_info(
    session: Session, group: str, client_id: str, *, stack: bool = False, address: str | None = None
) -> ConsumerRunningInfo:
    """Return what a member says of its inside.

    Raises:
        ResponseError: it is not online, or does not answer.
    """
    brokers = [address] if address else list((await brokers_of(session, group)).values())
    header = ConsumerRunningInfoRequest(
        consumer_group=group, client_id=client_id, jstack_enable=stack
    )

    async def ask(broker: str) -> ConsumerRunningInfo:
        answered = await session.remote.call(
            broker,
            RequestCode.GET_CONSUMER_RUNNING_INFO,
            header,
            timeout_s=RUNNING_INFO_TIMEOUT_S,
        )
        return CONSUMER_RUNNING_INFO.decode(answered.body)

    answers = await session.gather(brokers, ask)
    answers.check()
    return next(iter(answers.found.values()))


async def producers_of_topic(session: Session, group: str, topic: str) -> list[Connection]:
    """Return the producers of a group that are connected to the brokers of a topic.

    Raises:
        ResponseError: the group has none, or no broker answered.
    """
    brokers = await session.masters_of_topic(topic)

    async def ask(name: str) -> tuple[Connection, ...]:
        answered = await session.remote.call(
            brokers[name],
            RequestCode.GET_PRODUCER_CONNECTION_LIST,
            ProducerGroupRequest(producer_group=group),
        )
        return PRODUCER_CONNECTIONS.decode(answered.body).connection_set

    answers = await session.gather(brokers, ask)
    answers.check()
    return list({one.client_id: one for told in answers.found.values() for one in told}.values())


async def producers(session: Session, address: str) -> Mapping[str, tuple[ProducerInfo, ...]]:
    """Return all producers of a broker by group."""
    answered = await session.remote.call(address, RequestCode.GET_ALL_PRODUCER_INFO)
    return PRODUCER_TABLE.decode(answered.body).data


# -- progress --------------------------------------------------------------------------------------


async def consume_stats(
    session: Session, address: str, group: str, topic: str | None = None
) -> ConsumeStats:
    """Return how far a group is, as one broker knows it."""
    answered = await session.remote.call(
        address,
        RequestCode.GET_CONSUME_STATS,
        GetConsumeStatsRequest(consumer_group=group, topic=topic or None),
        timeout_s=max(session.settings.request_timeout_s, 10.0),
    )
    return CONSUME_STATS.decode(answered.body)


async def progress(session: Session, group: str, topic: str | None = None) -> GroupProgress:
    """Return how far a group is in all its queues.

    Raises:
        TopicNotExist: nobody knows the group.
        ResponseError: no broker answered well.
    """
    brokers = await brokers_of(session, group)

    async def ask(name: str) -> ConsumeStats:
        return await consume_stats(session, brokers[name], group, topic)

    answers = await session.gather(brokers, ask)
    answers.check()
    found = {q: at for told in answers.found.values() for q, at in told.offset_table.items()}
    queues = [
        QueueProgress(q, at.broker_offset, at.consumer_offset, at.pull_offset, at.last_timestamp)
        for q, at in sorted(found.items())
    ]
    tps = sum(told.consume_tps for told in answers.found.values())
    return GroupProgress(queues, tps, dict(answers.problems))
