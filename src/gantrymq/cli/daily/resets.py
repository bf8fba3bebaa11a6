"""`gantrymq group reset`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gantrymq.admin import offsets
from gantrymq.cli.output import Answer, Table
from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from gantrymq.admin.offsets import Move
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given


def _table(moves: list[Move]) -> Table:
    heads = ("QUEUE", "FIRST", "NEXT", "IS AT", "GOES TO", "COMES AGAIN", "IS SKIPPED")
    return Table(heads, [
        (
            f"{move.queue.broker_name}:{move.queue.queue_id}", move.min_offset, move.max_offset,
            move.before if move.before >= 0 else None, move.after, max(move.repeated, 0),
            max(-move.repeated, 0),
        )
        for move in moves
    ])  # fmt: skip


async def reset(session: Session, given: Given) -> Answer:
    """Show where a group would go, and move it if told so; or put it back where it was."""
    group = given.text("GROUP")
    if given.maybe("undo") is not None:
        return await _undo(session, given, group)
    topic = given.text("TOPIC")
    time_ms = given.time("to-time")
    target = offsets.Target(
        time_ms, given.maybe_number("to-offset"), given.maybe("to"), given.maybe("queue")
    )
    moves = await offsets.plan(session, group, topic, target)
    whole = {"earliest": 0, "latest": offsets.LATEST_MS}.get(target.end or "", time_ms)
    if target.queue is not None or target.offset is not None:
        whole = None
    if not given.yes("yes"):
        return _shown(moves, None, None)
    file = _undo_file(session, given, group, topic)
    _write(file, offsets.undo_of(group, moves, session.clock.now_ms()))
    await offsets.apply(session, group, moves, online=not given.yes("offline"), time_ms=whole)
    return _shown(moves, f"moved group {group}", file)


def _shown(moves: list[Move], done: str | None, undo: Path | None) -> Answer:
    table = _table(moves)
    said = done or "nothing was moved: this is the plan; --yes does it"
    lines = [said] if undo is None else [said, f"to put it back: --undo {undo} --yes"]
    data = {"plan": table.data(), "done": done is not None,
            "undoFile": str(undo) if undo else None}  # fmt: skip
    return Answer([table, *lines], data)


def _undo_file(session: Session, given: Given, group: str, topic: str) -> Path:
    named = given.maybe("undo-file")
    safe = "".join(each if each.isalnum() or each in "-_" else "_" for each in f"{group}-{topic}")
    return Path(named or f"reset-{safe}-{session.clock.now_ms()}.json")


def _write(path: Path, undo: offsets.Undo) -> None:
    try:
        with path.open("xb") as file:
            file.write(msgspec.json.encode(undo) + b"\n")
    except OSError as error:
        raise InvalidValue(f"{path}: {error.strerror or error}; nothing was moved") from None


def _read(path: Path) -> offsets.Undo:
    try:
        return msgspec.json.decode(path.read_bytes(), type=offsets.Undo)
    except OSError as error:
        raise InvalidValue(f"{path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:  # also what is no UTF-8
        raise InvalidValue(f"{path} is no file of a reset: {error}") from None


async def _undo(session: Session, given: Given, group: str) -> Answer:
    path = Path(given.text("undo"))
    undo = _read(path)
    if undo.group != group:
        raise InvalidValue(f"{path} is of group {undo.group}, not of {group}")
    moves = await offsets.plan_undo(session, undo)
    if not given.yes("yes"):
        return _shown(moves, None, None)
    await offsets.apply(session, group, moves, online=not given.yes("offline"))
    return _shown(moves, f"put group {group} back", None)
