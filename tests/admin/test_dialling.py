"""Ids say hosts and ports; only those are dialled that the name servers know as brokers."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.admin import explaining, messages
from gantrymq.admin.session import Session
from gantrymq.dashboard.api import dead_letters
from gantrymq.dashboard.calls import Call
from gantrymq.model.message import Host, OffsetId
from gantrymq.model.queue import LogOffset
from gantrymq.model.roles import Role
from gantrymq.wire.response_errors import SystemFailure
from support import dashboards

if TYPE_CHECKING:
    from support.shell import Shell


def call_of(session: Session, **body: object) -> Call:
    parts: Any = SimpleNamespace(session=session)
    return Call(parts, {}, body, "anna", Role.OPERATOR, "::1")


@pytest.fixture(scope="module")
def seeded(shell: Shell) -> Shell:
    """Give a server with dead letters of a group `billing`."""
    dashboards.seed(shell.server.name_server)
    return shell


def test_dead_letters_are_sent_again_without_dialling_what_an_id_says(seeded: Shell) -> None:
    async def main() -> tuple[list[object], Any, Any]:
        dialled: list[object] = []

        def note(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()
            dialled.append(writer)

        decoy = await asyncio.start_server(note, "127.0.0.1", 0)
        host = Host("127.0.0.1", decoy.sockets[0].getsockname()[1])
        async with decoy, Session(seeded.server.name_server) as session:
            forged = OffsetId(host, LogOffset(0)).text
            refused = await dead_letters.resend_some(
                call_of(session, group="billing", ids=[forged])
            )
            (letter, *_more) = messages.found_in(
                await messages.query(session, "%DLQ%billing", "letter0", unique=True)
            )
            sent = await dead_letters.resend_some(
                call_of(session, group="billing", ids=[letter.record.offset_id])
            )
        return dialled, refused, sent

    dialled, refused, sent = asyncio.run(main())
    assert dialled == []
    assert refused["sent"] == {}
    assert "no broker of this cluster" in refused["problems"][0]
    assert len(sent["sent"]) == 1


def test_what_was_sent_is_said_although_others_take_too_long(
    seeded: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "RESEND_S_MAX", 1.5)
    viewed = explaining.viewed

    async def slowly(session: Session, offset_id: str, known: Any) -> Any:  # noqa: ANN401
        if offset_id == "slow":
            await asyncio.sleep(60)
        return await viewed(session, offset_id, known)

    monkeypatch.setattr(explaining, "viewed", slowly)

    async def main() -> Any:  # noqa: ANN401  (whatever JSON says)
        async with Session(seeded.server.name_server) as session:
            (letter, *_more) = messages.found_in(
                await messages.query(session, "%DLQ%billing", "letter1", unique=True)
            )
            ids = ["slow", letter.record.offset_id]
            return await dead_letters.resend_some(call_of(session, group="billing", ids=ids))

    told = asyncio.run(asyncio.wait_for(main(), 20))
    assert len(told["sent"]) == 1
    assert told["problems"] == ["slow: there was no time left: it was not sent"]


def test_a_member_is_told_by_the_broker_that_has_the_message(seeded: Shell) -> None:
    async def main() -> None:
        async with Session(seeded.server.name_server) as session:
            (found,) = messages.found_in(await messages.query(session, "Orders", "order-1"))
            (master,) = (await session.masters()).values()
            for each in (found, messages.Found(found.record, "")):
                assert await explaining.broker_address(session, each) == master
            with pytest.raises(SystemFailure, match="not online"):
                await messages.consume_directly(session, master, "billing", "who", found.record)

    asyncio.run(main())


def test_addresses_of_version_6_are_in_brackets() -> None:
    assert messages.address_text(Host("::1", 10911)) == "[::1]:10911"
    assert messages.address_text(Host("127.0.0.1", 10911)) == "127.0.0.1:10911"
