"""The file of a job, and a loop that has others to serve."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING

import pytest

from gantrymq.admin.journal import JobInUse, Journal
from gantrymq.admin.redrive import read_state

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

JOB = {"job": "redrive"}


def test_reading_and_forcing_are_not_done_on_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on: list[str] = []
    _watch(monkeypatch, "lines", lambda: on.append(_thread()))
    _watch(monkeypatch, "force", lambda: on.append(_thread()))

    async def main() -> None:
        async with Journal(tmp_path / "job", JOB) as journal:
            journal.add([{"window": "b:0", "from": 0, "to": 2, "ends": {}}])
            journal.add([{"q": "b:0", "o": 0, "r": "sent"}])
            state = await journal.read(read_state)
            assert (state.outcomes, state.noted) == ({"sent": 1}, {0})
            await journal.forced()

    asyncio.run(main())
    assert len(on) == 4
    assert threading.main_thread().name not in on


def _thread() -> str:
    return threading.current_thread().name


def _watch(monkeypatch: pytest.MonkeyPatch, name: str, before: Callable[[], None]) -> None:
    """Do something before each call of a method."""
    real = getattr(Journal, name)

    def watched(self: Journal) -> object:
        before()
        return real(self)

    monkeypatch.setattr(Journal, name, watched)


def test_one_that_is_cancelled_while_it_opens_leaves_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _watch(monkeypatch, "force", lambda: time.sleep(0.2))

    async def opened() -> None:
        async with Journal(tmp_path / "job", JOB):
            await asyncio.sleep(60)

    async def main() -> None:
        task = asyncio.ensure_future(opened())
        await asyncio.sleep(0.05)
        with pytest.raises(JobInUse):
            await Journal(tmp_path / "job", JOB).__aenter__()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        async with Journal(tmp_path / "job", JOB) as journal:
            assert journal.was_there

    asyncio.run(main())
