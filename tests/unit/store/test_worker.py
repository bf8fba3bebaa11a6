"""A thread that works for the store: whoever waits for it hears how it went."""

from __future__ import annotations

import queue
from typing import TYPE_CHECKING

import pytest

from gantrymq.store.worker import JobInterrupted, ThreadWorker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    Calls: TypeAlias = queue.SimpleQueue[Callable[[], None]]

WAIT_S = 60


@pytest.fixture
def calls() -> Calls:
    return queue.SimpleQueue()


@pytest.fixture
def worker(calls: Calls) -> Iterator[ThreadWorker]:
    made = ThreadWorker("test", calls.put)
    yield made
    made.close()


def raises(error: BaseException) -> None:
    raise error


def test_results_and_errors_come_to_the_owner(worker: ThreadWorker, calls: Calls) -> None:
    heard: list[object] = []
    worker.submit(lambda: 42, heard.append, heard.append)
    calls.get(timeout=WAIT_S)()
    error = OSError(5, "the disk is broken")
    worker.submit(lambda: raises(error), heard.append, heard.append)
    calls.get(timeout=WAIT_S)()
    assert heard == [42, error]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_a_job_that_is_ended_from_outside_leaves_nobody_waiting(
    worker: ThreadWorker, calls: Calls, error: BaseException
) -> None:
    heard: list[Exception] = []
    worker.submit(lambda: raises(error), lambda _: None, heard.append)
    calls.get(timeout=WAIT_S)()
    assert isinstance(heard[0], JobInterrupted)
    assert type(error).__name__ in str(heard[0])
    with pytest.raises(JobInterrupted, match=type(error).__name__):
        worker.begin(lambda: raises(error)).result(WAIT_S)
    assert worker.begin(lambda: "and goes on").result(WAIT_S) == "and goes on"
