"""A dashboard without a cluster and without a port: its gate, its accounts, its files."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gantrymq.dashboard.accounts import make_account
from gantrymq.dashboard.api.table import ENDPOINTS
from gantrymq.dashboard.app import make_app
from gantrymq.dashboard.parts import Parts
from gantrymq.dashboard.settings import DashboardSettings
from gantrymq.model.roles import Role
from gantrymq.testing.clock import VirtualClock
from support import asgi

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from starlette.types import ASGIApp

    from gantrymq.dashboard.calls import Call, Endpoint
    from support.asgi import Answer

PASSWORD = "long enough"  # noqa: S105


class Desk:
    """A dashboard whose functions do nothing but note that they were called."""

    def __init__(self, folder: Path, *, stubs: bool, **settings: object) -> None:
        self.clock = VirtualClock()
        told = DashboardSettings(namesrv="127.0.0.1:9876", data=folder)
        self.parts = Parts(replace(told, **settings), self.clock)  # type: ignore[arg-type]
        self.called: list[str] = []
        for role in Role:
            self.parts.accounts.put(make_account(role.text, role, PASSWORD))
        endpoints = [self._stub(each) for each in ENDPOINTS] if stubs else ENDPOINTS
        self.app: ASGIApp = make_app(self.parts, endpoints)

    def _stub(self, endpoint: Endpoint) -> Endpoint:
        async def note(call: Call) -> object:
            self.called.append(f"{endpoint.method} {endpoint.path} {call.user}")
            return {}

        return replace(endpoint, work=note)

    def ask(self, method: str, path: str, *, data: object = None, **headers: str) -> Answer:
        """Send a request; `data` becomes JSON."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        body = None
        if data is not None:
            body = data if isinstance(data, bytes) else json.dumps(data).encode()
            given.setdefault("content-type", "application/json")
        return asyncio.run(asgi.ask(self.app, method, path, body=body, headers=given))

    def log_in(self, name: str, password: str = PASSWORD) -> Answer:
        """Try to log in."""
        return self.ask("POST", "/api/login", data={"user": name, "password": password})

    def headers_of(self, name: str) -> dict[str, str]:
        """Log in; return what later requests have to send."""
        answer = self.log_in(name)
        assert answer.status == 200, answer.body
        (cookie,) = answer.cookies
        return {"cookie": cookie.partition(";")[0], "x_csrf_token": answer.data["csrf"]}


@pytest.fixture
def make_desk(tmp_path: Path) -> Callable[..., Desk]:
    """Give what makes a dashboard."""

    def make(*, stubs: bool = True, **settings: object) -> Desk:
        return Desk(tmp_path, stubs=stubs, **settings)

    return make


@pytest.fixture
def desk(make_desk: Callable[..., Desk]) -> Desk:
    """Give a dashboard whose functions are stubs."""
    return make_desk()
