"""Logging in and out, and one's own password."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Final

import msgspec
from starlette.responses import Response

from gantrymq.dashboard import audit
from gantrymq.dashboard.accounts import NOBODY, is_right, make_account
from gantrymq.dashboard.bodies import read_login
from gantrymq.dashboard.calls import Endpoint
from gantrymq.dashboard.gate import COOKIE, check_origin, is_secure, peer_of, token_of
from gantrymq.dashboard.refusing import Refused, error_response
from gantrymq.dashboard.settings import LOGIN_BYTES_MAX, network_of
from gantrymq.errors import GantryError, InvalidValue
from gantrymq.model.roles import Role
from gantrymq.version import VERSION

if TYPE_CHECKING:
    from starlette.requests import Request

    from gantrymq.dashboard.accounts import Account
    from gantrymq.dashboard.calls import Call
    from gantrymq.dashboard.parts import Parts

TEXT_CHARACTERS_MAX: Final = 256


async def who_am_i(parts: Parts, request: Request) -> Response:
    """Tell a page who is logged in and with which token it may change things; anybody may ask."""
    told: dict[str, object] = {
        "version": VERSION, "login": parts.settings.login, "readOnly": parts.settings.read_only,
        "user": None,
    }  # fmt: skip
    try:
        if not parts.settings.login:
            told |= {"user": "anonymous", "role": Role.ADMIN.text, "csrf": "none"}
        else:
            login = parts.sessions.find(token_of(request))
            account = parts.accounts.get(login.name) if login is not None else None
            if login is not None and account is not None and account.mark == login.mark:
                told |= {"user": account.name, "role": account.role.text, "csrf": login.csrf}
    except GantryError as error:
        return error_response(error)
    return Response(msgspec.json.encode(told), media_type="application/json")


async def log_in(parts: Parts, request: Request) -> Response:
    """Take a name and a password; answer with a cookie, or with what was wrong."""
    try:
        check_origin(request)
        address = peer_of(request)
        _check_wait(parts.throttle.wait_of_address_s(network_of(address)))
        given = await read_login(request, LOGIN_BYTES_MAX)
        name = given.user[:TEXT_CHARACTERS_MAX]
        account = await _checked(parts, name, given.password, address)
    except GantryError as error:
        return error_response(error)
    token, login = parts.sessions.begin(account)
    told = {"user": account.name, "role": account.role.text, "csrf": login.csrf}
    response = Response(msgspec.json.encode(told), media_type="application/json")
    response.set_cookie(
        COOKIE, token, path="/", httponly=True, samesite="strict",
        secure=is_secure(parts, request),
    )  # fmt: skip
    return response


def _check_wait(wait_s: float) -> None:
    """Refuse who has to wait.

    Raises:
        Refused: there is some time left.
    """
    if wait_s > 0:
        raise Refused(429, "throttled", f"too many tries: wait {math.ceil(wait_s)} s")


async def _checked(parts: Parts, name: str, password: str, address: str) -> Account:
    """Return whose password it is.

    Raises:
        Refused: it is nobody's, or there were too many tries.
    """
    network = network_of(address)
    _check_wait(parts.throttle.wait_of_name_s(network, name))
    known = parts.accounts.get(name)
    async with parts.hashing:
        is_good = await asyncio.to_thread(is_right, known or NOBODY, password)
    if known is None or not is_good:
        parts.audit.add((name, "", address), "log in", audit.REFUSED)
        raise Refused(401, "password", "no such name, or another password")
    parts.throttle.was_right(network, name)
    parts.audit.add((name, known.role.text, address), "log in", audit.DONE)
    return known


async def log_out(call: Call) -> object:
    """End what this browser's cookie stands for."""
    response = Response(b"{}", media_type="application/json")
    response.delete_cookie(
        COOKIE, path="/", httponly=True, samesite="strict",
        secure=call.is_secure,
    )  # fmt: skip
    call.parts.sessions.end(call.token)
    return response


async def change_password(call: Call) -> object:
    """Change one's own password; everyone who is logged in with the old one is logged out."""
    call.target = call.user
    old, new = call.raw("old", TEXT_CHARACTERS_MAX), call.raw("new", TEXT_CHARACTERS_MAX)
    known = call.parts.accounts.get(call.user)
    if known is None:
        raise InvalidValue("there is no login here")
    throttle = call.parts.throttle
    _check_wait(throttle.wait_of_owner_s(call.user))
    async with call.parts.hashing:
        if not await asyncio.to_thread(is_right, known, old or ""):
            raise InvalidValue("the old password is another one")
        account = await asyncio.to_thread(make_account, call.user, known.role, new or "")
    throttle.owner_was_right(call.user)
    # Hashing took a while in which the account may have been deleted or have got another role.
    await asyncio.to_thread(call.parts.accounts.change, account, known.mark)
    return {}


ENDPOINTS: Final = (
    Endpoint(
        "POST", "/api/logout", Role.VIEWER, log_out, "log out",
        is_own=True, bytes_max=LOGIN_BYTES_MAX,
    ),
    Endpoint(
        "POST", "/api/password", Role.VIEWER, change_password, "change own password",
        is_own=True, bytes_max=LOGIN_BYTES_MAX,
    ),
)  # fmt: skip
