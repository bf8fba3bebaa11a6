"""The files of the pages: read once, held in memory, and kept by browsers for good.

All of them together have a mark, the hash of their contents, which stands in their addresses
(`/assets/MARK/js/app.js`). So a browser asks for each file once in the life of a release, and never
has an old one. The first page alone is asked for every time; it names the mark, and all modules, so
that they come at the same time and not one after the other as they import each other.
"""

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
FIRST: Final = "index.html"
FOR_GOOD: Final = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class Asset:
    """A file."""

    content: bytes
    kind: str
    mark: str
    kept: str
    """What a browser is told about keeping it."""


def read_files() -> dict[str, bytes]:
    """Return all files by their path below the folder."""
    root = files("gantrymq.dashboard") / "static"
    return {name: item.read_bytes() for name, item in sorted(_walk(root, ""))}


def load_assets() -> dict[str, Asset]:
    """Return what is served, by its address without the first slash."""
    found = read_files()
    whole = hashlib.sha256()
    for name, content in found.items():
        whole.update(f"{name}\0{len(content)}\0".encode() + content)
    base = f"/assets/{whole.hexdigest()[:16]}"
    first = found.pop(FIRST).decode()
    modules = "\n  ".join(
        f'<link rel="modulepreload" href="{base}/{name}">' for name in found if name.endswith(".js")
    )
    page = first.replace("{base}", base).replace("<!-- modules -->", modules)
    served = {f"{base[1:]}/{name}": _asset(name, data, FOR_GOOD) for name, data in found.items()}
    return {**served, FIRST: _asset(FIRST, page.encode(), "no-cache")}


def _walk(folder: Traversable, before: str) -> Iterator[tuple[str, Traversable]]:
    for item in folder.iterdir():
        name = f"{before}{item.name}"
        if item.is_dir():
            yield from _walk(item, f"{name}/")
        elif any(name.endswith(suffix) for suffix in KINDS):
            yield name, item


def _asset(name: str, content: bytes, kept: str) -> Asset:
    suffix = name[name.rindex(".") :]
    return Asset(content, KINDS[suffix], f'"{hashlib.sha256(content).hexdigest()[:32]}"', kept)


def asset_response(asset: Asset, request: Request) -> Response:
    """Return a file, or that the browser has it already."""
    headers = {"etag": asset.mark, "cache-control": asset.kept}
    if request.headers.get("if-none-match") == asset.mark:
        return Response(status_code=304, headers=headers)
    return Response(asset.content, headers={**headers, "content-type": asset.kind})
