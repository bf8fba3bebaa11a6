"""Moving groups: a preview, the move itself, and taking it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.admin import offsets
from gantrymq.admin.protected import check_may_change_group
from gantrymq.dashboard.calls import Endpoint, plain
from gantrymq.errors import InvalidValue
from gantrymq.model.names import check_group
from gantrymq.model.roles import Role

if TYPE_CHECKING:
    from gantrymq.admin.offsets import Move
    from gantrymq.dashboard.calls import Call


def _target(call: Call) -> offsets.Target:
    return offsets.Target(
        call.maybe_number("timeMs"),
        call.maybe_number("offset"),
        call.maybe("to"),
        call.maybe("queue"),
    )


def _moves_data(moves: list[Move]) -> list[dict[str, object]]:
    return [
        {
            "broker": each.queue.broker_name, "queue": each.queue.queue_id,
            "first": each.min_offset, "next": each.max_offset,
            "before": each.before if each.before >= 0 else None, "after": each.after,
            "repeated": max(each.repeated, 0), "skipped": max(-each.repeated, 0),
        }
        for each in moves
    ]  # fmt: skip


async def preview(call: Call) -> object:
    """Return where a group would go; nothing is changed."""
    group, topic = check_group(call.text("group")), call.text("topic")
    moves = await offsets.plan(call.session, group, topic, _target(call))
    return {
        "moves": _moves_data(moves),
        "online": await offsets.is_online(call.session, group),
    }


def _whole_time(target: offsets.Target) -> int | None:
    """Return the one time that a move of all queues is for, which is all that 4.9 can do online."""
    if target.queue is not None or target.offset is not None:
        return None
    return {"earliest": 0, "latest": offsets.LATEST_MS}.get(target.end or "", target.time_ms)


async def move(call: Call) -> object:
    """Move a group, and keep where it was."""
    group, topic, target = check_group(call.text("group")), call.text("topic"), _target(call)
    check_may_change_group(group)
    moves = await offsets.plan(call.session, group, topic, target)
    undo = offsets.undo_of(group, moves, call.parts.clock.now_ms())
    kept = call.parts.undo.put(undo)
    call.detail = "; ".join(
        f"{each.queue.broker_name}:{each.queue.queue_id} {each.before} to {each.after}"
        for each in moves
    )
    try:
        await offsets.apply(
            call.session, group, moves, online=not call.flag("offline"), time_ms=_whole_time(target)
        )
    except offsets.NotMoved:
        call.parts.undo.drop(kept)
        raise
    return {"moves": _moves_data(moves), "undo": kept}


async def list_undo(call: Call) -> object:
    """Return the moves of a group that can be taken back."""
    found = call.parts.undo.of_group(call.text("group"))
    return {
        "rows": [
            {"id": name, "topic": each.topic, "timeMs": each.made_at_ms, "queues": len(each.queues)}
            for name, each in found
        ]
    }


async def preview_undo(call: Call) -> object:
    """Return where a group would go back to."""
    undo = call.parts.undo.get(call.text("id"))
    return {"moves": _moves_data(await offsets.plan_undo(call.session, undo))}


async def take_back(call: Call) -> object:
    """Put a group back where it was."""
    undo = call.parts.undo.get(call.text("id"))
    if undo.group != call.text("group"):
        raise InvalidValue(f"that move is of group {undo.group}")
    moves = await offsets.plan_undo(call.session, undo)
    call.target += f" topic {plain(undo.topic)}"
    kept = call.parts.undo.put(offsets.undo_of(undo.group, moves, call.parts.clock.now_ms()))
    try:
        await offsets.apply(call.session, undo.group, moves, online=not call.flag("offline"))
    except offsets.NotMoved:
        call.parts.undo.drop(kept)
        raise
    return {"moves": _moves_data(moves), "undo": kept}


ENDPOINTS: Final = (
    Endpoint("GET", "/api/group/reset", Role.VIEWER, preview),
    Endpoint("GET", "/api/group/undo", Role.VIEWER, list_undo),
    Endpoint("GET", "/api/group/undo/preview", Role.VIEWER, preview_undo),
    Endpoint("POST", "/api/group/reset", Role.OPERATOR, move, "move a group",
             about=("group", "topic")),
    Endpoint("POST", "/api/group/undo", Role.OPERATOR, take_back, "take a move back",
             about=("group", "id")),
)  # fmt: skip
