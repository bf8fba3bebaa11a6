"""Consumer groups: lists of them, one of them with its progress, making, deleting."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from gantrymq.admin import deleting
from gantrymq.admin import groups as groups_of
from gantrymq.admin.explaining import queue_key, waiting_since
from gantrymq.dashboard.api.members import members_of, model_of, told_mismatch
from gantrymq.dashboard.api.names import group_kind, group_tables, known_topics
from gantrymq.dashboard.api.topics import plan_data
from gantrymq.dashboard.calls import Endpoint, Page, Rows, problem_data
from gantrymq.errors import GantryError, InvalidValue
from gantrymq.model.group import SubscriptionGroup
from gantrymq.model.names import check_group, dlq_topic
from gantrymq.model.roles import Role
from gantrymq.wire.response_errors import TopicNotExist

if TYPE_CHECKING:
    from gantrymq.admin.groups import GroupMembers, GroupProgress
    from gantrymq.dashboard.calls import Call


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
        call.session.gather(shown, lambda name: members_of(call, name)),
    )
    told.problems += [*progress.complaints, *members.complaints]
    for name in shown:
        settings = [table[name] for table in tables.found.values() if name in table]
        far, who = progress.found.get(name), members.found.get(name)
        told.problems += [f"{k}: {e}" for k, e in (far.problems if far else {}).items()]
        told.rows.append({
            "name": name,
            "kind": group_kind(name),
            # None is what nobody has said; 0 and false would be answers.
            "enabled": all(each.consume_enabled for each in settings) if settings else None,
            "hasDeadLetters": dlq_topic(name) in topics,
            "behind": far.behind if far is not None else None,
            "tps": far.tps if far is not None else None,
            "neverOnline": far is None if name in progress.found else None,
            "members": _count(who) if name in members.found else None,
            "mismatch": bool(who and told_mismatch(who)) if name in members.found else None,
            "model": model_of(who),
            "error": _first_error(name, progress.problems, members.problems),
        })  # fmt: skip
    return told.data()


def _count(who: GroupMembers | None) -> int:
    return len(who.connections) if who is not None else 0


def _first_error(name: str, *problems: dict[str, GantryError]) -> str:
    return next((str(each[name]) for each in problems if name in each), "")


async def _progress(call: Call, name: str) -> GroupProgress | None:
    """Return how far a group is; None if nobody was ever in it."""
    try:
        return await groups_of.progress(call.session, name)
    except TopicNotExist:
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
    Endpoint("GET", "/api/group/deletion", Role.VIEWER, plan_deletion),
    Endpoint("POST", "/api/group", Role.OPERATOR, put_group, "make or change a group",
             about=("group",)),
    Endpoint("DELETE", "/api/group", Role.ADMIN, delete_group, "delete a group",
             about=("group",)),
)  # fmt: skip
