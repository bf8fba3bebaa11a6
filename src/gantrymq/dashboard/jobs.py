"""Redrives that were started from the dashboard: run in the background, watched, stopped, resumed.

Each has a journal (`admin.journal`) in the dashboard's folder, named after what it is to do, so
that the same order given again goes on where it stopped, also after a restart. A dry run has none.
The outcomes of each message are kept for the last twenty orders (`admin.redrive_files`).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gantrymq.admin import redrive
from gantrymq.admin.redrive import Progress
from gantrymq.admin.redrive_files import SUFFIX, make_room
from gantrymq.dashboard.accounts import make_folder
from gantrymq.errors import GantryError, InvalidValue

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.admin.redrive import Order
    from gantrymq.admin.session import Session

log = logging.getLogger(__name__)

JOBS_MAX: Final = 100
"""Jobs that are remembered; the oldest that have ended are forgotten."""
RUNNING_MAX: Final = 4
RUNNING: Final = "running"


@dataclass(slots=True)
class RedriveJob:
    """One job."""

    id: str
    order: Order
    user: str
    begun_ms: int
    state: str = RUNNING
    """running, done, stopped or failed."""
    error: str = ""
    ended_ms: int = 0
    progress: Progress = field(default_factory=Progress)
    task: asyncio.Task[None] | None = None

    def data(self) -> dict[str, object]:
        """Return what becomes JSON."""
        return {
            "id": self.id, "group": self.order.group, "to": self.order.to,
            "dryRun": self.order.dry_run, "rate": self.order.rate, "user": self.user,
            "filter": self.order.condition.text if self.order.condition else "",
            "begunMs": self.begun_ms, "endedMs": self.ended_ms, "state": self.state,
            "error": self.error, "total": self.progress.total, "done": self.progress.done,
            "outcomes": dict(self.progress.outcomes), "examples": self.progress.examples,
        }  # fmt: skip


class Jobs:
    """All jobs, newest last. Owned by the event loop."""

    def __init__(self, session: Session, folder: Path) -> None:
        self._session = session
        self._folder = folder
        self._jobs: dict[str, RedriveJob] = {}
        self._count = 0

    def all(self) -> list[RedriveJob]:
        """Return them, newest first."""
        return list(reversed(self._jobs.values()))

    def start(self, order: Order, user: str) -> RedriveJob:
        """Begin a job, or go on with one.

        Raises:
            InvalidValue: too many run, or one of this group does.
        """
        running = [each for each in self._jobs.values() if each.state == RUNNING]
        if len(running) >= RUNNING_MAX:
            raise InvalidValue(f"{len(running)} jobs run already: wait for one, or stop it")
        if any(each.order.group == order.group for each in running):
            raise InvalidValue(f"a redrive of group {order.group} runs already")
        self._count += 1
        now_ms = self._session.clock.now_ms()
        job = RedriveJob(f"{now_ms}-{self._count}", order, user, now_ms)
        self._jobs[job.id] = job
        job.task = asyncio.ensure_future(self._run(job))
        self._forget_old()
        return job

    async def halt(self, job_id: str) -> RedriveJob:
        """Stop a job; the same order goes on from there.

        Raises:
            InvalidValue: there is none of that name.
        """
        job = self._jobs.get(job_id)
        if job is None:
            raise InvalidValue(f"there is no job {job_id[:64]!r}")
        if job.task is not None:
            job.task.cancel()
            await asyncio.gather(job.task, return_exceptions=True)
        if job.state == RUNNING:  # it was stopped before its first step
            job.state, job.ended_ms = "stopped", self._session.clock.now_ms()
        return job

    async def stop(self) -> None:
        """Stop all of them: the dashboard is closed."""
        tasks = [job.task for job in self._jobs.values() if job.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, job: RedriveJob) -> None:
        def watch(progress: Progress) -> None:
            job.progress = progress

        try:
            path = None
            if not job.order.dry_run:
                path = await asyncio.to_thread(self._journal, job.order)
            job.progress = await redrive.run(self._session, job.order, path, watch)
            job.state = "done"
        except asyncio.CancelledError:
            job.state = "stopped"
        except (GantryError, OSError) as error:
            job.state, job.error = "failed", str(error)
        except Exception as error:
            # A job that ends unsaid would stay "running", and with it its group for ever.
            log.exception("the redrive of group %s failed", job.order.group)
            job.state, job.error = "failed", f"{type(error).__name__}: the log says more"
        finally:
            job.ended_ms = self._session.clock.now_ms()

    def _journal(self, order: Order) -> Path:
        make_folder(self._folder)
        told = json.dumps(order.job(), sort_keys=True).encode()
        safe = "".join(each if each.isalnum() or each in "-_" else "_" for each in order.group)
        path = self._folder / f"{safe[:64]}-{hashlib.sha256(told).hexdigest()[:12]}{SUFFIX}"
        make_room(path)
        return path

    def _forget_old(self) -> None:
        ended = [job.id for job in self._jobs.values() if job.state != RUNNING]
        for job_id in ended[: max(len(self._jobs) - JOBS_MAX, 0)]:
            del self._jobs[job_id]
