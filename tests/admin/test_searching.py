"""Searches are bounded: in messages, in bytes, in what is decompressed, and in their number."""

from __future__ import annotations

import asyncio
import json
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.admin import search as search_of
from gantrymq.admin.search import BYTES_MAX, FOUND_MAX, Condition, search
from gantrymq.admin.sending import Copier
from gantrymq.admin.session import Session
from gantrymq.client.outgoing import Outgoing
from gantrymq.dashboard.api import dead_letters
from gantrymq.dashboard.api import messages as api
from gantrymq.dashboard.calls import Call, Download
from gantrymq.model.roles import Role
from gantrymq.wire.compression import compress, plain_start
from gantrymq.wire.properties import encode_properties
from gantrymq.wire.sysflag import Compression, with_compression

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from support.shell import Shell

COUNT = 120
BODY = 10_000


async def _fill(name_server: str, topic: str, count: int, body: bytes, sys_flag: int = 0) -> None:
    async with Session(name_server) as session, Copier(session) as copier:
        sending = copier._sending
        for number in range(count):
            told = {"UNIQ_KEY": f"{topic}-{number}", "RETRY_TOPIC": "Elsewhere"}
            made = Outgoing(topic, told["UNIQ_KEY"], encode_properties(told), body,
                            sys_flag=sys_flag)  # fmt: skip
            await sending.send(made, None, sending.deadline(10))


@pytest.fixture(scope="module")
def haystack(shell: Shell) -> Shell:
    """Give a server with many dead letters of a group `straw`, in two queues."""
    shell.well("topic", "create", "%DLQ%straw", "--queues", "2")
    asyncio.run(_fill(shell.server.name_server, "%DLQ%straw", COUNT, b"x" * BODY))
    return shell


def in_session(shell: Shell, work: Callable[[Session], Awaitable[Any]]) -> Any:  # noqa: ANN401
    async def main() -> object:
        async with Session(shell.server.name_server) as session:
            return await work(session)

    return asyncio.run(main())


def call_of(session: Session, **query: str) -> Call:
    parts: Any = SimpleNamespace(session=session)
    return Call(parts, query, {}, "anna", Role.VIEWER, "::1")


@pytest.mark.parametrize("bounds", [{"found_max": 7}, {"bytes_max": 15 * BODY}])
def test_a_search_in_pieces_finds_each_once(haystack: Shell, bounds: dict[str, int]) -> None:
    async def work(session: Session) -> list[list[str]]:
        pages, position = [], None
        while True:
            told = await search(
                session,
                "%DLQ%straw",
                Condition(),
                position=position,
                found_max=bounds.get("found_max", FOUND_MAX),
                bytes_max=bounds.get("bytes_max", BYTES_MAX),
            )
            pages.append([each.record.offset_id for each in told.found])
            position = told.next_position
            if position is None:
                return pages

    pages = in_session(haystack, work)
    found = [each for page in pages for each in page]
    assert len(found) == len(set(found)) == COUNT
    assert max(map(len, pages)) <= bounds.get("found_max", 16)
    assert len(pages) > 7


def test_an_export_is_cut_and_can_be_gone_on_with(
    haystack: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "EXPORTED_BYTES_MAX", 50 * BODY)

    async def work(session: Session) -> list[list[Any]]:
        files: list[list[Any]] = []
        more: dict[str, str] = {}
        while True:
            told = await dead_letters.export(call_of(session, group="straw", **more))
            assert isinstance(told, Download)
            files.append([json.loads(line) for line in told.content.splitlines()])
            if "isCut" not in files[-1][-1]:
                return files
            more = {"position": files[-1].pop()["position"]}

    files = in_session(haystack, work)
    ids = [each["offsetId"] for lines in files for each in lines]
    assert len(ids) == len(set(ids)) == COUNT
    assert len(files) == 3
    assert files[0][0]["body"] == "x" * BODY


def test_a_bomb_is_not_decompressed_for_a_list_or_a_filter(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.well("topic", "create", "Bombs", "--queues", "1")
    bomb = compress(bytes(32 << 20), Compression.ZLIB)
    flag = with_compression(0, Compression.ZLIB)
    asyncio.run(_fill(shell.server.name_server, "Bombs", 3, bomb, flag))

    async def work(session: Session) -> tuple[Any, Any]:
        return (
            await api.find(call_of(session, topic="Bombs")),
            await api.find(call_of(session, topic="Bombs", body="needle")),
        )

    largest = []

    def noted(body: bytes, sys_flag: int, bytes_max: int) -> bytes:
        largest.append(len(started := plain_start(body, sys_flag, bytes_max)))
        return started

    monkeypatch.setattr("gantrymq.admin.messages.plain_start", noted)
    listed, filtered = in_session(shell, work)
    assert [(row["bytes"], row["isLarger"]) for row in listed["rows"]] == [(256 << 10, True)] * 3
    assert filtered["rows"] == []
    assert largest == [256 << 10] * 3 + [4 << 20] * 3


@pytest.mark.parametrize("kind", list(Compression))
def test_the_start_of_a_body_is_all_that_is_decompressed(kind: Compression) -> None:
    plain = b"0123456789" * 100_000
    packed, flag = compress(plain, kind), with_compression(0, kind)
    assert plain_start(packed, flag, 1_000) == plain[:1_000]
    assert plain_start(packed, flag, 2_000_000) == plain
    assert plain_start(plain, 0, 5) == b"01234"


def test_two_searches_at_once_and_the_loop_is_shared(
    haystack: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, most = 0, 0
    ranges = search_of._ranges

    async def counted(*given: Any) -> Any:  # noqa: ANN401
        nonlocal now, most
        now += 1
        most = max(most, now)
        found = await ranges(*given)
        await asyncio.sleep(0.05)
        now -= 1
        return found

    monkeypatch.setattr(search_of, "_ranges", counted)

    async def work(session: Session) -> None:
        await asyncio.gather(*(search(session, "%DLQ%straw", Condition()) for _ in range(6)))

    in_session(haystack, work)
    assert most == 2


def test_a_search_lets_others_have_the_loop(
    haystack: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = 0
    looked_at_in: set[int] = set()

    def slow(_self: Condition, _record: object) -> bool:
        looked_at_in.add(turns)
        end = time.monotonic() + 0.005
        while time.monotonic() < end:
            pass
        return False

    monkeypatch.setattr(Condition, "holds_but_body", slow)

    async def work(session: Session) -> None:
        nonlocal turns
        searching = asyncio.ensure_future(search(session, "%DLQ%straw", Condition()))
        while not searching.done():
            turns += 1
            await asyncio.sleep(0)

    in_session(haystack, work)
    assert len(looked_at_in) > COUNT // 2, "many messages were looked at in one turn of the loop"
