"""What nobody said of a group is not made up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from gantrymq.admin.session import Gathered
from gantrymq.dashboard.api import groups
from gantrymq.errors import GantryError
from gantrymq.model.group import SubscriptionGroup

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from gantrymq.dashboard.calls import Call
    from unit.dashboard.conftest import Desk


def test_a_question_that_failed_is_no_answer(
    make_desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def known(_call: Call) -> object:
        return SimpleNamespace(names=["%RETRY%silent"], reserved=set())

    async def tables(_call: Call) -> object:
        told: Gathered[str, dict[str, SubscriptionGroup]] = Gathered()
        told.found["b"] = {"empty": SubscriptionGroup(name="empty")}
        return told

    async def ask(_call: Call, name: str) -> None:
        if name == "silent":
            raise GantryError("away")

    monkeypatch.setattr(groups, "known_topics", known)
    monkeypatch.setattr(groups, "group_tables", tables)
    monkeypatch.setattr(groups, "_progress", ask)
    monkeypatch.setattr(groups, "members_of", ask)
    desk = make_desk(stubs=False)
    told = desk.ask("GET", "/api/groups", **desk.headers_of("viewer")).data
    names = ("name", "enabled", "neverOnline", "members", "mismatch", "error")
    assert [tuple(row[name] for name in names) for row in told["rows"]] == [
        ("empty", True, True, 0, False, ""),
        ("silent", None, None, None, None, "away"),
    ]
