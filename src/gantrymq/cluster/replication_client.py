"""The slave's side of the replication port: a socket around `slave_link`, made again when it broke.

It connects to the master's replication address, from `haMasterAddress` or as name servers say, and
tries again after a pause that grows. When the logs differ it tries no more for `DIFFER_PAUSE_S`: an
operator has to decide, and may do so by replacing the master.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast

from gantrymq.cluster.frames import LinkBroken
from gantrymq.cluster.slave_link import LogsDiffer, SlaveLink
from gantrymq.errors import InvalidValue
from gantrymq.store.allocation import FileNotMade
from gantrymq.store.errors import StoreError
from gantrymq.transport.addresses import split_address

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.clock import Clock
    from gantrymq.cluster.master_link import LinkRules
    from gantrymq.cluster.replication_tls import ReplicationTls
    from gantrymq.cluster.slave_link import CopiedLog

log = logging.getLogger(__name__)

CONNECT_S_MAX: Final = 5.0
PAUSE_S: Final = 0.2
"""Before the first new attempt; doubled up to the longest."""
PAUSE_S_MAX: Final = 5.0
DIFFER_PAUSE_S: Final = 60.0


class _MasterConnection(asyncio.BufferedProtocol):
    """One connection; `link` decides, this moves bytes."""

    def __init__(
        self, log_: CopiedLog, rules: Callable[[], LinkRules], clock: Clock, hello: bytes
    ) -> None:
        self._clock = clock
        self._rules = rules
        self._transport: asyncio.Transport | None = None
        self.link = SlaveLink(log_, clock.monotonic(), hello=hello)
        self.ended: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say where to begin."""
        made = self._transport = cast("asyncio.Transport", transport)
        raw = made.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.write(self.link.begin())

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever keeps it."""
        self._transport = None
        self._end(LinkBroken(str(exc)) if exc else None)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next bytes belong."""
        return self.link.space()

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes of the log."""
        if self._transport is None or self._transport.is_closing():
            return
        try:
            reports = self.link.received(nbytes, self._clock.monotonic())
        except (LinkBroken, StoreError, InvalidValue, FileNotMade) as error:
            self._end(
                error if isinstance(error, LinkBroken | StoreError) else LinkBroken(str(error))
            )
            return
        if reports:
            self._transport.write(reports)

    def moved(self) -> None:
        """Report what has become safe meanwhile."""
        if self._transport is not None:
            reports = self.link.reports(self._clock.monotonic())
            if reports:
                self._transport.write(reports)

    def tick(self, now: float) -> None:
        """Show that this slave lives, and see whether the master does."""
        if self._transport is None:
            return
        try:
            sign = self.link.tick(self._rules(), now)
        except LinkBroken as error:
            self._end(error)
            return
        if sign:
            self._transport.write(sign)

    def _end(self, why: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(why)
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """End it from this side."""
        self._end(None)


class ReplicationClient:
    """Keeps a copy of the master's log going. Owned by the event loop's thread."""

    def __init__(
        self,
        log_: CopiedLog,
        rules: Callable[[], LinkRules],
        clock: Clock,
        tls: ReplicationTls | None = None,
    ) -> None:
        self._tls = tls
        self._log = log_
        self._rules = rules
        self._clock = clock
        self._address: str | None = None
        self._hello = b""
        self._changed = asyncio.Event()
        self._connection: _MasterConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self.trouble: str | None = None
        """Why nothing is copied now."""

    @property
    def is_connected(self) -> bool:
        """Tell whether a connection is open."""
        return self._connection is not None

    @property
    def is_level(self) -> bool:
        """Tell whether it is connected and has compared what it had."""
        return self._connection is not None and self._connection.link.is_level

    @property
    def address(self) -> str | None:
        """Return where the master is, if that is known."""
        return self._address

    def follow(self, address: str | None, hello: bytes = b"") -> None:
        """Copy from `host:port` from now on, saying `hello` first; None is from nobody."""
        if (address, hello) != (self._address, self._hello):
            log.info("the master's replication address is %s now", address or "not known")
            self._address, self._hello = address, hello
            self._changed.set()
            if self._connection is not None:
                self._connection.close()

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.get_running_loop().create_task(self._keep())

    async def stop(self) -> None:
        """Copy no more."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    def moved(self) -> None:
        """Report what has become safe."""
        if self._connection is not None:
            self._connection.moved()

    def tick(self, now: float) -> None:
        """Do what is due on the connection."""
        if self._connection is not None:
            self._connection.tick(now)

    async def _keep(self) -> None:
        pause = PAUSE_S
        while True:
            self._changed.clear()
            address = self._address
            if address is None:
                await self._changed.wait()
                continue
            began = self._clock.monotonic()
            why = await self._copy(address)
            if self._clock.monotonic() - began > PAUSE_S_MAX:
                pause = PAUSE_S
            if isinstance(why, LogsDiffer):
                log.error("%s: %s", address, why)
                wait = DIFFER_PAUSE_S
            else:
                if str(why) != self.trouble:
                    log.warning("copying from master %s ended: %s", address, why)
                wait, pause = pause, min(2 * pause, PAUSE_S_MAX)
            self.trouble = str(why)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._changed.wait()

    async def _copy(self, address: str) -> Exception:
        """Copy until the connection ends; return why."""
        loop = asyncio.get_running_loop()
        try:
            host, port = split_address(address)
            context = None if self._tls is None else self._tls.copying()
            async with asyncio.timeout(CONNECT_S_MAX):
                _, made = await loop.create_connection(
                    lambda: _MasterConnection(self._log, self._rules, self._clock, self._hello),
                    host,
                    port,
                    ssl=context,
                )
        except TimeoutError:
            return LinkBroken(f"no connection within {CONNECT_S_MAX:g} s")
        except (OSError, InvalidValue) as error:
            return LinkBroken(f"cannot connect: {error}")
        self._connection = made
        self.trouble = None
        try:
            why = await made.ended
        finally:
            self._connection = None
            made.close()
        return why or LinkBroken("the master closed the connection")
