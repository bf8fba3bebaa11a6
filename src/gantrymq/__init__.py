"""gantrymq: RocketMQ in one pip install, with your topics as Spark tables.

    from gantrymq import Producer, PushConsumer

    async with Producer("127.0.0.1:9876") as producer:
        await producer.send("Orders", b"one more", tags="new")

The names below are the client's. They are imported when they are first used, so that a command or a
broker that needs none of them does not pay for them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from gantrymq.version import VERSION as __version__

if TYPE_CHECKING:
    from gantrymq.client.consuming.handling import ConsumeStatus, Later
    from gantrymq.client.consuming.subscription import Sql, sql
    from gantrymq.client.errors import (
        ClientClosed,
        ClientError,
        GantryError,
        InvalidValue,
        NoRoute,
        NoRouteCause,
        NotStarted,
        PeerGone,
        PeerLate,
        ResponseError,
        TooManyInFlight,
        UsedAfterFork,
    )
    from gantrymq.client.producer import Producer
    from gantrymq.client.pull_consumer import PullConsumer, PullResult, PullStatus
    from gantrymq.client.push_consumer import PushConsumer
    from gantrymq.client.received import ReceivedMessage
    from gantrymq.client.results import (
        SendResult,
        SendStatus,
        TransactionResult,
        TransactionState,
    )
    from gantrymq.model.message import Message
    from gantrymq.model.queue import MessageQueue

_PLACES = {
    "ClientClosed": "client.errors",
    "ClientError": "client.errors",
    "ConsumeStatus": "client.consuming.handling",
    "GantryError": "client.errors",
    "InvalidValue": "client.errors",
    "Later": "client.consuming.handling",
    "Message": "model.message",
    "MessageQueue": "model.queue",
    "NoRoute": "client.errors",
    "NoRouteCause": "client.errors",
    "NotStarted": "client.errors",
    "PeerGone": "client.errors",
    "PeerLate": "client.errors",
    "Producer": "client.producer",
    "PullConsumer": "client.pull_consumer",
    "PullResult": "client.pull_consumer",
    "PullStatus": "client.pull_consumer",
    "PushConsumer": "client.push_consumer",
    "ReceivedMessage": "client.received",
    "ResponseError": "client.errors",
    "SendResult": "client.results",
    "SendStatus": "client.results",
    "Sql": "client.consuming.subscription",
    "TooManyInFlight": "client.errors",
    "TransactionResult": "client.results",
    "TransactionState": "client.results",
    "UsedAfterFork": "client.errors",
    "sql": "client.consuming.subscription",
}
"""Public name -> the module that has it."""

__all__ = [
    "ClientClosed",
    "ClientError",
    "ConsumeStatus",
    "GantryError",
    "InvalidValue",
    "Later",
    "Message",
    "MessageQueue",
    "NoRoute",
    "NoRouteCause",
    "NotStarted",
    "PeerGone",
    "PeerLate",
    "Producer",
    "PullConsumer",
    "PullResult",
    "PullStatus",
    "PushConsumer",
    "ReceivedMessage",
    "ResponseError",
    "SendResult",
    "SendStatus",
    "Sql",
    "TooManyInFlight",
    "TransactionResult",
    "TransactionState",
    "UsedAfterFork",
    "__version__",
    "sql",
]


if not TYPE_CHECKING:  # a type checker knows the names, and is to complain about others

    def __getattr__(name: str) -> object:
        """Import a public name when it is first asked for."""
        place = _PLACES.get(name)
        if place is None:
            raise AttributeError(f"module 'gantrymq' has no attribute {name!r}")
        found: object = getattr(import_module(f"gantrymq.{place}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    """Name what can be had."""
    return sorted({*globals(), *__all__})
