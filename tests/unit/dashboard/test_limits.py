"""What one user may do at once and in a minute, and what is said when the disk is full."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from gantrymq.dashboard.api.table import ENDPOINTS
from gantrymq.dashboard.app import make_app
from gantrymq.dashboard.calls import Download
from gantrymq.dashboard.gate import response_of
from gantrymq.dashboard.settings import CALLS_OF_ONE_MAX, CHANGES_MAX
from support import asgi

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from starlette.types import ASGIApp

    from gantrymq.dashboard.calls import Call
    from unit.dashboard.conftest import Desk


def app_of(desk: Desk, path: str, work: Callable[[Call], Awaitable[object]]) -> ASGIApp:
    """Return the dashboard with another function behind a path."""
    return make_app(
        desk.parts, [replace(each, work=work) if each.path == path else each for each in ENDPOINTS]
    )


def fill(folder: Path) -> None:
    """Let the audit log take no more."""
    (folder / "audit.jsonl").unlink()
    (folder / "audit.jsonl").mkdir()


def test_a_change_that_was_made_is_not_said_to_have_failed(desk: Desk) -> None:
    headers = desk.headers_of("admin")

    async def work(call: Call) -> object:
        fill(call.parts.settings.data)
        return {"topic": "T", "problems": ["other"], "problemCount": 1}

    desk.app = app_of(desk, "/api/topic", work)
    answer = desk.ask("POST", "/api/topic", data={"topic": "T"}, **headers)
    assert (answer.status, answer.data["topic"], answer.data["problemCount"]) == (200, "T", 2)
    assert "it is done, but the audit log" in answer.data["problems"][1]
    assert "nothing is changed" not in answer.body.decode()


def test_why_a_change_failed_is_said_though_it_cannot_be_written_down(desk: Desk) -> None:
    headers = desk.headers_of("admin")

    async def work(call: Call) -> object:
        fill(call.parts.settings.data)
        return {"topic": call.text("missing")}

    desk.app = app_of(desk, "/api/topic", work)
    answer = desk.ask("POST", "/api/topic", data={"topic": "T"}, **headers)
    assert (answer.status, answer.data["error"]["text"]) == (400, "missing is missing")


def test_one_user_makes_so_many_changes_in_a_minute(desk: Desk) -> None:
    headers = desk.headers_of("operator")
    told = [
        desk.ask("POST", "/api/topic", data={"topic": "T"}, **headers).status
        for _ in range(CHANGES_MAX + 1)
    ]
    assert told == [200] * CHANGES_MAX + [429]
    other = desk.headers_of("admin")
    assert desk.ask("POST", "/api/topic", data={"topic": "T"}, **other).status == 200
    desk.clock.jump(61)
    assert desk.ask("POST", "/api/topic", data={"topic": "T"}, **headers).status == 200


def test_one_user_leaves_room_for_others(desk: Desk) -> None:
    one, other = desk.headers_of("viewer"), desk.headers_of("admin")

    async def run() -> None:
        end = asyncio.Event()

        async def work(_call: Call) -> object:
            await end.wait()
            return {}

        app = app_of(desk, "/api/topics", work)

        async def ask(cookie: str) -> int:
            return (await asgi.ask(app, "GET", "/api/topics", headers={"cookie": cookie})).status

        held = [asyncio.ensure_future(ask(one["cookie"])) for _ in range(CALLS_OF_ONE_MAX)]
        await asyncio.sleep(0.01)
        assert await ask(one["cookie"]) == 503
        last = asyncio.ensure_future(ask(other["cookie"]))
        await asyncio.sleep(0.01)
        end.set()
        assert await asyncio.gather(*held, last) == [200] * (CALLS_OF_ONE_MAX + 1)
        assert await ask(one["cookie"]) == 200

    asyncio.run(run())


def test_a_file_name_is_ascii() -> None:
    answer = response_of(Download(b"x", 'Größe ٣".bin'))
    assert answer.headers["content-disposition"] == 'attachment; filename="Gr__e___.bin"'
