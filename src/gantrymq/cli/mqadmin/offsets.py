"""Sub-commands that move groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.admin import offsets
from gantrymq.admin.committed import committed_offsets
from gantrymq.cli.output import Answer, Table
from gantrymq.errors import InvalidValue
from gantrymq.wire.response_errors import ConsumerNotOnline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given
    from gantrymq.model.queue import MessageQueue

MOVE_HEADS = (
    "#brokerName", "#queueId", "#brokerOffset", "#consumerOffset", "#timestampOffset",
    "#resetOffset",
)  # fmt: skip


def _moved(tables: Mapping[str, Mapping[MessageQueue, int]]) -> Table:
    """Return where a group is now."""
    found = {queue: offset for table in tables.values() for queue, offset in table.items()}
    rows = [
        (queue.broker_name, int(queue.queue_id), offset) for queue, offset in sorted(found.items())
    ]
    return Table(("#brokerName", "#queueId", "#offset"), rows)


async def reset_offset_by_time(session: Session, given: Given) -> Answer:
    """Move a group to a time, as brokers and members are told to; or one queue of it."""
    group, topic = given.text("group"), given.text("topic")
    force = given.yes("force", default=True)
    time_ms = given.time("timestamp") or 0
    if given.maybe("timestamp") in {"now", "currentTimeMillis"}:
        time_ms = offsets.LATEST_MS
    if given.maybe("broker") is not None:
        return await _reset_queue(session, given, time_ms)
    text = (
        f"start reset consumer offset by specified, group[{group}], topic[{topic}],"
        f" force[{str(force).lower()}], timestamp(string)[{given.text('timestamp')}],"
        f" timestamp(long)[{time_ms}]"
    )
    try:
        answers = await offsets.reset_by_time(session, group, topic, time_ms, force=force)
    except ConsumerNotOnline:
        return await _move_offline(session, group, topic, time_ms, force=force)
    return Answer([text, _moved(answers.found)], problems=answers.complaints)


async def _reset_queue(session: Session, given: Given, time_ms: int) -> Answer:
    """Move a group in one queue (5.x)."""
    group, topic = given.text("group"), given.text("topic")
    address = (await session.targets(given.text("broker"), None))[0]
    queue_id, offset = given.number("queue"), given.maybe_number("offset")
    table = await offsets.reset_on_broker(
        session, address, group, topic, time_ms, queue_id=queue_id, offset=offset
    )
    return Answer([f"reset consumer offset to {list(table.values())}", _moved({"": table})])


async def _move_offline(
    session: Session, group: str, topic: str, time_ms: int, *, force: bool
) -> Answer:
    """Write a group's offsets, as mqadmin does when the group is offline."""
    target = (
        offsets.Target(end="latest")
        if time_ms == offsets.LATEST_MS
        else offsets.Target(time_ms=time_ms)
    )
    plan = await offsets.plan(session, group, topic, target)
    moves = [
        move if force or move.after <= move.before or move.before < 0
        else move._replace(after=move.before)
        for move in plan
    ]  # fmt: skip
    await offsets.apply(session, group, moves, online=False)
    rows = [
        (
            move.queue.broker_name, int(move.queue.queue_id), move.max_offset,
            max(move.before, 0), was.after, move.after,
        )
        for move, was in zip(moves, plan, strict=True)
    ]  # fmt: skip
    return Answer([Table(MOVE_HEADS, rows)])


async def reset_offset_by_time_old(session: Session, given: Given) -> Answer:
    """Move a group that is offline to a time."""
    time_ms = given.time("timestamp") or 0
    return await _move_offline(
        session,
        given.text("group"),
        given.text("topic"),
        time_ms,
        force=given.yes("force", default=True),
    )


async def skip_accumulated_message(session: Session, given: Given) -> Answer:
    """Move a group to the end."""
    group, topic = given.text("group"), given.text("topic")
    force = given.yes("force", default=True)
    try:
        answers = await offsets.reset_by_time(session, group, topic, offsets.LATEST_MS, force=force)
    except ConsumerNotOnline:
        return await _move_offline(session, group, topic, offsets.LATEST_MS, force=force)
    return Answer([_moved(answers.found)], problems=answers.complaints)


async def clone_group_offset(session: Session, given: Given) -> Answer:
    """Copy the offsets of one group to another."""
    source, target, topic = given.text("srcGroup"), given.text("destGroup"), given.text("topic")
    known = await committed_offsets(session, source, topic)
    if not known:
        raise InvalidValue(f"group {source} has no offsets in topic {topic}")
    if await offsets.is_online(session, target):
        raise offsets.NotMoved(f"group {target} has members online: stop them first")
    brokers = await session.masters()
    for queue, offset in known.items():
        await offsets.commit(session, brokers[queue.broker_name], target, queue, offset)
    text = f"clone group offset success. srcGroup[{source}], destGroup=[{target}], topic[{topic}]"
    return Answer([text], {"queues": _moved({"": known}).data()})


async def get_consumer_status(session: Session, given: Given) -> Answer:
    """Say where the members of a group are."""
    found = await offsets.positions_of_members(
        session, given.text("group"), given.text("topic"), given.maybe("originClientId")
    )
    rows = [
        (member, queue.broker_name, int(queue.queue_id), offset)
        for member, table in sorted(found.items())
        for queue, offset in sorted(table.items())
    ]
    return Answer([Table(("#clientId", "#brokerName", "#queueId", "#offset"), rows)])
