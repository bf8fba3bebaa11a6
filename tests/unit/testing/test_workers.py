"""Workers that wait for a test."""

from __future__ import annotations

import pytest

from gantrymq.testing.workers import StepWorker


def refuse() -> int:
    raise OSError("no")


def test_a_job_and_its_report_wait_to_be_let_go() -> None:
    worker, done, failed = StepWorker(), list[int](), list[Exception]()
    worker.submit(lambda: 7, done.append, failed.append)
    worker.submit(refuse, done.append, failed.append)
    assert (worker.waiting_jobs, worker.waiting_reports) == (2, 0)
    assert not worker.report_one()
    assert worker.run_one()
    assert (worker.waiting_jobs, worker.waiting_reports, done) == (1, 1, [])
    assert worker.report_one()
    assert done == [7]
    worker.drain()
    assert [str(error) for error in failed] == ["no"]
    assert not worker.run_one()


def test_who_asks_for_a_result_makes_it_work() -> None:
    worker, order = StepWorker(), list[str]()
    worker.submit(lambda: order.append("first"), lambda _none: None, lambda _error: None)
    future = worker.begin(lambda: order.append("second"))
    later = worker.begin(refuse)
    assert not future.done()
    future.result(1)
    assert order == ["first", "second"]
    assert not later.done()
    with pytest.raises(OSError, match="no"):
        later.result()


def test_closing_runs_the_jobs_and_reports_nothing() -> None:
    worker, done = StepWorker(), list[int]()
    worker.submit(lambda: 7, done.append, lambda _error: None)
    worker.close()
    assert (done, worker.waiting_reports) == ([], 1)
    worker.drain()
    assert done == [7]
    with pytest.raises(RuntimeError):
        worker.submit(lambda: 7, done.append, lambda _error: None)
    with pytest.raises(RuntimeError):
        worker.begin(lambda: 7)
