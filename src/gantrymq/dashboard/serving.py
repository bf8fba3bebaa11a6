"""The dashboard as a server: a port, the application, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from typing import TYPE_CHECKING, Final

import uvicorn

from gantrymq.dashboard.accounts import generated_password, make_account
from gantrymq.dashboard.app import make_app
from gantrymq.dashboard.connections import protocol_with
from gantrymq.dashboard.parts import Parts
from gantrymq.dashboard.settings import CONNECTIONS_MAX, KEEP_ALIVE_S
from gantrymq.model.roles import Role

if TYPE_CHECKING:
    from collections.abc import Generator

    from gantrymq.dashboard.settings import DashboardSettings

FIRST_USER: Final = "admin"
STOP_S_MAX: Final = 3
BACKLOG: Final = 128


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture none."""
        yield


class DashboardServer:
    """Runs until it is stopped."""

    def __init__(self, settings: DashboardSettings) -> None:
        self.settings = settings
        self.parts = Parts(settings)
        self.port = settings.port
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None
        self.first_password: str | None = None
        """The one that was made at this start, to be shown once."""

    async def start(self) -> None:
        """Listen, and answer.

        Raises:
            OSError: the port is taken, or the folder cannot be used.
            GantryError: the file of accounts is damaged.
        """
        listener = self._listen()
        try:
            if self.settings.login:
                await asyncio.to_thread(self._make_first_account)
            await self.parts.__aenter__()
        except BaseException:
            listener.close()
            raise
        certificate, key = self.settings.certificate, self.settings.key
        config = uvicorn.Config(
            make_app(self.parts), log_config=None, access_log=False, lifespan="off", ws="none",
            http=protocol_with(self.settings.proxies), limit_concurrency=CONNECTIONS_MAX,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=STOP_S_MAX, server_header=False, proxy_headers=False,
            ssl_certfile=certificate, ssl_keyfile=key,
        )  # fmt: skip
        config.load()
        if config.ssl is not None:
            config.ssl.minimum_version = ssl.TLSVersion.TLSv1_2
        server = self._server = _Server(config)
        task = self._task = asyncio.ensure_future(server.serve(sockets=[listener]))
        while not server.started and not task.done():  # noqa: ASYNC110  (it has no event)
            await asyncio.sleep(0.005)
        if task.done():
            task.result()

    def _listen(self) -> socket.socket:
        host, port = self.settings.bind, self.settings.port
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
            listener.listen(BACKLOG)
        except OSError as error:
            listener.close()
            raise OSError(
                error.errno, f"{error.strerror or error}: the dashboard's {host}:{port}"
            ) from None
        listener.setblocking(False)
        self.port = listener.getsockname()[1]
        return listener

    def _make_first_account(self) -> None:
        """Make the first account where there is none; its password is known to nobody else."""
        if self.parts.accounts.all():
            return
        self.first_password = generated_password()
        self.parts.accounts.put(make_account(FIRST_USER, Role.ADMIN, self.first_password))

    @property
    def address(self) -> str:
        """Return what to type into a browser."""
        return self.settings.address(self.port)

    def lines(self) -> list[str]:
        """Return what to tell whoever started it."""
        told = [f"the dashboard is ready: {self.address}"]
        if self.first_password is not None:
            told.append(
                f"  log in as {FIRST_USER} with the password {self.first_password}"
                " (shown this once)"
            )
        if not self.settings.login:
            told.append("  it asks for no password: whoever reaches it may do everything")
        if not self.settings.is_local and not self.settings.is_encrypted:
            told.append(
                "  passwords travel in the clear: give --tls-certificate and --tls-key, or stay"
                " behind a proxy that has TLS"
            )
        return told

    async def stop(self) -> None:
        """Answer what is under way, for a bounded time, and close what was opened."""
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await asyncio.gather(self._task, return_exceptions=True)
        await self.parts.__aexit__(None, None, None)
