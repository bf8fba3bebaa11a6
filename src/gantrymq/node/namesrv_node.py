"""A name server as a part of a process: its listener, its clock, its two files."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.clock import SystemClock
from gantrymq.namesrv.handlers import NameServer
from gantrymq.node.access import opened_namesrv_access
from gantrymq.node.exposure import refuse_exposed
from gantrymq.node.machine import loopback
from gantrymq.store import config_files
from gantrymq.store.files import OsFiles
from gantrymq.transport.command_service import CommandService
from gantrymq.transport.server import Server

if TYPE_CHECKING:
    from gantrymq.clock import Clock
    from gantrymq.namesrv.settings import NamesrvSettings
    from gantrymq.node.access import NodeAccess
    from gantrymq.transport.table import ConnectionTable
    from gantrymq.transport.tls import ServerTls

log = logging.getLogger(__name__)

TICK_S: Final = 1.0
DRAIN_S: Final = 1.0


class NamesrvNode:
    """One name server in this process."""

    def __init__(
        self,
        settings: NamesrvSettings,
        *,
        tls: ServerTls | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._settings = settings
        self._tls = tls
        self._clock = clock or SystemClock()
        self._files = OsFiles()
        self._server: Server | None = None
        self._ticking: asyncio.Task[None] | None = None
        self._kv_path = Path(settings.kv_config_path).expanduser()
        self._settings_path = Path(settings.config_store_path).expanduser()
        self.name_server = NameServer(
            self._clock,
            settings,
            save_kv=lambda content: self._save(self._kv_path, content),
            save_settings=lambda content: self._save(self._settings_path, content),
        )
        self.port = settings.listen_port
        self._access: NodeAccess | None = None

    def protect(self, access: NodeAccess) -> None:
        """Check who asks, with the accounts that this process has already."""
        self._access = access
        self.name_server.check = access.access.check

    @property
    def address(self) -> str:
        """Return the `host:port` by which it is reached from its own machine."""
        return f"{loopback(self._settings.bind_address)}:{self.port}"

    @property
    def connection_table(self) -> ConnectionTable | None:
        """Return the connections of its listener, while there is one."""
        return None if self._server is None else self._server.table

    async def start(self) -> None:
        """Load what was kept, and listen.

        Raises:
            StoreDamaged: the file with key-value configuration cannot be understood.
            InvalidSettings: others would reach it, and nobody checks who asks.
            InvalidValue: access control is on, and there are no accounts that can be used.
            OSError: the address cannot be bound.
        """
        if self._settings.acl and self._access is None:
            beside = self._kv_path.parent
            self.protect(opened_namesrv_access(self._settings, beside, self._clock))
        refuse_exposed(self._settings, protected=self._access is not None)
        config_files.load(self._files, self._kv_path, self.name_server.load_kv)
        service = CommandService(self.name_server.handle, closed=self.name_server.peer_closed)
        server = Server(
            service,
            [(self._settings.bind_address, self._settings.listen_port)],
            tls=self._tls,
            clock=self._clock,
        )
        await server.start()
        self._server = server
        self.port = int(server.bound[0].rpartition(":")[2])
        self._ticking = asyncio.create_task(self._tick())

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self.name_server.tick(self._clock.monotonic())
            if self._access is not None:
                self._access.tick()

    def _save(self, path: Path, content: bytes) -> None:
        self._files.make_directory(path.parent)
        config_files.save(self._files, path, content)

    async def stop(self) -> bool:
        """Close the listener and all connections."""
        if self._ticking is not None:
            self._ticking.cancel()
            await asyncio.gather(self._ticking, return_exceptions=True)
        if self._server is not None:
            await self._server.stop(DRAIN_S)
        return True
