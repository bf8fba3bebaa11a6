"""Redrives in the background: each ends with a state that says how, whatever happened."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from gantrymq.admin import redrive
from gantrymq.admin.redrive import Order, Progress
from gantrymq.admin.session import Session
from gantrymq.dashboard.jobs import Jobs

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_what_nobody_foresaw_is_a_failure_and_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_given: object) -> Progress:
        raise ValueError("out of the blue")

    monkeypatch.setattr(redrive, "run", broken)

    async def main() -> None:
        jobs = Jobs(Session("127.0.0.1:9876"), tmp_path)
        job = jobs.start(Order("g"), "anna")
        assert job.task is not None
        await asyncio.wait([job.task])
        assert (job.state, job.error) == ("failed", "ValueError: the log says more")
        assert job.ended_ms
        assert jobs.start(Order("g"), "anna").id != job.id
        await jobs.stop()

    asyncio.run(main())
    assert "out of the blue" in caplog.text


def test_one_that_was_stopped_before_its_first_step_is_stopped(tmp_path: Path) -> None:
    async def main() -> None:
        jobs = Jobs(Session("127.0.0.1:9876"), tmp_path)
        job = await jobs.halt(jobs.start(Order("g"), "anna").id)
        assert job.state == "stopped"
        assert job.ended_ms

    asyncio.run(main())
