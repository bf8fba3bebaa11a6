"""The life of a process, with a node that only notes what happens to it."""

from __future__ import annotations

import gc
import os
import signal

import pytest

from gantrymq.node.lifecycle import STOPPED_CLEANLY, STOPPED_WITH_LOSSES, run_node


class NotedNode:
    """Starts, stops, and says what it is told to say."""

    def __init__(self, *, is_safe: bool = True, problem: str = "") -> None:
        self.seen: list[str] = []
        self.frozen: list[int] = []
        self._is_safe = is_safe
        self._problem = problem

    async def start(self) -> None:
        self.seen.append("start")
        if self._problem:
            raise OSError(self._problem)

    async def stop(self) -> bool:
        self.frozen.append(gc.get_freeze_count())
        self.seen.append("stop")
        return self._is_safe

    def started(self) -> None:
        self.seen.append("started")
        os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize(
    ("is_safe", "status"), [(True, STOPPED_CLEANLY), (False, STOPPED_WITH_LOSSES)]
)
def test_it_says_that_it_is_ready_and_stops_when_told_to(*, is_safe: bool, status: int) -> None:
    node = NotedNode(is_safe=is_safe)
    assert run_node(node, node.started) == status
    assert node.seen == ["start", "started", "stop"]


def test_a_start_that_fails_is_cleaned_up_after() -> None:
    node = NotedNode(problem="the disk is gone")
    with pytest.raises(OSError, match="the disk is gone"):
        run_node(node, node.started)
    assert node.seen == ["start", "stop"]


def test_the_collector_leaves_alone_what_a_start_has_made() -> None:
    node = NotedNode()
    before = gc.get_freeze_count()
    run_node(node, node.started)
    assert node.frozen[0] > before + 1000, "its modules alone are more"
    assert gc.get_freeze_count() == before, "the test's own process goes on as it was"
