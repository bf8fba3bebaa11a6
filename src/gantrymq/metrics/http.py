"""A responder for the few who ask over HTTP: GET, an answer, and the connection is closed.

It is no web server. A request may have `HEAD_BYTES_MAX` bytes and take `HEAD_S_MAX` to come, and
its answer `ANSWER_S_MAX` to be read to its end; whoever is slower is cut off. So many connections
may be open at once, of all and of one peer, and one more is told to come again. Paths that are
`always` answered are so even then: a full port is no reason to take a process for dead.

Owned by the event loop's task.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

log = logging.getLogger(__name__)

HEAD_BYTES_MAX: Final = 8192
HEAD_S_MAX: Final = 5.0
ANSWER_S_MAX: Final = 30.0
CONNECTIONS_MAX: Final = 32
PEER_CONNECTIONS_MAX: Final = 16
CROWDED_HEAD_S_MAX: Final = 1.0
"""For the request of one that is too many: it may be for a path that is always answered."""
CUT_OFF_FROM: Final = 4 * CONNECTIONS_MAX
"""Connections beyond that many are closed unheard."""
LINGER_S_MAX: Final = 0.5
LINGER_BYTES_MAX: Final = 1 << 20
JSON: Final = "application/json"
_TEXT: Final = "text/plain; charset=utf-8"
_WORDS_OF_A_REQUEST: Final = 3


class HttpAnswer(NamedTuple):
    """What is answered to a GET."""

    status: HTTPStatus
    content_type: str
    body: bytes


class _Refused(Exception):
    """A request that gets no answer of its own."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class HttpResponder:
    """Answers GET requests by their path."""

    def __init__(
        self,
        routes: Mapping[str, Callable[[], Awaitable[HttpAnswer]]],
        *,
        always: Iterable[str] = (),
        head_s_max: float = HEAD_S_MAX,
        answer_s_max: float = ANSWER_S_MAX,
    ) -> None:
        self._routes = dict(routes)
        self._always = frozenset(always)
        self._head_s_max = head_s_max
        self._answer_s_max = answer_s_max
        self._server: asyncio.Server | None = None
        self._is_stopping = False
        self._open: dict[asyncio.Task[None], str] = {}
        """Each with its peer's address."""

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; return where. Port 0 is any that is free.

        Raises:
            OSError: the address cannot be bound.
        """
        self._server = await asyncio.start_server(self._serve, host, port, limit=HEAD_BYTES_MAX)
        found = self._server.sockets[0].getsockname()
        return str(found[0]), int(found[1])

    async def stop(self) -> None:
        """Listen no more, and leave nobody waiting."""
        if self._server is None:
            return
        self._is_stopping = True
        self._server.close()
        for task in tuple(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = str((writer.get_extra_info("peername") or ("",))[0])
        task = asyncio.current_task()
        if task is not None:
            self._open[task] = peer
            task.add_done_callback(lambda done: self._open.pop(done, None))
        try:
            if self._is_stopping or len(self._open) > CUT_OFF_FROM:
                return
            async with asyncio.timeout(self._answer_s_max):
                answer = await self._answer(reader, peer)
                writer.write(_encoded(answer))
                await writer.drain()
                if answer.status >= HTTPStatus.BAD_REQUEST:
                    await _linger(reader, writer)
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError):
            log.debug("a reader of metrics went away")
        except asyncio.CancelledError:
            log.debug("a reader of metrics was cut off")  # by `stop`, which waits for this task
        finally:
            # Nothing after a close; otherwise what was not read yet is not waited for.
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, peer: str) -> HttpAnswer:
        is_crowded = self._is_crowded(peer)
        head_s_max = min(self._head_s_max, CROWDED_HEAD_S_MAX) if is_crowded else self._head_s_max
        try:
            path = await self._read_path(reader, head_s_max)
            return await self._route(path, is_crowded=is_crowded)()
        except _Refused as refused:
            return HttpAnswer(refused.status, _TEXT, f"{refused}\n".encode())
        except Exception:
            log.exception("an answer about metrics or health failed")
            why = b"this could not be answered; the log says why\n"
            return HttpAnswer(HTTPStatus.INTERNAL_SERVER_ERROR, _TEXT, why)

    def _is_crowded(self, peer: str) -> bool:
        of_peer = sum(each == peer for each in self._open.values())
        return len(self._open) > CONNECTIONS_MAX or of_peer > PEER_CONNECTIONS_MAX

    def _route(self, path: str, *, is_crowded: bool) -> Callable[[], Awaitable[HttpAnswer]]:
        if is_crowded and path not in self._always:
            raise _Refused(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections; come again")
        route = self._routes.get(path)
        if route is None:
            known = ", ".join(sorted(self._routes))
            raise _Refused(HTTPStatus.NOT_FOUND, f"there is nothing here; try {known}")
        return route

    async def _read_path(self, reader: asyncio.StreamReader, head_s_max: float) -> str:
        """Return the path of the request that a connection brings.

        Raises:
            _Refused: it is none, too large, too slow, or no GET.
        """
        try:
            async with asyncio.timeout(head_s_max):
                head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            raise _Refused(status, f"a request has at most {HEAD_BYTES_MAX} bytes") from None
        except TimeoutError:
            raise _Refused(HTTPStatus.REQUEST_TIMEOUT, "the request did not come") from None
        except asyncio.IncompleteReadError:
            raise _Refused(HTTPStatus.BAD_REQUEST, "this is no HTTP request") from None
        words = head.partition(b"\r\n")[0].split(b" ")
        if len(words) != _WORDS_OF_A_REQUEST or not words[2].startswith(b"HTTP/1."):
            raise _Refused(HTTPStatus.BAD_REQUEST, "this is no HTTP request")
        if words[0] != b"GET":
            raise _Refused(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is answered here")
        return words[1].partition(b"?")[0].decode("latin-1")


async def _linger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Take in the rest of what was refused: with bytes unread, a close would take the answer back.

    For a moment and not for ever.
    """
    writer.write_eof()
    left = LINGER_BYTES_MAX
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_S_MAX):
            while left > 0 and (taken := await reader.read(HEAD_BYTES_MAX)):
                left -= len(taken)


def _encoded(answer: HttpAnswer) -> bytes:
    allow = "Allow: GET\r\n" if answer.status is HTTPStatus.METHOD_NOT_ALLOWED else ""
    head = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\n"
        f"Content-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(answer.body)}\r\n"
        f"{allow}Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode("latin-1") + answer.body
