"""Consumer groups: lists of them, one of them with its progress and members, making, deleting."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.admin import deleting
from gantrymq.admin import groups as groups_of
from gantrymq.admin.explaining import queue_key, waiting_since
from gantrymq.dashboard.accounts import Role
from gantrymq.dashboard.api.names import group_kind, group_tables, known_topics
from gantrymq.dashboard.api.topics import plan_data
from gantrymq.dashboard.calls import Endpoint, Page, Rows, problem_data
from gantrymq.errors import GantryError, InvalidValue
from gantrymq.model.group import SubscriptionGroup
from gantrymq.model.names import check_group, dlq_topic
from gantrymq.wire.response_errors import ConsumerNotOnline, TopicNotExist

if TYPE_CHECKING:
    from gantrymq.admin.groups import GroupMembers, GroupProgress
    from gantrymq.dashboard.calls import Call
    from gantrymq.wire.bodies.running import ConsumerRunningInfo

MEMBERS_ASKED_MAX: Final = 64
"""Members whose inside is asked for to say who reads what."""


async def list_groups(call: Call) -> object:
    """Return one page of groups: their members, and how far they are behind."""
    page, wanted = Page.of(call), (call.maybe("filter") or "").lower()
    kinds = set(call.words("kinds") or ["normal"])
    known, tables = await asyncio.gather(known_topics(call), group_tables(call))
    everyone = set(groups_of.groups_in(known.names))
    everyone |= {name for table in tables.found.values() for name in table}
    names = sorted(
        name for name in everyone if wanted in name.lower() and group_kind(name) in kinds
    )
    told = Rows(len(names), page, problems=list(tables.complaints))
    shown, topics = page.cut(names), set(known.names)
    progress, members = await asyncio.gather(
        call.session.gather(shown, lambda name: _progress(call, name)),
        call.session.gather(shown, lambda name: _members(call, name)),
    )
    told.problems += [*progress.complaints, *members.complaints]
    for name in shown:
        settings = [table[name] for table in tables.found.values() if name in table]
        far, who = progress.found.get(name), members.found.get(name)
        told.problems += [f"{k}: {e}" for k, e in (far.problems if far else {}).items()]
        told.rows.append({
            "name": name,
            "kind": group_kind(name),
            "enabled": all(each.consume_enabled for each in settings),
            "hasDeadLetters": dlq_topic(name) in topics,
            "behind": far.behind if far is not None else None,
            "tps": far.tps if far is not None else None,
            "neverOnline": name in progress.found and far is None,
            "members": len(who.connections) if who is not None else 0,
            "mismatch": bool(who and _told_mismatch(who)),
            "model": _model(who),
            "error": _first_error(name, progress.problems, members.problems),
        })  # fmt: skip
    return told.data()


def _first_error(name: str, *problems: dict[str, GantryError]) -> str:
    return next((str(each[name]) for each in problems if name in each), "")


def _model(members: GroupMembers | None) -> str:
    if members is None or members.told.message_model is None:
        return ""
    return members.told.message_model.name.lower()


async def _progress(call: Call, name: str) -> GroupProgress | None:
    """Return how far a group is; None if nobody was ever in it."""
    try:
        return await groups_of.progress(call.session, name)
    except TopicNotExist:
        return None


async def _members(call: Call, name: str) -> GroupMembers | None:
    """Return who is in a group; None if nobody is."""
    try:
        return await groups_of.members(call.session, name)
    except (ConsumerNotOnline, TopicNotExist):
        return None


async def show_group(call: Call) -> object:
    """Return a group: its settings, and how far it is in every queue, in messages and seconds."""
    name = call.text("name")
    tables, progress = await asyncio.gather(group_tables(call), _progress(call, name))
    settings = {broker: table[name] for broker, table in tables.found.items() if name in table}
    problems = list(tables.complaints)
    if not settings and progress is None:
        if tables.problems:
            tables.check()
        raise TopicNotExist(f"nobody knows a group {name}")
    waiting: dict[str, int | None] = {}
    if progress is not None:
        problems += [f"{broker}: {error}" for broker, error in progress.problems.items()]
        waiting = await waiting_since(call.session, progress, problems)
    now_ms = call.parts.clock.now_ms()
    return {
        "name": name,
        "kind": group_kind(name),
        "settings": [_settings_data(broker, each) for broker, each in sorted(settings.items())],
        "neverOnline": progress is None,
        "behind": progress.behind if progress is not None else None,
        "tps": progress.tps if progress is not None else None,
        "queues": [
            {
                "topic": each.queue.topic, "broker": each.queue.broker_name,
                "id": each.queue.queue_id, "end": each.broker_offset, "at": each.consumer_offset,
                "behind": each.behind, "takenMs": each.last_ms,
                "waitingMs": _since(waiting.get(queue_key(each)), now_ms),
            }
            for each in (progress.queues if progress is not None else [])
        ],
        **problem_data(problems),
    }  # fmt: skip


def _since(time_ms: int | None, now_ms: int) -> int | None:
    """Return how long something has waited; clocks of two machines may differ a little."""
    return None if time_ms is None else max(now_ms - time_ms, 0)


def _settings_data(broker: str, each: SubscriptionGroup) -> dict[str, object]:
    return {
        "broker": broker, "enabled": each.consume_enabled, "orderly": each.orderly,
        "broadcast": each.broadcast_enabled, "fromMin": each.consume_from_min_enabled,
        "retries": each.retry_times_max, "retryQueues": each.retry_queues,
        "slowReadsFrom": each.slow_reader_broker_id, "notify": each.notify_members,
        "timeoutMin": each.consume_timeout_min, "attributes": dict(each.attributes),
    }  # fmt: skip


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
    who = await _members(call, name)
    if who is None:
        return {"online": False, "members": [], "subscriptions": [], "owners": {},
                "mismatch": [], **problem_data([])}  # fmt: skip
    owners, takes, problems = await _inside(call, name, who)
    told = who.told
    return {
        "online": True,
        "type": told.consume_type.name.lower() if told.consume_type is not None else "",
        "model": _model(who),
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
        "mismatch": _told_mismatch(who) or _own_mismatch(takes),
        **problem_data(problems),
    }  # fmt: skip


def _told_mismatch(who: GroupMembers) -> list[dict[str, object]]:
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


async def put_group(call: Call) -> object:
    """Make a group, or change it, on all masters or on those that are named."""
    group = SubscriptionGroup(
        name=check_group(call.text("group")),
        consume_enabled=call.flag("enabled", default=True),
        broadcast_enabled=call.flag("broadcast", default=True),
        orderly=call.flag("orderly"),
        retry_queues=call.number("retryQueues", 1),
        retry_times_max=call.number("retries", 16, least=-1, most=10_000),
        consume_timeout_min=call.number("timeoutMin", 15, most=100_000),
    )
    masters = await call.session.masters()
    named = call.words("brokers") or list(masters)
    if not named or not set(named) <= set(masters):
        raise InvalidValue("no master has one of these names at the moment")
    call.detail = (
        f"retries {group.retry_times_max}, enabled {group.consume_enabled} on {', '.join(named)}"
    )

    async def make(name: str) -> bool:
        await groups_of.create_group(call.session, masters[name], group)
        return True

    answers = await call.session.gather(named, make)
    answers.check()
    told = problem_data(list(answers.complaints))
    return {"group": group.name, "brokers": sorted(answers.found), **told}


async def plan_deletion(call: Call) -> object:
    """Return what goes with a group; nothing is changed."""
    return plan_data(await deleting.plan_group(call.session, call.text("name")))


async def delete_group(call: Call) -> object:
    """Delete a group with its offsets, retries and dead letters."""
    name = call.text("group")
    plan = await deleting.plan_group(call.session, name)
    call.detail = "; ".join(f"{each.kind} {each.where} {each.detail}" for each in plan.losses)
    await deleting.delete_group(call.session, name, plan)
    return plan_data(plan)


ENDPOINTS: Final = (
    Endpoint("GET", "/api/groups", Role.VIEWER, list_groups),
    Endpoint("GET", "/api/group", Role.VIEWER, show_group),
    Endpoint("GET", "/api/group/members", Role.VIEWER, show_members),
    Endpoint("GET", "/api/group/running", Role.VIEWER, running),
    Endpoint("GET", "/api/group/deletion", Role.VIEWER, plan_deletion),
    Endpoint("POST", "/api/group", Role.OPERATOR, put_group, "make or change a group",
             about=("group",)),
    Endpoint("DELETE", "/api/group", Role.ADMIN, delete_group, "delete a group",
             about=("group",)),
)  # fmt: skip
