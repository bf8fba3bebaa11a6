"""Every test of the client that takes `run` runs on both event loops."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.transport.loop import uvloop_factory

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from support.transport import Result, Run

TEST_S_MAX = 90


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Return what runs the test; where uvloop is missing, the half with it is left out by name."""
    factory = None
    if request.param == "uvloop":
        factory = uvloop_factory()
        if factory is None:
            pytest.skip("uvloop is not installed (it is in the group dev)")

    def run_main(main: Coroutine[Any, Any, Result]) -> Result:
        async def bounded() -> Result:
            return await asyncio.wait_for(main, TEST_S_MAX)

        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(bounded())

    return run_main
