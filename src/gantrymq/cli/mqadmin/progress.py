"""Sub-commands about how far groups are."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from gantrymq.admin import groups, topics
from gantrymq.admin.versions import version_name
from gantrymq.cli.output import Answer, Table, second
from gantrymq.errors import GantryError
from gantrymq.model.group import ConsumeType
from gantrymq.wire.response_errors import ConsumerNotOnline

if TYPE_CHECKING:
    from gantrymq.admin.groups import GroupMembers, GroupProgress
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given

KINDS = {
    ConsumeType.CONSUME_ACTIVELY: "PULL",
    ConsumeType.CONSUME_PASSIVELY: "PUSH",
    ConsumeType.CONSUME_POP: "POP",
}


async def consumer_progress(session: Session, given: Given) -> Answer:
    """Say how far one group is in each queue, or all groups are altogether."""
    group = given.maybe("groupName")
    if group is None:
        return await all_groups(session)
    told = await groups.progress(session, group, given.maybe("topicName"))
    owners = await _owners(session, group) if given.yes("showClientIP") else None
    heads = ["#Topic", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset", "#Diff"]
    rows = [
        [
            each.queue.topic, each.queue.broker_name, int(each.queue.queue_id),
            each.broker_offset, each.consumer_offset, each.behind,
        ]
        for each in told.queues
    ]  # fmt: skip
    if owners is not None:
        heads.append("#Client IP")
        for row, each in zip(rows, told.queues, strict=True):
            row.append(owners.get(each.queue, "N/A"))
    heads.append("#LastTime")
    for row, each in zip(rows, told.queues, strict=True):
        row.append(second(each.last_ms))
    table = Table(heads, rows)
    data = {"queues": table.data(), "consumeTps": told.tps, "diffTotal": told.behind}
    problems = [f"{name}: {error}" for name, error in told.problems.items()]
    lines = ["", f"Consume TPS: {told.tps:.2f}", f"Diff Total: {told.behind}"]
    return Answer([table, *lines], data, problems)


async def _owners(session: Session, group: str) -> dict[object, str]:
    """Return queue to the address of the member that reads it."""
    try:
        told = await groups.members(session, group)
    except ConsumerNotOnline:
        return {}

    async def ask(client_id: str) -> dict[object, str]:
        info = await groups.running_info(session, group, client_id)
        return dict.fromkeys(info.mq_table, client_id.partition("@")[0])

    answers = await session.gather([each.client_id for each in told.connections], ask)
    return {queue: ip for found in answers.found.values() for queue, ip in found.items()}


async def all_groups(session: Session) -> Answer:
    """Say of all groups how many members they have and how far they are behind."""
    names = groups.groups_in(await topics.topic_names(session))

    async def look(name: str) -> tuple[GroupProgress, GroupMembers | None]:
        told = await groups.progress(session, name)
        try:
            return told, await groups.members(session, name)
        except ConsumerNotOnline:
            return told, None

    answers = await session.gather(names, look)
    rows = []
    for name, (told, members) in sorted(
        answers.found.items(), key=lambda item: (-item[1][0].behind, item[0])
    ):
        if members is None:
            rows.append((name, 0, "OFFLINE", "", "", int(told.tps), told.behind))
            continue
        kind = KINDS.get(members.told.consume_type) if members.told.consume_type else "PULL"
        model = members.told.message_model
        version = min(each.version for each in members.connections) if members.connections else 0
        rows.append((
            name, len(members.connections), version_name(version), kind or "",
            model.name if model is not None else "", int(told.tps), told.behind,
        ))  # fmt: skip
    heads = ("#Group", "#Count", "#Version", "#Type", "#Model", "#TPS", "#Diff Total")
    silent = [
        f"{broker}: {error}"
        for told, _members in answers.found.values()
        for broker, error in told.problems.items()
    ]
    problems = [*dict.fromkeys(silent), *answers.complaints]
    return Answer([Table(heads, rows)], problems=problems)


async def start_monitoring(session: Session, given: Given) -> Answer:
    """Look at all groups every so often and say who falls behind, goes, or cannot be read."""
    interval_s, rounds = given.number("interval", 60), given.maybe_number("rounds")
    limit = given.number("behind", 100_000)
    done = 0
    while True:
        try:
            told = await all_groups(session)
        except GantryError as error:
            sys.stderr.write(f"problem: {error}\n")
        else:
            rows = told.json()
            listed = rows["found"] if isinstance(rows, dict) else rows
            for row in listed:  # type: ignore[union-attr]
                if row["diffTotal"] > limit:
                    sys.stdout.write(f"UndoneMsgs {row['group']}: {row['diffTotal']} behind\n")
            sys.stderr.writelines(f"problem: {text}\n" for text in told.problems)
        sys.stdout.flush()
        done += 1
        if rounds is not None and done >= rounds:
            return Answer([f"{done} rounds"], {"rounds": done})
        await asyncio.sleep(interval_s)
