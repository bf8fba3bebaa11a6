"""The pair without sockets behaves as sockets do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from gantrymq.transport.memory import memory_pair
from gantrymq.transport.sending import UNANSWERED
from gantrymq.wire.command import Command
from gantrymq.wire.peer import PeerGone
from support.transport import ECHO, LARGE, LARGE_BODY, Echo, turns, until

if TYPE_CHECKING:
    from support.transport import Run


def test_a_reader_that_pauses_stops_the_writer(run: Run) -> None:
    async def main() -> None:
        echo = Echo()
        client, server = memory_pair(None, echo.service)
        client._stop_reading(UNANSWERED)
        asked = [client.ask(Command.request(LARGE, 0), 5) for _ in range(40)]
        await until(lambda: server.unsent_bytes > 1_000_000)
        assert not server.tell(Command.request(ECHO, 0))
        client._resume_reading(UNANSWERED)
        answers = await asyncio.gather(*asked)
        assert {answer.body for answer in answers} == {LARGE_BODY}
        await until(lambda: server.tell(Command.request(ECHO, 0)))
        client.close("done")
        await until(lambda: not server.is_open)
        assert echo.gone == [server]

    run(main())


def test_what_was_written_arrives_before_the_end(run: Run) -> None:
    async def main() -> None:
        echo = Echo()
        client, _server = memory_pair(None, echo.service)
        body = bytes(300_000)
        assert client.tell(Command.request(ECHO, 0, body=body))
        client.close("done")
        await until(lambda: echo.gone)
        assert [command.body for command in echo.seen] == [body]

    run(main())


def test_an_aborted_end_is_gone_at_once(run: Run) -> None:
    async def main() -> None:
        echo = Echo()
        client, server = memory_pair(None, echo.service)
        asked = server.ask(Command.request(ECHO, 0), 5)
        client.abort("test")
        with pytest.raises(PeerGone, match="the peer closed"):
            await asked
        await turns()
        assert not server.is_open
        assert client.number != server.number
        assert client.address == server.listener

    run(main())
