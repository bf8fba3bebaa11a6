"""Procedures of jobs and pauses: order, results, errors, being left."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from gantrymq.store.stepping import Pause, Stepper
from gantrymq.store.worker import InlineWorker
from gantrymq.testing.clock import VirtualClock
from gantrymq.testing.workers import StepWorker

if TYPE_CHECKING:
    from gantrymq.store.stepping import Procedure


class Bench:
    """A stepper, and what its procedures have said."""

    def __init__(self, worker: StepWorker | InlineWorker) -> None:
        self.clock = VirtualClock()
        self.stepper = Stepper(worker, self.clock)
        self.said: list[object] = []

    def begin(self, procedure: Procedure) -> None:
        """Start a procedure."""
        self.stepper.begin(procedure, lambda error: self.said.append(("end", error)))

    def two_jobs(self) -> Procedure:
        """Say what two jobs have answered, with a pause between them."""
        self.said.append((yield lambda: "first"))
        yield Pause(2.0)
        self.said.append((yield lambda: "second"))


def test_jobs_and_pauses_in_order() -> None:
    worker = StepWorker()
    bench = Bench(worker)
    bench.begin(bench.two_jobs())
    assert (bench.said, bench.stepper.is_busy, bench.stepper.resume_at) == ([], True, None)
    worker.run_one()
    worker.report_one()
    assert (bench.said, bench.stepper.resume_at) == (["first"], 2.0)
    bench.stepper.tick(1.9)
    assert worker.waiting_jobs == 0
    bench.stepper.tick(2.0)
    worker.drain()
    assert bench.said == ["first", "second", ("end", None)]
    assert not bench.stepper.is_busy


def test_a_worker_that_answers_at_once_piles_up_nothing() -> None:
    bench = Bench(InlineWorker())

    def long() -> Procedure:
        for number in range(5000):
            assert (yield partial(abs, number)) == number

    bench.begin(long())
    assert bench.said == [("end", None)]


def test_an_error_comes_to_where_the_job_was_asked_for() -> None:
    bench = Bench(InlineWorker())
    error = OSError("no")

    def fail() -> None:
        raise error

    def careful() -> Procedure:
        with pytest.raises(OSError, match="no"):
            yield fail
        bench.said.append((yield lambda: "goes on"))
        yield fail

    bench.begin(careful())
    assert bench.said == ["goes on", ("end", error)]


def test_an_error_of_our_own_goes_up_and_leaves_it_usable() -> None:
    bench = Bench(InlineWorker())

    def wrong() -> Procedure:
        yield lambda: 1
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bench.begin(wrong())
    assert not bench.stepper.is_busy
    bench.begin(bench.two_jobs())
    assert bench.said == ["first"]


def test_what_was_left_hears_nothing_more() -> None:
    worker = StepWorker()
    bench = Bench(worker)
    bench.begin(bench.two_jobs())
    worker.run_one()
    bench.stepper.stop()
    worker.report_one()
    bench.stepper.tick(10.0)
    assert bench.said == []
    bench.begin(bench.two_jobs())
    worker.drain()
    assert bench.said == ["first"]
