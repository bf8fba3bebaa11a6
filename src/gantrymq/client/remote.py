"""Requests to servers: signed, numbered and sent, their answers read or raised.

The one place through which a client's requests leave, except for sends of messages, which have a
faster way of their own (`sending`). Owned by the event loop's thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar, overload

from gantrymq.transport.addresses import split_address
from gantrymq.wire.codes import ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.fields import Header
from gantrymq.wire.response_errors import error_for

if TYPE_CHECKING:
    from collections.abc import Collection

    from gantrymq.client.settings import ClientSettings
    from gantrymq.transport.requester import Connections
    from gantrymq.wire.codes import RequestCode
    from gantrymq.wire.peer import Peer

H_co = TypeVar("H_co", bound=Header | None, covariant=True)
H = TypeVar("H", bound=Header)

ONLY_SUCCESS: Final = frozenset({int(ResponseCode.SUCCESS)})


@dataclass(frozen=True, slots=True)
class Answered(Generic[H_co]):
    """An answer that is no error: its code is one of those that were expected."""

    code: int
    header: H_co
    """The answer's ext fields, of the type that was asked for; None when none was."""
    body: bytes
    command: Command
    """All of it."""


class Remote:
    """Asks servers by address."""

    __slots__ = ("_connections", "_settings")

    def __init__(self, connections: Connections, settings: ClientSettings) -> None:
        self._connections = connections
        self._settings = settings

    @property
    def timeout_s(self) -> float:
        """Return how long an answer may take unless a caller says otherwise."""
        return self._settings.request_timeout_s

    @property
    def connections(self) -> Connections:
        """Return the pool of connections."""
        return self._connections

    async def ask(self, address: str, request: Command, timeout_s: float | None = None) -> Command:
        """Return the answer to a request, whatever it says.

        Raises:
            PeerGone: nobody is there, or the connection broke before the answer.
            PeerLate: there was no answer within `timeout_s`.
        """
        wait_s = self._settings.request_timeout_s if timeout_s is None else timeout_s
        return await self._connections.ask(address, self._signed(request), wait_s)

    @overload
    async def call(
        self,
        address: str,
        code: RequestCode,
        header: Header | None = None,
        body: bytes = b"",
        *,
        timeout_s: float | None = None,
        answer: None = None,
        accept: Collection[int] = ONLY_SUCCESS,
    ) -> Answered[None]: ...

    @overload
    async def call(
        self,
        address: str,
        code: RequestCode,
        header: Header | None = None,
        body: bytes = b"",
        *,
        timeout_s: float | None = None,
        answer: type[H],
        accept: Collection[int] = ONLY_SUCCESS,
    ) -> Answered[H]: ...

    async def call(
        self,
        address: str,
        code: RequestCode,
        header: Header | None = None,
        body: bytes = b"",
        *,
        timeout_s: float | None = None,
        answer: type[H] | None = None,
        accept: Collection[int] = ONLY_SUCCESS,
    ) -> Answered[H] | Answered[None]:
        """Return the answer to a request, with its ext fields as an `answer` header.

        Codes that are not in `accept` are raised. `timeout_s` is `request_timeout_s` unless given.

        Raises:
            ResponseError: the class of the answer's code.
            PeerGone: nobody is there, or the connection broke before the answer.
            PeerLate: there was no answer within `timeout_s`.
            ContentError: the answer lacks a field that `answer` needs.
        """
        fields = header.encode() if header is not None else None
        reply = await self.ask(address, Command.request(code, 0, fields, body), timeout_s)
        if reply.code not in accept:
            error = error_for(reply.code, reply.remark)
            error.add_note(f"answered by {address} to {code.name}")
            raise error
        if answer is None:
            return Answered(reply.code, None, reply.body, reply)
        return Answered(reply.code, answer.decode(reply.fields), reply.body, reply)

    async def tell(
        self,
        address: str,
        code: RequestCode,
        header: Header | None = None,
        body: bytes = b"",
        *,
        remark: str | None = None,
    ) -> bool:
        """Send a request that gets no answer; False if the peer does not read.

        Raises:
            PeerGone, PeerLate: there is no connection, and none can be made.
        """
        fields = header.encode() if header is not None else None
        request = Command.request(code, 0, fields, body, oneway=True, remark=remark)
        return await self._connections.tell(address, self._signed(request))

    def tell_peer(
        self, peer: Peer, code: RequestCode, header: Header, *, remark: str | None = None
    ) -> bool:
        """Send the same to a peer that has just asked something, over its own connection."""
        request = Command.request(code, 0, header.encode(), oneway=True, remark=remark)
        return peer.tell(self._signed(request))

    def _signed(self, request: Command) -> Command:
        credentials = self._settings.credentials
        if credentials is None:
            return request
        from gantrymq.wire.signing import signed  # noqa: PLC0415  (loads what few clients need)

        return signed(credentials, request)


def vip_address(address: str) -> str:
    """Return the address of a broker's second port."""
    host, port = split_address(address)
    return f"{host}:{port - 2}" if ":" not in host else f"[{host}]:{port - 2}"
