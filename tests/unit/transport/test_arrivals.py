"""Small reads of a turn are taken together; nobody sees a difference."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING

import pytest

from gantrymq.kernel import kernel
from gantrymq.limits import FRAME_BYTES_MAX
from gantrymq.transport.arrivals import HEADROOM, SMALL_BYTES
from gantrymq.transport.server import Server
from gantrymq.transport.settings import TransportSettings
from gantrymq.transport.tls import ClientTls, ServerTls, TlsMode
from gantrymq.wire.frame import FrameParser, decode_frame, encode_frame
from gantrymq.wire.peer import RawReply, Taken
from support.transport import (
    ECHO,
    NotingTransport,
    RawClient,
    feed,
    request,
    turns,
    until,
    wired,
    wired_to,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.kernel.interface import Buffer
    from gantrymq.transport.connection import Connection
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Peer, Pending
    from support.transport import Run

BAD = b"\x7f\xff\xff\xff" + bytes(8)
BIG = 8
"""Answered with as many bytes as its body says."""
LARGE_BODY_BYTES = 1 << 20
"""More than a socket takes at once."""


class Turned:
    """Takes echoes of many connections at once, as a broker takes sends; all else one by one."""

    takes_turns = True

    def __init__(self) -> None:
        self.turns: list[int] = []
        self.seen: list[tuple[int, int]] = []
        self.fails = False
        self.refuses = False

    def opened(self, peer: Peer) -> None:
        """Have nothing to do."""

    def closed(self, peer: Peer) -> None:
        """Have nothing to do."""

    def take_turn(
        self, buffer: Buffer, parts: Sequence[tuple[int, int, Peer]]
    ) -> list[tuple[int, bytes]]:
        """Take echoes, up to the first frame that is something else."""
        if self.fails:
            raise ZeroDivisionError("on purpose")
        self.turns.append(len(parts))
        runs: list[tuple[int, bytes]] = []
        for start, end, peer in parts if not self.refuses else ():
            position, answers, is_drained = self._echoes(buffer, start, end, peer)
            runs.append((position, b"".join(answers)))
            if not is_drained:
                break
        return runs

    def take(self, buffer: Buffer, start: int, end: int, peer: Peer) -> Taken:
        """Take everything."""
        frames, behind = kernel.split_frames(buffer, start, end, FRAME_BYTES_MAX)
        answers: list[Pending] = [self._answer(decode_frame(buffer, one), peer) for one in frames]
        return Taken(behind, answers, is_plain=True)

    def _echoes(
        self, buffer: Buffer, start: int, end: int, peer: Peer
    ) -> tuple[int, list[bytes], bool]:
        answers: list[bytes] = []
        try:
            frames, behind = kernel.split_frames(buffer, start, end, FRAME_BYTES_MAX)
            kernel.split_frames(buffer, behind, end, FRAME_BYTES_MAX)
        except ValueError:
            return start, answers, False
        for one in frames:
            command = decode_frame(buffer, one)
            if command.code != ECHO:
                return one.start, answers, False
            reply = self._answer(command, peer)
            answers += [] if reply is None else [b"".join(bytes(part) for part in reply.parts)]
        return behind, answers, True

    def _answer(self, command: Command, peer: Peer) -> RawReply | None:
        self.seen.append((peer.number, command.opaque))
        if command.is_oneway:
            return None
        body = bytes(int(command.body)) if command.code == BIG else command.body
        return RawReply((encode_frame(command.response(body=body)),))


def opaques(transport: NotingTransport) -> list[int]:
    return [answer.opaque for answer in transport.answers()]


def many(count: int, service: Turned) -> list[tuple[Connection, NotingTransport]]:
    first, transport, table = wired(service)
    return [(first, transport), *(wired_to(table, service) for _ in range(count - 1))]


def test_small_reads_of_a_turn_are_one_call(run: Run) -> None:
    async def main() -> None:
        service = Turned()
        ends = many(20, service)
        for number, (connection, _) in enumerate(ends):
            feed(connection, request(ECHO, number, b"%d" % number))
        assert not any(transport.writes for _, transport in ends), "they wait for one another"
        await turns(2)
        assert service.turns == [20]
        assert [opaques(transport) for _, transport in ends] == [[n] for n in range(20)]
        arrivals = ends[0][0]._table.arrivals
        assert arrivals.position == HEADROOM, "the buffer is free again"

    run(main())


def test_what_one_connection_sent_is_answered_in_its_order(run: Run) -> None:
    """Also if its socket is read twice before the turn is over."""

    async def main() -> None:
        service = Turned()
        ends = many(3, service)
        for number in range(4):
            for connection, _ in ends:
                feed(connection, request(ECHO, number) + request(ECHO, number + 100))
        await turns()
        order = [0, 100, 1, 101, 2, 102, 3, 103]
        assert [opaques(transport) for _, transport in ends] == [order] * 3

    run(main())


@pytest.mark.parametrize("size", [10, 5000, HEADROOM + 5000])
def test_a_frame_cut_in_two_while_others_are_gathered(run: Run, size: int) -> None:
    async def main() -> None:
        for cut in {1, 3, 5, 9, 40, size // 2, size}:
            service = Turned()
            (cut_one, transport), (other, other_transport), (third, third_transport) = many(
                3, service
            )
            whole = request(ECHO, 1, b"x" * size) + request(ECHO, 2)
            feed(other, request(ECHO, 8))
            feed(cut_one, whole[:cut])
            feed(third, request(ECHO, 9))
            feed(cut_one, whole[cut:])
            await turns()
            assert opaques(transport) == [1, 2], cut
            assert opaques(other_transport) == [8]
            assert opaques(third_transport) == [9]
            await turns()
            feed(cut_one, whole[:cut])
            await turns()
            feed(other, request(ECHO, 18))
            feed(cut_one, whole[cut:])
            feed(third, request(ECHO, 19))
            await turns()
            assert opaques(transport) == [1, 2], cut
            assert (opaques(other_transport), opaques(third_transport)) == ([18], [19])
            assert cut_one._table.held_bytes == 0

    run(main())


@pytest.mark.parametrize("end", ["close", "abort", "finish", "connection_lost"])
def test_what_arrived_is_taken_before_the_connection_ends(run: Run, end: str) -> None:
    async def main() -> None:
        service = Turned()
        (first, _), (other, other_transport) = many(2, service)
        feed(other, request(ECHO, 7))
        feed(first, request(ECHO, 1, oneway=True) + request(ECHO, 2, oneway=True))
        if end == "connection_lost":
            first.connection_lost(ConnectionResetError())
        else:
            getattr(first, end)("test")
        seen = [opaque for number, opaque in service.seen if number == first.number]
        assert seen == [1, 2]
        await turns()
        assert opaques(other_transport) == [7]
        assert len(service.seen) == 3, "once"

    run(main())


@pytest.mark.parametrize("how", ["fails", "refuses"])
def test_a_service_that_takes_no_turn_now_is_asked_for_each(
    run: Run, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        service = Turned()
        setattr(service, how, True)
        ends = many(5, service)
        for number, (connection, _) in enumerate(ends):
            feed(connection, request(ECHO, number))
        await turns()
        assert [opaques(transport) for _, transport in ends] == [[n] for n in range(5)]
        assert all(connection.is_open for connection, _ in ends)

    run(main())
    levels = [record.levelno for record in caplog.records]
    assert levels == ([logging.ERROR] if how == "fails" else [])


def test_garbage_and_other_requests_among_plain_ones(run: Run) -> None:
    """Each connection gets what it gets alone."""
    streams = [
        request(ECHO, 1) + request(ECHO, 2),
        request(BIG, 3, b"5000") + request(ECHO, 4),
        BAD,
        request(ECHO, 5) + BAD,
        request(ECHO, 6) + request(BIG, 7, b"10") + BAD,
        request(ECHO, 8, oneway=True),
        request(ECHO, 9)[:-1],
        request(ECHO, 10) + request(ECHO, 11)[:20],
        request(ECHO, 12, b"y" * SMALL_BYTES),
        request(ECHO, 13),
    ]

    async def main() -> None:
        alone = []
        for stream in streams:
            connection, transport, _ = wired(Turned())
            feed(connection, stream)
            await turns()
            alone.append((transport.answers(), connection.is_open, connection.kept_bytes))
        assert [len(answers) for answers, _, _ in alone] == [2, 2, 0, 1, 2, 0, 0, 1, 1, 1]
        assert [is_open for _, is_open, _ in alone].count(False) == 3
        for order in (1, -1):
            ends = many(len(streams), Turned())
            pairs = list(zip(ends, streams, strict=True))
            for (connection, _), stream in pairs[::order]:
                feed(connection, stream)
            await turns()
            together = [
                (transport.answers(), connection.is_open, connection.kept_bytes)
                for connection, transport in ends
            ]
            assert together == alone

    run(main())


def test_a_buffer_that_runs_full_within_a_turn(run: Run) -> None:
    async def main() -> None:
        service = Turned()
        first, transport, table = wired(service, TransportSettings(receive_bytes=16384))
        ends = [(first, transport), *(wired_to(table, service) for _ in range(29))]
        for number, (connection, _) in enumerate(ends):
            feed(connection, request(ECHO, number, b"z" * 1500))
            assert len(table.arrivals.room) >= 16384 // 2
        await turns()
        assert [opaques(transport) for _, transport in ends] == [[n] for n in range(30)]
        assert len(service.turns) > 3
        assert sum(service.turns) == 30
        assert table.arrivals.position == HEADROOM

    run(main())


def test_two_services_of_one_table_have_turns_of_their_own(run: Run) -> None:
    async def main() -> None:
        one, other = Turned(), Turned()
        first, transport, table = wired(one)
        ends = [(first, transport)] + [wired_to(table, [one, other][n % 2]) for n in range(1, 6)]
        for number, (connection, _) in enumerate(ends):
            feed(connection, request(ECHO, number))
        await turns()
        assert [opaques(transport) for _, transport in ends] == [[n] for n in range(6)]
        assert len(one.seen) == len(other.seen) == 3

    run(main())


# -- real sockets ----------------------------------------------------------------------------------


async def served(service: Turned, tls: ServerTls | None = None) -> Server:
    server = Server(service, [("127.0.0.1", 0)], tls=tls)
    await server.start()
    return server


def test_many_clients_at_once(run: Run) -> None:
    async def main() -> None:
        service = Turned()
        server = await served(service)
        clients = [await RawClient.connect(server.bound[0]) for _ in range(40)]
        for round_ in range(5):
            for number, client in enumerate(clients):
                client.socket.send(request(ECHO, 100 * round_ + number) + request(ECHO, 7))
            for number, client in enumerate(clients):
                answers = await client.receive(2)
                assert [one.opaque for one in answers] == [100 * round_ + number, 7]
        assert max(service.turns) > 1, "some were taken together"
        for client in clients:
            client.close()
        await server.stop(1)

    run(main())


@pytest.mark.parametrize("end", ["close", "reset", "half"])
def test_a_oneway_send_is_taken_whatever_its_sender_does_next(run: Run, end: str) -> None:
    async def main() -> None:
        service = Turned()
        server = await served(service)
        clients = [await RawClient.connect(server.bound[0]) for _ in range(10)]
        for number, client in enumerate(clients):
            client.socket.send(request(ECHO, number, oneway=True))
        if end == "reset":
            # A reset may overtake what was not read yet; that never arrived.
            await until(lambda: len(service.seen) == 10)
        for client in clients:
            if end == "half":
                client.socket.shutdown(socket.SHUT_WR)
                continue
            if end == "reset":
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            client.close()
        await until(lambda: len(service.seen) == 10)
        await until(lambda: not server.table.connections)
        assert sorted(opaque for _, opaque in service.seen) == list(range(10))
        for client in clients:
            client.close()
        await server.stop(1)

    run(main())


@pytest.mark.parametrize("size", [100, 60_000, 3_000_000])
def test_answers_larger_than_a_socket_takes_reach_a_slow_reader_byte_by_byte(
    run: Run, size: int
) -> None:
    async def main() -> None:
        server = await served(Turned())
        client = await RawClient.connect(server.bound[0], receive_bytes=4096)
        await client.send(request(ECHO, 99))  # who says nothing is no connection yet
        assert len(await client.receive(1)) == 1
        (connection,) = server.table.connections.values()
        for number in range(4):
            # One by one: a lone answer is what is written past the transport.
            for each in (request(BIG, number, b"%d" % size), request(ECHO, number + 50, b"e")):
                before = connection._sent
                await client.send(each)
                if size < LARGE_BODY_BYTES:
                    await until(lambda before=before: connection._sent > before)  # type: ignore[misc]
                else:
                    await turns(20)
        if size > LARGE_BODY_BYTES:
            await until(lambda: connection.unsent_bytes)
            assert connection._sent > connection.unsent_bytes, "some of it went out at once"
        loop, received, parser = asyncio.get_running_loop(), 0, FrameParser()
        answers: list[Command] = []
        while len(answers) < 8:
            chunk = await loop.sock_recv(client.socket, 1000 if received < 20_000 else 1 << 18)
            assert chunk
            received += len(chunk)
            answers += parser.feed(chunk)
        assert [one.opaque for one in answers] == [0, 50, 1, 51, 2, 52, 3, 53]
        assert all(one.body == bytes(size) for one in answers[::2])
        assert [one.body for one in answers[1::2]] == [b"e"] * 4
        client.close()
        await server.stop(1)

    run(main())


def test_tls_connections_are_never_written_past(run: Run, certificate: tuple[str, str]) -> None:
    async def main() -> None:
        tls = ServerTls(TlsMode.ENFORCING, *certificate)
        service = Turned()
        server = await served(service, tls)
        host, _, port = server.bound[0].rpartition(":")
        context = ClientTls(verifies_server=False, checks_name=False).context()
        pairs = [await asyncio.open_connection(host, int(port), ssl=context) for _ in range(8)]
        for round_ in range(3):
            for number, (_, writer) in enumerate(pairs):
                writer.write(request(ECHO, number) + request(BIG, 50 + round_, b"200000"))
            for number, (reader, _) in enumerate(pairs):
                parser = FrameParser()
                answers: list[Command] = []
                while len(answers) < 2:
                    answers += parser.feed(await reader.read(65536))
                assert [one.opaque for one in answers] == [number, 50 + round_]
                assert answers[1].body == bytes(200_000)
        assert all(connection._handle == -1 for connection in server.table.connections.values())
        for _, writer in pairs:
            writer.close()
        await server.stop(1)

    run(main())
