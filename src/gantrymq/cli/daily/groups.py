"""`gantrymq group`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.admin import deleting, groups
from gantrymq.cli.daily.topics import plan_answer
from gantrymq.cli.mqadmin.groups import group_data, group_text
from gantrymq.cli.mqadmin.progress import all_groups
from gantrymq.cli.output import Answer, Table
from gantrymq.model.group import SubscriptionGroup
from gantrymq.model.names import check_group, is_system_group

if TYPE_CHECKING:
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given


async def list_groups(session: Session, _given: Given) -> Answer:
    """List groups, the one that is most behind first; then those that nobody ever was in."""
    answer = await all_groups(session)
    masters = await session.masters()

    async def ask(name: str) -> list[str]:
        return list(await groups.group_table(session, masters[name]))

    told = await session.gather(masters, ask)
    answer.problems += told.complaints
    (table,) = [part for part in answer.parts if isinstance(part, Table)]
    listed = list(table.rows)
    seen = {row[0] for row in listed}
    names = {name for found in told.found.values() for name in found} - seen
    listed += [
        (name, 0, "NEVER ONLINE", "", "", 0, 0)
        for name in sorted(map(str, names))
        if not is_system_group(name)
    ]
    answer.parts = [Table(table.heads, listed)]
    return answer


async def create(session: Session, given: Given) -> Answer:
    """Make a group, or change it, on a broker, in a cluster, or everywhere."""
    group = SubscriptionGroup(
        name=check_group(given.text("GROUP")),
        consume_enabled=not given.yes("disable"),
        orderly=given.yes("orderly"),
        retry_queues=given.number("retry-queues", 1),
        retry_times_max=given.number("retries", 16),
    )
    broker, cluster = given.maybe("broker"), given.maybe("cluster")
    if broker or cluster:
        addresses = await session.targets(broker, cluster)
    else:
        addresses = list((await session.masters()).values())
    for address in addresses:
        await groups.create_group(session, address, group)
    lines = [f"made on {address}" for address in addresses]
    return Answer([*lines, group_text(group)], {"group": group_data(group), "brokers": addresses})


async def delete(session: Session, given: Given) -> Answer:
    """Show what goes with a group, and delete it if told so."""
    name = given.text("GROUP")
    plan = await deleting.plan_group(session, name)
    if not given.yes("yes"):
        return plan_answer(plan, None)
    await deleting.delete_group(session, name, plan)
    return plan_answer(plan, f"deleted group {name}")
