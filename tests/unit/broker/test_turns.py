"""Sends of many connections in one turn, on a whole broker: nobody is told more than is true."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from support.broker_rig import BrokerRig
from support.samples import json_request, send_fields
from support.transport import feed, turns, wired, wired_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.kernel.interface import Buffer
    from gantrymq.transport.connection import Connection
    from gantrymq.wire.peer import Peer
    from support.transport import NotingTransport

MANY = 12
ALL = [b"first", *(b"%d" % number for number in range(MANY))]
SUCCESS, SYSTEM_ERROR, NOT_AVAILABLE = 0, 1, 14


def begun(store: dict[str, str] | None = None) -> BrokerRig:
    """Return a broker whose log has a file: a turn never makes the first one."""
    rig = BrokerRig(store)
    first = rig.begin_send(b"first")
    rig.settle()
    assert first.answer.code == SUCCESS
    return rig


def line_up(rig: BrokerRig) -> list[tuple[Connection, NotingTransport]]:
    """Return connections of one table to a broker."""
    first, transport, table = wired(rig.service)
    return [(first, transport), *(wired_to(table, rig.service) for _ in range(MANY - 1))]


def send_all(ends: list[tuple[Connection, NotingTransport]]) -> None:
    for number, (connection, _) in enumerate(ends):
        feed(connection, json_request(310, send_fields(b="T", i=""), b"%d" % number, opaque=number))


async def codes(rig: BrokerRig, ends: list[tuple[Connection, NotingTransport]]) -> list[int]:
    """Let both loops come to rest; return the codes, one for each connection and with its own."""
    await turns()
    rig.turns()
    await turns()
    found = [transport.answers() for _, transport in ends]
    assert [[one.opaque for one in each] for each in found] == [[n] for n in range(MANY)]
    return [each[0].code for each in found]


def test_an_asynchronous_broker_stores_and_answers_all() -> None:
    async def main() -> None:
        rig, taken = begun(), []
        real = rig.service.take_turn

        def take_turn(
            buffer: Buffer, parts: Sequence[tuple[int, int, Peer]]
        ) -> list[tuple[int, bytes]]:
            runs = real(buffer, parts)
            taken.append((len(parts), len(runs)))
            return runs

        rig.service.take_turn = take_turn  # type: ignore[method-assign]
        ends = line_up(rig)
        send_all(ends)
        assert await codes(rig, ends) == [SUCCESS] * MANY
        assert taken == [(MANY, MANY)]
        assert rig.bodies() == ALL

    asyncio.run(main())


def test_nothing_is_answered_before_the_disk_has_it() -> None:
    async def main() -> None:
        rig = begun({"flushDiskType": "SYNC_FLUSH", "syncFlushTimeout": "5000"})
        ends = line_up(rig)
        send_all(ends)
        await turns()
        rig.turns()
        await turns()
        assert not any(transport.writes for _, transport in ends)
        rig.work("log_flush")
        assert await codes(rig, ends) == [SUCCESS] * MANY
        assert rig.again().bodies() == ALL

    asyncio.run(main())


@pytest.mark.parametrize("why", ["read-only", "busy"])
def test_each_is_refused_while_nothing_can_be_stored(why: str) -> None:
    async def main() -> None:
        rig = begun()
        ends = line_up(rig)
        watch, writability = rig.store.page_cache, rig.store.writability
        if why == "busy":
            watch.begin()
            rig.clock.jump(1.5)
            watch.end()
            assert watch.is_busy
        else:
            writability.forbid("test", "the disk is on loan")
        send_all(ends)
        expected = SYSTEM_ERROR if why == "busy" else NOT_AVAILABLE
        assert await codes(rig, ends) == [expected] * MANY
        assert rig.bodies() == [b"first"]
        rig.clock.jump(60)
        if why != "busy":
            writability.allow("test")
        send_all(ends)
        assert await codes(rig, ends) == [SUCCESS] * MANY
        assert rig.bodies() == ALL

    asyncio.run(main())
