"""Quotas of users, and how many connections each may have.

Only a broker with access control knows users, and its router sees every request (`protection`), so
this is where all of them pass: the request is judged before its handler runs, and what is answered
to a read is taken out of the user's quota, whichever request it was. Sends are counted by what was
sent, header fields and all, reads by what was answered.

A connection is a user's from the first request on that proves who it is.

Owned by the event loop's task.
"""

from __future__ import annotations

from asyncio import isfuture
from inspect import iscoroutine
from typing import TYPE_CHECKING, Final, Protocol

from gantrymq.broker.quotas.meter import READ, SEND, QuotaExceeded
from gantrymq.broker.quotas.throttled import READ_S_MAX
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.peer import answer_bytes

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable, Coroutine, Mapping
    from typing import Any

    from gantrymq.broker.quotas.quotas import Quotas
    from gantrymq.broker.quotas.throttled import Throttled
    from gantrymq.broker.settings import LiveSettings
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Peer, Pending

CONNECTIONS: Final = "CONNECTIONS_USER"
CLOSE_S: Final = 0.2
"""After the refusal of a connection, so that it is read first."""
_WAYS: Final[dict[int, str]] = {
    RequestCode.SEND_MESSAGE: SEND,
    RequestCode.SEND_MESSAGE_V2: SEND,
    RequestCode.SEND_BATCH_MESSAGE: SEND,
    RequestCode.SEND_REPLY_MESSAGE: SEND,
    RequestCode.SEND_REPLY_MESSAGE_V2: SEND,
    RequestCode.CONSUMER_SEND_MSG_BACK: SEND,
    RequestCode.PULL_MESSAGE: READ,
    RequestCode.LITE_PULL_MESSAGE: READ,
    RequestCode.POP_MESSAGE: READ,
    RequestCode.QUERY_MESSAGE: READ,
    RequestCode.VIEW_MESSAGE_BY_ID: READ,
}
"""What counts; whatever keeps a client going (heartbeats, offsets, acknowledgements) does not."""


class Who(Protocol):
    """Somebody whose requests are counted."""

    @property
    def access_key(self) -> str:
        """Return its name."""
        ...

    @property
    def quota(self) -> Mapping[str, int]:
        """Return what its file says; empty if that says nothing."""
        ...


class UserLimits:
    """Counts the requests and connections of users."""

    def __init__(
        self,
        quotas: Quotas,
        throttled: Throttled,
        settings: LiveSettings,
        new_future: Callable[[], Future[Answer]],
        refused: Callable[[str, str], None],
    ) -> None:
        """Tell `refused` user and address of a connection that is one too many."""
        self._quotas = quotas
        self._throttled = throttled
        self._settings = settings
        self._new_future = new_future
        self._refused = refused
        self._user_of: dict[int, str] = {}
        self._connections: dict[str, int] = {}

    def connections_of(self, user: str) -> int:
        """Return how many connections a user has."""
        return self._connections.get(user, 0)

    def handle(
        self, who: Who, code: int, request: Command, peer: Peer, run: Callable[[], Pending]
    ) -> Pending:
        """Return what `run` answers, if the user may ask now.

        Raises:
            QuotaExceeded: it may not; nothing was done.
        """
        self._check_connection(who, peer)
        way = _WAYS.get(code)
        if way is None:
            return run()
        meter = self._quotas.of_user(who.access_key, who.quota, way)
        if meter is None:
            return run()
        exceeded = meter.exceeded(self._throttled.now())
        if exceeded is None:
            meter.take(len(request.body) if way is SEND else 0, 1)
            return run() if way is SEND else self._counted(who, run())
        self._quotas.refused(exceeded.cause)
        if way is SEND:
            reply = None if request.is_oneway else _refusal(request, exceeded)
            return self._throttled.refusal(exceeded.cause, exceeded.wait_s, peer, reply)
        return self._later(who, code, request, peer, run, exceeded)

    # -- reads ----------------------------------------------------------------------------------

    def _later(
        self,
        who: Who,
        code: int,
        request: Command,
        peer: Peer,
        run: Callable[[], Pending],
        exceeded: QuotaExceeded,
    ) -> Pending:
        """Let a read wait for its turn; refuse it if that is far off."""
        future = self._new_future()
        deadline = self._throttled.now() + READ_S_MAX

        def go_on() -> None:
            if future.done():
                return
            meter = self._quotas.of_user(who.access_key, who.quota, READ)
            again = None if meter is None else meter.exceeded(self._throttled.now())
            if again is None:
                if meter is not None:
                    meter.take(0, 1)
                _pass_on(self._counted(who, run()), future)
            elif not wait(again):
                future.set_result(None if request.is_oneway else _refusal(request, again))

        def wait(why: QuotaExceeded) -> bool:
            if self._throttled.now() + why.wait_s > deadline:
                return False
            return self._throttled.hold(why.cause, why.wait_s, peer, go_on)

        if wait(exceeded):
            return future
        return None if request.is_oneway else _refusal(request, exceeded)

    def _counted(self, who: Who, pending: Pending) -> Pending:
        """Take what is answered out of the user's quota."""

        def count(answer: Answer) -> None:
            meter = self._quotas.of_user(who.access_key, who.quota, READ)
            if meter is not None:
                meter.take(answer_bytes(answer), 0)

        if isfuture(pending):
            pending.add_done_callback(lambda done: count(done.result()))
            return pending
        if iscoroutine(pending):
            return _counted_later(pending, count)
        count(pending)  # type: ignore[arg-type]
        return pending

    # -- connections ----------------------------------------------------------------------------

    def _check_connection(self, who: Who, peer: Peer) -> None:
        user = who.access_key
        if self._user_of.get(peer.number) == user:
            return
        most = who.quota.get("connections", self._settings.now.user_connections)
        if most and self.connections_of(user) >= most:
            self._quotas.refused(CONNECTIONS)
            self._refused(user, peer.address)
            self._throttled.hold(
                CONNECTIONS, CLOSE_S, peer, lambda: peer.close(f"user {user} has too many")
            )
            raise QuotaExceeded(
                CONNECTIONS,
                f"the user {user} has {most} connections to this broker, as many as it may "
                "(connections); this one is closed",
                1.0,
            )
        self._forget(peer.number)
        self._user_of[peer.number] = user
        self._connections[user] = self.connections_of(user) + 1

    def _forget(self, number: int) -> None:
        user = self._user_of.pop(number, None)
        if user is None:
            return
        left = self._connections[user] - 1
        if left:
            self._connections[user] = left
        else:
            del self._connections[user]

    def peer_closed(self, peer: Peer) -> None:
        """Forget whose connection it was."""
        self._forget(peer.number)


def _refusal(request: Command, error: QuotaExceeded) -> Command:
    return request.response(error.code, remark=error.remark)


def _pass_on(pending: Pending, future: Future[Answer]) -> None:
    """Let a future have what another promise comes to; promises of a router do not fail."""

    def is_there(done: Future[Answer]) -> None:
        if not future.done():
            future.set_result(done.result())

    if isfuture(pending):
        pending.add_done_callback(is_there)
    elif iscoroutine(pending):
        future.get_loop().create_task(pending).add_done_callback(is_there)
    else:
        future.set_result(pending)  # type: ignore[arg-type]


async def _counted_later(
    pending: Coroutine[Any, Any, Answer], count: Callable[[Answer], None]
) -> Answer:
    answer = await pending
    count(answer)
    return answer
