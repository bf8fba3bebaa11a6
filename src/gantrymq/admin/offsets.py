"""Moving groups: by time, to an offset, to an end; planned first, done, and undone.

A plan is made of what the brokers say now and changes nothing. Doing it has two ways. *Online* asks
the brokers to move the group (222): members hear of it, and a 5.x broker or ours moves a group
without members as well. *Offline* writes the offsets themselves (15), which members that are
online would overwrite; so that is refused while there are any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from gantrymq.admin import brokers as brokers_of
from gantrymq.admin import groups as groups_of
from gantrymq.admin import messages
from gantrymq.admin import topics as topics_of
from gantrymq.admin.committed import committed_offsets
from gantrymq.admin.protected import check_may_change_group
from gantrymq.errors import GantryError, InvalidValue
from gantrymq.wire.bodies.offsets import CONSUMER_STATUS
from gantrymq.wire.bodies.reset import RESET_OFFSETS
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.offset import (
    ConsumerStatusRequest,
    ResetOffsetRequest,
    UpdateConsumerOffsetRequest,
)
from gantrymq.wire.response_errors import ConsumerNotOnline, TopicNotExist

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.admin.session import Gathered, Session
    from gantrymq.model.queue import MessageQueue

LATEST_MS: Final = -1
"""The time that means: to the end."""


class NotMoved(GantryError):
    """A move that would not have held, and was not begun."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where to: exactly one of the first three; `queue` limits it to one queue (`broker:id`)."""

    time_ms: int | None = None
    offset: int | None = None
    end: str | None = None
    """`earliest` or `latest`."""
    queue: str | None = None

    def __post_init__(self) -> None:
        """Refuse what says nothing, or two things."""
        given = [each for each in (self.time_ms, self.offset, self.end) if each is not None]
        if len(given) != 1:
            raise InvalidValue("say where to: a time, an offset, earliest or latest; one of them")
        if self.end not in {None, "earliest", "latest"}:
            raise InvalidValue(f"{self.end!r} is no end of a queue: give earliest or latest")
        if self.offset is not None and self.offset < 0:
            raise InvalidValue(f"offset {self.offset} is below 0")


class Move(NamedTuple):
    """One queue's part of a plan."""

    queue: MessageQueue
    min_offset: int
    max_offset: int
    before: int
    """-1 if the group has never committed here."""
    after: int

    @property
    def repeated(self) -> int:
        """Return how many messages come again; negative: how many are skipped.

        A group that has never committed has all of a queue before it.
        """
        return max(self.before, self.min_offset) - self.after


class UndoEntry(msgspec.Struct, frozen=True):
    """Where a group was in one queue."""

    broker_name: str
    queue_id: int
    offset: int
    """-1 if it had none."""


class Undo(msgspec.Struct, frozen=True):
    """Where a group was before a move: what a file for taking it back holds."""

    group: str
    topic: str
    made_at_ms: int
    queues: tuple[UndoEntry, ...]


async def plan(session: Session, group: str, topic: str, target: Target) -> list[Move]:
    """Return what a move would do; nothing is changed.

    Raises:
        TopicNotExist: nobody knows the topic or the group.
        InvalidValue: the offset is outside of a queue, or there is no such queue; or the group is
            the system's own.
        ResponseError: a broker did not answer: half a plan is none.
    """
    check_may_change_group(group)
    status = await topics_of.topic_status(session, topic)
    for error in status.answers.problems.values():
        raise error
    committed = await committed_offsets(session, group, topic)
    brokers = await session.masters_of_topic(topic)
    moves = []
    for each in status.queues:
        name = f"{each.queue.broker_name}:{each.queue.queue_id}"
        if target.queue not in {None, name}:
            continue
        after = await _after(session, brokers[each.queue.broker_name], each, target)
        before = committed.get(each.queue, -1)
        moves.append(Move(each.queue, each.min_offset, each.max_offset, before, after))
    if not moves:
        raise InvalidValue(f"topic {topic} has no queue {target.queue!r}: give broker-name:id")
    return moves


async def _after(
    session: Session, address: str, status: topics_of.QueueStatus, target: Target
) -> int:
    if target.end == "earliest":
        return status.min_offset
    if target.end == "latest":
        return status.max_offset
    if target.offset is not None:
        if not status.min_offset <= target.offset <= status.max_offset:
            raise InvalidValue(
                f"offset {target.offset} is not in queue {status.queue}, which holds"
                f" {status.min_offset} to {status.max_offset}"
            )
        return target.offset
    queue, time_ms = status.queue, target.time_ms or 0
    found = await messages.offset_at(session, address, queue.topic, queue.queue_id, time_ms)
    return min(max(found, status.min_offset), status.max_offset)


async def is_online(session: Session, group: str) -> bool:
    """Tell whether a group has members now."""
    try:
        await groups_of.members(session, group)
    except (ConsumerNotOnline, TopicNotExist):
        return False
    return True


async def apply(
    session: Session, group: str, moves: list[Move], *, online: bool, time_ms: int | None = None
) -> None:
    """Do what a plan says; `time_ms` is the time that all of it is for, if it is for one.

    Raises:
        NotMoved: it would not hold, and was not begun.
        ResponseError: a broker refused.
    """
    is_online_now = await is_online(session, group)
    if not online and is_online_now:
        raise NotMoved(
            f"group {group} has members online, which would overwrite the offsets: stop them, or"
            " reset it online"
        )
    brokers = await session.masters()
    for name in {move.queue.broker_name for move in moves}:
        if name not in brokers:
            raise NotMoved(f"broker {name} has no master at the moment")
        if is_online_now and time_ms is None and not await _moves_one_queue(session, brokers[name]):
            raise NotMoved(
                f"broker {name} speaks 4.9, which moves the members of a group in all queues and"
                " only to a time: reset by time, or stop the members and reset offline"
            )
    for name in sorted({move.queue.broker_name for move in moves}):
        mine = [move for move in moves if move.queue.broker_name == name]
        if is_online_now:
            await _move_members(session, brokers[name], group, mine, time_ms)
        for move in mine:
            await commit(session, brokers[name], group, move.queue, move.after)


async def _moves_one_queue(session: Session, address: str) -> bool:
    """Tell whether a broker can move a group in one queue, as 5.x brokers and ours do."""
    settings = await brokers_of.broker_settings(session, address)
    return settings.get("useServerSideResetOffset", "false").lower() == "true"


async def _move_members(
    session: Session, address: str, group: str, moves: list[Move], time_ms: int | None
) -> None:
    """Have a broker tell the members of a group where to go on."""
    topic = moves[0].queue.topic
    if time_ms is not None and not await _moves_one_queue(session, address):
        await reset_on_broker(session, address, group, topic, time_ms)
        return
    for move in moves:
        await reset_on_broker(
            session, address, group, topic, LATEST_MS,
            queue_id=move.queue.queue_id, offset=move.after,
        )  # fmt: skip


async def commit(
    session: Session, address: str, group: str, queue: MessageQueue, offset: int
) -> None:
    """Write a group's offset in one queue."""
    check_may_change_group(group)
    await session.remote.call(
        address,
        RequestCode.UPDATE_CONSUMER_OFFSET,
        UpdateConsumerOffsetRequest(
            consumer_group=group, topic=queue.topic, queue_id=queue.queue_id, commit_offset=offset
        ),
    )


def undo_of(group: str, moves: list[Move], now_ms: int) -> Undo:
    """Return what takes a move back."""
    entries = tuple(
        UndoEntry(move.queue.broker_name, move.queue.queue_id, move.before) for move in moves
    )
    return Undo(group, moves[0].queue.topic, now_ms, entries)


async def plan_undo(session: Session, undo: Undo) -> list[Move]:
    """Return the plan that puts a group back where it was.

    Queues in which it had no offset are left out: none can be taken away again, and to go to the
    beginning instead would have the group take all that is stored.

    Raises:
        InvalidValue: there is no such queue any more, or it had no offset in any.
        ResponseError: a broker did not answer: half a plan is none.
    """
    if all(entry.offset < 0 for entry in undo.queues):
        raise InvalidValue(
            f"group {undo.group} had no offset in {undo.topic} before it was moved, so there is"
            " nothing to go back to: move it to where it is to go on"
        )
    status = await topics_of.topic_status(session, undo.topic)
    for error in status.answers.problems.values():
        raise error
    committed = await committed_offsets(session, undo.group, undo.topic)
    known = {(each.queue.broker_name, int(each.queue.queue_id)): each for each in status.queues}
    moves = []
    for entry in undo.queues:
        if entry.offset < 0:
            continue
        each = known.get((entry.broker_name, entry.queue_id))
        if each is None:
            raise InvalidValue(f"{undo.topic} has no queue {entry.broker_name}:{entry.queue_id}")
        after = min(max(entry.offset, each.min_offset), each.max_offset)
        before = committed.get(each.queue, -1)
        moves.append(Move(each.queue, each.min_offset, each.max_offset, before, after))
    return moves


# -- as mqadmin asks -------------------------------------------------------------------------------


async def reset_on_broker(
    session: Session,
    address: str,
    group: str,
    topic: str,
    time_ms: int,
    *,
    force: bool = True,
    queue_id: int | None = None,
    offset: int | None = None,
) -> Mapping[MessageQueue, int]:
    """Have a broker move a group to a time (-1: the end); return where it is then."""
    check_may_change_group(group)
    answered = await session.remote.call(
        address,
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
        ResetOffsetRequest(
            topic=topic,
            group=group,
            timestamp=time_ms,
            is_force=force,
            queue_id=-1 if queue_id is None else queue_id,
            offset=-1 if offset is None else offset,
        ),
        timeout_s=10.0,
    )
    return RESET_OFFSETS.decode(answered.body).offset_table


async def reset_by_time(
    session: Session, group: str, topic: str, time_ms: int, *, force: bool = True
) -> Gathered[str, Mapping[MessageQueue, int]]:
    """Have all brokers of a topic move a group to a time."""
    brokers = await session.masters_of_topic(topic)

    async def ask(name: str) -> Mapping[MessageQueue, int]:
        return await reset_on_broker(session, brokers[name], group, topic, time_ms, force=force)

    answers = await session.gather(brokers, ask)
    answers.check()
    return answers


async def positions_of_members(
    session: Session, group: str, topic: str, client_id: str | None = None
) -> dict[str, Mapping[MessageQueue, int]]:
    """Return where each member of a group says that it is.

    Raises:
        ResponseError: the group is not online, or no broker answered.
    """
    brokers = await session.masters_of_topic(topic)
    header = ConsumerStatusRequest(topic=topic, group=group, client_addr=client_id)

    async def ask(name: str) -> Mapping[str, Mapping[MessageQueue, int]]:
        answered = await session.remote.call(
            brokers[name],
            RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
            header,
            timeout_s=10.0,
        )
        return CONSUMER_STATUS.decode(answered.body).consumer_table

    answers = await session.gather(brokers, ask)
    answers.check()
    merged: dict[str, dict[MessageQueue, int]] = {}
    for told in answers.found.values():
        for member, table in told.items():
            merged.setdefault(member, {}).update(table)
    return dict(merged)
