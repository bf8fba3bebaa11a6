"""Tests of nodes run on both event loops."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.transport.loop import uvloop_factory
from support.etcd import etcd
from support.nodes import made

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from pathlib import Path

    from support.transport import Result, Run

TEST_S_MAX = 90
STOP_S_MAX = 20


@pytest.fixture
def etcd_at(tmp_path: Path) -> Iterator[str]:
    """Return the address of an etcd of the test's own."""
    with etcd(tmp_path / "etcd") as running:
        yield running.address


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
            made.clear()
            try:
                return await asyncio.wait_for(main, TEST_S_MAX)
            except BaseException:
                # A loop with live sockets does not close, and the failure would never be seen.
                for node in made:
                    with suppress(Exception):
                        await asyncio.wait_for(node.stop(), STOP_S_MAX)
                raise

        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(bounded())

    return run_main
