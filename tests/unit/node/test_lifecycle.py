"""The life of a process, with a node that only notes what happens to it."""

from __future__ import annotations

import gc
import os
import resource
import signal

import pytest

from gantrymq.node.lifecycle import STOPPED_CLEANLY, STOPPED_WITH_LOSSES, run_node
from gantrymq.node.machine import FILES_MAX


class NotedNode:
    """Starts, stops, and says what it is told to say."""

    def __init__(
        self, *, is_safe: bool = True, problem: str = "", told: int = signal.SIGTERM
    ) -> None:
        self.seen: list[str] = []
        self.frozen: list[int] = []
        self._is_safe = is_safe
        self._problem = problem
        self._told = told

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
        os.kill(os.getpid(), self._told)


@pytest.mark.parametrize(
    ("is_safe", "status"), [(True, STOPPED_CLEANLY), (False, STOPPED_WITH_LOSSES)]
)
def test_it_says_that_it_is_ready_and_stops_when_told_to(*, is_safe: bool, status: int) -> None:
    node = NotedNode(is_safe=is_safe)
    assert run_node(node, node.started) == status
    assert node.seen == ["start", "started", "stop"]


@pytest.mark.parametrize("told", [signal.SIGINT, signal.SIGHUP])
def test_the_end_of_a_terminal_is_a_reason_to_stop_in_order(told: int) -> None:
    before = signal.signal(told, signal.SIG_DFL)  # whoever runs the tests may have hidden it
    try:
        node = NotedNode(told=told)
        assert run_node(node, node.started) == STOPPED_CLEANLY
        assert node.seen == ["start", "started", "stop"]
    finally:
        signal.signal(told, before)


def test_what_nohup_hides_stays_hidden() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        node = NotedNode(told=signal.SIGHUP)

        def started() -> None:
            node.started()
            assert node.seen == ["start", "started"]
            os.kill(os.getpid(), signal.SIGTERM)

        assert run_node(node, started) == STOPPED_CLEANLY
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_server_may_open_all_the_files_that_the_system_allows() -> None:
    """A shell's thousand would be a thousand clients."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    seen = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        node = NotedNode()

        def started() -> None:
            seen.append(resource.getrlimit(resource.RLIMIT_NOFILE))
            node.started()

        assert run_node(node, started) == STOPPED_CLEANLY
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    expected = FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, FILES_MAX)
    assert seen == [(expected, hard)]


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
