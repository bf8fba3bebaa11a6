"""One connection, without sockets: frames cut anywhere, answers in any order, bounds."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from gantrymq.limits import FRAME_BYTES_MAX
from gantrymq.testing.clock import VirtualClock
from gantrymq.transport.arrivals import HEADROOM
from gantrymq.transport.memory import memory_pair
from gantrymq.transport.settings import TransportSettings
from gantrymq.wire.codes import ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.frame import encode_frame
from gantrymq.wire.peer import PeerGone, PeerLate, Taken
from support.transport import (
    COROUTINE,
    ECHO,
    FAILS,
    LARGE,
    LARGE_BODY,
    LATER,
    NOT_ENCODABLE,
    REFUSES,
    Echo,
    feed,
    request,
    turns,
    wired,
    wired_to,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.kernel.interface import Buffer
    from gantrymq.wire.peer import Peer
    from support.transport import Run


def opaques(commands: list[Command]) -> list[int]:
    return [command.opaque for command in commands]


def test_who_is_at_the_other_end(run: Run) -> None:
    async def main() -> None:
        echo = Echo()
        connection, _transport, _table = wired(echo.service)
        assert echo.peers == [connection]
        assert connection.address == "10.0.0.7:4321"
        assert connection.host == bytes([10, 0, 0, 7, 0, 0, 16, 225])
        assert connection.listener == "10.0.0.1:10911"
        assert connection.is_open

    run(main())


def test_frames_may_be_cut_at_every_byte(run: Run) -> None:
    async def main() -> None:
        data = request(ECHO, 1, b"one") + request(LARGE, 2) + request(ECHO, 3, b"three")
        for cut in range(1, len(data)):
            echo = Echo()
            connection, transport, table = wired(echo.service)
            feed(connection, data, [cut])
            answers = transport.answers()
            assert opaques(answers) == [1, 2, 3], f"cut at {cut}"
            assert [answer.body for answer in answers] == [b"one", LARGE_BODY, b"three"]
            assert table.held_bytes == 0
            table.stop_sweeping()

    run(main())


def test_bytes_may_come_one_by_one(run: Run) -> None:
    async def main() -> None:
        connection, transport, table = wired(Echo().service)
        data = request(ECHO, 1, b"x" * 100) + request(ECHO, 2)
        feed(connection, data, [1] * len(data))
        assert opaques(transport.answers()) == [1, 2]
        assert table.held_bytes == 0

    run(main())


def test_a_frame_larger_than_the_receive_buffer(run: Run) -> None:
    async def main() -> None:
        settings = TransportSettings(receive_bytes=1000)
        connection, transport, table = wired(Echo().service, settings)
        large = bytes(1_000_000)
        data = request(ECHO, 1) + request(ECHO, 2, large) + request(ECHO, 3) + request(ECHO, 4)
        feed(connection, data)
        answers = transport.answers()
        assert opaques(answers) == [1, 2, 3, 4]
        assert answers[1].body == large
        assert table.held_bytes == 0

    run(main())


def test_what_arrives_together_is_answered_in_one_write(run: Run) -> None:
    async def main() -> None:
        connection, transport, _table = wired(Echo().service)
        feed(connection, b"".join(request(ECHO, number) for number in range(1000)))
        assert len(transport.writes) == 1
        assert opaques(transport.answers()) == list(range(1000))

    run(main())


def test_answers_that_come_later_leave_together_and_in_their_own_order(run: Run) -> None:
    async def main() -> None:
        echo = Echo()
        connection, transport, _table = wired(echo.service)
        feed(connection, b"".join(request(LATER, number) for number in range(100)))
        feed(connection, request(ECHO, 100) + request(COROUTINE, 101, b"c"))
        await turns()
        assert opaques(transport.answers()) == [100, 101]
        echo.release(backwards=True)
        await turns()
        assert len(transport.writes) == 1
        assert opaques(transport.answers()) == list(range(99, -1, -1))

    run(main())


def test_errors_are_answers(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        connection, transport, _table = wired(Echo().service)
        feed(connection, request(FAILS, 1) + request(REFUSES, 2) + request(COROUTINE, 3, b"fail"))
        feed(connection, request(NOT_ENCODABLE, 4))
        await turns()
        answers = {answer.opaque: answer for answer in transport.answers()}
        assert [answers[number].code for number in (1, 2, 3, 4)] == [1, 17, 1, 1]
        assert answers[1].remark == "ZeroDivisionError: on purpose"
        assert answers[2].remark == "no such topic: t"
        assert answers[3].remark == "ZeroDivisionError: later"
        assert "cannot be sent" in (answers[4].remark or "")
        assert connection.is_open

    with caplog.at_level(logging.CRITICAL):
        run(main())


def test_a_oneway_request_gets_no_answer(run: Run) -> None:
    async def main() -> None:
        echo = Echo()
        connection, transport, _table = wired(echo.service)
        codes = [ECHO, LATER, COROUTINE, REFUSES]
        feed(connection, b"".join(request(code, code, oneway=True) for code in codes))
        echo.release()
        await turns()
        assert [command.code for command in echo.seen] == codes
        assert transport.answers() == []

    run(main())


@pytest.mark.parametrize(
    "bad",
    [
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x03",
        (FRAME_BYTES_MAX - 3).to_bytes(4),
        b"\x00\x00\x00\x10\x07\x00\x00\x01",
        b"\x00\x00\x00\x10\x00\x00\x00\x20",
        b"\x00\x00\x00\x06\x00\x00\x00\x02{]",
    ],
    ids=["negative", "too short", "too long", "serialize type", "header length", "no JSON"],
)
@pytest.mark.parametrize("alone", [True, False])
def test_what_is_no_frame_closes_the_connection(run: Run, bad: bytes, alone: bool) -> None:
    """As soon as it is known, and after the frames before it were answered."""

    async def main() -> None:
        echo = Echo()
        connection, transport, table = wired(echo.service)
        feed(connection, bad if alone else request(ECHO, 1) + bad)
        assert transport.was_closed()
        assert not connection.is_open
        assert opaques(transport.answers()) == ([] if alone else [1])
        assert table.held_bytes == 0
        feed(connection, request(ECHO, 2))
        assert len(echo.seen) == (0 if alone else 1)

    run(main())


class Lazy:
    """A service that takes one frame with each call, or none."""

    def __init__(self, frames: int) -> None:
        self._echo = Echo().service
        self._frames = frames

    def opened(self, peer: Peer) -> None:
        """Not of interest."""

    def closed(self, peer: Peer) -> None:
        """Not of interest."""

    takes_turns = False

    def take_turn(
        self, buffer: Buffer, parts: Sequence[tuple[int, int, Peer]]
    ) -> list[tuple[int, bytes]]:
        """Not asked."""
        return []

    def take(self, buffer: Buffer, start: int, end: int, peer: Peer) -> Taken:
        """Take the first frame."""
        if not self._frames:
            return Taken(start, [])
        behind = start + 4 + int.from_bytes(buffer[start : start + 4])
        return self._echo.take(buffer, start, min(behind, end), peer)


def test_a_service_may_stop_but_must_go_on(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        data = b"".join(request(ECHO, number) for number in range(5))
        connection, transport, _table = wired(Lazy(1))
        feed(connection, data)
        assert opaques(transport.answers()) == [0, 1, 2, 3, 4]
        connection, transport, _table = wired(Lazy(0))
        feed(connection, data)
        assert transport.was_closed()

    with caplog.at_level(logging.CRITICAL):
        run(main())


# -- requests of ours ---------------------------------------------------------------------------


def test_both_ends_ask_and_answer(run: Run) -> None:
    async def main() -> None:
        left, right = memory_pair(Echo().service, Echo().service)
        asked = [left.ask(Command.request(ECHO, 0, body=b"%d" % n), 5) for n in range(50)]
        asked += [right.ask(Command.request(ECHO, 0, body=b"%d" % n), 5) for n in range(50)]
        answers = await asyncio.gather(*asked)
        assert [answer.body for answer in answers] == [b"%d" % n for n in range(50)] * 2
        left.close("done")
        await turns()
        assert not right.is_open

    run(main())


def test_responses_between_requests_go_to_who_asked(run: Run) -> None:
    async def main() -> None:
        echo = Echo()
        connection, transport, _table = wired(echo.service)
        first = connection.ask(Command.request(ECHO, 0), 5)
        second = connection.ask(Command.request(ECHO, 0), 5)
        asked = transport.answers()
        replies = [encode_frame(one.response(body=b"r%d" % one.opaque)) for one in asked]
        stray = encode_frame(Command.request(ECHO, 999).response())
        data = request(ECHO, 1) + replies[1] + request(ECHO, 2) + stray + replies[0]
        for position in range(len(data)):
            feed(connection, data[position : position + 1])
        assert (await first).body == b"r1"
        assert (await second).body == b"r2"
        assert opaques(transport.answers()) == [1, 2]
        feed(connection, stray + request(ECHO, 3) + stray)
        assert opaques(transport.answers()) == [3]
        assert opaques(echo.seen) == [1, 2, 3]

    run(main())


def test_an_answer_that_does_not_come(run: Run) -> None:
    async def main() -> None:
        connection, transport, _table = wired(Echo().service)
        late = connection.ask(Command.request(ECHO, 0), 0.01)
        with pytest.raises(PeerLate, match=r"no answer within 0\.01 s"):
            await late
        gone = connection.ask(Command.request(ECHO, 0), 5)
        transport.answers()
        connection.connection_lost(ConnectionResetError("reset"))
        with pytest.raises(PeerGone, match=r"10\.0\.0\.7:4321: the connection broke: reset"):
            await gone
        with pytest.raises(PeerGone):
            await connection.ask(Command.request(ECHO, 0), 5)
        assert not connection.tell(Command.request(ECHO, 0))
        assert transport.answers() == []

    run(main())


def test_the_service_learns_once_that_a_peer_left(run: Run) -> None:
    async def main() -> None:
        echo = Echo()
        connection, transport, table = wired(echo.service)
        feed(connection, request(LATER, 1))
        connection.close("enough")
        connection.close("again")
        connection.connection_lost(None)
        assert echo.gone == [connection]
        assert not table.connections
        echo.release()
        await turns()
        assert transport.answers() == []

    run(main())


def test_a_peer_that_does_not_read_is_not_told_anything(run: Run) -> None:
    async def main() -> None:
        connection, transport, _table = wired(Echo().service)
        transport.unsent = 2_000_000
        connection.pause_writing()
        assert not connection.tell(Command.request(ECHO, 0))
        with pytest.raises(PeerLate, match="2000000 bytes wait"):
            await connection.ask(Command.request(ECHO, 0), 5)
        assert not transport.is_reading()
        connection.resume_writing()
        assert transport.is_reading()
        assert connection.tell(Command.request(ECHO, 7))
        (told,) = transport.answers()
        assert told.is_oneway

    run(main())


def test_our_own_requests_have_a_bound(run: Run) -> None:
    async def main() -> None:
        connection, transport, _table = wired(Echo().service, TransportSettings(asks_max=3))
        waiting = [connection.ask(Command.request(ECHO, 0), 5) for _ in range(3)]
        with pytest.raises(PeerLate, match="has not answered 3 requests"):
            await connection.ask(Command.request(ECHO, 0), 5)
        for asked in transport.answers():
            feed(connection, encode_frame(asked.response()))
        assert len(await asyncio.gather(*waiting)) == 3

    run(main())


# -- bounds -------------------------------------------------------------------------------------


def test_unanswered_requests_have_a_bound(run: Run) -> None:
    async def main() -> None:
        echo = Echo()
        connection, transport, _table = wired(echo.service, TransportSettings(unanswered_max=10))
        feed(connection, b"".join(request(LATER, number) for number in range(9)))
        assert transport.is_reading()
        feed(connection, request(LATER, 9))
        assert not transport.is_reading()
        echo.release()
        await turns()
        assert transport.is_reading()
        assert len(transport.answers()) == 10

    run(main())


def test_data_is_refused_when_too_much_is_unsent_and_reports_are_not(run: Run) -> None:
    async def main() -> None:
        settings = TransportSettings(unsent_bytes_max=200_000)
        connection, transport, _table = wired(Echo().service, settings)
        feed(connection, b"".join(request(LARGE, number) for number in range(4)))
        codes = [answer.code for answer in transport.answers()]
        assert codes == [ResponseCode.SUCCESS] * 3 + [ResponseCode.SYSTEM_BUSY]
        transport.unsent = 200_000
        connection.pause_writing()
        feed(connection, request(LARGE, 1) + request(ECHO, 2, b"stored") + request(FAILS, 3))
        busy, echoed, failed = transport.answers()
        assert busy.code == ResponseCode.SYSTEM_BUSY
        assert (busy.remark or "").startswith("[OVERLOAD]")
        assert echoed.body == b"stored"
        assert failed.code == ResponseCode.SYSTEM_ERROR

    run(main())


def test_unfinished_frames_of_all_connections_have_a_bound(run: Run) -> None:
    async def main() -> None:
        clock = VirtualClock()
        settings = TransportSettings(buffered_bytes_max=300_000, write_timeout_s=30)
        first, first_transport, table = wired(Echo().service, settings, clock)
        second, second_transport = wired_to(table, Echo().service)
        third, third_transport = wired_to(table, Echo().service)
        large = request(ECHO, 1, bytes(400_000))
        feed(first, large[:200_000])
        feed(second, large[:150_000])
        assert first_transport.is_reading()
        assert not second_transport.is_reading()
        feed(third, request(ECHO, 3)[:20])  # a small one goes on until all memory is frames
        feed(third, request(ECHO, 3)[20:])
        assert opaques(third_transport.answers()) == [3]
        table.sweep()
        assert not second_transport.is_reading()
        first.abort("test")
        table.sweep()
        assert second_transport.is_reading()
        feed(second, large[150_000:])
        assert opaques(second_transport.answers()) == [1]
        assert table.held_bytes == 0
        assert HEADROOM < 150_000

    run(main())


def test_a_frame_that_finds_no_memory_is_given_up(run: Run) -> None:
    async def main() -> None:
        clock = VirtualClock()
        settings = TransportSettings(buffered_bytes_max=100_000, write_timeout_s=30)
        connection, transport, table = wired(Echo().service, settings, clock)
        feed(connection, request(ECHO, 1, bytes(400_000))[:200_000])
        table.sweep()
        clock.jump(29)
        table.sweep()
        assert not transport.was_aborted()
        clock.jump(1)
        table.sweep()
        assert transport.was_aborted()
        assert table.held_bytes == 0

    run(main())


def test_an_idle_connection_is_closed_and_a_busy_one_is_not(run: Run) -> None:
    async def main() -> None:
        clock = VirtualClock()
        idle, idle_transport, table = wired(Echo().service, clock=clock)
        busy, busy_transport = wired_to(table, Echo().service)
        for _ in range(12):
            table.sweep()
            clock.jump(10)
            feed(busy, request(ECHO, 1))
        assert idle.is_open
        table.sweep()
        assert idle_transport.was_closed()
        assert not busy_transport.was_closed()

    run(main())


def test_a_peer_that_takes_nothing_is_cut_off_and_a_slow_one_is_not(run: Run) -> None:
    async def main() -> None:
        clock = VirtualClock()
        stuck, stuck_transport, table = wired(Echo().service, clock=clock)
        slow, slow_transport = wired_to(table, Echo().service)
        for connection, transport in ((stuck, stuck_transport), (slow, slow_transport)):
            feed(connection, request(LARGE, 1))
            transport.unsent = len(LARGE_BODY)
        for _ in range(31):
            table.sweep()
            assert not stuck_transport.was_aborted()
            clock.jump(1)
            slow_transport.unsent -= 1
        table.sweep()
        assert stuck_transport.was_aborted()
        assert not slow_transport.was_aborted()

    run(main())


def test_when_memory_is_short_the_worst_that_takes_nothing_is_closed(run: Run) -> None:
    async def main() -> None:
        settings = TransportSettings(buffered_bytes_max=1_000_000)
        ends = []
        first, transport, table = wired(Echo().service, settings, VirtualClock())
        ends.append((first, transport))
        ends += [wired_to(table, Echo().service) for _ in range(2)]
        for (connection, transport), unsent in zip(ends, (300_000, 900_000, 200_000), strict=True):
            feed(connection, request(ECHO, 1))
            transport.unsent = unsent
            connection._sent = unsent  # as if it had written that much
        table.sweep()
        assert [transport.was_aborted() for _, transport in ends] == [False, True, False]

    run(main())


def test_a_fast_reader_is_not_mistaken_for_many_slow_ones(run: Run) -> None:
    """What waited and has gone does not count, however often that happens between two sweeps."""

    async def main() -> None:
        settings = TransportSettings(buffered_bytes_max=10_000_000)
        connection, transport, table = wired(Echo().service, settings)
        for _ in range(100):
            transport.unsent = 2_000_000
            connection.pause_writing()
            assert table.unsent_bytes == 2_000_000
            feed(connection, request(LARGE, 1))
            assert transport.answers()[0].code == ResponseCode.SUCCESS
            assert 2_060_000 < table.unsent_bytes < 2_070_000
            transport.unsent = 100
            connection.resume_writing()
        transport.unsent = 300
        table.sweep()
        assert table.unsent_bytes == 300
        connection.connection_lost(None)
        assert table.unsent_bytes == 0

    run(main())


class Careless:
    """A service that fails wherever it can."""

    def __init__(self, where: str) -> None:
        self._where = where

    def opened(self, peer: Peer) -> None:
        """Fail if this is the place."""
        if self._where == "opened":
            raise ZeroDivisionError

    def closed(self, peer: Peer) -> None:
        """Fail if this is the place."""
        if self._where == "closed":
            raise ZeroDivisionError

    takes_turns = False

    def take_turn(
        self, buffer: Buffer, parts: Sequence[tuple[int, int, Peer]]
    ) -> list[tuple[int, bytes]]:
        """Not asked."""
        return []

    def take(self, buffer: Buffer, start: int, end: int, peer: Peer) -> Taken:
        """Fail, or answer with something that fails later."""
        if self._where == "take":
            raise ZeroDivisionError
        if self._where != "promise":
            return Taken(end, [])
        promise = asyncio.get_running_loop().create_future()
        promise.set_exception(ZeroDivisionError())
        return Taken(end, [promise])


@pytest.mark.parametrize("where", ["opened", "closed", "take", "promise"])
def test_a_service_that_fails_is_logged_and_ends_at_most_its_connection(
    run: Run, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        connection, transport, table = wired(Careless(where))
        feed(connection, request(ECHO, 1))
        await turns()
        assert connection.is_open is (where in {"closed", "promise"})
        assert transport.is_closing() is not connection.is_open
        assert transport.answers() == []
        connection.connection_lost(None)
        assert not table.connections

    run(main())
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_finishing_lets_answers_out_and_takes_nothing_new(run: Run) -> None:
    async def main() -> None:
        echo = Echo()
        connection, transport, _table = wired(echo.service)
        feed(connection, request(LATER, 1))
        connection.finish("stopping")
        assert not transport.is_reading()
        assert not transport.was_closed()
        echo.release()
        await turns()
        assert opaques(transport.answers()) == [1]
        assert transport.was_closed()

    run(main())
