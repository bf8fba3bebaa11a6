"""What holds for every answer, pages and errors alike: headers, and whose name was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.wire.hosts import is_loopback

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from gantrymq.dashboard.settings import DashboardSettings

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""Scripts and styles are files of this server; nothing is inline, nothing comes from elsewhere."""
HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


class Security:
    """Adds the headers, and refuses names that are not this server's.

    A page of another site can have its own name lead to 127.0.0.1 after it was loaded, and then
    speak to this server as if it were its own (DNS rebinding). It cannot choose the Host header.
    """

    def __init__(self, app: ASGIApp, settings: DashboardSettings) -> None:
        self._app = app
        self._hosts = {name.lower() for name in settings.hosts}
        self._is_local = settings.is_local
        more = {"cache-control": "no-store"}
        if settings.is_encrypted:
            more["strict-transport-security"] = "max-age=31536000"
        self._headers = [
            (name.encode(), value.encode()) for name, value in {**HEADERS, **more}.items()
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _value in message["headers"]}
                more = [pair for pair in self._headers if pair[0] not in given]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        hosts = [value for name, value in scope["headers"] if name == b"host"]
        host = hosts[0].decode("latin-1") if len(hosts) == 1 else ""
        if not self.is_known(host):
            await _refuse(send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)

    def is_known(self, host: str) -> bool:
        """Tell whether a Host header names this server."""
        name = host_name(host)
        if name in self._hosts:
            return True
        if self._is_local:
            return is_loopback(name)
        return bool(name) and not self._hosts


def host_name(host: str) -> str:
    """Return the name in a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


async def _refuse(send: Send) -> None:
    body = b'{"error":{"kind":"host","text":"this name is not the dashboard\'s"}}'
    await send(
        {
            "type": "http.response.start",
            "status": 421,
            "headers": [(b"content-type", b"application/json")],
        }
    )
    await send({"type": "http.response.body", "body": body})
