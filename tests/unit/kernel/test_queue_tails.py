"""Runs that continue open queues are added there; all others are left to their owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.queues import run

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Kernel
    from gantrymq.kernel.tails import QueueTail


def open_tail(kernel: Kernel, offset: int, log_end: int) -> QueueTail:
    tail = kernel.QueueTail()
    tail.end, tail.log_end, tail.is_open = offset * 20, log_end, True
    return tail


def test_what_continues_a_queue_is_added(kernel: Kernel) -> None:
    tails = {(b"T", 0): open_tail(kernel, 5, 1000), (b"T", 1): open_tail(kernel, 0, 0)}
    runs = [run(5, 1000, 1100), run(0, 0, queue_id=1), run(7, 1300)]
    assert kernel.extend_queues(tails, runs) == []
    first, second = tails.values()
    assert (first.end, first.log_end, first.is_open) == (160, 1400, True)
    assert bytes(first.data) == runs[0].units + runs[2].units
    assert (second.end, second.log_end, bytes(second.data)) == (20, 100, runs[1].units)


def test_the_rest_is_returned_in_order(kernel: Kernel) -> None:
    closed = open_tail(kernel, 0, 0)
    closed.is_open = False
    tails = {
        (b"gap", 0): open_tail(kernel, 5, 1000), (b"again", 0): open_tail(kernel, 5, 1000),
        (b"below", 0): open_tail(kernel, 5, 1000), (b"closed", 0): closed,
    }  # fmt: skip
    runs = [
        run(6, 1100, topic=b"gap"),
        run(4, 900, topic=b"again"),
        run(5, 999, topic=b"below"),
        run(0, 0, topic=b"closed"),
        run(0, 0, topic=b"unknown"),
    ]
    before = [(tail.end, tail.log_end) for tail in tails.values()]
    assert kernel.extend_queues(tails, runs) == runs
    assert [(tail.end, tail.log_end) for tail in tails.values()] == before
    assert not any(tail.is_open or tail.data for tail in tails.values())


def test_what_follows_a_run_that_is_left_waits_for_it(kernel: Kernel) -> None:
    """A topic that was made again begins with 0; the old numbers are no longer the queue's."""
    tails = {(b"T", 0): open_tail(kernel, 5, 1000)}
    runs = [run(0, 1000), run(5, 2000)]
    assert kernel.extend_queues(tails, runs) == runs


def test_a_log_end_that_no_log_has_is_left(kernel: Kernel) -> None:
    tails = {(b"T", 0): open_tail(kernel, 5, 1000)}
    runs = [run(5, 2**63 - 50)]
    assert kernel.extend_queues(tails, runs) == runs


def test_a_copy_is_closed_and_grows_no_more(kernel: Kernel) -> None:
    tail = open_tail(kernel, 0, 0)
    kernel.extend_queues({(b"T", 0): tail}, [run(0, 0)])
    copied = tail.copy()
    kernel.extend_queues({(b"T", 0): tail}, [run(1, 100)])
    assert (copied.end, copied.log_end, len(copied.data), copied.is_open) == (20, 100, 20, False)
    assert (tail.end, len(tail.data)) == (40, 40)
