"""How long bytes lay unread is known when it matters, and not asked for otherwise."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gantrymq.transport import exchange
from gantrymq.transport.server import Server
from support.transport import ECHO, LATER, Echo, RawClient, request, until

if TYPE_CHECKING:
    import pytest

    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Peer, Pending
    from support.transport import Run


class Noting(Echo):
    """Notes how old every request was, and stands still when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.ages: dict[int, int] = {}

    def handle(self, request: Command, peer: Peer) -> Pending:
        self.ages[request.opaque] = peer.waited_ms
        if request.body == b"stand still":
            time.sleep(0.3)
        return super().handle(request, peer)


def test_what_came_while_the_loop_stood_still_is_old(run: Run) -> None:
    async def main() -> None:
        echo = Noting()
        server = await Server(echo.service, [("127.0.0.1", 0)]).start()
        clients = [await RawClient.connect(server.bound[0]) for _ in range(4)]
        for number, client in enumerate(clients):
            await client.send(request(ECHO, number))
            await client.receive(1)
        assert set(echo.ages.values()) == {0}
        # The first holds the loop up; the others came in the same moment, or while it did.
        clients[0].socket.send(request(ECHO, 10, b"stand still"))
        for number, client in enumerate(clients[1:], 11):
            client.socket.send(request(ECHO, number))
        for client in clients:
            await client.receive(1)
        late = sorted(echo.ages[number] for number in range(10, 14))
        assert late[0] == 0, "one of them was first"
        assert all(250 < age < 5_000 for age in late[1:]), late
        for number, client in enumerate(clients, 20):
            await client.send(request(ECHO, number))
            await client.receive(1)
            client.close()
        assert all(echo.ages[number] == 0 for number in range(20, 24))
        await server.stop(1)

    run(main())


def test_what_lay_while_a_connection_was_not_read_is_old(run: Run) -> None:
    async def main() -> None:
        echo = Noting()
        server = await Server(echo.service, [("127.0.0.1", 0)]).start()
        client = await RawClient.connect(server.bound[0])
        limit = server.table.settings.unanswered_max
        for number in range(limit):
            await client.send(request(LATER, number))
        await until(lambda: len(echo.held) == limit)
        await client.send(request(ECHO, 90_000))
        other = await RawClient.connect(server.bound[0])
        begun = time.monotonic()
        while time.monotonic() - begun < 0.3:  # the loop is busy with others all the time
            await other.send(request(ECHO, 90_001))
            await other.receive(1)
        assert 90_000 not in echo.ages
        echo.release()
        await client.receive(limit + 1)
        assert echo.ages[90_000] > 200
        await client.send(request(ECHO, 90_002))
        await client.receive(1)
        assert echo.ages[90_002] == 0
        client.close()
        other.close()
        await server.stop(1)

    run(main())


def test_nobody_asks_the_system_while_reads_follow_each_other(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def lay_ms(transport: object) -> int:
        asked.append(transport)
        return 0

    monkeypatch.setattr(exchange, "lay_ms", lay_ms)

    async def main() -> None:
        server = await Server(Echo().service, [("127.0.0.1", 0)]).start()
        client = await RawClient.connect(server.bound[0])
        for number in range(200):
            await client.send(request(ECHO, number))
            await client.receive(1)
        client.close()
        await server.stop(1)

    run(main())
    assert 1 <= len(asked) < 50, "the first read of a connection, and those behind a pause"
