"""What a client raises of its own. Every error has `retriable`; answers have classes by their code.

GantryError
├── InvalidValue      an argument that cannot be                    nothing was sent
├── ResponseError     a broker's answer (`wire.response_errors`)    its code, its remark
├── PeerGone          the connection broke, or none could be made   it may have been done
├── PeerLate          no answer in time                             it may have been done
└── ClientError
    ├── NoRoute            nobody to send to or read from; `cause` says why
    ├── NotStarted         used before `start`
    ├── ClientClosed       used after `close`, or closed while it waited
    ├── UsedAfterFork      used in a child of the process that started it
    └── TooManyInFlight    a bound was reached and did not clear in time
"""

from __future__ import annotations

from enum import Enum

from gantrymq.errors import ContentError, GantryError, InvalidValue, ProtocolError
from gantrymq.wire.peer import PeerGone, PeerLate
from gantrymq.wire.response_errors import ResponseError

__all__ = [
    "ClientClosed",
    "ClientError",
    "ContentError",
    "GantryError",
    "InvalidValue",
    "NoRoute",
    "NoRouteCause",
    "NotStarted",
    "PeerGone",
    "PeerLate",
    "ProtocolError",
    "ResponseError",
    "TooManyInFlight",
    "UsedAfterFork",
]


class ClientError(GantryError):
    """A call that the client itself cannot make."""


class NoRouteCause(Enum):
    """Why there is no way to a topic's queues."""

    NO_NAME_SERVER = "no name server answered"
    REFUSED = "the name server refused to answer"
    UNKNOWN_TOPIC = "no name server knows the topic"
    NOT_WRITABLE = "no broker lets the topic be written"
    NOT_READABLE = "no broker lets the topic be read"
    NO_MASTER = "the brokers of the topic have no master"


_MAY_PASS = frozenset({NoRouteCause.NO_NAME_SERVER, NoRouteCause.REFUSED, NoRouteCause.NO_MASTER})


class NoRoute(ClientError):
    """There is no way to a topic's queues; `cause` says which of the reasons it is."""

    retriable: bool  # type: ignore[misc]  # depends on the cause

    def __init__(self, topic: str, cause: NoRouteCause, problem: str) -> None:
        super().__init__(f"no route to topic {topic!r}: {problem}")
        self.topic = topic
        self.cause = cause
        self.problem = problem
        self.retriable = cause in _MAY_PASS

    def __reduce__(self) -> tuple[type[NoRoute], tuple[str, NoRouteCause, str]]:
        """Let the error cross a process border."""
        return type(self), (self.topic, self.cause, self.problem)


class NotStarted(ClientError):
    """The client was not started."""


class ClientClosed(ClientError):
    """The client was closed."""


class UsedAfterFork(ClientError):
    """The process is a child of the one that started the client."""

    def __init__(self, started_in: int, used_in: int) -> None:
        super().__init__(
            f"the client was started in process {started_in} and is used in {used_in}, which was"
            " forked from it: sockets cannot be shared, so make a new client after the fork"
        )
        self.started_in = started_in
        self.used_in = used_in

    def __reduce__(self) -> tuple[type[UsedAfterFork], tuple[int, int]]:
        """Let the error cross a process border."""
        return type(self), (self.started_in, self.used_in)


class TooManyInFlight(ClientError):
    """A bound on what is under way was reached, and no place became free in time."""

    retriable = True
