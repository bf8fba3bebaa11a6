"""Who is in a consumer group: members, what each takes and reads, and who disagrees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.admin import groups as groups_of
from gantrymq.dashboard.calls import Endpoint, problem_data
from gantrymq.model.roles import Role
from gantrymq.wire.response_errors import ConsumerNotOnline, TopicNotExist

if TYPE_CHECKING:
    from gantrymq.admin.groups import GroupMembers
    from gantrymq.dashboard.calls import Call
    from gantrymq.wire.bodies.running import ConsumerRunningInfo

MEMBERS_ASKED_MAX: Final = 64
"""Members whose inside is asked for to say who reads what."""


def model_of(members: GroupMembers | None) -> str:
    """Return whether each member takes all, or all together; nothing if nobody says."""
    if members is None or members.told.message_model is None:
        return ""
    return members.told.message_model.name.lower()


async def members_of(call: Call, name: str) -> GroupMembers | None:
    """Return who is in a group; None if nobody is."""
    try:
        return await groups_of.members(call.session, name)
    except (ConsumerNotOnline, TopicNotExist):
        return None


class _Inside(NamedTuple):
    """What the members of a group say of themselves."""

    owners: dict[str, str]
    """Queue to the member that reads it."""
    takes: dict[str, list[str]]
    """Member to its subscriptions."""
    problems: list[str]


async def _inside(call: Call, name: str, who: GroupMembers) -> _Inside:
    """Ask the members of a group, a bounded number of them."""
    asked = [each.client_id for each in who.connections][:MEMBERS_ASKED_MAX]

    async def ask(client: str) -> ConsumerRunningInfo:
        return await groups_of.running_info(call.session, name, client)

    told = await call.session.gather(asked, ask)
    problems = [f"{broker}: {error}" for broker, error in who.problems.items()]
    problems += told.complaints
    if len(who.connections) > len(asked):
        problems.append(f"only {len(asked)} of {len(who.connections)} members were asked")
    owners = {
        str(queue): client
        for client, info in told.found.items()
        for queue in (*info.mq_table, *(info.mq_pop_table or ()))
    }
    takes = {
        client: sorted(f"{each.topic} {each.expression}" for each in info.subscription_set)
        for client, info in told.found.items()
    }
    return _Inside(owners, takes, problems)


async def show_members(call: Call) -> object:
    """Return who is in a group, what each takes, who reads which queue, and who disagrees."""
    name = call.text("name")
    who = await members_of(call, name)
    if who is None:
        return {"online": False, "members": [], "subscriptions": [], "owners": {},
                "mismatch": [], **problem_data([])}  # fmt: skip
    owners, takes, problems = await _inside(call, name, who)
    told = who.told
    return {
        "online": True,
        "type": told.consume_type.name.lower() if told.consume_type is not None else "",
        "model": model_of(who),
        "from": told.consume_from_where.name if told.consume_from_where is not None else "",
        "members": [
            {
                "client": each.client_id, "address": each.client_addr, "language": each.language,
                "version": each.version, "takes": takes.get(each.client_id, []),
                "queues": sum(client == each.client_id for client in owners.values()),
            }
            for each in who.connections
        ],
        "subscriptions": [
            {"topic": each.topic, "expression": each.expression, "kind": each.expression_type}
            for each in sorted(told.subscription_table.values(), key=lambda one: one.topic)
        ],
        "owners": owners,
        "mismatch": told_mismatch(who) or _own_mismatch(takes),
        **problem_data(problems),
    }  # fmt: skip


def told_mismatch(who: GroupMembers) -> list[dict[str, object]]:
    """Return the parties of a group that disagree, as our brokers say."""
    return [
        {"clients": list(party.client_ids), "takes": list(party.subscriptions)}
        for told in who.by_broker.values()
        for party in told.mismatch or ()
    ]


def _own_mismatch(takes: dict[str, list[str]]) -> list[dict[str, object]]:
    """Return the same from what the members say of themselves: Apache's brokers do not tell."""
    parties: dict[tuple[str, ...], list[str]] = {}
    for client, listed in takes.items():
        parties.setdefault(tuple(listed), []).append(client)
    if len(parties) < 2:
        return []
    return [{"clients": clients, "takes": list(party)} for party, clients in parties.items()]


async def running(call: Call) -> object:
    """Return what a member says of its inside, with the stacks of its threads if asked."""
    info = await groups_of.running_info(
        call.session, call.text("name"), call.text("client"), stack=call.flag("stack")
    )
    return {
        "properties": dict(info.properties),
        "queues": [
            {"queue": str(queue), "commit": each.commit_offset, "cached": each.cached_msg_count,
             "pulledMs": each.last_pull_timestamp, "consumedMs": each.last_consume_timestamp,
             "locked": each.locked, "dropped": each.droped}
            for queue, each in info.mq_table.items()
        ],
        "status": [
            {"topic": topic, "pullMs": each.pull_rt, "pullTps": each.pull_tps,
             "consumeMs": each.consume_rt, "okTps": each.consume_ok_tps,
             "failedTps": each.consume_failed_tps, "failedMessages": each.consume_failed_msgs}
            for topic, each in info.status_table.items()
        ],
        "stack": info.jstack,
    }  # fmt: skip


ENDPOINTS: Final = (
    Endpoint("GET", "/api/group/members", Role.VIEWER, show_members),
    Endpoint("GET", "/api/group/running", Role.VIEWER, running),
)
