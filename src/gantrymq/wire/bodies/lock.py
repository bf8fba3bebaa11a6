"""Locking queues for ordered consumption (41, 42)."""

from typing import Final

from msgspec import field

from gantrymq.model.queue import MessageQueue
from gantrymq.wire.bodies.codec import JsonBody
from gantrymq.wire.bodies.schema import Body


class LockRequest(Body, frozen=True, kw_only=True):
    """The queues that a client wants to have, or to give back."""

    consumer_group: str
    client_id: str
    mq_set: tuple[MessageQueue, ...] = ()
    only_this_broker: bool = False
    """5.x: sent by another broker of the group, which asks all of them."""


class LockAnswer(Body, frozen=True, kw_only=True):
    """The queues that the client has now."""

    lock_ok_mq_set: tuple[MessageQueue, ...] = field(name="lockOKMQSet", default=())


LOCK_REQUEST: Final = JsonBody(LockRequest)
LOCK_ANSWER: Final = JsonBody(LockAnswer)
