"""`gantrymq topic`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.admin import topics
from gantrymq.cli.output import Answer, Table, moment
from gantrymq.model.names import DLQ_PREFIX, RETRY_PREFIX, check_topic, is_system_topic
from gantrymq.model.topic import Perm, TopicConfig

if TYPE_CHECKING:
    from gantrymq.admin.deleting import Plan
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given

QUEUES = 8


async def list_topics(session: Session, given: Given) -> Answer:
    """List topics and what they hold; those of the system and of groups only with --all."""
    cluster = given.maybe("cluster")
    names = (
        await topics.topics_of_cluster(session, cluster)
        if cluster
        else await topics.topic_names(session)
    )
    if not given.yes("all"):
        info = await session.cluster()
        reserved = {*info.cluster_addr_table, *info.broker_addr_table}
        reserved |= {f"{name}_REPLY_TOPIC" for name in info.cluster_addr_table}
        names = [
            name for name in names
            if not is_system_topic(name) and name not in reserved
            and not name.startswith((RETRY_PREFIX, DLQ_PREFIX))
        ]  # fmt: skip

    silent: list[str] = []

    async def look(name: str) -> tuple[object, ...]:
        status = await topics.topic_status(session, name)
        silent.extend(status.answers.complaints)
        held = sum(each.max_offset - each.min_offset for each in status.queues)
        last = max((each.updated_ms for each in status.queues), default=0)
        brokers = len({each.queue.broker_name for each in status.queues})
        return name, brokers, len(status.queues), held, moment(last, "never")

    answers = await session.gather(names, look)
    heads = ("TOPIC", "BROKERS", "QUEUES", "MESSAGES", "LAST MESSAGE")
    problems = [*dict.fromkeys(silent), *answers.complaints]
    return Answer([Table(heads, list(answers.found.values()))], problems=problems)


async def show(session: Session, given: Given) -> Answer:
    """Show a topic: its queues, where they are, and who reads it."""
    from gantrymq.admin.groups import progress  # noqa: PLC0415

    name = given.text("TOPIC")
    route = await session.route(name)
    status = await topics.topic_status(session, name)
    places = Table(("BROKER", "ADDRESSES", "READ QUEUES", "WRITE QUEUES", "PERM"), [
        (
            each.broker_name,
            ", ".join(a for b in route.brokers if b.name == each.broker_name
                      for a in b.addresses.values()),
            each.read_queues, each.write_queues, Perm(each.perm).text,
        )
        for each in sorted(route.queues, key=lambda one: one.broker_name)
    ])  # fmt: skip
    queues = Table(("QUEUE", "FIRST", "NEXT", "MESSAGES", "LAST MESSAGE"), [
        (f"{each.queue.broker_name}:{each.queue.queue_id}", each.min_offset, each.max_offset,
         each.max_offset - each.min_offset, moment(each.updated_ms, "never"))
        for each in status.queues
    ])  # fmt: skip
    told = await topics.consumers_of(session, name)
    readers = sorted({group for found in told.found.values() for group in found})

    silent: list[str] = []

    async def look(group: str) -> tuple[object, ...]:
        found = await progress(session, group, name)
        silent.extend(f"{broker}: {error}" for broker, error in found.problems.items())
        return group, found.behind

    answers = await session.gather(readers, look)
    groups = Table(("GROUP", "BEHIND"), list(answers.found.values()))
    data = {"topic": name, "brokers": places.data(), "queues": queues.data(),
            "groups": groups.data()}  # fmt: skip
    silent += [*status.answers.complaints, *told.complaints]
    problems = [*dict.fromkeys(silent), *answers.complaints]
    parts: list[Table | str] = [places, "", queues, ""]
    parts.append(groups if readers or problems else "no group has read it")
    return Answer(parts, data, problems)


async def create(session: Session, given: Given) -> Answer:
    """Make a topic, or change it, on a broker, in a cluster, or everywhere."""
    from gantrymq.cli.mqadmin.topics import topic_data, topic_text  # noqa: PLC0415

    name = check_topic(given.text("TOPIC"))
    queues = given.number("queues", QUEUES)
    topic = TopicConfig(
        name=name,
        read_queues=given.number("read", queues),
        write_queues=given.number("write", queues),
        perm=Perm.parse(given.maybe("perm") or "RW-"),
        order=given.yes("order"),
    )
    broker, cluster = given.maybe("broker"), given.maybe("cluster")
    if broker or cluster:
        addresses = await session.targets(broker, cluster)
    else:
        addresses = list((await session.masters()).values())
    for address in addresses:
        await topics.create_topic(session, address, topic, given.maybe("attributes"))
    answer = Answer(data={"topic": topic_data(topic), "brokers": addresses})
    answer.parts += [*(f"made on {address}" for address in addresses), topic_text(topic)]
    if not await topics.wait_until_known(session, topic, addresses):
        answer.problems.append("no name server tells of it yet: see `gantrymq doctor`")
    return answer


def plan_answer(plan: Plan, done: str | None) -> Answer:
    """Show what a deletion takes with it."""
    rows = [(each.kind, each.name, each.where, each.detail) for each in plan.losses]
    table = Table(("WHAT", "NAME", "WHERE", "HOW MUCH"), rows)
    said = done or "nothing was deleted: this is the plan; --yes does it"
    parts: list[Table | str] = [table, *(f"beware: {each}" for each in plan.warnings), said]
    data = {"plan": table.data(), "warnings": plan.warnings, "done": done is not None}
    return Answer(parts, data)


async def delete(session: Session, given: Given) -> Answer:
    """Show what goes with a topic, and delete it if told so."""
    from gantrymq.admin import deleting  # noqa: PLC0415

    name = given.text("TOPIC")
    plan = await deleting.plan_topic(session, name)
    if not given.yes("yes"):
        return plan_answer(plan, None)
    await deleting.delete_topic(session, name, plan)
    return plan_answer(plan, f"deleted topic {name}")
