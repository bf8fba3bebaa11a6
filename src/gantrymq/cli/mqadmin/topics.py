"""Sub-commands about topics."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from gantrymq.admin import brokers, topics
from gantrymq.admin.protected import check_may_change_topic
from gantrymq.cli.output import Answer, Table, ended, moment
from gantrymq.errors import InvalidValue
from gantrymq.model.names import DLQ_PREFIX, RETRY_PREFIX
from gantrymq.model.queue import MessageQueue
from gantrymq.model.topic import FilterType, Perm, TopicConfig
from gantrymq.wire.bodies.codec import JsonBody
from gantrymq.wire.bodies.route import TOPIC_ROUTE
from gantrymq.wire.response_errors import QueryNotFound

if TYPE_CHECKING:
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given

DEFAULT_QUEUES = 8
FILE_BYTES_MAX = 16 << 20


def topic_text(topic: TopicConfig) -> str:
    """Return a topic's settings as mqadmin prints them."""
    return (
        f"TopicConfig [topicName={topic.name}, readQueueNums={topic.read_queues},"
        f" writeQueueNums={topic.write_queues}, perm={Perm(topic.perm).text},"
        f" topicFilterType={FilterType(topic.filter_type).name},"
        f" topicSysFlag={topic.system_flags}, order={str(topic.order).lower()}]"
    )


def topic_data(topic: TopicConfig) -> dict[str, object]:
    """Return a topic's settings for JSON."""
    return {
        "topicName": topic.name,
        "readQueueNums": topic.read_queues,
        "writeQueueNums": topic.write_queues,
        "perm": int(topic.perm),
        "topicSysFlag": topic.system_flags,
        "order": topic.order,
        "attributes": dict(topic.attributes),
    }


async def update_topic(session: Session, given: Given) -> Answer:
    """Make a topic, or change it."""
    unit = 1 if given.yes("unit") else 0
    topic = TopicConfig(
        name=given.text("topic"),
        read_queues=given.number("readQueueNums", DEFAULT_QUEUES),
        write_queues=given.number("writeQueueNums", DEFAULT_QUEUES),
        perm=Perm.parse(given.maybe("perm") or "6"),
        system_flags=unit | (2 if given.yes("hasUnitSub") else 0),
        order=given.yes("order"),
    )
    addresses = await session.targets(given.maybe("brokerAddr"), given.maybe("clusterName"))
    answer = Answer(data={"topic": topic_data(topic), "brokers": addresses})
    for address in addresses:
        await topics.create_topic(session, address, topic, given.maybe("attributes"))
        answer.parts.append(f"create topic to {address} success.")
    if topic.order:
        order = await _order_of(session, given, topic, addresses)
        (await brokers.put_value(session, brokers.ORDER_NAMESPACE, topic.name, order)).check()
        answer.parts.append(f"set cluster orderConf. isOrder=true, orderConf=[{order}]")
    answer.parts.append(topic_text(topic))
    return answer


async def _order_of(
    session: Session, given: Given, topic: TopicConfig, addresses: list[str]
) -> str:
    known = {address: name for name, address in (await session.masters()).items()}
    if given.maybe("brokerAddr"):
        name = known.get(addresses[0])
        if name is None:
            raise InvalidValue(f"{addresses[0]} is no master that the name servers know")
        return f"{name}:{topic.write_queues}"
    return ";".join(f"{known[each]}:{topic.write_queues}" for each in addresses if each in known)


def read_list(path: str, what: str) -> list[object]:
    """Return the list that a JSON file holds.

    Raises:
        InvalidValue: the file cannot be read, is too large, or holds something else.
    """
    from pathlib import Path  # noqa: PLC0415

    try:
        file = Path(path)
        if file.stat().st_size > FILE_BYTES_MAX:
            raise InvalidValue(f"{path} has more than {FILE_BYTES_MAX >> 20} MiB")
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidValue(f"{path}: {error}") from None
    if not isinstance(found, list) or not found:
        raise InvalidValue(f"{path} holds no list of {what}")
    return found


async def update_topic_list(session: Session, given: Given) -> Answer:
    """Make the topics of a file."""
    listed = read_list(given.text("filename"), "topics")
    made = JsonBody(tuple[TopicConfig, ...]).decode(json.dumps(listed).encode())
    addresses = await session.targets(given.maybe("brokerAddr"), given.maybe("clusterName"))
    for address in addresses:
        await topics.create_topics(session, address, made)
    lines = [
        f"submit batch of topic config to {address} success, please check the result later."
        for address in addresses
    ]
    return Answer([*lines], {"brokers": addresses, "topics": [topic_data(topic) for topic in made]})


async def delete_topic(session: Session, given: Given) -> Answer:
    """Delete a topic from the brokers of a cluster, then from the name servers."""
    topic, cluster = given.text("topic"), given.text("clusterName")
    masters = await session.masters(cluster)
    check_may_change_topic(topic, {cluster, *masters})
    for address in masters.values():
        await topics.delete_topic_on_broker(session, address, topic)
    answers = await topics.delete_topic_from_name_servers(session, topic, cluster)
    answers.check()
    try:
        await brokers.value_of(session, brokers.ORDER_NAMESPACE, topic)
        (await brokers.delete_value(session, brokers.ORDER_NAMESPACE, topic)).check()
    except QueryNotFound:
        pass
    return Answer(
        [
            f"delete topic [{topic}] from cluster [{cluster}] success.",
            f"delete topic [{topic}] from NameServer success.",
        ],
        {"topic": topic, "cluster": cluster, "brokers": list(masters.values())},
        answers.complaints,
    )


async def update_topic_perm(session: Session, given: Given) -> Answer:
    """Change what may be done with a topic; its queues stay as they are."""
    name, perm = given.text("topic"), Perm.parse(given.text("perm"))
    route = await session.route(name)
    broker, cluster = given.maybe("brokerAddr"), given.maybe("clusterName")
    addresses = await session.targets(broker, cluster)
    masters = {each.master: each.name for each in route.brokers if each.master}
    answer = Answer(data={"topic": name, "perm": int(perm), "brokers": addresses})
    for address in addresses:
        queues = next((q for q in route.queues if q.broker_name == masters.get(address)), None)
        if queues is None:
            raise InvalidValue(f"topic {name} has no queues on a master at {address}")
        topic = TopicConfig(
            name=name,
            read_queues=queues.read_queues,
            write_queues=queues.write_queues,
            perm=perm,
            system_flags=queues.system_flags,
        )
        if queues.perm == perm:
            answer.parts.append("new perm equals to the old one!")
            continue
        await topics.create_topic(session, address, topic)
        answer.parts += [
            f"update topic perm from {int(queues.perm)} to {int(perm)} in {address} success.",
            f"{topic_text(topic)}.",
        ]
    return answer


async def topic_route(session: Session, given: Given) -> Answer:
    """Say where a topic is."""
    route = await session.route(given.text("topic"))
    data = json.loads(TOPIC_ROUTE.encode(route))
    if not given.yes("list"):
        return Answer([json.dumps(data, indent="\t", ensure_ascii=False)], data)
    perms = {each.broker_name: each for each in route.queues}
    rows = [
        (
            broker.cluster, broker.name, broker.master or "",
            perms[broker.name].read_queues, perms[broker.name].write_queues,
            Perm(perms[broker.name].perm).text,
        )
        for broker in sorted(route.brokers, key=lambda each: each.name)
        if broker.name in perms
    ]  # fmt: skip
    heads = ("#Cluster Name", "#Broker Name", "#Master", "#Read Queues", "#Write Queues", "#Perm")
    return Answer([Table(heads, rows)])


async def topic_status(session: Session, given: Given) -> Answer:
    """Say what the queues of a topic hold."""
    status = await topics.topic_status(session, given.text("topic"), given.maybe("cluster"))
    rows = [
        (
            each.queue.broker_name, int(each.queue.queue_id), each.min_offset, each.max_offset,
            moment(each.updated_ms),
        )
        for each in status.queues
    ]  # fmt: skip
    heads = ("#Broker Name", "#QID", "#Min Offset", "#Max Offset", "#Last Updated")
    return Answer([Table(heads, rows)], problems=status.answers.complaints)


async def topic_cluster_list(session: Session, given: Given) -> Answer:
    """List the clusters that have a topic."""
    found = await topics.clusters_of_topic(session, given.text("topic"))
    return Answer(["\n".join(found)], found)


async def topic_list(session: Session, given: Given) -> Answer:
    """List all topics; in cluster mode with their cluster and groups."""
    names = await topics.topic_names(session)
    if not given.yes("clusterModel"):
        return Answer(["\n".join(names)] if names else [], names)
    wanted = [name for name in names if not name.startswith((RETRY_PREFIX, DLQ_PREFIX))]

    async def look(name: str) -> list[tuple[str, str, str]]:
        clusters = await topics.clusters_of_topic(session, name)
        told = await topics.consumers_of(session, name)
        told.check()
        found = sorted({group for each in told.found.values() for group in each}) or [""]
        return [(cluster, name, group) for cluster in clusters for group in found]

    answers = await session.gather(wanted, look)
    rows = [row for found in answers.found.values() for row in found]
    heads = ("#Cluster Name", "#Topic", "#Consumer Group")
    return Answer([Table(heads, rows)], problems=answers.complaints)


async def update_order_conf(session: Session, given: Given) -> Answer:
    """Get, put or delete a topic's order."""
    topic, method = given.text("topic"), given.text("method")
    if method == "get":
        order = await brokers.value_of(session, brokers.ORDER_NAMESPACE, topic)
        text = f"get orderConf success. topic=[{topic}], orderConf=[{order}] "
    elif method == "put":
        order = given.text("orderConf")
        (await brokers.put_value(session, brokers.ORDER_NAMESPACE, topic, order)).check()
        text = f"update orderConf success. topic=[{topic}], orderConf=[{order}]"
    elif method == "delete":
        order = ""
        (await brokers.delete_value(session, brokers.ORDER_NAMESPACE, topic)).check()
        text = f"delete orderConf success. topic=[{topic}]"
    else:
        raise InvalidValue(f"--method is {method!r}: give get, put or delete")
    return ended(text, topic=topic, orderConf=order)


async def allocate_mq(session: Session, given: Given) -> Answer:
    """Say how the queues of a topic would be shared out among members."""
    topic, members = given.text("topic"), sorted(given.words("ipList"))
    if not members:
        raise InvalidValue("--ipList is empty: give addresses with commas between them")
    route = await session.route(topic)
    queues = sorted(
        MessageQueue(topic, each.broker_name, queue_id)  # type: ignore[arg-type]
        for each in route.queues
        for queue_id in range(each.read_queues)
    )
    size, more = divmod(len(queues), len(members))
    shares: dict[str, list[object]] = {}
    at = 0
    for index, member in enumerate(members):
        end = at + size + (index < more)
        shares[member] = [
            {"brokerName": q.broker_name, "queueId": int(q.queue_id), "topic": topic}
            for q in queues[at:end]
        ]
        at = end
    data = {"result": shares}
    return Answer([json.dumps(data, separators=(",", ":"))], data)


def settings_data(value: object) -> object:
    """Return a value of the model for JSON."""
    return msgspec.to_builtins(value)
