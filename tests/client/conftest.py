"""The same tests against our own broker and against Apache RocketMQ's, old and new.

A test that takes `target` runs once for each of them. Servers are started once for each worker of a
run and shared by all tests of it, so every test has topics and groups of its own. Ours come last
and stay to the end of the run: Apache's 5.5.0 keeps a core busy for ever once it had a transaction.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from support import apache, targets, tools

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from support.targets import Target
    from support.transport import Result, Run

TEST_S_MAX = 150
TARGETS = [
    *(pytest.param(f"apache-{each}", marks=pytest.mark.tool("java")) for each in apache.VERSIONS),
    "gantrymq",
]


@pytest.fixture(scope="session", params=TARGETS)
def target(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Target]:
    """Return the servers of one kind; a release that cannot be had is a named skip."""
    kind = str(request.param)
    try:
        with targets.running(kind, tmp_path_factory.mktemp(kind)) as running:
            yield running
    except apache.NotFetched as error:
        if tools.required():
            pytest.fail(f"{error}; with CI=true no test may be left out", pytrace=False)
        pytest.skip(str(error))


@pytest.fixture
def run() -> Run:
    """Return what runs a coroutine on a loop of its own, for a minute at most."""

    def run_main(main: Coroutine[Any, Any, Result]) -> Result:
        async def bounded() -> Result:
            return await asyncio.wait_for(main, TEST_S_MAX)

        return asyncio.run(bounded())

    return run_main
