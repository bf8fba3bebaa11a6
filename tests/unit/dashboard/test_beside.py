"""A dashboard beside a server never keeps it from stopping, and says what is wrong with itself."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from gantrymq.cli import dashboard, serving
from gantrymq.cli.dashboard import Beside
from gantrymq.dashboard.settings import DashboardSettings

if TYPE_CHECKING:
    from pathlib import Path


class Node:
    """A server that notes that it was stopped."""

    is_stopped = False

    async def stop(self) -> bool:
        self.is_stopped = True
        return True


class Stuck:
    """A dashboard that does not stop, not even when it is told twice."""

    async def stop(self) -> None:
        for _ in range(2):
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                continue


class Broken:
    """A dashboard that fails to stop."""

    async def stop(self) -> None:
        raise RuntimeError("broken")


@pytest.mark.parametrize("kind", [Stuck, Broken])
def test_the_server_is_stopped_whatever_the_dashboard_does(
    kind: type[Stuck | Broken],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(serving, "DASHBOARD_STOP_S_MAX", 0.05)
    node = Node()

    async def run() -> bool:
        both = serving._Both(node)  # type: ignore[arg-type]
        both.dashboard = kind()  # type: ignore[assignment]
        return await asyncio.wait_for(both.stop(), 0.5)

    assert asyncio.run(run())
    assert node.is_stopped
    assert "the dashboard did not stop" in caplog.text


def test_the_server_is_stopped_when_stopping_is_cut_short() -> None:
    node = Node()

    async def run() -> None:
        both = serving._Both(node)  # type: ignore[arg-type]
        both.dashboard = Stuck()  # type: ignore[assignment]
        task = asyncio.ensure_future(both.stop())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    assert node.is_stopped


def test_what_fails_at_the_start_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ImportError("no such module")

    monkeypatch.setattr(dashboard, "_load_serving", fail)
    said: list[str] = []

    async def run() -> None:
        beside = Beside(DashboardSettings("127.0.0.1:1", tmp_path), said.append)
        beside.begin()
        assert beside._task is not None
        await asyncio.wait_for(beside._task, 5)
        await beside.stop()

    asyncio.run(run())
    assert said == ["no dashboard: it failed to start, and the log says why"]
    assert "no such module" in caplog.text
