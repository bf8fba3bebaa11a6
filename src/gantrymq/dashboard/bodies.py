"""What a request brings with it: JSON, bounded in size, in time and in depth.

The event loop may be the broker's own. So a body is typed before it is read: a list of lists, which
costs a second to build, is refused at its first element.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from starlette.requests import ClientDisconnect

from gantrymq.dashboard.refusing import Refused
from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from starlette.requests import Request

BODY_S_MAX: Final = 10.0
"""For a body to arrive, from its first byte to its last."""
LOOP_BYTES_MAX: Final = 64 * 1024
"""Larger ones are decoded on a thread."""

T = TypeVar("T")
Values = dict[str, str | int | float | bool | list[str] | dict[str, str] | None]


class Given(msgspec.Struct, frozen=True):
    """What somebody logs in with."""

    user: str
    password: str


async def read_body(request: Request, bytes_max: int) -> Values:
    """Return the JSON object of a request.

    Raises:
        Refused: it is too large, or does not arrive.
        InvalidValue: it is none.
    """
    content = await read_bytes(request, bytes_max) or b"{}"
    if len(content) <= LOOP_BYTES_MAX:
        return decode(content, Values)
    return await asyncio.to_thread(decode, content, Values)


async def read_login(request: Request, bytes_max: int) -> Given:
    """Return a name and a password.

    Raises:
        Refused: the request is too large, or does not arrive.
        InvalidValue: it has something else.
    """
    return decode(await read_bytes(request, bytes_max) or b"{}", Given)


async def read_bytes(request: Request, bytes_max: int) -> bytes:
    """Return a body as it came.

    Raises:
        Refused: it is no JSON, too large, too slow, or its sender has gone.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(415, "contentType", "a change is sent as application/json")
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_S_MAX):
            async for chunk in request.stream():
                size += len(chunk)
                if size > bytes_max:
                    raise Refused(413, "size", f"a request has at most {bytes_max} bytes")
                parts.append(chunk)
    except TimeoutError:
        text = f"the request did not arrive within {BODY_S_MAX:.0f} s"
        raise Refused(408, "slow", text) from None
    except ClientDisconnect:
        raise Refused(400, "gone", "the request was not sent to its end") from None
    return b"".join(parts)


def decode(content: bytes, kind: type[T]) -> T:
    """Return JSON of a known shape.

    Raises:
        InvalidValue: it has another one.
    """
    try:
        return msgspec.json.decode(content, type=kind)
    except (ValueError, RecursionError) as error:  # also what is no UTF-8
        raise InvalidValue(f"the request is no JSON object of the right shape: {error}") from None
