"""Who asks for much and reads little: what it costs this process, and what others notice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.testing.clock import VirtualClock
from gantrymq.transport.outgoing import busy_instead
from gantrymq.transport.settings import TransportSettings
from gantrymq.wire.codes import ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.frame import encode_frame
from gantrymq.wire.peer import DATA_BYTES_ENOUGH, RawReply
from support.transport import (
    ECHO,
    LARGE,
    LARGE_BODY,
    LATER,
    Echo,
    NotingTransport,
    feed,
    request,
    turns,
    wired,
    wired_to,
)

if TYPE_CHECKING:
    from gantrymq.transport.connection import Connection
    from support.transport import Run

PULLS = 200
AT_ONCE = DATA_BYTES_ENOUGH // len(LARGE_BODY)  # with their headers, more than enough
"""Large answers of one turn."""


class Unread(NotingTransport):
    """A socket whose other end reads nothing until it is told to."""

    def __init__(self, high: int) -> None:
        super().__init__()
        self._high = high
        self.protocol: Connection | None = None
        self.bytes_sent = 0

    def writelines(self, list_of_data: object) -> None:
        """Note what stays here, as the loop's transport does."""
        super().writelines(list_of_data)  # type: ignore[arg-type]
        self._grow(len(self.writes[-1]))

    def write(self, data: object) -> None:
        """Note what stays here."""
        super().write(data)  # type: ignore[arg-type]
        self._grow(len(self.writes[-1]))

    def _grow(self, size: int) -> None:
        before, self.unsent = self.unsent, self.unsent + size
        if before <= self._high < self.unsent and self.protocol is not None:
            self.protocol.pause_writing()

    def drain(self) -> None:
        """Let the other end read everything."""
        assert self.protocol is not None
        self.unsent = 0
        self.protocol.resume_writing()


def unread(connection: Connection, high: int) -> Unread:
    """Put a transport under a connection that nobody reads."""
    transport = Unread(high)
    transport.protocol = connection
    connection._transport = transport
    return transport


def test_requests_behind_a_full_socket_wait_and_none_is_lost(run: Run) -> None:
    async def main() -> None:
        echo = Echo()
        settings = TransportSettings(write_high_bytes=DATA_BYTES_ENOUGH)
        connection, _, table = wired(echo.service, settings)
        transport = unread(connection, settings.write_high_bytes)
        feed(connection, b"".join(request(LARGE, number) for number in range(PULLS)))
        await turns(20)
        assert len(echo.seen) == AT_ONCE  # the others have cost nothing yet
        assert not transport.is_reading()
        assert table.held_bytes > 0
        rounds = 0
        while len(echo.seen) < PULLS:
            transport.drain()
            await turns(20)
            rounds += 1
            assert transport.unsent <= 2 * DATA_BYTES_ENOUGH
        assert rounds > PULLS // (3 * AT_ONCE)
        transport.drain()
        await turns()
        answers = transport.answers()
        assert [answer.opaque for answer in answers] == list(range(PULLS))
        assert {answer.code for answer in answers} == {ResponseCode.SUCCESS}
        assert transport.is_reading()
        assert table.held_bytes == 0
        feed(connection, request(ECHO, 7))
        assert [answer.opaque for answer in transport.answers()] == [7]

    run(main())


def test_the_beginning_of_a_frame_may_be_kept_back_too(run: Run) -> None:
    async def main() -> None:
        connection, transport, table = wired(Echo().service)
        last = request(ECHO, 99, bytes(1000))
        feed(connection, b"".join(request(LARGE, n) for n in range(AT_ONCE + 2)) + last[:500])
        await turns(20)
        assert transport.is_reading()
        feed(connection, last[500:])
        assert [answer.opaque for answer in transport.answers()] == [*range(AT_ONCE + 2), 99]
        assert table.held_bytes == 0

    run(main())


def test_others_have_their_turn_while_one_asks_for_much(run: Run) -> None:
    async def main() -> None:
        echo = Echo()
        greedy, _, table = wired(echo.service)
        polite, polite_transport = wired_to(table, echo.service)
        feed(greedy, b"".join(request(LARGE, number) for number in range(PULLS)))
        feed(polite, request(ECHO, 1))
        assert len(echo.seen) == AT_ONCE + 1
        assert [answer.opaque for answer in polite_transport.answers()] == [1]
        await turns(100)
        assert len(echo.seen) == PULLS + 1

    run(main())


def test_all_connections_together_stay_within_their_memory(run: Run) -> None:
    async def main() -> None:
        settings = TransportSettings(
            buffered_bytes_max=20 * len(LARGE_BODY),
            write_high_bytes=len(LARGE_BODY) // 2,
            write_low_bytes=1000,
        )
        echo = Echo()
        first, _, table = wired(echo.service, settings, VirtualClock())
        ends = [first, *(wired_to(table, echo.service)[0] for _ in range(49))]
        transports = [unread(end, settings.write_high_bytes) for end in ends]
        for number, end in enumerate(ends):
            feed(end, b"".join(request(LATER, number, LARGE_BODY) for _ in range(4)))
        echo.release()
        await turns(20)
        unsent = sum(transport.unsent for transport in transports)
        one_each = len(ends) * (len(LARGE_BODY) + 1000)
        assert unsent <= settings.buffered_bytes_max + one_each
        codes = [[answer.code for answer in transport.answers()] for transport in transports]
        assert codes[0] == [ResponseCode.SUCCESS] * 4
        # Who has taken everything gets one answer even now, and is told to read before more.
        assert codes[-1] == [ResponseCode.SUCCESS] + [ResponseCode.SYSTEM_BUSY] * 3

    run(main())


def test_a_refused_answer_is_not_read(run: Run) -> None:
    """Its header says all that the refusal needs: the data would come from the disk for nothing."""

    class Untouched(bytearray):
        """Data that cannot be copied."""

    frame = encode_frame(Command.request(11, 5).response(body=LARGE_BODY))
    data = memoryview(Untouched(frame[-len(LARGE_BODY) :]))
    busy = busy_instead(RawReply((frame[:3], frame[3 : -len(LARGE_BODY)], data)))
    assert busy is not None
    assert len(busy) < 1000
    data.release()
    broken = bytearray(frame)
    broken[8] = 0  # no header
    assert busy_instead(RawReply((memoryview(broken),))) is None
    assert busy_instead(RawReply((memoryview(b"abc"),))) is None


def test_a_frame_that_nobody_finishes_gives_way_to_those_who_wait(run: Run) -> None:
    async def main() -> None:
        clock = VirtualClock()
        settings = TransportSettings(buffered_bytes_max=1_000_000)
        large = request(ECHO, 1, bytes(500_000))
        first, first_transport, table = wired(Echo().service, settings, clock)
        ends = [(first, first_transport), *(wired_to(table, Echo().service) for _ in range(4))]
        (grows, grows_transport), *stall, (client, client_transport) = ends
        feed(grows, large[:100_000])
        for (connection, _), size in zip(stall, (200_000, 280_000, 400_000), strict=True):
            feed(connection, large[:size])
        message = request(ECHO, 9, bytes(200_000))
        feed(client, message[:150_000])
        assert not client_transport.is_reading()
        for _ in range(3):
            table.sweep()
            clock.jump(1)
            feed(grows, large[grows.kept_bytes :][:1000])
            assert not client_transport.is_reading()
        table.sweep()
        assert [transport.was_aborted() for _, transport in ends] == [
            False,  # it grows
            False,
            False,
            True,  # the largest; more is not needed
            False,
        ]
        assert client_transport.is_reading()
        feed(client, message[150_000:])
        assert [answer.opaque for answer in client_transport.answers()] == [9]
        assert grows_transport.is_reading()

    run(main())


def test_of_those_who_wait_the_one_that_needs_least_goes_on_first(run: Run) -> None:
    async def main() -> None:
        settings = TransportSettings(buffered_bytes_max=1_000_000)
        holder, _, table = wired(Echo().service, settings, VirtualClock())
        feed(holder, request(ECHO, 1, bytes(2_000_000))[:700_000])
        needs = {"much": 900_000, "little": 250_000}
        ends = {name: wired_to(table, Echo().service) for name in needs}
        for name, (connection, _) in ends.items():
            feed(connection, request(ECHO, 1, bytes(needs[name]))[:200_000])
            connection._stop_reading(4)
        holder.abort("gone")
        table.held_bytes += 560_000  # others hold the rest, nearly
        table.sweep()
        assert ends["little"][1].is_reading()
        assert not ends["much"][1].is_reading()

    run(main())
