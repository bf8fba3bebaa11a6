"""A server on real sockets, on both event loops."""

from __future__ import annotations

import asyncio
import gc
import logging
import resource
import socket
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from gantrymq.testing.clock import VirtualClock
from gantrymq.transport.addresses import split_address
from gantrymq.transport.requester import connect
from gantrymq.transport.sending import UNANSWERED
from gantrymq.transport.server import Server
from gantrymq.transport.settings import TransportSettings
from gantrymq.transport.tls import ClientTls, ServerTls, TlsMode
from gantrymq.wire.command import Command
from gantrymq.wire.peer import PeerGone
from support.transport import (
    ASKS_BACK,
    ECHO,
    LARGE,
    LARGE_BODY,
    LATER,
    Echo,
    RawClient,
    request,
    turns,
    until,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from gantrymq.clock import Clock
    from support.transport import Run

HELLO = b"\x16\x03\x01"


@asynccontextmanager
async def serving(
    echo: Echo,
    settings: TransportSettings | None = None,
    tls: ServerTls | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[Server]:
    server = Server(echo.service, [("127.0.0.1", 0)], settings=settings, tls=tls, clock=clock)
    await server.start()
    try:
        yield server
    finally:
        await server.stop(1)


def test_a_thousand_pipelined_requests(run: Run) -> None:
    async def main() -> None:
        async with serving(Echo()) as server:
            client = await RawClient.connect(server.bound[0])
            await client.send(b"".join(request(ECHO, n, b"%d" % n) for n in range(1000)))
            answers = await client.receive(1000)
            assert [answer.body for answer in answers] == [b"%d" % n for n in range(1000)]
            client.close()

    run(main())


def test_every_address_is_served(run: Run) -> None:
    async def main() -> None:
        server = Server(Echo().service, [("127.0.0.1", 0), ("127.0.0.1", 0)])
        await server.start()
        assert len(set(server.bound)) == 2
        for address in server.bound:
            client = await RawClient.connect(address)
            await client.send(request(ECHO, 5))
            assert [answer.opaque for answer in await client.receive(1)] == [5]
            client.close()
        await server.stop(1)

    run(main())


def test_an_address_that_is_taken_is_named(run: Run) -> None:
    async def main() -> None:
        async with serving(Echo()) as server:
            port = int(server.bound[0].rpartition(":")[2])
            with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{port}"):
                await Server(Echo().service, [("127.0.0.1", 0), ("127.0.0.1", port)]).start()

    run(main())


def test_bad_bytes_close_only_their_own_connection(run: Run) -> None:
    async def main() -> None:
        async with serving(Echo()) as server:
            good = await RawClient.connect(server.bound[0])
            await good.send(request(ECHO, 1)[:10])
            for bad in (b"GET / HTTP/1.1\r\n\r\n", HELLO, b"\x00\x00\x00\x00\x00\x00\x00\x00"):
                client = await RawClient.connect(server.bound[0])
                await client.send(bad)
                assert await client.is_closed()
                client.close()
            await good.send(request(ECHO, 1)[10:])
            assert len(await good.receive(1)) == 1
            good.close()

    run(main())


def test_a_host_that_is_none_is_named(run: Run) -> None:
    async def main() -> None:
        server = Server(Echo().service, [("no such host.invalid", 0)])
        with pytest.raises(OSError, match=r"cannot listen on no such host\.invalid:0: "):
            await server.start()

    run(main())


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (b"\x00\x00\x00\x10\x07\x00\x00\x01", "serialize"),
        (b"\x00\x00\x00\x06\x00\x00\x00\x02{]", "header"),
        (b"GET / HTTP/1.1\r\n\r\n", "first byte is 0x47"),
    ],
)
def test_what_is_no_frame_is_logged_once_with_its_peer(
    run: Run, caplog: pytest.LogCaptureFixture, bad: bytes, said: str
) -> None:
    """A scanner that comes again and again fills no disk."""

    async def main() -> None:
        async with serving(Echo()) as server:
            peers = []
            for _ in range(5):
                client = await RawClient.connect(server.bound[0])
                peers.append("{}:{}".format(*client.socket.getsockname()))
                await client.send(bad)
                assert await client.is_closed()
                client.close()
        (line,) = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
        assert peers[0] in line
        assert said in line

    run(main())


def test_a_peer_that_never_reads_is_bounded_and_disturbs_nobody(run: Run) -> None:
    async def main() -> None:
        echo = Echo()
        settings = TransportSettings(write_timeout_s=1, sweep_s=0.1)
        async with serving(echo, settings) as server:
            deaf = await RawClient.connect(server.bound[0], receive_bytes=4096)
            await deaf.send(request(ECHO, 1))
            await until(lambda: server.table.connections)
            (connection,) = server.table.connections.values()
            good = await connect(*split_address(server.bound[0]))
            asking = asyncio.ensure_future(deaf.send(request(LARGE, 1) * 50_000))
            most = 0
            while connection.is_open:
                answer = await good.ask(Command.request(ECHO, 0, body=b"hello"), 10)
                assert answer.body == b"hello"
                most = max(most, connection.unsent_bytes)
            assert 1_000_000 < most < settings.unsent_bytes_max + 8_000_000
            assert sum(command.code == LARGE for command in echo.seen) < 20_000
            with pytest.raises(ConnectionError):
                await asking
            deaf.close()
            good.close("done")

    run(main())


def test_a_slow_reader_gets_everything(run: Run) -> None:
    async def main() -> None:
        async with serving(Echo()) as server:
            client = await RawClient.connect(server.bound[0], receive_bytes=4096)
            sending = asyncio.ensure_future(
                client.send(b"".join(request(LARGE, number) for number in range(100)))
            )
            await until(lambda: server.table.connections)
            (connection,) = server.table.connections.values()
            await until(lambda: connection.unsent_bytes > 500_000)
            answers = await client.receive(100)
            await sending
            assert [answer.opaque for answer in answers] == list(range(100))
            assert {answer.body for answer in answers} == {LARGE_BODY}
            client.close()

    run(main())


def test_a_client_and_a_server_with_much_to_say_do_not_block_each_other(run: Run) -> None:
    async def main() -> None:
        async with serving(Echo()) as server:
            host, port = server.bound[0].split(":")
            client = await connect(host, int(port))
            body = bytes(900_000)
            asked = [client.ask(Command.request(ECHO, 0, body=body), 10)]
            while len(asked) < 40:
                if client.unsent_bytes < 200_000:
                    asked.append(client.ask(Command.request(ECHO, 0, body=body), 10))
                await asyncio.sleep(0)
            answers = await asyncio.gather(*asked)
            assert {answer.body for answer in answers} == {body}
            client.close("done")

    run(main())


def test_the_end_of_a_peers_stream_is_the_end(run: Run) -> None:
    """A consumer that closes leaves its groups at once, whatever it still waits for."""

    async def main() -> None:
        echo = Echo()
        async with serving(echo) as server:
            client = await RawClient.connect(server.bound[0])
            await client.send(request(LATER, 1) + request(ECHO, 2))
            client.socket.shutdown(socket.SHUT_WR)
            assert [answer.opaque for answer in await client.receive(1)] == [2]
            assert await client.is_closed()
            await until(lambda: echo.gone)
            assert echo.gone == echo.peers
            client.close()

    run(main())


def test_silent_and_idle_sockets_are_closed(run: Run) -> None:
    async def main() -> None:
        clock = VirtualClock()
        echo = Echo()
        async with serving(echo, clock=clock) as server:
            silent = await RawClient.connect(server.bound[0])
            idle = await RawClient.connect(server.bound[0])
            await idle.send(request(ECHO, 1))
            assert len(await idle.receive(1)) == 1
            await until(lambda: server.silent_count == 1)
            server.table.sweep()
            clock.jump(119)
            server.table.sweep()
            assert server.silent_count == 1
            assert len(server.table.connections) == 1
            clock.jump(1)
            server.table.sweep()
            assert server.silent_count == 0
            assert await silent.is_closed()
            assert await idle.is_closed()
            await until(lambda: echo.gone)
            silent.close()
            idle.close()

    run(main())


def test_the_timer_sweeps_by_itself(run: Run) -> None:
    async def main() -> None:
        settings = TransportSettings(idle_s=0.05, sweep_s=0.01)
        async with serving(Echo(), settings) as server:
            clients = [await RawClient.connect(server.bound[0]) for _ in range(2)]
            await clients[0].send(request(ECHO, 1))
            assert len(await clients[0].receive(1)) == 1
            assert [await client.is_closed() for client in clients] == [True, True]
            for client in clients:
                client.close()

    run(main())


def test_there_is_a_bound_on_connections(run: Run) -> None:
    async def main() -> None:
        async with serving(Echo(), TransportSettings(connections_max=3)) as server:
            clients = [await RawClient.connect(server.bound[0]) for _ in range(3)]
            await clients[0].send(request(ECHO, 1))
            assert len(await clients[0].receive(1)) == 1
            await until(lambda: server.silent_count == 2)
            refused = await RawClient.connect(server.bound[0])
            assert await refused.is_closed()
            clients[1].close()
            await until(lambda: server.silent_count == 1)
            again = await RawClient.connect(server.bound[0])
            await again.send(request(ECHO, 2))
            assert len(await again.receive(1)) == 1
            for client in (*clients, refused, again):
                client.close()

    run(main())


def test_no_more_file_descriptors_is_survived(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with serving(Echo()) as server:
            client = await RawClient.connect(server.bound[0])
            await client.send(request(ECHO, 1))
            assert len(await client.receive(1)) == 1
            waiting = socket.socket()
            waiting.setblocking(False)
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (waiting.fileno() + 1, hard))
            try:
                host, port = server.bound[0].split(":")
                await asyncio.get_running_loop().sock_connect(waiting, (host, int(port)))
                await client.send(request(ECHO, 2))
                assert len(await client.receive(1)) == 1
                await until(lambda: "ulimit -n" in caplog.text)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            late = RawClient(waiting)
            await late.send(request(ECHO, 3))
            assert len(await late.receive(1)) == 1
            late.close()
            client.close()

    run(main())


def test_stopping_lets_answers_out(run: Run) -> None:
    async def main() -> None:
        echo = Echo()
        async with serving(echo) as server:
            client = await RawClient.connect(server.bound[0])
            await client.send(request(LATER, 1) + request(LARGE, 2))
            await until(lambda: echo.held)
            stopping = asyncio.ensure_future(server.stop(5))
            await turns()
            assert not stopping.done()
            echo.release()
            assert {answer.opaque for answer in await client.receive(2)} == {1, 2}
            await stopping
            assert await client.is_closed()
            with pytest.raises(ConnectionRefusedError):
                await RawClient.connect(server.bound[0])
            client.close()

    run(main())


def test_stopping_does_not_wait_for_ever(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        echo = Echo()
        async with serving(echo) as server:
            client = await RawClient.connect(server.bound[0])
            await client.send(request(LATER, 1))
            await until(lambda: echo.held)
            await server.stop(0.01)
            assert not server.table.connections
            assert await client.is_closed()
            client.close()

    with caplog.at_level(logging.CRITICAL):
        run(main())


def test_both_ends_ask_on_a_socket(run: Run) -> None:
    async def main() -> None:
        async with serving(Echo()) as server:
            host, port = server.bound[0].split(":")
            client = await connect(host, int(port), Echo().service)
            asked = [client.ask(Command.request(ASKS_BACK, 0, body=b"%d" % n), 5) for n in range(9)]
            answers = await asyncio.gather(*asked)
            assert [answer.body for answer in answers] == [b"%d back" % n for n in range(9)]
            client.close("done")

    run(main())


# -- TLS ----------------------------------------------------------------------------------------


def test_plain_and_tls_share_a_port(run: Run, certificate: tuple[str, str]) -> None:
    async def main() -> None:
        tls = ServerTls(cert_path=certificate[0], key_path=certificate[1])
        async with serving(Echo(), tls=tls) as server:
            host, port = server.bound[0].split(":")
            trusting = ClientTls(trust_path=certificate[0])
            for client_tls in (None, trusting):
                client = await connect(host, int(port), Echo().service, client_tls)
                body = b"x" * 3_000_000
                asked = [client.ask(Command.request(ECHO, 0, body=body), 10)]
                asked += [
                    client.ask(Command.request(code, 0, body=b"ask"), 10)
                    for code in (ECHO, LARGE, ASKS_BACK) * 20
                ]
                answers = await asyncio.gather(*asked)
                assert answers[0].body == body
                bodies = [answer.body for answer in answers[1:]]
                assert bodies == [b"ask", LARGE_BODY, b"ask back"] * 20
                client.close("done")
            await until(lambda: not server.table.connections)

    run(main())


def test_who_is_not_trusted_is_not_spoken_to(run: Run, certificate: tuple[str, str]) -> None:
    async def main() -> None:
        tls = ServerTls(cert_path=certificate[0], key_path=certificate[1])
        async with serving(Echo(), tls=tls) as server:
            host, port = server.bound[0].split(":")
            with pytest.raises(PeerGone, match="certificate"):
                await connect(host, int(port), tls=ClientTls())
            careless = ClientTls(verifies_server=False)
            client = await connect(host, int(port), tls=careless)
            assert (await client.ask(Command.request(ECHO, 0, body=b"x"), 5)).body == b"x"
            client.close("done")

    run(main())


@pytest.mark.parametrize(
    ("mode", "plain_works", "tls_works"),
    [
        (TlsMode.DISABLED, True, False),
        (TlsMode.PERMISSIVE, True, True),
        (TlsMode.ENFORCING, False, True),
    ],
)
def test_modes(
    run: Run, certificate: tuple[str, str], mode: TlsMode, plain_works: bool, tls_works: bool
) -> None:
    async def works(address: str, tls: ClientTls | None) -> bool:
        host, port = address.split(":")
        try:
            client = await connect(host, int(port), tls=tls)
            await client.ask(Command.request(ECHO, 0), 5)
        except PeerGone:
            return False
        client.close("done")
        return True

    async def main() -> None:
        tls = ServerTls(mode=mode, cert_path=certificate[0], key_path=certificate[1])
        async with serving(Echo(), tls=tls) as server:
            assert await works(server.bound[0], None) is plain_works
            trusting = ClientTls(trust_path=certificate[0])
            assert await works(server.bound[0], trusting) is tls_works

    run(main())


@pytest.mark.parametrize("turns_before", range(10))
def test_a_stop_while_a_connection_begins_comes_to_its_end(run: Run, turns_before: int) -> None:
    # In one of these turns a connection has been made, and its maker does not know it yet.
    async def main() -> None:
        echo = Echo()
        server = await Server(echo.service, [("127.0.0.1", 0)]).start()
        host, port = split_address(server.bound[0])
        with socket.create_connection((host, port)) as client:
            client.sendall(request(ECHO, 1, b""))
            await turns(turns_before)
            await asyncio.wait_for(server.stop(0.2), 5)
        assert len(server.table.connections) == 0

    run(main())


def test_a_handshake_that_does_not_end_is_given_up(run: Run, certificate: tuple[str, str]) -> None:
    async def main() -> None:
        tls = ServerTls(cert_path=certificate[0], key_path=certificate[1])
        async with serving(Echo(), TransportSettings(handshake_s=0.05), tls) as server:
            client = await RawClient.connect(server.bound[0])
            await client.send(HELLO)
            assert await client.is_closed()
            client.close()

    run(main())


@pytest.mark.parametrize("leaves", [True, False])
def test_the_log_says_why_a_handshake_failed(
    run: Run, certificate: tuple[str, str], caplog: pytest.LogCaptureFixture, leaves: bool
) -> None:
    async def main() -> None:
        tls = ServerTls(cert_path=certificate[0], key_path=certificate[1])
        async with serving(Echo(), TransportSettings(handshake_s=0.2), tls) as server:
            client = await RawClient.connect(server.bound[0])
            await client.send(HELLO)
            if leaves:
                client.close()
            await until(lambda: "did not come about" in caplog.text)
            client.close()

    run(main())
    (told,) = [line for line in caplog.messages if "did not come about" in line]
    assert told.rpartition(":")[2].strip(), told


def test_a_peer_that_never_reads_is_cut_off_with_tls_too(
    run: Run, certificate: tuple[str, str]
) -> None:
    async def main() -> None:
        tls = ServerTls(cert_path=certificate[0], key_path=certificate[1])
        settings = TransportSettings(write_timeout_s=1, sweep_s=0.1)
        async with serving(Echo(), settings, tls) as server:
            trusting = ClientTls(trust_path=certificate[0])
            deaf = await connect(*split_address(server.bound[0]), tls=trusting)
            assert (await deaf.ask(Command.request(ECHO, 0, body=b"x"), 5)).body == b"x"
            deaf._stop_reading(UNANSWERED)
            assert all(deaf.tell(Command.request(ECHO, 0)) for _ in range(3))
            deaf._send([request(LARGE, 1) * 5000], 0)
            (connection,) = server.table.connections.values()
            most = 0
            while connection.is_open:
                most = max(most, connection.unsent_bytes)
                await asyncio.sleep(0.01)
            assert 1_000_000 < most < settings.unsent_bytes_max + 8_000_000
            deaf.abort("done")

    run(main())


# -- size ---------------------------------------------------------------------------------------


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as text:  # noqa: PTH123  (a kernel's file)
        return int(text.read().split()[1]) * resource.getpagesize()


@pytest.mark.parametrize("speaks", [True, False])
def test_two_thousand_idle_connections_cost_little(run: Run, speaks: bool) -> None:
    """Both ends are in this process: a server's connection costs less than is measured here."""
    count = 2000

    async def main() -> int:
        async with serving(Echo()) as server:
            clients = [await RawClient.connect(server.bound[0])]
            await clients[0].send(request(ECHO, 1))
            await clients[0].receive(1)
            gc.collect()
            before = resident_bytes()
            for _ in range(count):
                client = await RawClient.connect(server.bound[0])
                if speaks:
                    await client.send(request(ECHO, 1)[:1])
                clients.append(client)
            wanted = (count + 1, 0) if speaks else (1, count)
            await until(lambda: (len(server.table.connections), server.silent_count) == wanted)
            gc.collect()
            used = resident_bytes() - before
            for client in clients:
                client.close()
            return used

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * count + 200
    assert hard == resource.RLIM_INFINITY or hard >= needed, f"ulimit -n {needed} is needed"
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    try:
        used = run(main())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert used / count < 8192


def test_as_many_connections_wait_as_is_set(run: Run) -> None:
    async def main() -> None:
        settings = TransportSettings(backlog=17)
        server = await Server(Echo().service, [("127.0.0.1", 0)], settings=settings).start()
        assert server._accepting is not None
        (listener,) = server._accepting._listeners
        # Of a listener, Linux tells the length of its queue where others have `sacked`.
        info = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 32)
        assert int.from_bytes(info[28:32], sys.byteorder) == 17
        await server.stop(1)

    run(main())


def test_there_is_a_bound_on_the_connections_of_one_address(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with serving(Echo(), TransportSettings(address_connections_max=2)) as server:
            clients = [await RawClient.connect(server.bound[0]) for _ in range(2)]
            await clients[0].send(request(ECHO, 1))
            assert len(await clients[0].receive(1)) == 1
            refused = await RawClient.connect(server.bound[0])
            assert await refused.is_closed()
            admission = server.table.admission
            assert admission.refused == {"all": 0, "address": 1}
            assert admission.of("127.0.0.1") == 2
            clients[0].close()
            await until(lambda: admission.of("127.0.0.1") == 1)
            again = await RawClient.connect(server.bound[0])
            await again.send(request(ECHO, 2))
            assert len(await again.receive(1)) == 1
            server.limit_connections(100, 0)
            more = [await RawClient.connect(server.bound[0]) for _ in range(3)]
            for client in more:
                await client.send(request(ECHO, 3))
                assert len(await client.receive(1)) == 1
            for client in (*clients, refused, again, *more):
                client.close()
            await until(lambda: admission.of("127.0.0.1") == 0)

    run(main())
    assert "a new connection of 127.0.0.1 was closed: it has 2, as many as" in caplog.text
