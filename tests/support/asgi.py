"""Requests to an ASGI application without a port: what goes in, what comes out."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Message


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    cookies: list[str]
    body: bytes

    @property
    def data(self) -> Any:  # noqa: ANN401  (whatever JSON says)
        """Return the body as JSON."""
        return json.loads(self.body)

    @property
    def kind(self) -> str:
        """Return the kind of the error, or nothing."""
        told = self.data
        return str(told["error"]["kind"]) if isinstance(told, dict) and "error" in told else ""


async def ask(
    app: ASGIApp,
    method: str,
    path: str,
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    address: str = "127.0.0.1",
) -> Answer:
    """Send one request."""
    name, _, query = path.partition("?")
    given = {"host": "127.0.0.1:8080", **(headers or {})}
    scope = {
        "type": "http", "http_version": "1.1", "method": method, "path": name,
        "raw_path": name.encode(), "query_string": query.encode(), "scheme": "http",
        "headers": [(key.lower().encode(), value.encode()) for key, value in given.items()],
        "client": (address, 4711), "server": ("127.0.0.1", 8080), "root_path": "",
    }  # fmt: skip
    sent: list[Message] = []

    async def receive() -> Message:
        if any(each["type"] == "http.response.body" for each in sent):
            await asyncio.sleep(3600)
        return {"type": "http.request", "body": body or b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start = sent[0]
    pairs = [(key.decode().lower(), value.decode()) for key, value in start["headers"]]
    return Answer(
        start["status"],
        dict(pairs),
        [value for key, value in pairs if key == "set-cookie"],
        b"".join(each.get("body", b"") for each in sent[1:]),
    )
