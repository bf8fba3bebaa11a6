"""Two ports that speak HTTP: metrics and health, and the dashboard with everything behind it.

Both take a request's bytes as a socket would give them. Of an answer three things must be right: it
is HTTP with the length that it says, it is never 500 (that is an exception of ours), and whatever
it is, the loop went on meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Final

import uvicorn
from uvicorn.server import ServerState

from fuzz.ports import Loop, Wire, pieces, untimed
from fuzz.twins import DisagreementError
from gantrymq.dashboard.accounts import Account
from gantrymq.dashboard.app import make_app
from gantrymq.dashboard.connections import BoundedProtocol
from gantrymq.dashboard.parts import Parts
from gantrymq.dashboard.settings import DashboardSettings
from gantrymq.metrics.endpoint import Endpoint
from gantrymq.metrics.health import Check
from gantrymq.model.roles import Role
from gantrymq.testing.broker import TestBroker
from gantrymq.testing.clock import RunningClock

PATIENCE_S: Final = 0.3
"""For an answer that waits for the cluster; then the asker goes away."""
INPUTS_A_LIFE: Final = 2000
SECONDS_AN_INPUT: Final = 2.0
"""By the dashboard's clock, so that bounds on tries in a minute are not all that is met."""
COOKIE: Final = b"@COOKIE@"
TOKEN: Final = b"@CSRF@"

_HEAD: Final = re.compile(rb"HTTP/1\.1 ([0-9]{3}) [^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n")
_LENGTH: Final = re.compile(rb"(?im)^content-length: *([0-9]+)\r$")


def answers(written: bytes, *, has_head: bool = False) -> list[int]:
    """Return the status of each answer; what follows one must be the next.

    With `has_head` one of them may be to HEAD, and without the content that it announces.

    Raises:
        DisagreementError: it is no HTTP, or an error of ours.
    """
    found: list[int] = []
    position = 0
    while position < len(written):
        head = _HEAD.match(written, position)
        if head is None and has_head:
            return found
        if head is None:
            raise DisagreementError(f"no HTTP: {written[position : position + 200]!r}")
        status = int(head[1])
        if status == 500:
            raise DisagreementError(f"an error of ours: {written[position : position + 500]!r}")
        found.append(status)
        length = _LENGTH.search(head[2])
        if length is None:  # the last one: it ends with the connection, or in chunks
            return found
        position = head.end() + int(length[1])
    if position > len(written) and not has_head:
        raise DisagreementError(f"an answer that is cut short: {written[-200:]!r}")
    return found


# -- metrics and health ----------------------------------------------------------------------------


@cache
def _scraped() -> tuple[Loop, Endpoint]:
    return Loop(), Endpoint((), lambda: (Check("registered", ok=True),))


def metrics(data: bytes) -> str:
    """Take what a connection of the metrics port receives; the first byte says in what pieces."""
    loop, endpoint = _scraped()
    return loop.run(_asked(endpoint, data[1:], 1 + (data[0] if data else 0) * 8))


async def _asked(endpoint: Endpoint, data: bytes, size: int) -> str:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(8192, loop)
    ended: asyncio.Future[None] = loop.create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await endpoint._http._serve(reader, writer)
        ended.set_result(None)

    protocol = asyncio.StreamReaderProtocol(reader, serve, loop)
    wire = Wire()
    protocol.connection_made(wire)
    for piece in pieces(data, size):
        if wire.is_closed:
            break
        protocol.data_received(piece)
        if not wire.reads:
            await asyncio.sleep(0)
    if not wire.is_closed:
        protocol.eof_received()
    is_lost = False
    while not ended.done():
        await asyncio.sleep(0)
        if wire.is_closed and not is_lost:
            is_lost = True
            protocol.connection_lost(None)
    statuses = answers(bytes(wire.written))
    if len(statuses) != 1:
        raise DisagreementError(f"{len(statuses)} answers to one request")
    return f"{statuses}"


# -- the dashboard ---------------------------------------------------------------------------------


class Desk:
    """A dashboard beside a cluster of one broker, and somebody of each role."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.folder = Path(tempfile.mkdtemp(prefix="gantrymq-fuzz-"))
        self.clock = RunningClock()
        self.people: dict[Role, Account] = {}
        self.count = 0
        self.loop.run(self._open())
        self._stay_here(self.loop.loop)

    def _stay_here(self, loop: asyncio.AbstractEventLoop) -> None:
        """Refuse connections to anybody but the broker and its name server."""
        connect = loop.create_connection
        known = {self.broker.namesrv, self.broker.address}

        async def guarded(factory: Any, host: str, port: int, **more: Any) -> Any:  # noqa: ANN401
            if f"{host}:{port}" not in known:
                raise ConnectionRefusedError(f"{host}:{port} is not asked here")
            return await connect(factory, host, port, **more)

        loop.create_connection = guarded  # type: ignore[method-assign, assignment]

    async def _open(self) -> None:
        self.broker = TestBroker()
        await self.broker.start()
        await self.broker.create_topic("Orders")
        settings = DashboardSettings(self.broker.namesrv, self.folder, reports=self.folder)
        self.parts = Parts(settings, self.clock)
        for role in Role:
            # No hash of a password is worth the while that it takes.
            self.people[role] = Account(role.text, role, "00" * 16, "00" * 32, cost=2)
            self.parts.accounts.put(self.people[role])
        await self.parts.__aenter__()
        self.config = uvicorn.Config(
            make_app(self.parts), log_config=None, access_log=False, lifespan="off", ws="none",
            http=BoundedProtocol, server_header=False, proxy_headers=False,
        )  # fmt: skip
        self.config.load()

    def close(self) -> None:
        """End all of it."""

        async def end() -> None:
            await self.parts.__aexit__(None, None, None)
            await self.broker.close()

        self.loop.run(end())
        self.loop.loop.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def take(self, data: bytes) -> str:
        """Take a connection's bytes; the first says who asks, the second in what pieces."""
        self.count += 1
        self.clock.jump(SECONDS_AN_INPUT)
        who = data[0] % 4 if data else 0
        raw = data[2:]
        if who:
            token, login = self.parts.sessions.begin(self.people[list(Role)[who - 1]])
            raw = raw.replace(COOKIE, token.encode()).replace(TOKEN, login.csrf.encode())
        size = 1 + data[1] * 16 if len(data) > 1 else 1
        return self.loop.run(self._exchange(raw, size))

    async def _exchange(self, data: bytes, size: int) -> str:
        state = ServerState()
        protocol = BoundedProtocol(self.config, state, {}, asyncio.get_running_loop())
        wire = Wire()
        protocol.connection_made(wire)
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(_end, state)
            for piece in pieces(data, size):
                if wire.is_closed:
                    break
                protocol.data_received(piece)
                await asyncio.sleep(0)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_S):
                    while state.tasks and not wire.is_closed:
                        await asyncio.wait(tuple(state.tasks), timeout=0.05)
            is_late = bool(state.tasks)
            if not wire.is_closed:
                protocol.eof_received()
            protocol.connection_lost(None)
        found = answers(bytes(wire.written), has_head=b"HEAD" in data)
        return f"{'late' if is_late else ''} {found[:3]}"


async def _end(state: ServerState) -> None:
    """Leave nothing of a request behind."""
    for task in tuple(state.tasks):
        task.cancel()
    await asyncio.gather(*state.tasks, return_exceptions=True)


class _Life:
    desk: Desk | None = None


def dashboard(data: bytes) -> str:
    """Take what a connection of the dashboard receives."""
    if _Life.desk is None or _Life.desk.count >= INPUTS_A_LIFE:
        with untimed():
            if _Life.desk is not None:
                _Life.desk.close()
            _Life.desk = Desk()
    return _Life.desk.take(data)


TARGETS: Final = {"metrics": metrics, "dashboard": dashboard}
