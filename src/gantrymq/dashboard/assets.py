"""The files of the pages: read once, held in memory, told apart by their hash."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

    from starlette.requests import Request

KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file."""

    content: bytes
    kind: str
    mark: str


def load_assets() -> dict[str, Asset]:
    """Return all files by their path below the server's root."""
    root = files("gantrymq.dashboard") / "static"
    return {name: _asset(name, item.read_bytes()) for name, item in _walk(root, "")}


def _walk(folder: Traversable, before: str) -> Iterator[tuple[str, Traversable]]:
    for item in folder.iterdir():
        name = f"{before}{item.name}"
        if item.is_dir():
            yield from _walk(item, f"{name}/")
        elif any(name.endswith(suffix) for suffix in KINDS):
            yield name, item


def _asset(name: str, content: bytes) -> Asset:
    suffix = name[name.rindex(".") :]
    return Asset(content, KINDS[suffix], f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def asset_response(asset: Asset, request: Request) -> Response:
    """Return a file, or that the browser has it already."""
    headers = {"etag": asset.mark, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == asset.mark:
        return Response(status_code=304, headers=headers)
    return Response(asset.content, headers={**headers, "content-type": asset.kind})
