"""A proxy on the loopback that cuts connections at a byte, falls silent, or is slow.

It runs on the event loop of the test. What it cuts ends with a reset on both sides.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK_BYTES: Final = 64 * 1024


class Proxy:
    """Hands bytes on, or not. `cut_after` gives each connection's end: direction and bytes."""

    def __init__(self, server: str, listen: str = "127.0.0.1:0") -> None:
        self._server_host, _, server_port = server.rpartition(":")
        self._server_port = int(server_port)
        self._listen_host, _, listen_port = listen.rpartition(":")
        self._listen_port = int(listen_port)
        self.cut_after: Callable[[], tuple[str, int] | None] = lambda: None
        self.delay_s = 0.0
        """How long what the server says is kept."""
        self.cuts: Counter[str] = Counter()
        self.accepted = 0
        self._silent: set[asyncio.StreamWriter] = set()
        self._open: dict[asyncio.StreamWriter, asyncio.StreamWriter] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None

    @property
    def address(self) -> str:
        """Return where it listens."""
        return f"{self._listen_host}:{self._listen_port}"

    async def start(self) -> None:
        """Listen."""
        self._listener = await asyncio.start_server(
            self._accept, self._listen_host, self._listen_port
        )
        self._listen_port = self._listener.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """End every connection and listen no more."""
        assert self._listener is not None
        self._listener.close()
        self.cut_all()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut_all(self) -> None:
        """End every connection, with a reset on both sides."""
        for client, server in list(self._open.items()):
            _reset(client)
            _reset(server)

    def go_silent(self) -> None:
        """Hand on nothing more on the connections that there are; nobody is told."""
        self._silent.update(self._open)

    async def _accept(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        self.accepted += 1
        try:
            from_server, server = await asyncio.open_connection(
                self._server_host, self._server_port
            )
        except OSError:
            _reset(client)
            return
        self._open[client] = server
        end = self.cut_after()
        ways = (
            self._hand_on("up", reader, server, client, end),
            self._hand_on("down", from_server, client, client, end),
        )
        tasks = [asyncio.create_task(way) for way in ways]
        self._tasks.update(tasks)
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
            self._tasks.discard(task)
        _reset(client)
        _reset(server)
        self._open.pop(client, None)
        self._silent.discard(client)

    async def _hand_on(
        self,
        way: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        client: asyncio.StreamWriter,
        end: tuple[str, int] | None,
    ) -> None:
        left = end[1] if end is not None and end[0] == way else None
        with suppress(OSError):
            while chunk := await reader.read(CHUNK_BYTES):
                if client in self._silent:
                    await asyncio.sleep(3600)
                if way == "down" and self.delay_s:
                    await asyncio.sleep(self.delay_s)
                if left is not None and left <= len(chunk):
                    writer.write(chunk[:left])
                    await writer.drain()
                    # What was written is to arrive before the end does.
                    await asyncio.sleep(0.002)
                    self.cuts[way] += 1
                    return
                if left is not None:
                    left -= len(chunk)
                writer.write(chunk)
                await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
