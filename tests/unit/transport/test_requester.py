"""Connections that are made on demand."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.testing.clock import VirtualClock
from gantrymq.transport.requester import Connections, connect
from gantrymq.transport.server import Server
from gantrymq.transport.tls import ClientTls
from gantrymq.wire.command import Command
from gantrymq.wire.peer import PeerGone, PeerLate
from support.transport import ASKS_BACK, ECHO, LATER, Echo, turns, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.transport import Run


def ping(code: int = ECHO) -> Command:
    return Command.request(code, 0, body=b"ping")


class Unheard:
    """A transport that ends without a word."""

    def __init__(self, told: Callable[[str], None]) -> None:
        self.close = lambda: told("close")
        self.abort = lambda: told("abort")

    def get_write_buffer_size(self) -> int:
        """Return nothing."""
        return 0


async def start(echo: Echo, port: int = 0) -> tuple[Server, str]:
    server = await Server(echo.service, [("127.0.0.1", port)]).start()
    return server, server.bound[0]


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def test_callers_share_one_connection(run: Run) -> None:
    async def main() -> None:
        echo = Echo()
        server, address = await start(echo)
        pool = Connections()
        answers = await asyncio.gather(*(pool.ask(address, ping(), 5) for _ in range(20)))
        assert {answer.body for answer in answers} == {b"ping"}
        assert (await pool.ask(address, ping(), 5)).body == b"ping"
        assert await pool.tell(address, ping(LATER))
        assert len(echo.peers) == 1
        await pool.close()
        await server.stop(1)
        with pytest.raises(PeerGone, match="the client is closed"):
            await pool.ask(address, ping(), 5)

    run(main())


def test_closing_does_not_wait_for_ever_for_a_connection_that_never_says_it_ended(
    run: Run,
) -> None:
    """A loop may close a socket whose making was cancelled, and not tell the protocol."""

    async def main() -> None:
        server, address = await start(Echo())
        pool = Connections()
        connection = await pool.connection(address)
        lost: list[str] = []
        transport, connection._transport = connection._transport, Unheard(lost.append)  # type: ignore[assignment]
        async with asyncio.timeout(5):
            await pool.close()
        assert lost  # it was told to end, and said nothing
        assert not pool.table.connections
        assert transport is not None
        transport.abort()
        await server.stop(1)

    run(main())


def test_a_connection_that_broke_is_replaced(run: Run) -> None:
    async def main() -> None:
        echo = Echo()
        server, address = await start(echo)
        pool = Connections()
        waiting = asyncio.ensure_future(pool.ask(address, ping(LATER), 5))
        await until(lambda: echo.held)
        echo.peers[0].close("test")
        with pytest.raises(PeerGone):
            await waiting
        assert (await pool.ask(address, ping(), 5)).body == b"ping"
        assert len(echo.peers) == 2
        await pool.close()
        await server.stop(1)

    run(main())


def test_after_a_failure_there_is_a_pause_that_grows_to_a_bound(run: Run) -> None:
    async def main() -> None:
        clock = VirtualClock()
        address = free_address()
        pool = Connections(clock=clock)
        pauses = []
        for _ in range(8):
            with pytest.raises(PeerGone, match="cannot connect"):
                await pool.ask(address, ping(), 5)
            pause = 0.0
            while True:
                try:
                    await pool.ask(address, ping(), 5)
                except PeerGone as error:
                    if "next attempt" not in str(error):
                        break
                clock.jump(0.1)
                pause += 0.1
            pauses.append(round(pause, 1))
            clock.jump(10)
        assert pauses[0] == 0.1
        assert max(pauses) == 5.0
        server, _address = await start(Echo(), int(address.rpartition(":")[2]))
        assert (await pool.ask(address, ping(), 5)).body == b"ping"
        await pool.close()
        await server.stop(1)

    run(main())


def test_no_answer_and_no_connection_in_time(run: Run) -> None:
    async def main() -> None:
        server, address = await start(Echo())
        pool = Connections()
        with pytest.raises(PeerLate, match=r"no answer within 0\.0"):
            await pool.ask(address, ping(LATER), 0.05)
        assert (await pool.ask(address, ping(), 5)).body == b"ping"
        await pool.close()
        await server.stop(1)

    run(main())


def test_a_peer_that_does_not_shake_hands_is_late(run: Run) -> None:
    async def main() -> None:
        with socket.socket() as deaf:
            deaf.bind(("127.0.0.1", 0))
            deaf.listen(5)
            host, port = deaf.getsockname()
            with pytest.raises(PeerLate, match=r"no connection within 0\.05 s"):
                await connect(host, port, tls=ClientTls(), timeout_s=0.05)
            pool = Connections(tls=ClientTls())
            with pytest.raises(PeerLate, match=r"no connection within 0\.05 s"):
                await pool.ask(f"{host}:{port}", ping(), 0.05)
            waiting = asyncio.ensure_future(pool.ask(f"{host}:{port}", ping(), 5))
            await turns()
            pool.drop(f"{host}:{port}", "test")
            with pytest.raises(PeerGone, match="given up"):
                await waiting
            await pool.close()

    run(main())


def test_requests_from_the_other_side_reach_the_service(run: Run) -> None:
    async def main() -> None:
        server, address = await start(Echo())
        offering, offering_nothing = Connections(Echo().service), Connections()
        assert (await offering.ask(address, ping(ASKS_BACK), 5)).body == b"ping back"
        refused = Echo()
        asking, asking_address = await start(refused)
        await offering_nothing.ask(asking_address, ping(), 5)
        answer = await refused.peers[0].ask(ping(), 5)
        assert (answer.code, answer.remark) == (3, "request type 1 not supported")
        for pool in (offering, offering_nothing):
            await pool.close()
        for one in (server, asking):
            await one.stop(1)

    run(main())


@pytest.mark.parametrize("address", ["", "localhost", "localhost:", ":80", "a:0", "a:70000", "a:x"])
def test_what_is_no_address_is_refused(run: Run, address: str) -> None:
    async def main() -> None:
        pool = Connections()
        with pytest.raises(InvalidValue, match="is not host:port"):
            await pool.ask(address, ping(), 5)

    run(main())
