"""The system's Chromium, driven by playwright; what a page complains about is kept and counts."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from playwright.sync_api import sync_playwright

from support import tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, ConsoleMessage, Page

    from support.dashboards import RunningDashboard

WAIT_MS: Final = 30_000
"""A machine may be busy; what takes this long is broken."""
OPTIONS: Final = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run the browser to the end of the block."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=tools.path("chromium"), args=list(OPTIONS), headless=True
        )
        try:
            yield browser
        finally:
            browser.close()


class Visitor:
    """A person with a browser window, who notes every complaint."""

    def __init__(self, page: Page, url: str, shots: Path) -> None:
        self.page = page
        self.url = url
        self.complaints: list[str] = []
        self._shots = shots
        page.set_default_timeout(WAIT_MS)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("requestfailed", lambda request: self._failed(request.url, request.failure))
        page.on("request", lambda request: self._asked(request.url))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(f"{message.type}: {message.text}")

    def _failed(self, url: str, why: str | None) -> None:
        if "ERR_ABORTED" not in (why or ""):  # a page that is left takes its questions back
            self.complaints.append(f"{url} failed: {why}")

    def _asked(self, url: str) -> None:
        if not url.startswith((self.url, "data:")):
            self.complaints.append(f"{url} is somewhere else")

    def open(self, path: str = "/") -> None:
        """Go to a page of the dashboard and wait until all of it is there."""
        address = f"{self.url}/#{path}"
        if self.page.url == address:
            self.page.reload()
        else:
            self.page.goto(address)
        self.settle()

    def settle(self) -> None:
        """Wait until nothing is being loaded any more."""
        self.page.wait_for_selector("h1")
        self.page.wait_for_function(
            "() => !document.querySelector('[aria-busy=true], .state.loading')"
        )

    def log_in(self, dashboard: RunningDashboard) -> None:
        """Log in as the first user."""
        self.page.goto(self.url)
        self.page.get_by_label("User").fill(dashboard.user)
        self.page.get_by_label("Password").fill(dashboard.password)
        self.page.get_by_role("button", name="Log in").click()
        self.page.wait_for_selector("nav")
        self.settle()

    def shoot(self, name: str, *, whole: bool = True) -> None:
        """Keep a picture."""
        self._shots.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=self._shots / f"{name}.png", full_page=whole)

    def check(self) -> None:
        """Fail if the page complained about anything."""
        assert self.complaints == []
