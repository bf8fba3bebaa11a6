"""Sub-commands that ask the members of a group about themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gantrymq.admin import groups
from gantrymq.admin.versions import version_name
from gantrymq.cli.output import Answer, Table, moment

if TYPE_CHECKING:
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given
    from gantrymq.wire.bodies.running import ConsumerRunningInfo

QUEUE_HEADS = (
    "#Topic", "#Broker Name", "#QID", "#ConsumerOffset", "#Cached", "#Locked", "#Last Pull",
    "#Last Consume",
)  # fmt: skip
TOPIC_HEADS = (
    "#Topic", "#Pull RT", "#Pull TPS", "#Consume RT", "#ConsumeOK TPS", "#ConsumeFailed TPS",
    "#ConsumeFailed Count",
)  # fmt: skip


async def consumer_status(session: Session, given: Given) -> Answer:
    """Say what the members of a group are, or all about one of them."""
    group, client_id = given.text("consumerGroup"), given.maybe("clientId")
    address, stack = given.maybe("brokerAddr"), given.yes("jstack")
    if client_id is not None:
        info = await groups.running_info(session, group, client_id, stack=stack, address=address)
        return one(client_id, info)
    told = await groups.members(session, group, address)
    versions = {each.client_id: each.version for each in told.connections}

    async def ask(member: str) -> ConsumerRunningInfo:
        return await groups.running_info(session, group, member, stack=stack, address=address)

    answers = await session.gather(versions, ask)
    rows = [
        (at, member, version_name(version), len(answers.found[member].mq_table))
        for at, (member, version) in enumerate(versions.items(), 1)
        if member in answers.found
    ]
    members = Table(("#Index", "#ClientId", "#Version", "#Queues"), rows)
    same = same_subscription(list(answers.found.values()))
    balance = rebalance_problem(answers.found)
    says = [
        "", "Same subscription in the same group of consumer" if same
        else "WARN: Different subscription in the same group of consumer!!!",
        "", balance or "Rebalance OK",
    ]  # fmt: skip
    data = {
        "members": {each: data_of(info) for each, info in answers.found.items()},
        "sameSubscription": same,
        "rebalance": balance or "OK",
    }
    answer = Answer([members, *says], data, answers.complaints)
    if not same or balance:
        answer.status = 1
    if stack:
        for member, info in answers.found.items():
            answer.parts += [f"\n{member}", info.jstack or "no stack"]
    return answer


consumer = consumer_status


def same_subscription(infos: list[ConsumerRunningInfo]) -> bool:
    """Tell whether all members take the same."""
    taken = {
        tuple(sorted((each.topic, each.expression_type, each.expression)
                     for each in info.subscription_set))
        for info in infos
    }  # fmt: skip
    return len(taken) <= 1


def rebalance_problem(infos: dict[str, ConsumerRunningInfo]) -> str | None:
    """Return what is wrong with how the queues are shared out, or None."""
    owners: dict[object, str] = {}
    for member, info in infos.items():
        for queue, state in info.mq_table.items():
            if state.droped:
                continue
            if queue in owners:
                return f"queue {queue} is read by {owners[queue]} and by {member}"
            owners[queue] = member
    return None


def data_of(info: ConsumerRunningInfo) -> dict[str, object]:
    """Return what a member says, for JSON: queues as a list, since they are no text."""
    return {
        "properties": dict(info.properties),
        "subscriptions": [
            {"topic": each.topic, "expression": each.expression, "type": each.expression_type}
            for each in info.subscription_set
        ],
        "queues": queue_table(info).data(),
        "topics": {topic: msgspec.to_builtins(each) for topic, each in info.status_table.items()},
        "stack": info.jstack,
    }


def queue_table(info: ConsumerRunningInfo) -> Table:
    """Return the queues that a member reads."""
    return Table(QUEUE_HEADS, [
        (
            queue.topic, queue.broker_name, int(queue.queue_id), each.commit_offset,
            each.cached_msg_count, each.locked, moment(each.last_pull_timestamp),
            moment(each.last_consume_timestamp),
        )
        for queue, each in sorted(info.mq_table.items())
    ])  # fmt: skip


def one(client_id: str, info: ConsumerRunningInfo) -> Answer:
    """Say all about one member."""
    properties = [f"{name:<40}: {value}" for name, value in sorted(info.properties.items())]
    taken = Table(("#Topic", "#ClassFilter", "#SubExpression"), [
        (each.topic, each.class_filter, each.expression) for each in info.subscription_set
    ])  # fmt: skip
    rates = Table(TOPIC_HEADS, [
        (
            topic, f"{each.pull_rt:.2f}", f"{each.pull_tps:.2f}", f"{each.consume_rt:.2f}",
            f"{each.consume_ok_tps:.2f}", f"{each.consume_failed_tps:.2f}",
            each.consume_failed_msgs,
        )
        for topic, each in sorted(info.status_table.items())
    ])  # fmt: skip
    parts: list[Table | str] = [
        f"#Consumer {client_id}", *properties, "\n#Consumer Subscription", taken,
        "\n#Consumer Offset", queue_table(info), "\n#Consumer RT&TPS", rates,
    ]  # fmt: skip
    if info.jstack:
        parts += ["\n#Consumer jstack", info.jstack]
    return Answer(parts, {"clientId": client_id, **data_of(info)})
