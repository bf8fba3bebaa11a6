"""A master that hands over: sends that still come to it are passed on to its successor.

Clients learn of a new master from name servers, some of them every 30 s only, and know the old
one's address until then. So between listener and broker stands a `Forwarding`. It hands bytes on as
they are, until the broker gives its seat up of its own will: then sends, decisions about
transactions and commits of offsets wait for the successor, a moment, and are sent to it; its answer
is the client's. Nobody but the log's offsets sees a difference; the born host of such a message is
this broker's.

Behind it one broker may be closed and another opened, without a connection lost. Owned by the event
loop's thread.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.errors import GantryError
from gantrymq.transport.command_service import take_each
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.frame import encode_frame
from gantrymq.wire.response_errors import ServiceNotAvailable
from gantrymq.wire.settling import handle
from gantrymq.wire.signing import ACCESS_KEY
from gantrymq.wire.signing import FORWARDED as MARK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gantrymq.kernel.interface import Buffer
    from gantrymq.kernel.values import Frame
    from gantrymq.transport.requester import Connections
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Peer, Pending, Service, Taken

FORWARDED: Final = frozenset(
    {
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
        RequestCode.CONSUMER_SEND_MSG_BACK,
        RequestCode.END_TRANSACTION,
        RequestCode.UPDATE_CONSUMER_OFFSET,
    }
)
PLACED: Final = frozenset({RequestCode.CONSUMER_SEND_MSG_BACK, RequestCode.END_TRANSACTION})
"""They name a place in the log: whether one may is seen where the log is."""
WAIT_S: Final = 2.5
"""For a successor: less than the 3 s after which clients give a send up."""
PAUSE_S: Final = 0.05
WAITING_MAX: Final = 10_000
CHANGING: Final = "this broker changes its role; try again"


class Forwarding:
    """What a listener of a group with failover serves."""

    def __init__(self) -> None:
        self._inner: Service | None = None
        self._waiting = 0
        self.is_on = False
        """Whether requests for a master are passed on."""
        self.successor: Callable[[], str | None] = lambda: None
        """Returns `host:port` of the group's master, if it is another broker."""
        self.connections: Connections | None = None
        """To the successor."""
        self.check: Callable[[int, Command, Peer], object] | None = None
        """With access control: raises for what a client may not ask, for the successor sees this
        broker's address and not the client's."""
        self.sign: Callable[[Command], Command] | None = None
        """Vouches for a request that its client did not have to sign."""
        self.total = 0
        """Requests that were passed on."""

    def behind(self, service: Service) -> Service:
        """Stand in front of a broker from now on."""
        self._inner = service
        return self

    def detach(self) -> None:
        """Have no broker behind for a while: it is closed, and opened in another role."""
        self._inner = None

    # -- what the listener asks; see `wire.peer.Service` ------------------------------------------

    @property
    def takes_turns(self) -> bool:
        """Tell that many connections can be served together."""
        return True

    def opened(self, peer: Peer) -> None:
        """Learn of a connection."""
        if self._inner is not None:
            self._inner.opened(peer)

    def closed(self, peer: Peer) -> None:
        """Learn that it is no more."""
        if self._inner is not None:
            self._inner.closed(peer)

    def take_turn(
        self, buffer: Buffer, parts: Sequence[tuple[int, int, Peer]]
    ) -> list[tuple[int, bytes]]:
        """Hand on, unless each request is to be looked at."""
        if self.is_on or self._inner is None:
            return []
        return self._inner.take_turn(buffer, parts)

    def take(self, buffer: Buffer, start: int, end: int, peer: Peer) -> Taken:
        """Hand on, or pass on what is for a master."""
        if not self.is_on and self._inner is not None:
            return self._inner.take(buffer, start, end, peer)

        def answered(request: Command, frame: Frame) -> list[Pending]:
            if self.is_on and request.code in FORWARDED and MARK not in request.fields:
                return [handle(self._pass_on, request, peer)]
            if self._inner is None:
                return [handle(_refuse, request, peer)]
            return self._inner.take(buffer, frame.start, frame.end, peer).answers

        return take_each(buffer, start, end, answered)

    # -- passing on -------------------------------------------------------------------------------

    def _pass_on(self, request: Command, peer: Peer) -> Pending:
        """Pass on what the client may ask.

        Raises:
            ResponseError: it may not, or only the next master can tell.
        """
        if self.check is not None:
            self.check(request.code, request, peer)
            if _only_certified(request, peer):
                raise _unavailable("ask the next master, which can see your certificate")
        return self._forward(request, peer)

    async def _forward(self, request: Command, peer: Peer) -> Answer:
        if self._waiting >= WAITING_MAX:
            raise _unavailable(f"{WAITING_MAX} requests wait for the next master already")
        self._waiting += 1
        self.total += 1
        try:
            return await self._until_taken(request, peer)
        finally:
            self._waiting -= 1

    async def _until_taken(self, request: Command, peer: Peer) -> Answer:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + WAIT_S
        why = "there is no other master yet"
        marked = msgspec.structs.replace(
            request, fields=request.fields | {MARK: "1"}, wire_pairs=None
        )
        if self.sign is not None and ACCESS_KEY not in request.fields:
            marked = self.sign(marked)
        while (left := deadline - loop.time()) > 0:
            successor = self.successor()
            if not self.is_on and self._inner is not None:
                return await self._here(request, peer)
            if successor is not None and self.connections is not None:
                try:
                    if request.is_oneway:
                        await self.connections.tell(successor, marked)
                        return None
                    reply = await self.connections.ask(successor, marked, left)
                    if reply.code != ResponseCode.SERVICE_NOT_AVAILABLE:
                        return request.response(
                            reply.code, reply.fields, reply.body, remark=reply.remark
                        )
                    why = reply.remark or "the next master takes nothing yet"
                except GantryError as error:
                    why = str(error)
            await asyncio.sleep(min(PAUSE_S, max(left, 0.0)))
        raise _unavailable(why)

    async def _here(self, request: Command, peer: Peer) -> Answer:
        """Let the broker behind have it after all: it is master again."""
        frame = encode_frame(request)
        if self._inner is None:
            raise _unavailable(CHANGING)
        answers = self._inner.take(frame, 0, len(frame), peer).answers
        first = answers[0] if answers else None
        if asyncio.isfuture(first) or asyncio.iscoroutine(first):
            answer: Answer = await first
            return answer
        return first


def _only_certified(request: Command, peer: Peer) -> bool:
    """Tell whether a request cannot be judged elsewhere: this broker's signature may everything."""
    return request.code in PLACED and bool(peer.certificate) and ACCESS_KEY not in request.fields


def _refuse(_request: Command, _peer: Peer) -> Pending:
    raise _unavailable(CHANGING)


def _unavailable(why: str) -> ServiceNotAvailable:
    return ServiceNotAvailable(f"service not available now: {why}")
