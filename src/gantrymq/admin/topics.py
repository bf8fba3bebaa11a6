"""Topics: which there are, where, what is in them; making, changing and deleting them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from gantrymq.admin.protected import check_may_change_topic
from gantrymq.model.names import TEMPLATE_TOPIC
from gantrymq.wire.bodies.group import GROUP_LIST
from gantrymq.wire.bodies.stats import TOPIC_STATS
from gantrymq.wire.bodies.topic import (
    DATA_VERSION,
    TOPIC_CONFIG_LIST,
    TOPIC_LIST,
    TOPIC_TABLE,
    TopicConfigList,
)
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.namesrv import DeleteTopicFromNamesrvRequest, GetTopicsByClusterRequest
from gantrymq.wire.headers.targets import TopicRequest
from gantrymq.wire.headers.topic import (
    CreateTopicRequest,
    GetAllTopicConfigRequest,
    GetAllTopicConfigResponse,
)
from gantrymq.wire.response_errors import TopicNotExist

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gantrymq.admin.session import Gathered, Session
    from gantrymq.model.queue import MessageQueue
    from gantrymq.model.topic import TopicConfig
    from gantrymq.wire.bodies.stats import TopicOffset
    from gantrymq.wire.command import Command

PAGE_TOPICS = 2_000
PAGES_MAX = 1_000


class QueueStatus(NamedTuple):
    """What one queue holds."""

    queue: MessageQueue
    min_offset: int
    max_offset: int
    updated_ms: int
    """0: never."""


class TopicStatus(NamedTuple):
    """What all queues of a topic hold, and the brokers that did not say."""

    queues: list[QueueStatus]
    answers: Gathered[str, Mapping[MessageQueue, TopicOffset]]


async def topic_names(session: Session) -> list[str]:
    """Return the names of all topics that a name server knows."""
    reply = await session.ask_name_server(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
    return sorted(TOPIC_LIST.decode(reply.body).topic_list)


async def topics_of_cluster(session: Session, cluster: str) -> list[str]:
    """Return the names of the topics of one cluster."""
    reply = await session.ask_name_server(
        RequestCode.GET_TOPICS_BY_CLUSTER, GetTopicsByClusterRequest(cluster=cluster)
    )
    return sorted(TOPIC_LIST.decode(reply.body).topic_list)


async def clusters_of_topic(session: Session, topic: str) -> list[str]:
    """Return the clusters that have a topic."""
    return sorted({broker.cluster for broker in (await session.route(topic)).brokers})


async def topic_status(session: Session, topic: str, cluster: str | None = None) -> TopicStatus:
    """Return what the queues of a topic hold.

    Raises:
        TopicNotExist: no name server knows it.
        ResponseError: no broker of it answered well.
    """
    route = await session.route(topic)
    brokers = {
        broker.name: broker.addresses[min(broker.addresses)]
        for broker in route.brokers
        if broker.addresses and cluster in {None, broker.cluster}
    }

    async def ask(name: str) -> Mapping[MessageQueue, TopicOffset]:
        answered = await session.remote.call(
            brokers[name], RequestCode.GET_TOPIC_STATS_INFO, TopicRequest(topic=topic)
        )
        return TOPIC_STATS.decode(answered.body).offset_table

    answers = await session.gather(brokers, ask)
    answers.check()
    found = {queue: each for table in answers.found.values() for queue, each in table.items()}
    queues = [
        QueueStatus(queue, each.min_offset, each.max_offset, each.last_update_timestamp)
        for queue, each in sorted(found.items())
    ]
    return TopicStatus(queues, answers)


async def consumers_of(session: Session, topic: str) -> Gathered[str, tuple[str, ...]]:
    """Return the groups that read a topic, by broker name."""
    brokers = await session.masters_of_topic(topic)

    async def ask(name: str) -> tuple[str, ...]:
        answered = await session.remote.call(
            brokers[name], RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, TopicRequest(topic=topic)
        )
        return GROUP_LIST.decode(answered.body).group_list

    return await session.gather(brokers, ask)


async def topic_table(session: Session, address: str) -> dict[str, TopicConfig]:
    """Return all topics of one broker; 5.5 tells them page by page, as long as none changes."""
    found: dict[str, TopicConfig] = {}
    version: str | None = None
    for _page in range(PAGES_MAX):
        header = GetAllTopicConfigRequest(
            topic_seq=len(found), data_version=version, max_topic_num=PAGE_TOPICS
        )
        answered = await session.remote.call(
            address, RequestCode.GET_ALL_TOPIC_CONFIG, header, answer=GetAllTopicConfigResponse
        )
        table = TOPIC_TABLE.decode(answered.body)
        told = DATA_VERSION.encode(table.data_version).decode()
        if version not in {None, told}:  # something was changed: the broker begins anew
            found.clear()
        before, version = len(found), told
        found.update(table.topic_config_table)
        total = answered.header.total_topic_num
        if total is None or len(found) >= total or len(found) == before:
            break
    return found


async def create_topic(
    session: Session, address: str, topic: TopicConfig, attributes: str | None = None
) -> None:
    """Make a topic on one broker, or change it; `attributes` is `+key=value,-key` (5.x)."""
    check_may_change_topic(topic.name)
    await session.remote.call(
        address,
        RequestCode.UPDATE_AND_CREATE_TOPIC,
        CreateTopicRequest(
            topic=topic.name,
            default_topic=TEMPLATE_TOPIC,
            read_queue_nums=topic.read_queues,
            write_queue_nums=topic.write_queues,
            perm=int(topic.perm),
            topic_filter_type=topic.filter_type.name,
            order=topic.order,
            topic_sys_flag=topic.system_flags,
            attributes=attributes or None,
        ),
    )


async def wait_until_known(
    session: Session, topic: TopicConfig, addresses: Iterable[str], seconds_max: float = 3.0
) -> bool:
    """Wait until a name server tells clients what was changed; brokers register a moment later."""
    deadline = session.clock.monotonic() + seconds_max
    wanted = set(addresses)
    while True:
        try:
            route = await session.route(topic.name)
        except TopicNotExist:
            known: set[str | None] = set()
        else:
            good = {
                each.broker_name
                for each in route.queues
                if (each.read_queues, each.write_queues, each.perm)
                == (topic.read_queues, topic.write_queues, topic.perm)
            }
            known = {each.master for each in route.brokers if each.name in good}
        if wanted <= known:
            return True
        if session.clock.monotonic() > deadline:
            return False
        await asyncio.sleep(0.01)


async def create_topics(session: Session, address: str, topics: Iterable[TopicConfig]) -> None:
    """Make several topics on one broker with one request (5.x)."""
    listed = tuple(topics)
    for topic in listed:
        check_may_change_topic(topic.name)
    body = TOPIC_CONFIG_LIST.encode(TopicConfigList(topic_config_list=listed))
    await session.remote.call(address, RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, None, body)


async def delete_topic_on_broker(session: Session, address: str, topic: str) -> None:
    """Delete a topic from one broker."""
    check_may_change_topic(topic)
    await session.remote.call(
        address, RequestCode.DELETE_TOPIC_IN_BROKER, TopicRequest(topic=topic)
    )


async def delete_topic_from_name_servers(
    session: Session, topic: str, cluster: str | None = None
) -> Gathered[str, Command]:
    """Make every name server forget a topic."""
    check_may_change_topic(topic)
    return await session.tell_name_servers(
        RequestCode.DELETE_TOPIC_IN_NAMESRV,
        DeleteTopicFromNamesrvRequest(topic=topic, cluster_name=cluster),
    )
