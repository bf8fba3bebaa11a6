"""A disk that hangs while consume queues are saved: memory stays bounded, and nothing is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.store.status import PutStatus
from support.store_rig import BORN_HOST, Rig, frames

if TYPE_CHECKING:
    import pytest

OK = PutStatus.PUT_OK
BOUND = 2000
"""Bytes of units: a hundred messages."""


def hanging(**changes: str) -> Rig:
    """Return a store whose disk has not come back from saving the queues."""
    rig = Rig({"mappedFileSizeCommitLog": "65536", "mappedFileSizeConsumeQueue": "4000"} | changes)
    rig.store.backlog.bytes_max = BOUND
    rig.store.backlog.look_at = 0
    rig.put(b"first")
    rig.tick(1)
    assert rig.queue_flush.waiting_jobs > 0
    return rig


def fill(rig: Rig) -> int:
    """Put messages until one is refused; return how many were taken."""
    for number in range(1000):
        if rig.put(b"%d" % number, queue_id=number % 2).status is not OK:
            return number
    raise AssertionError("nothing bounds what waits")


def test_puts_are_refused_when_too_much_waits_and_the_cause_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = hanging()
    taken = fill(rig)
    assert 90 <= taken <= 110
    assert rig.put(b"x").status is PutStatus.SERVICE_NOT_AVAILABLE
    assert "consume queues wait for the disk" in str(rig.store.writability.reason)
    assert caplog.text.count("the store takes no writes") == 1


def test_writes_are_taken_again_by_themselves_and_every_message_is_there() -> None:
    rig = hanging()
    taken = fill(rig)
    rig.queue_flush.drain()
    assert rig.put(b"last").status is OK
    bodies = rig.bodies("T", 0) + rig.bodies("T", 1)
    assert sorted(bodies) == sorted([b"first", b"last", *(b"%d" % n for n in range(taken))])


def test_the_lane_is_bound_as_well() -> None:
    rig = hanging()
    buffer = frames([b"body"] * 20)
    for _ in range(30):
        if rig.store.writability.reason is not None:
            break
        rig.store.append_sends(buffer, 0, len(buffer), BORN_HOST)
    assert rig.store.queues.waiting_bytes() <= BOUND + 20 * 20
    assert rig.store.writability.reason is not None


def test_a_disk_that_keeps_up_is_never_in_the_way() -> None:
    rig = Rig({"mappedFileSizeCommitLog": "65536"})
    rig.store.backlog.bytes_max = BOUND
    for _ in range(20):
        for _ in range(50):
            assert rig.put(b"x").status is OK
        rig.tick(1)
        rig.settle()
    assert len(rig.bodies()) == 1000
