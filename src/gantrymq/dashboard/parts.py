"""All that a dashboard is made of, opened and closed together."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

from gantrymq.admin.session import Session
from gantrymq.clock import SystemClock
from gantrymq.dashboard.accounts import Accounts, make_folder
from gantrymq.dashboard.audit import AuditLog
from gantrymq.dashboard.cache import Cache
from gantrymq.dashboard.jobs import Jobs
from gantrymq.dashboard.sampling import Sampler
from gantrymq.dashboard.sessions import Sessions
from gantrymq.dashboard.throttle import LoginThrottle
from gantrymq.dashboard.undo import UndoFiles

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from gantrymq.admin.groups import GroupTable
    from gantrymq.clock import Clock
    from gantrymq.dashboard.settings import DashboardSettings

HASHES_AT_ONCE: Final = 2
"""A hash takes 16 MiB and a core: guessers get no more than this of the machine."""


class Parts:
    """What the functions behind the pages work with; `async with` opens it."""

    def __init__(self, settings: DashboardSettings, clock: Clock | None = None) -> None:
        self.settings = settings
        self.clock: Clock = clock or SystemClock()
        self.session = Session(
            settings.namesrv,
            credentials=settings.credentials,
            ssl=settings.ssl,
            clock=self.clock,
        )
        self.accounts = Accounts(settings.data)
        self.sessions = Sessions(self.clock)
        self.throttle = LoginThrottle(self.clock)
        self.hashing = asyncio.Semaphore(HASHES_AT_ONCE)
        self.audit = AuditLog(settings.data, self.clock)
        self.cache = Cache(self.clock)
        self.sampler = Sampler(self.session)
        self.jobs = Jobs(self.session, settings.data / "redrive")
        self.undo = UndoFiles(settings.data / "undo")
        self.group_tables: dict[str, GroupTable] = {}
        self._opened = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Open connections as they are needed, and begin to take samples."""
        make_folder(self.settings.data)
        await self._opened.enter_async_context(self.session)
        self._opened.push_async_callback(self.jobs.stop)
        self._opened.push_async_callback(self.sampler.stop)
        self.sampler.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End jobs and samples, and close all connections."""
        await self._opened.aclose()
