"""A client's end of a connection: frames in one write, answers in one go, one timer for all."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from gantrymq.kernel import kernel
from gantrymq.kernel.values import SendAnswer
from gantrymq.transport.asks import OPAQUE_MAX, SEND_OPAQUE_MIN, Asks
from gantrymq.transport.client_connection import FLUSH_BYTES, ClientConnection
from gantrymq.transport.command_service import CommandService
from gantrymq.transport.table import ConnectionTable
from gantrymq.wire.command import Command
from gantrymq.wire.frame import FrameParser, encode_frame
from gantrymq.wire.peer import PeerGone, PeerLate
from support.transport import NotingTransport, turns

if TYPE_CHECKING:
    from support.transport import Run

ID = b"7F00000100002A9F00000000000003E8"


def made() -> tuple[ClientConnection, NotingTransport]:
    """Return a connection on a transport that only notes what is written."""
    table = ConnectionTable(asyncio.get_running_loop())
    connection = ClientConnection(table, CommandService())
    transport = NotingTransport()
    connection.connection_made(transport)
    return connection, transport


def receive(connection: ClientConnection, data: bytes) -> None:
    """Let bytes arrive."""
    connection.get_buffer(-1)[: len(data)] = data
    connection.buffer_updated(len(data))


def answer(opaque: int, serialize_type: int = 1) -> bytes:
    """Return a broker's plain answer."""
    return kernel.encode_send_reply(opaque, serialize_type, 407, 2, 9, ID, b"R", True)


def test_frames_of_a_turn_leave_in_one_write(run: Run) -> None:
    async def main() -> None:
        connection, transport = made()
        for frame in (b"one", b"two", b"three"):
            connection.post(frame)
        assert transport.writes == []
        await turns()
        assert transport.writes == [b"onetwothree"]
        connection.post(b"last")
        connection.close("the test is over")
        assert transport.writes[-1] == b"last"

    run(main())


def test_many_bytes_do_not_wait_for_the_end_of_the_turn(run: Run) -> None:
    async def main() -> None:
        connection, transport = made()
        connection.post(bytes(FLUSH_BYTES - 1))
        assert transport.writes == []
        connection.post(bytes(60))
        assert [len(each) for each in transport.writes] == [FLUSH_BYTES + 59]
        connection.abort("the test is over")

    run(main())


@pytest.mark.parametrize("cut", [0, 1, 4, 9, 50, 130])
def test_answers_find_who_asked(run: Run, cut: int) -> None:
    async def main() -> None:
        connection, _transport = made()
        loop = asyncio.get_running_loop()
        opaques = [connection.sends.next_send_opaque() for _ in range(4)]
        sends = [connection.ask_frame(opaque, b"frame", 5, loop.time()) for opaque in opaques]
        other = connection.ask(Command.request(34, 0), 5)
        # A send as a command: who makes it so wants all of the answer.
        whole = connection.ask(Command.request(310, 0), 5)
        asked, asked_whole = FrameParser().feed(b"".join(_transport.writes))
        odd = Command.request(310, opaques[2]).response(2, remark="busy")
        data = b"".join((
            answer(opaques[1]),
            answer(opaques[0], 0),
            encode_frame(asked.response(body=b"heart")),
            answer(asked_whole.opaque),
            encode_frame(odd),
            answer(opaques[3]),
            answer(opaques[3]),  # nobody waits for it any more
        ))  # fmt: skip
        receive(connection, data[:cut]) if cut else None
        receive(connection, data[cut:])
        first, second, third, fourth = [await send for send in sends]
        for opaque, found in ((opaques[0], first), (opaques[1], second), (opaques[3], fourth)):
            assert isinstance(found, SendAnswer | Command)
            assert (found[0] if isinstance(found, SendAnswer) else found.opaque) == opaque
        assert isinstance(second, SendAnswer)
        assert (second.queue_id, second.queue_offset) == (2, 9)
        assert isinstance(third, Command)
        assert (third.code, third.remark) == (2, "busy")
        assert (await other).body == b"heart"
        assert (await whole).fields["queueOffset"] == "9"
        connection.abort("the test is over")

    run(main())


def test_what_waits_fails_when_the_connection_ends(run: Run) -> None:
    async def main() -> None:
        connection, _transport = made()
        now = asyncio.get_running_loop().time()
        waiting = connection.ask_frame(connection.sends.next_send_opaque(), b"x", 5, now)
        connection.pause_writing()
        assert connection.is_congested
        blocked = asyncio.ensure_future(connection.writable())
        await turns()
        assert not blocked.done()
        connection.abort("on purpose")
        with pytest.raises(PeerGone, match="on purpose"):
            await waiting
        await blocked
        with pytest.raises(PeerGone, match="on purpose"):
            await connection.ask_frame(connection.sends.next_send_opaque(), b"x", 5, now)

    run(main())


def test_who_waits_for_room_is_told(run: Run) -> None:
    async def main() -> None:
        connection, _transport = made()
        connection.pause_writing()
        blocked = [asyncio.ensure_future(connection.writable()) for _ in range(3)]
        await turns()
        connection.resume_writing()
        await asyncio.gather(*blocked)
        assert not connection.is_congested
        connection.abort("the test is over")

    run(main())


def test_late_answers_one_timer(run: Run) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        asks = Asks(loop)

        def ask(timeout_s: float) -> asyncio.Future[Command]:
            future: asyncio.Future[Command] = loop.create_future()
            asks.add(asks.next_opaque(), future, timeout_s, loop.time())
            return future

        slow, quick, quicker = ask(30), ask(0.05), ask(0.02)
        begun = loop.time()
        with pytest.raises(PeerLate, match=r"within 0.02 s"):
            await quicker
        with pytest.raises(PeerLate, match=r"within 0.05 s"):
            await quick
        assert 0.04 <= loop.time() - begun < 5
        assert len(asks) == 1
        assert asks.settle(Command(code=0, opaque=1))
        assert (await slow).opaque == 1
        assert not asks.settle(Command(code=0, opaque=1))
        gone = ask(30)
        asks.fail_all("closed")
        with pytest.raises(PeerGone, match="closed"):
            await gone

    run(main())


def test_opaques_of_sends_and_of_others_do_not_meet(run: Run) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        asks = Asks(loop)
        asks._last, asks._last_send = SEND_OPAQUE_MIN - 2, OPAQUE_MAX - 1
        held: asyncio.Future[Command] = loop.create_future()
        asks.add(SEND_OPAQUE_MIN, held, 30, loop.time())
        assert [asks.next_opaque() for _ in range(2)] == [SEND_OPAQUE_MIN - 1, 1]
        assert asks.next_send_opaque() == OPAQUE_MAX
        assert asks.next_send_opaque() == SEND_OPAQUE_MIN + 1  # the one between still waits
        asks.fail_all("closed")
        assert isinstance(held.exception(), PeerGone)

    run(main())
