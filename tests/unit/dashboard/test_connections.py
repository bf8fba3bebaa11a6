"""Connections that ask nothing are bounded in number and in time."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from gantrymq.dashboard import connections
from gantrymq.dashboard.serving import DashboardServer
from gantrymq.dashboard.settings import DashboardSettings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

REQUEST = b"GET /api/me HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
WAIT_S = 5

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture
def serve(tmp_path: Path) -> Callable[[Callable[[int], Awaitable[None]]], None]:
    """Give what runs a test beside a dashboard; the test is told the port."""

    async def run(work: Callable[[int], Awaitable[None]]) -> None:
        server = DashboardServer(DashboardSettings("127.0.0.1:1", tmp_path, port=0, login=False))
        await server.start()
        try:
            await work(server.port)
        finally:
            await server.stop()

    return lambda work: asyncio.run(run(work))


async def connect(port: int, sent: bytes = b"") -> Streams:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    return reader, writer


async def is_ended(streams: Streams) -> bool:
    """Wait for the end of a connection on which nothing more is answered."""
    reader, writer = streams
    try:
        return await asyncio.wait_for(reader.read(), WAIT_S) == b""
    except ConnectionError:
        return True
    finally:
        writer.close()


async def is_answered(streams: Streams) -> bool:
    reader, writer = streams
    writer.write(REQUEST)
    try:
        line = await asyncio.wait_for(reader.readline(), WAIT_S)
    except ConnectionError:
        return False
    return line.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "sent", [b"", b"GET / HTTP/1.1\r\nhost: 127"], ids=["nothing", "half a head"]
)
def test_a_connection_without_a_request_is_ended(
    serve: Callable[[object], None], monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(connections, "HEAD_S_MAX", 0.1)

    async def work(port: int) -> None:
        assert await is_ended(await connect(port, sent))

    serve(work)


def test_dripping_does_not_hold_a_connection(
    serve: Callable[[object], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_S_MAX", 0.2)
    # The answer comes before the body, of which there is always a little more.
    head = b"POST /api/none HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 999999\r\n\r\n"

    async def work(port: int) -> None:
        for begin in (b"GET / HTTP/1.1\r\n", head):
            _reader, writer = await connect(port, begin)
            begun = time.monotonic()
            while not writer.is_closing() and time.monotonic() - begun < WAIT_S:
                writer.write(b"x")
                await asyncio.sleep(0.02)
            writer.close()
            assert time.monotonic() - begun < WAIT_S

    serve(work)


def test_a_connection_with_requests_stays(
    serve: Callable[[object], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_S_MAX", 0.1)

    async def work(port: int) -> None:
        reader, writer = await connect(port)
        for _ in range(3):
            writer.write(REQUEST)
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), WAIT_S)
            (length,) = [
                int(line.split()[1])
                for line in head.lower().splitlines()
                if line.startswith(b"content-length")
            ]
            await reader.readexactly(length)
            await asyncio.sleep(0.2)
        writer.close()

    serve(work)


@pytest.mark.parametrize("name", ["CONNECTIONS_MAX", "CONNECTIONS_OF_ONE_MAX"])
def test_a_connection_too_many_is_refused(
    serve: Callable[[object], None], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(connections, name, 3)

    async def work(port: int) -> None:
        held = [await connect(port) for _ in range(3)]
        await asyncio.sleep(0.05)
        assert await is_ended(await connect(port))
        assert await is_answered(held[0])
        for _reader, writer in held:
            writer.close()
        await asyncio.sleep(0.05)
        again = await connect(port)
        assert await is_answered(again)
        again[1].close()

    serve(work)


def test_a_proxy_has_as_many_connections_as_people_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS_OF_ONE_MAX", 2)

    async def answered(proxies: tuple[str, ...]) -> int:
        settings = DashboardSettings("127.0.0.1:1", tmp_path, port=0, login=False, proxies=proxies)
        server = DashboardServer(settings)
        await server.start()
        try:
            made = [await connect(server.port) for _ in range(4)]
            told = [await is_answered(each) for each in made]
            for _reader, writer in made:
                writer.close()
            return sum(told)
        finally:
            await server.stop()

    assert asyncio.run(answered(())) == 2
    assert asyncio.run(answered(("127.0.0.1",))) == 4
