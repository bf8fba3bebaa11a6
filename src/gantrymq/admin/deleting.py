"""Deleting with all that goes with it: planned first, so that everyone sees what will be gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gantrymq.admin import brokers as brokers_of
from gantrymq.admin import groups as groups_of
from gantrymq.admin import topics as topics_of
from gantrymq.admin.protected import check_may_change_group, check_may_change_topic
from gantrymq.errors import GantryError
from gantrymq.model.names import dlq_topic, retry_topic
from gantrymq.wire.response_errors import (
    ConsumerNotOnline,
    QueryNotFound,
    SubscriptionGroupNotExist,
    TopicNotExist,
)

if TYPE_CHECKING:
    from gantrymq.admin.session import Session


class InUse(GantryError):
    """Somebody works with it at the moment."""


class Loss(NamedTuple):
    """One thing that will be gone."""

    kind: str
    name: str
    where: str
    detail: str


class Plan(NamedTuple):
    """What a deletion takes with it."""

    losses: list[Loss]
    warnings: list[str]


async def plan_topic(session: Session, topic: str) -> Plan:
    """Return what goes with a topic.

    Raises:
        Untouchable: it is the system's.
        TopicNotExist: no name server knows it.
    """
    info = await session.cluster()
    check_may_change_topic(topic, {*info.cluster_addr_table, *info.broker_addr_table})
    status = await topics_of.topic_status(session, topic)
    for error in status.answers.problems.values():
        raise error
    losses = []
    for broker in sorted({each.queue.broker_name for each in status.queues}):
        mine = [each for each in status.queues if each.queue.broker_name == broker]
        count = sum(each.max_offset - each.min_offset for each in mine)
        losses.append(Loss("topic", topic, broker, f"{len(mine)} queues, {count} messages"))
    told = await topics_of.consumers_of(session, topic)
    warnings = [f"{name} did not say who reads it: {why}" for name, why in told.problems.items()]
    for group in sorted({each for found in told.found.values() for each in found}):
        losses.append(Loss("offsets", group, topic, await _not_consumed(session, group, topic)))
        if await _is_online(session, group):
            warnings.append(f"group {group} reads it now")
    try:
        order = await brokers_of.value_of(session, brokers_of.ORDER_NAMESPACE, topic)
        losses.append(Loss("order", topic, "name servers", order))
    except QueryNotFound:
        pass
    return Plan(losses, warnings)


async def _not_consumed(session: Session, group: str, topic: str) -> str:
    try:
        progress = await groups_of.progress(session, group, topic)
    except TopicNotExist:  # moved by an operator: Apache gives a retry topic to members alone
        return "nobody was ever in it"
    return f"{progress.behind} messages not consumed"


async def _is_online(session: Session, group: str) -> bool:
    try:
        await groups_of.members(session, group)
    except (ConsumerNotOnline, TopicNotExist):
        return False
    return True


async def delete_topic(session: Session, topic: str, plan: Plan) -> None:
    """Delete a topic with what its plan names, from the brokers first.

    Raises:
        ResponseError: a broker or name server refused; the plan can be made and done again.
    """
    masters = await session.masters()
    for loss in plan.losses:
        if loss.kind == "topic" and loss.where in masters:
            await topics_of.delete_topic_on_broker(session, masters[loss.where], topic)
    answers = await topics_of.delete_topic_from_name_servers(session, topic)
    for error in answers.problems.values():
        raise error
    if any(loss.kind == "order" for loss in plan.losses):
        (await brokers_of.delete_value(session, brokers_of.ORDER_NAMESPACE, topic)).check()


async def plan_group(session: Session, group: str) -> Plan:
    """Return what goes with a consumer group.

    Raises:
        Untouchable: it is the system's.
        SubscriptionGroupNotExist: no broker has it.
    """
    check_may_change_group(group)
    settings = await groups_of.group_settings(session, group)
    for error in settings.problems.values():
        raise error
    losses = [
        Loss("group", group, name, f"retries {each.retry_times_max}")
        for name, each in settings.found.items()
        if each is not None
    ]
    if not losses:
        raise SubscriptionGroupNotExist(f"no broker has the group {group}")
    warnings = []
    for kind, topic in (("retries", retry_topic(group)), ("dead letters", dlq_topic(group))):
        try:
            status = await topics_of.topic_status(session, topic)
        except TopicNotExist:
            continue
        for error in status.answers.problems.values():
            raise error
        for broker in sorted({each.queue.broker_name for each in status.queues}):
            mine = [each for each in status.queues if each.queue.broker_name == broker]
            count = sum(each.max_offset - each.min_offset for each in mine)
            losses.append(Loss(kind, topic, broker, f"{count} messages"))
    try:
        progress = await groups_of.progress(session, group)
        for silent in progress.problems.values():
            raise silent
        for topic in sorted({each.queue.topic for each in progress.queues}):
            behind = sum(each.behind for each in progress.queues if each.queue.topic == topic)
            losses.append(Loss("offsets", group, topic, f"{behind} messages not consumed"))
    except TopicNotExist:
        pass
    if await _is_online(session, group):
        warnings.append(f"group {group} has members online: they make it anew when they come back")
    return Plan(losses, warnings)


async def delete_group(session: Session, group: str, plan: Plan) -> None:
    """Delete a group with its offsets, retries and dead letters.

    Raises:
        InUse: it has members online, which would make it anew.
        ResponseError: a broker or name server refused.
    """
    if await _is_online(session, group):
        raise InUse(f"group {group} has members online: stop them first")
    masters = await session.masters()
    for loss in plan.losses:
        if loss.kind == "group" and loss.where in masters:
            await groups_of.delete_group(session, masters[loss.where], group, remove_offsets=True)
    for kind, topic in (("retries", retry_topic(group)), ("dead letters", dlq_topic(group))):
        mine = [loss for loss in plan.losses if loss.kind == kind]
        for loss in mine:
            if loss.where in masters:
                await topics_of.delete_topic_on_broker(session, masters[loss.where], topic)
        if mine:
            answers = await topics_of.delete_topic_from_name_servers(session, topic)
            for error in answers.problems.values():
                raise error
