"""The way that every request takes: who is it, may they, is it forged; then work, words, headers.

    request ─▶ Host right? ─▶ logged in? ─▶ role enough? ─▶ a change: not read-only, token right,
               (rebinding)                                   same origin, "tried" written down
                    ─▶ the function ─▶ JSON, or the error as JSON; a change: what came of it noted

An error is always an error: a status from 400 up with `{"error": {"kind", "text"}}`, never an empty
list.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec
from starlette.responses import Response

from gantrymq.dashboard import audit
from gantrymq.dashboard.bodies import read_body
from gantrymq.dashboard.calls import Call, Download
from gantrymq.dashboard.refusing import Refused, error_response
from gantrymq.dashboard.sessions import is_same
from gantrymq.dashboard.settings import CALL_S_MAX, CALLS_MAX, CALLS_OF_ONE_MAX, CHANGES_MAX
from gantrymq.dashboard.throttle import Throttle
from gantrymq.errors import GantryError
from gantrymq.model.roles import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from gantrymq.dashboard.calls import Endpoint
    from gantrymq.dashboard.parts import Parts

COOKIE: Final = "gantrymq_session"
CSRF_HEADER: Final = "x-csrf-token"

logger = logging.getLogger(__name__)


class Gate:
    """Leads requests to functions."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._calls = 0
        self._calls_of: Counter[str] = Counter()
        self._changes = Throttle(parts.clock, CHANGES_MAX)

    async def answer(self, endpoint: Endpoint, request: Request) -> Response:
        """Return the answer to a request."""
        if self._calls >= CALLS_MAX:
            return error_response(
                Refused(503, "busy", f"{CALLS_MAX} requests are under way: try again")
            )
        self._calls += 1
        try:
            return await self._answer(endpoint, request)
        except GantryError as error:
            return error_response(error)
        except TimeoutError:
            text = f"the cluster did not answer within {CALL_S_MAX:.0f} s"
            return error_response(Refused(504, "late", text))
        except Exception:
            # A fault of the dashboard's own must be seen in the log and not take the server down.
            logger.exception("dashboard: %s %s failed", endpoint.method, endpoint.path)
            text = "the dashboard failed; its log says why"
            return error_response(Refused(500, "fault", text))
        finally:
            self._calls -= 1

    async def _answer(self, endpoint: Endpoint, request: Request) -> Response:
        user, role = self._who(request, endpoint)
        if self._parts.settings.login and self._calls_of[user] >= CALLS_OF_ONE_MAX:
            text = f"{CALLS_OF_ONE_MAX} requests of yours are under way: try again"
            raise Refused(503, "busy", text)
        self._calls_of[user] += 1
        try:
            return await self._work(endpoint, request, user, role)
        finally:
            self._calls_of[user] -= 1
            if not self._calls_of[user]:
                del self._calls_of[user]

    async def _work(self, endpoint: Endpoint, request: Request, user: str, role: Role) -> Response:
        body: Mapping[str, object] = {}
        if endpoint.is_change:
            body = await read_body(request, endpoint.bytes_max)
        token = token_of(request)
        query = {} if endpoint.is_change else request.query_params
        call = Call(self._parts, query, body, user, role, peer_of(request), token,
                    is_secure=is_secure(self._parts, request))  # fmt: skip
        if endpoint.is_change:
            return await self._change(endpoint, call)
        async with asyncio.timeout(CALL_S_MAX):
            return response_of(await endpoint.work(call))

    def _who(self, request: Request, endpoint: Endpoint) -> tuple[str, Role]:
        """Return who asks.

        Raises:
            Refused: nobody who may.
        """
        parts = self._parts
        if not parts.settings.login:
            user, role = "anonymous", Role.ADMIN
            if endpoint.is_change:
                check_origin(request)
                if request.headers.get(CSRF_HEADER) is None:
                    raise Refused(403, "csrf", f"a change needs the header {CSRF_HEADER}")
        else:
            login = parts.sessions.find(token_of(request))
            account = parts.accounts.get(login.name) if login is not None else None
            if login is None or account is None or account.mark != login.mark:
                raise Refused(401, "login", "log in first")
            user, role = account.name, account.role
            if endpoint.is_change:
                check_origin(request)
                if not is_same(request.headers.get(CSRF_HEADER, ""), login.csrf):
                    raise Refused(403, "csrf", "the page is out of date: load it again")
        if role < endpoint.role:
            if endpoint.is_change:
                who = user, role.text, peer_of(request)
                parts.audit.add(who, endpoint.action, audit.REFUSED, detail="role")
            raise Refused(403, "role", f"this needs the role {endpoint.role.text}")
        if endpoint.is_change and not endpoint.is_own and parts.settings.read_only:
            raise Refused(403, "readOnly", "this dashboard was started with --read-only")
        return user, role

    async def _change(self, endpoint: Endpoint, call: Call) -> Response:
        """Do a change, with entries in the audit log before and after."""
        wait_s = self._changes.wait_s(call.user)
        if wait_s > 0:
            text = f"{CHANGES_MAX} changes a minute are enough: wait {math.ceil(wait_s)} s"
            raise Refused(429, "throttled", text)
        who = call.user, call.role.text, call.address
        entry_id = secrets.token_hex(6)
        log = self._parts.audit
        call.target = endpoint.target_of(call)
        log.add(who, endpoint.action, audit.TRIED, call.target, entry_id=entry_id)
        try:
            async with asyncio.timeout(CALL_S_MAX):
                told = await endpoint.work(call)
        except BaseException as error:
            why = str(error) or type(error).__name__
            self._note(who, endpoint.action, audit.FAILED, call.target, why, entry_id)
            raise
        finally:
            self._parts.cache.forget()
        entry = endpoint.action, audit.DONE, call.target, call.detail, entry_id
        problem = self._note(who, *entry)
        return response_of(told if problem is None else with_problem(told, problem))

    def _note(self, who: tuple[str, str, str], *entry: str) -> str | None:
        """Write down what came of a change; return what is wrong if that cannot be.

        The change is made or has failed by now, and its caller has to hear which of the two.
        """
        try:
            self._parts.audit.add(who, *entry)
        except audit.NotWritten as error:
            logger.exception("dashboard: not in the audit log: %s %s", who[0], " ".join(entry))
            return f"it is done, but the audit log does not say so: {error.reason}"
        return None


def with_problem(told: object, problem: str) -> object:
    """Return an answer that also names a problem, where it is one that can."""
    if not isinstance(told, dict):
        return told
    known = told.get("problems")
    problems = [*known, problem] if isinstance(known, list) else [problem]
    count = told.get("problemCount")
    more = count if isinstance(count, int) else 0
    return {**told, "problems": problems, "problemCount": more + 1}


def token_of(request: Request) -> str:
    """Return what the cookie of a login holds; nothing without one.

    Tokens need no quotes, so none are taken off. The general reader of cookies does that, and in
    many releases of Python one header of backslashes keeps it busy, and the loop, for a second.
    """
    for header in request.headers.getlist("cookie"):
        for pair in header.split(";"):
            name, _, value = pair.strip().partition("=")
            if name == COOKIE:
                return value
    return ""


def check_origin(request: Request) -> None:
    """Refuse a change that another site's page sends.

    Raises:
        Refused: it does.
    """
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != request.headers.get("host", ""):
        raise Refused(403, "origin", "the request comes from another site's page")


def peer_of(request: Request) -> str:
    """Return the address that a request came from."""
    return request.client.host if request.client is not None else "?"


def is_secure(parts: Parts, request: Request) -> bool:
    """Tell whether a browser speaks TLS: to this server, or to a proxy that was named to it."""
    return parts.settings.is_encrypted or request.url.scheme == "https"


def is_plain(character: str) -> bool:
    """Tell whether a character may stand in a header's file name."""
    return (character.isascii() and character.isalnum()) or character in "-_."


def response_of(told: object) -> Response:
    """Return an answer as JSON, or as a file."""
    if isinstance(told, Response):
        return told
    if isinstance(told, Download):
        name = "".join(each if is_plain(each) else "_" for each in told.name)
        return Response(
            told.content,
            media_type="application/octet-stream",
            headers={"content-disposition": f'attachment; filename="{name}"'},
        )
    return Response(msgspec.json.encode(told), media_type="application/json")
