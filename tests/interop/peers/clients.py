"""The clients that tests run, and what each can do beyond what all can."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from support import peers, tools

if TYPE_CHECKING:
    from collections.abc import Callable

BINARY: Final = "-Drocketmq.serialize.type=ROCKETMQ"


class Client(NamedTuple):
    """A client: how it is had, and what it can do beyond what all can."""

    command: Callable[[], list[str]]
    abilities: frozenset[str]


JAVA: Final = frozenset({
    "creates", "oneway", "queue", "batch", "request", "orderly", "unlocking", "orderly_retry",
    "sql", "sql_checked", "from", "pull", "query", "retries", "transactions", "many",
    "traces", "traces_of_readers",
})  # fmt: skip
JAVA_5: Final = JAVA - {"traces_of_readers"} | {"pops", "gathers", "timers"}
GO: Final = frozenset({
    "creates", "oneway", "batch", "request", "orderly", "sql", "from", "retries", "transactions",
})  # fmt: skip

CLIENTS: Final = {
    "java-4.9.7": Client(lambda: peers.java("4.9.7"), JAVA),
    "java-4.9.7-binary": Client(lambda: peers.java("4.9.7", BINARY), JAVA),
    "java-5.5.0": Client(lambda: peers.java("5.5.0"), JAVA_5),
    "java-5.5.0-binary": Client(lambda: peers.java("5.5.0", BINARY), JAVA_5),
    "go": Client(peers.go, GO),
    "node": Client(peers.node, frozenset({"sql", "from", "retries"})),
    "cpp": Client(peers.cpp, frozenset({"creates", "oneway", "orderly", "unlocking"})),
}


OURS: Final = "python"
"""The project's own client, which has tests enough of its own; here it is one beside others."""


def command_of(client: str) -> list[str]:
    """Return how a client is started; one that cannot be had is a named skip, a failure in CI."""
    return had(client, peers.python if client == OURS else CLIENTS[client].command)


def had(client: str, command: Callable[[], list[str]]) -> list[str]:
    """Return a command; the same for a client that is started in a way of its own."""
    try:
        return command()
    except peers.NotInstalled as error:
        if tools.required():
            pytest.fail(f"{error}; with CI=true no test may be left out", pytrace=False)
        pytest.skip(f"{client}: {error}")
