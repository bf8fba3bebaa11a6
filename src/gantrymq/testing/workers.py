"""Workers that do nothing until a test lets them, so that a seed decides who comes first.

A `StepWorker` stands in the place of a `ThreadWorker`. A job waits until `run_one`; its report
waits until `report_one`, as a call posted to a busy event loop does. So a test can be at any point
between a send and its answer: not begun, forced and nobody knows, known and not yet let out.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


class StepWorker:
    """Jobs run one after the other, each when it is told to; owned by the test."""

    def __init__(self) -> None:
        self._jobs: deque[Callable[[], None]] = deque()
        self._reports: deque[Callable[[], None]] = deque()
        self.is_closed = False

    @property
    def waiting_jobs(self) -> int:
        """Return how many jobs have not begun."""
        return len(self._jobs)

    @property
    def waiting_reports(self) -> int:
        """Return how many jobs are done without their owner knowing."""
        return len(self._reports)

    # -- Worker ---------------------------------------------------------------------------------

    def submit(
        self,
        job: Callable[[], Result],
        done: Callable[[Result], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Keep a job until `run_one`."""
        self._check_open()

        def run() -> None:
            try:
                result = job()
            except Exception as error:  # noqa: BLE001 - a worker reports whatever its job raised
                caught = error
                self._reports.append(lambda: failed(caught))
            else:
                self._reports.append(lambda: done(result))

        self._jobs.append(run)

    def begin(self, job: Callable[[], Result]) -> Future[Result]:
        """Keep a job until `run_one`, or until somebody waits for its result."""
        self._check_open()
        future: _SteppedFuture[Result] = _SteppedFuture(self)

        def run() -> None:
            try:
                result = job()
            except Exception as error:  # noqa: BLE001 - as above
                future.set_exception(error)
            else:
                future.set_result(result)

        self._jobs.append(run)
        return future

    def close(self) -> None:
        """Run what was submitted; its reports stay where they are, as the owner is busy."""
        self.is_closed = True
        while self.run_one():
            pass

    def _check_open(self) -> None:
        if self.is_closed:
            raise RuntimeError("a worker that was closed takes no more jobs")

    # -- the test's side ------------------------------------------------------------------------

    def run_one(self) -> bool:
        """Run the oldest job; False if there is none."""
        if not self._jobs:
            return False
        self._jobs.popleft()()
        return True

    def report_one(self) -> bool:
        """Bring the oldest report to the owner; False if there is none."""
        if not self._reports:
            return False
        self._reports.popleft()()
        return True

    def drain(self) -> None:
        """Run and report until nothing waits."""
        while self.run_one() or self.report_one():
            pass


class _SteppedFuture(Future[Result]):
    """A result that whoever asks for it makes the worker work for."""

    def __init__(self, worker: StepWorker) -> None:
        super().__init__()
        self._worker = worker

    def result(self, timeout: float | None = None) -> Result:
        """Run jobs until this one is done."""
        while not self.done() and self._worker.run_one():
            pass
        return super().result(timeout)
