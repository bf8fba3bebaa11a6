"""The replication port believes nobody: not who may not be there, not what cannot be.

Apache's takes any connection for a slave and any number for an offset: one that reports the end of
the world releases every send that waits for a slave. The protocol is kept, for Apache's slaves; so
every number is checked against what was sent on this connection, and `haAllowedAddresses` says who
may connect at all.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.cluster.frames import encode_head, encode_hello, encode_report
from gantrymq.node.config import read_broker_config
from gantrymq.store.settings import InvalidSettings
from support.attacks import sending
from support.nodes import ask, broker_node, made
from support.transport import until

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from gantrymq.node.broker_node import BrokerNode

SEND, SUCCESS, SLAVE_NOT_AVAILABLE, FLUSH_SLAVE_TIMEOUT = 310, 0, 11, 12
FILE_BYTES = 1 << 20
READ_S = 5.0


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run it; an error that nobody caught anywhere on the loop fails it."""

    async def watched() -> None:
        made.clear()
        lost: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, told: lost.append(str(told)))
        try:
            await asyncio.wait_for(main, 60)
        finally:
            for node in made:
                await node.stop()
        assert lost == []

    asyncio.run(watched())


async def send(master: BrokerNode) -> int:
    return (await ask(master.port, SEND, sending("T"), b"x")).code


async def told(master: BrokerNode, data: bytes) -> bytes:
    """Say something to the replication port; return what comes back until it is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", master.port + 1)
    try:
        writer.write(data)
        return await asyncio.wait_for(reader.read(), READ_S)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


def hostile(end: int) -> dict[str, bytes]:
    """Return what a peer may say that has no business there; the log ends at `end`."""
    report = encode_report
    return {
        "an offset that nobody has": report(2**63 - 1),
        "the end and one more": report(end + 1),
        "what it never got": report(end) + report(end + 100),
        "a negative one": report(-1),
        "the lowest": report(-(2**63)),
        "two greetings": encode_hello(1, 1) * 2,
        "a member of a group that there is not": encode_hello(7, 3) + report(0),
        "a frame of a master": encode_head(0, 100) + bytes(100),
        "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "TLS": bytes.fromhex("16030100c5010000c10303") + bytes(53),
        "ones": b"\xff" * 4096,
    }


def test_what_no_slave_says_ends_the_connection_and_releases_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        master = broker_node(tmp_path, brokerRole="SYNC_MASTER", slaveTimeout="100")
        await master.start()
        assert await send(master) == SLAVE_NOT_AVAILABLE
        for what in hostile(0):
            got = await told(master, hostile(master.broker.store.log.wrote_offset)[what])
            assert len(got) <= 12, what  # a sign of life at most: no byte of the log
            assert await send(master) == SLAVE_NOT_AVAILABLE, what
        await until(lambda: not master.replication.server.connections)

    run(main())


def test_a_slave_that_reports_ahead_of_what_it_was_sent_is_cut_off(tmp_path: Path) -> None:
    async def main() -> None:
        master = broker_node(tmp_path, brokerRole="SYNC_MASTER", slaveTimeout="300")
        await master.start()
        await send(master)
        end = master.broker.store.log.wrote_offset
        reader, writer = await asyncio.open_connection("127.0.0.1", master.port + 1)
        writer.write(encode_report(end))
        await reader.readexactly(12)
        sending = asyncio.create_task(send(master))
        await until(lambda: master.broker.store.log.wrote_offset > end)
        writer.write(encode_report(2**62))
        assert await sending == FLUSH_SLAVE_TIMEOUT
        await until(lambda: not master.replication.server.connections)
        writer.close()

    run(main())


@pytest.mark.parametrize(
    ("allowed", "may"),
    [
        ("", True),
        ("127.0.0.1", True),
        ("10.0.0.0/8; 127.0.0.0/8", True),
        ("10.0.0.7", False),
        ("10.0.0.0/8,::1", False),
    ],
)
def test_who_may_not_copy_gets_nothing(tmp_path: Path, allowed: str, *, may: bool) -> None:
    async def main() -> None:
        master = broker_node(tmp_path, haAllowedAddresses=allowed, haSendHeartbeatInterval="100")
        await master.start()
        assert await send(master) == SUCCESS
        reader, writer = await asyncio.open_connection("127.0.0.1", master.port + 1)
        writer.write(encode_report(0))
        try:
            got = await asyncio.wait_for(reader.read(64), READ_S)
        except ConnectionResetError:
            got = b""
        writer.close()
        assert bool(got) is may
        assert master.is_started

    run(main())


@pytest.mark.parametrize("text", ["everybody", "10.0.0.1/8", "10.0.0", "10.0.0.0/33", "a b"])
def test_what_is_no_address_does_not_start(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidSettings, match="haAllowedAddresses is"):
        read_broker_config({"haAllowedAddresses": text}, tmp_path)


def lies() -> dict[str, bytes]:
    """Return what a master may send to an empty slave."""
    head = encode_head
    return {
        "no aligned beginning": head(12345, 0),
        "a negative beginning": head(-FILE_BYTES, 0),
        "the last file there can be": head(2**63 - FILE_BYTES, 64) + os.urandom(64),
        "the last offset": head(2**62, 64) + os.urandom(64),
        "the last one that is": head(2**62 - FILE_BYTES, 64) + os.urandom(64),
        "the end of numbers": head(2**63 - 1, 0),
        "a length below nothing": head(0, -1),
        "a length beyond everything": head(0, 2**31 - 1),
        "more than a file": head(0, FILE_BYTES) + bytes(FILE_BYTES) + head(FILE_BYTES, 1) + b"x",
        "no records": head(0, 4096) + os.urandom(4096),
        "a record of length 0": head(0, 100) + bytes(100),
        "a record without an end": head(0, 8) + bytes.fromhex("7fffffffdaa320a7"),
        "a record of negative length": head(0, 8) + bytes.fromhex("ffffffffdaa320a7"),
        "a jump": head(0, 16) + bytes(16) + head(FILE_BYTES, 16) + bytes(16),
        "a step back": head(0, 16) + bytes(16) + head(0, 16) + bytes(16),
        "noise": os.urandom(4096),
    }


@pytest.mark.parametrize("lie", lies())
def test_a_slave_survives_a_master_that_lies(tmp_path: Path, lie: str) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), LyingMaster(lies()[lie]) as (port, served):
            slave = broker_node(
                tmp_path, brokerRole="SLAVE", brokerId="1", haMasterAddress=f"127.0.0.1:{port}"
            )
            await slave.start()
            await served.wait()
            for _ in range(3):  # it goes on answering
                await ask(slave.port, 26, {})
            assert slave.is_started
        await slave.stop()
        # What it took is not in the way of the next start.
        again = broker_node(tmp_path, brokerRole="SLAVE", brokerId="1")
        await again.start()
        assert (await ask(again.port, 26, {})).code == SUCCESS

    run(main())


class LyingMaster:
    """A port at which everybody is sent some bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._served = asyncio.Event()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> tuple[int, asyncio.Event]:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(8)
            writer.write(self._data)
            try:
                await writer.drain()
                await asyncio.wait_for(reader.read(), 0.3)
            except (OSError, TimeoutError):
                pass
            writer.close()
            self._served.set()

        self._server = await asyncio.start_server(serve, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1]), self._served

    async def __aexit__(self, *_about: object) -> None:
        if self._server is not None:
            self._server.close()
