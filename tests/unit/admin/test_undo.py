"""Moves taken back: a group that was nowhere does not go to the beginning of everything."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.admin import offsets, topics
from gantrymq.admin.messages import topic_queue
from gantrymq.admin.offsets import Move
from gantrymq.admin.session import Gathered, Session
from gantrymq.clock import SystemClock
from gantrymq.dashboard.api import moving
from gantrymq.dashboard.calls import Call
from gantrymq.dashboard.undo import UndoFiles
from gantrymq.errors import InvalidValue
from gantrymq.model.roles import Role

if TYPE_CHECKING:
    from pathlib import Path

QUEUES = [topic_queue("T", "broker-a", number) for number in range(2)]


@pytest.fixture(autouse=True)
def cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a topic of two queues, and a group at the end of both."""

    async def status(*_given: object) -> Any:  # noqa: ANN401
        queues = [SimpleNamespace(queue=each, min_offset=0, max_offset=9) for each in QUEUES]
        return SimpleNamespace(queues=queues, answers=Gathered())

    async def committed(*_given: object) -> Any:  # noqa: ANN401
        return dict.fromkeys(QUEUES, 9)

    monkeypatch.setattr(topics, "topic_status", status)
    monkeypatch.setattr(offsets, "committed_offsets", committed)


def undo_from(*before: int) -> offsets.Undo:
    moves = [Move(queue, 0, 9, at, 9) for queue, at in zip(QUEUES, before, strict=True)]
    return offsets.undo_of("g", moves, 1_000)


def test_queues_without_an_offset_stay_where_they_are() -> None:
    session = Session("127.0.0.1:9876")
    (move,) = asyncio.run(offsets.plan_undo(session, undo_from(4, -1)))
    assert (move.queue, move.after) == (QUEUES[0], 4)
    with pytest.raises(InvalidValue, match="had no offset in T"):
        asyncio.run(offsets.plan_undo(session, undo_from(-1, -1)))


def test_what_was_not_taken_back_leaves_nothing_to_undo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_given: object, **_more: object) -> None:
        raise offsets.NotMoved("on purpose")

    monkeypatch.setattr(offsets, "apply", refused)
    files = UndoFiles(tmp_path)
    name = files.put(undo_from(4, 5))
    parts: Any = SimpleNamespace(session=None, undo=files, clock=SystemClock())
    call = Call(parts, {}, {"group": "g", "id": name}, "anna", Role.OPERATOR, "::1")
    with pytest.raises(offsets.NotMoved):
        asyncio.run(moving.take_back(call))
    assert [each for each, _undo in files.of_group("g")] == [name]
