"""The web application: pages as files, everything else as JSON under `/api`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from starlette.applications import Starlette
from starlette.routing import Route
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from gantrymq.dashboard.api.login import log_in, who_am_i
from gantrymq.dashboard.api.table import ENDPOINTS
from gantrymq.dashboard.assets import FIRST, asset_response, load_assets
from gantrymq.dashboard.gate import Gate
from gantrymq.dashboard.refusing import Refused, error_response
from gantrymq.dashboard.security import Security

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from gantrymq.dashboard.calls import Endpoint
    from gantrymq.dashboard.parts import Parts


def make_app(parts: Parts, endpoints: Iterable[Endpoint] = ENDPOINTS) -> ASGIApp:
    """Return the application over parts that are open, or will be when the first request comes."""
    gate = Gate(parts)
    assets = load_assets()

    async def page(request: Request) -> Response:
        name = request.url.path.removeprefix("/") or FIRST
        asset = assets.get(name)
        if asset is None:
            return error_response(Refused(404, "path", "there is nothing under this address"))
        return asset_response(asset, request)

    async def api(request: Request) -> Response:
        endpoint = table.get((request.method, request.url.path))
        if endpoint is not None:
            return await gate.answer(endpoint, request)
        known = sorted(method for method, path in table if path == request.url.path)
        if not known:
            return error_response(Refused(404, "path", "there is nothing under this address"))
        refused = error_response(Refused(405, "method", f"this takes {', '.join(known)}"))
        refused.headers["allow"] = ", ".join(known)
        return refused

    table = {(each.method, each.path): each for each in endpoints}
    methods = ["GET", "POST", "DELETE", "PUT", "PATCH"]
    routes = [
        Route("/api/login", partial(log_in, parts), methods=["POST"]),
        Route("/api/me", partial(who_am_i, parts), methods=["GET"]),
        Route("/api/{path:path}", api, methods=methods),
        Route("/{path:path}", page, methods=["GET"]),
    ]
    app = Security(Starlette(routes=routes), parts.settings)
    if not parts.settings.proxies:
        return app
    # What a proxy says of who asks counts only if it is one of those that were named.
    return cast("ASGIApp", ProxyHeadersMiddleware(cast("Any", app), list(parts.settings.proxies)))
