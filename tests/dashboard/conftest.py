"""One cluster with something in it, one dashboard of it, one browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support import browsers, dashboards, gantry
from support.browsers import Visitor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

    from support.dashboards import RunningDashboard
    from support.gantry import Running

SHOTS = Path(__file__).parents[2] / "build" / "screenshots"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Give a server with topics, messages, groups and dead letters."""
    with gantry.server(tmp_path_factory.mktemp("cluster"), {"brokerName": "broker-a"}) as running:
        dashboards.seed(running.name_server)
        yield running


@pytest.fixture(scope="session")
def dashboard(
    server: Running, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningDashboard]:
    """Give a dashboard of it."""
    work = tmp_path_factory.mktemp("dashboard")
    with dashboards.dashboard(work, server.name_server) as running:
        yield running


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Give the browser, for a module: while it is driven, the thread has a running event loop."""
    with browsers.chromium() as browser:
        yield browser


@pytest.fixture
def visitor(chromium: Browser, dashboard: RunningDashboard) -> Iterator[Visitor]:
    """Give somebody who is logged in; whatever the page complains about fails the test."""
    context = chromium.new_context(
        viewport={"width": 1280, "height": 860}, locale="en-GB", color_scheme="light"
    )
    guest = Visitor(context.new_page(), dashboard.url, SHOTS)
    guest.log_in(dashboard)
    yield guest
    context.close()
    guest.check()
