"""A broker with somebody at its door: every request is checked before any handler sees it.

The router asks the guard about every request. The kernel's lanes answer sends and pulls without a
router, so they are closed: each request is decoded and goes by the router, one by one.

Three requests name a place in the log and no topic, or one that nobody compares with it: a message
that is given back, one that is looked at, and one whose transaction ends. The guard is asked about
the topic that is found there, before the handler runs.

Owned by the event loop's task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from gantrymq.broker.questions import copied, then
from gantrymq.broker.stored_again import decode
from gantrymq.model.names import NO_SEND_TOPICS, TIMER_TOPIC
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.query import ViewMessageRequest
from gantrymq.wire.headers.send import ConsumerSendMessageBackRequest
from gantrymq.wire.headers.transaction import EndTransactionRequest
from gantrymq.wire.properties import REAL_TOPIC, decode_properties

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gantrymq.broker.quotas.users import UserLimits, Who
    from gantrymq.broker.router import Router
    from gantrymq.broker.service import BrokerService
    from gantrymq.store.message_store import MessageStore
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Handler, Peer, Pending


class Guard(Protocol):
    """Who decides. What it raises is the answer."""

    def check(self, code: int, request: Command, peer: Peer) -> Who | None:
        """Let a request pass, by what it says; return whose it is."""
        ...

    def check_read(self, request: Command, peer: Peer, topic: str) -> None:
        """Let it read a message of a topic that it does not name."""
        ...

    def check_write(self, request: Command, peer: Peer, topic: str) -> None:
        """Let it bring a message into such a topic."""
        ...


class _Place(NamedTuple):
    """A request that names a place in the log."""

    offset: Callable[[Mapping[str, str]], int]
    writes: bool


_PLACES: Final[dict[int, _Place]] = {
    RequestCode.CONSUMER_SEND_MSG_BACK: _Place(
        lambda fields: ConsumerSendMessageBackRequest.decode(fields).offset, writes=False
    ),
    RequestCode.VIEW_MESSAGE_BY_ID: _Place(
        lambda fields: ViewMessageRequest.decode(fields).offset, writes=False
    ),
    RequestCode.END_TRANSACTION: _Place(
        lambda fields: EndTransactionRequest.decode(fields).commit_log_offset, writes=True
    ),
}


def protect(
    router: Router,
    service: BrokerService,
    store: MessageStore,
    guard: Guard,
    handlers: Mapping[int, Handler],
    limits: UserLimits,
) -> None:
    """Let a guard see every request from now on; `handlers` answer what it brings with it.

    `limits` count what those do whom the guard knows.
    """
    router.add(handlers)
    for code, place in _PLACES.items():
        handler = router.handler(code)
        if handler is not None:
            router.add({code: _looked_at(handler, place, store, guard)})
    router.check = guard.check
    router.limits = limits
    service.uses_lane = False
    service.asks_router = True


def _looked_at(handler: Handler, place: _Place, store: MessageStore, guard: Guard) -> Handler:
    """Return a handler that first sees whose message is there."""
    check = guard.check_write if place.writes else guard.check_read

    def handle(request: Command, peer: Peer) -> Pending:
        offset = place.offset(request.fields)

        def go_on(raw: bytes | None) -> Pending:
            if raw is not None:
                check(request, peer, _topic_at(raw))
            return handler(request, peer)

        return then(store, lambda asked: copied(asked.record_at(offset)), go_on)

    return handle


def _topic_at(raw: bytes) -> str:
    """Return the topic that a message is for, wherever it waits."""
    record = decode(raw)
    topic = record.topic.decode(errors="replace")
    if topic not in NO_SEND_TOPICS and topic != TIMER_TOPIC:
        return topic  # a user may call a property of theirs as they like
    return decode_properties(record.properties).get(REAL_TOPIC, topic)
