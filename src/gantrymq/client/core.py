"""What every client is made of: connections, routes, heartbeats, and the tasks that drive them.

    settings ─▶ connections ─▶ remote ─▶ name servers ─▶ routes
                     ▲                                     │ brokers
                  incoming (requests of brokers)           ▼
                                                       heartbeats

A producer or consumer has one of these for itself. Nothing is shared between clients, and nothing
is global. Owned by the event loop that `start` ran on.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio import get_running_loop
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gantrymq.client.callers import calling_task
from gantrymq.client.errors import ClientClosed, ClientError, NotStarted
from gantrymq.client.heartbeats import Heartbeats
from gantrymq.client.identity import Identity, local_address
from gantrymq.client.incoming import Incoming
from gantrymq.client.name_servers import NameServers
from gantrymq.client.namespace import Namespace
from gantrymq.client.remote import Remote
from gantrymq.client.routes import Routes
from gantrymq.clock import SystemClock
from gantrymq.transport.requester import Connections

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from gantrymq.client.settings import ClientSettings
    from gantrymq.clock import Clock

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

BACK_OFF_S_MAX: Final = 0.5
"""Between two attempts to connect to a server that is not there."""

_NEW: Final = "new"
_STARTING: Final = "starting"
_RUNNING: Final = "running"
_CLOSING: Final = "closing"
_CLOSED: Final = "closed"


class ClientCore:
    """Everything that producers and consumers have in common."""

    # Made by `start`, which needs a running loop.
    connections: Connections
    remote: Remote
    name_servers: NameServers
    routes: Routes
    heartbeats: Heartbeats
    identity: Identity

    def __init__(self, settings: ClientSettings, clock: Clock | None = None) -> None:
        self.settings = settings
        self.clock: Clock = clock or SystemClock()
        self.namespace = Namespace(settings.namespace)
        self.incoming = Incoming()
        self.closer: asyncio.Task[Any] | None = None
        """The task that asked for the end. It may be a handler's: nobody waits for that one."""
        self._state = _NEW
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def client_id(self) -> str:
        """Return the id among the members of a group.

        Raises:
            NotStarted: there is none before the client was started.
        """
        if self._state in {_NEW, _STARTING}:
            raise NotStarted("the client has no id yet: start it first")
        return self.identity.client_id

    @property
    def is_running(self) -> bool:
        """Tell whether it was started and not closed."""
        return self._state is _RUNNING

    async def start(self) -> None:
        """Begin. No server needs to be there: that is found out when one is needed.

        Raises:
            ClientClosed: it was closed; make another one.
            ClientError: it runs already.
        """
        if self._state in {_CLOSING, _CLOSED}:
            raise ClientClosed("the client was closed: make a new one")
        if self._state is not _NEW:
            raise ClientError("the client runs already: start it once")
        self._state = _STARTING
        settings = self.settings
        try:
            address = await local_address(settings.name_servers, settings.connect_timeout_s)
            self.identity = Identity(address, settings.instance, self.clock)
        except BaseException:
            self._state = _NEW if self._state is _STARTING else self._state
            raise
        if self._state is not _STARTING:
            raise ClientClosed("the client was closed while it started")
        self._begin()

    def _begin(self) -> None:
        """Make the parts and their tasks; nothing here waits."""
        settings = self.settings
        self._loop = asyncio.get_running_loop()
        self.connections = Connections(
            self.incoming.service,
            settings.ssl,
            clock=self.clock,
            connect_timeout_s=settings.connect_timeout_s,
            back_off_s_max=BACK_OFF_S_MAX,
        )
        self.remote = Remote(self.connections, settings)
        self.name_servers = NameServers(settings.name_servers, self.remote)
        self.routes = Routes(self.name_servers)
        self.heartbeats = Heartbeats(self.remote, self.routes, settings.heartbeat_s)
        self.heartbeats.start(self.identity.client_id)
        self.routes.on_change = self.heartbeats.soon
        self.incoming.on_opened(self.heartbeats.on_opened)
        self.spawn(self.heartbeats.run(), "heartbeats")
        self.spawn(self._refresh_routes(), "routes")
        self._state = _RUNNING

    async def close(self, before: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        """Do `before`, say goodbye to the brokers, end all tasks, close all connections.

        It happens once, and to its end even if who waits for it is cancelled; a second caller
        waits for the same end. New calls are refused from its beginning on.

        Raises:
            ClientError: the client lives on another event loop.
            UsedAfterFork: it lives in another process.
        """
        if self._state in {_NEW, _STARTING}:
            self._state = _CLOSED
        if self._loop is None:
            return
        self.identity.check_process()
        if self._loop.is_closed():
            self._state = _CLOSED  # everything of it ended with its loop
            return
        self._check_loop()
        if self._closing is None:
            self._state = _CLOSING
            callers = (asyncio.current_task(), calling_task())
            self.closer = next((task for task in callers if task in self._tasks), None)
            self._closing = self._loop.create_task(self._close(before), name="gantrymq close")
        await asyncio.shield(self._closing)

    async def _close(self, before: Callable[[], Coroutine[Any, Any, None]] | None) -> None:
        try:
            if before is not None:
                await before()
        finally:
            await self._end()

    async def _end(self) -> None:
        try:
            async with asyncio.timeout(self.settings.close_timeout_s):
                await self.heartbeats.say_goodbye()
        except TimeoutError:
            logger.info("not every broker was told that the client leaves: it took too long")
        finally:  # whatever it was, also the end of the loop: nothing stays open
            await self._end_tasks()

    async def _end_tasks(self) -> None:
        self.routes.stop()
        tasks = [task for task in self._tasks if task is not self.closer]
        for task in tasks:
            task.cancel()
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=self.settings.close_timeout_s)
        finally:
            await self.connections.close()
            self._state = _CLOSED

    def check_usable(self) -> None:
        """Refuse a call that cannot be made now.

        Raises:
            NotStarted, ClientClosed, UsedAfterFork: each says what to do.
            ClientError: it was started on another event loop.
        """
        if self._state is _RUNNING:
            self.identity.check_process()
            # As `_check_loop` does, without a call: every send comes through here.
            try:
                if get_running_loop() is self._loop:
                    return
            except RuntimeError:
                pass
            self._check_loop()
        elif self._state in {_NEW, _STARTING}:
            raise NotStarted("the client was not started: use `async with`, or await start()")
        else:
            raise ClientClosed("the client was closed: make a new one")

    def _check_loop(self) -> None:
        try:
            if get_running_loop() is self._loop:
                return
        except RuntimeError:
            pass
        raise ClientError(
            "the client was started on another event loop, or is used outside of it: make one"
            " for each loop, or use gantrymq.blocking from threads"
        )

    def spawn(self, coroutine: Coroutine[Any, Any, Result], name: str) -> asyncio.Task[Result]:
        """Run something in the background until it ends or the client closes.

        What it raises is logged, and `task.exception()` has it.

        Raises:
            ClientClosed: it is closed already, and nobody would end the task.
        """
        if self._state is _CLOSED:
            coroutine.close()
            raise ClientClosed("the client was closed: make a new one")
        task = asyncio.get_running_loop().create_task(coroutine, name=f"gantrymq {name}")
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("the task %r of a client failed", task.get_name(), exc_info=error)

    async def _refresh_routes(self) -> None:
        while True:
            await asyncio.sleep(self.settings.route_s)
            try:
                await self.routes.refresh_all()
            except Exception:  # one bad round must not be the last
                logger.exception("the routes could not be refreshed")
