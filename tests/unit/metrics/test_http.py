"""The small HTTP responder: what it answers, and what it does not put up with."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import TYPE_CHECKING

import pytest

from gantrymq.metrics.http import (
    CONNECTIONS_MAX,
    HEAD_BYTES_MAX,
    PEER_CONNECTIONS_MAX,
    HttpAnswer,
    HttpResponder,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TEST_S_MAX = 20
LARGE = 64 << 20
"""More than the buffers of two sockets hold."""


async def hello() -> HttpAnswer:
    return HttpAnswer(HTTPStatus.OK, "text/plain", b"hello")


async def large() -> HttpAnswer:
    return HttpAnswer(HTTPStatus.OK, "text/plain", bytes(LARGE))


async def broken() -> HttpAnswer:
    raise ZeroDivisionError("on purpose")


@asynccontextmanager
async def responder(head_s_max: float = 5.0, answer_s_max: float = 30.0) -> AsyncIterator[int]:
    routes = {"/hello": hello, "/broken": broken, "/large": large, "/alive": hello}
    made = HttpResponder(
        routes, always=["/alive"], head_s_max=head_s_max, answer_s_max=answer_s_max
    )
    _, port = await made.start("127.0.0.1", 0)
    try:
        yield port
    finally:
        await made.stop()


async def said(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await asyncio.wait_for(reader.read(), TEST_S_MAX)
    finally:
        writer.close()
        await writer.wait_closed()


def answered(request: bytes, head_s_max: float = 5.0) -> bytes:
    async def main() -> bytes:
        async with responder(head_s_max) as port:
            return await said(port, request)

    return asyncio.run(main())


def test_a_get_is_answered_and_the_connection_closed() -> None:
    head, _, body = answered(b"GET /hello?x=1 HTTP/1.1\r\nHost: x\r\n\r\n").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Content-Length: 5" in head
    assert b"Connection: close" in head
    assert body == b"hello"


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /other HTTP/1.1\r\n\r\n", 404),
        (b"POST /hello HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 405),
        (b"HEAD /hello HTTP/1.1\r\n\r\n", 405),
        (b"hello\r\n\r\n", 400),
        (b"GET /hello SPDY/9\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
        (b"GET /hello HTTP/1.1\r\nX: " + b"x" * HEAD_BYTES_MAX * 2, 431),
    ],
)
def test_what_is_no_such_request_is_refused(request_: bytes, status: int) -> None:
    head = answered(request_)
    assert head.startswith(b"HTTP/1.1 %d " % status), head
    assert (b"Allow: GET" in head) == (status == 405)


def test_a_request_that_does_not_come_is_waited_for_so_long() -> None:
    assert answered(b"GET /hello HTT", head_s_max=0.05).startswith(b"HTTP/1.1 408 ")


def test_one_that_goes_away_hurts_nobody() -> None:
    async def main() -> bytes:
        async with responder() as port:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /he")
            writer.close()
            await writer.wait_closed()
            return await said(port, b"GET /hello HTTP/1.1\r\n\r\n")

    assert asyncio.run(main()).endswith(b"hello")


def test_an_answer_that_fails_says_so(caplog: pytest.LogCaptureFixture) -> None:
    assert answered(b"GET /broken HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 500 ")
    assert "ZeroDivisionError" in caplog.text


def test_too_many_are_told_to_come_again() -> None:
    async def main() -> list[bytes]:
        async with responder() as port:
            idle = [
                await asyncio.open_connection("127.0.0.1", port)
                for _ in range(PEER_CONNECTIONS_MAX)
            ]
            while (first := await said(port, b"GET /hello HTTP/1.1\r\n\r\n")).endswith(b"hello"):
                pass  # the others are not accepted yet
            _, first_writer = idle.pop()
            first_writer.close()
            await first_writer.wait_closed()
            while not (then := await said(port, b"GET /hello HTTP/1.1\r\n\r\n")).endswith(b"hello"):
                pass
            for _, writer in idle:
                writer.close()
                await writer.wait_closed()
            return [first, then]

    first, then = asyncio.run(asyncio.wait_for(main(), TEST_S_MAX))
    assert first.startswith(b"HTTP/1.1 503 ")
    assert then.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("each_from", ["127.0.0.1", "127.0.0.{}"])
def test_health_is_answered_where_nothing_else_is(each_from: str) -> None:
    async def main() -> list[bytes]:
        async with responder() as port:
            idle = [
                await asyncio.open_connection(
                    "127.0.0.1", port, local_addr=(each_from.format(number + 2), 0)
                )
                for number in range(CONNECTIONS_MAX)
            ]
            while (full := await said(port, b"GET /hello HTTP/1.1\r\n\r\n")).endswith(b"hello"):
                pass  # the others are not accepted yet
            alive = await said(port, b"GET /alive HTTP/1.1\r\n\r\n")
            for _, writer in idle:
                writer.close()
            return [full, alive]

    full, alive = asyncio.run(asyncio.wait_for(main(), TEST_S_MAX))
    assert full.startswith(b"HTTP/1.1 503 ")
    assert alive.startswith(b"HTTP/1.1 200 ")


@asynccontextmanager
async def one_that_does_not_read(port: int) -> AsyncIterator[socket.socket]:
    with socket.socket() as slow:
        slow.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(slow, ("127.0.0.1", port))
        await loop.sock_sendall(slow, b"GET /large HTTP/1.1\r\n\r\n")
        await asyncio.sleep(0.1)
        yield slow


def test_a_slow_reader_is_cut_off_in_time() -> None:
    async def main() -> int:
        async with responder(answer_s_max=0.3) as port, one_that_does_not_read(port) as slow:
            await asyncio.sleep(0.6)
            got, loop = 0, asyncio.get_running_loop()
            with suppress(ConnectionError):
                while some := await loop.sock_recv(slow, 1 << 20):
                    got += len(some)
            return got

    assert asyncio.run(asyncio.wait_for(main(), TEST_S_MAX)) < LARGE


def test_a_stop_does_not_wait_for_a_slow_reader() -> None:
    async def main() -> float:
        made = HttpResponder({"/large": large})
        _, port = await made.start("127.0.0.1", 0)
        async with one_that_does_not_read(port):
            begun = asyncio.get_running_loop().time()
            await made.stop()
            return asyncio.get_running_loop().time() - begun

    assert asyncio.run(asyncio.wait_for(main(), TEST_S_MAX)) < 5


def test_a_stop_leaves_nobody_waiting() -> None:
    async def main() -> bytes:
        async with responder() as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /hello HTTP/1.1\r\n")
            await asyncio.sleep(0)
        try:
            return await asyncio.wait_for(reader.read(), TEST_S_MAX)
        except ConnectionError:
            return b""
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    assert asyncio.run(main()) == b""
