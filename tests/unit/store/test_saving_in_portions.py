"""Many queues are saved portion by portion, and count as saved when all of them are."""

from __future__ import annotations

import errno

import pytest

from gantrymq.store import queue_saving
from gantrymq.store.checkpoint import load_checkpoint
from gantrymq.testing.disk import Operation
from support.store_rig import ROOT, Rig

TOPICS = [f"T{number}" for number in range(7)]


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    """Return a store with seven queues to save, three at a time."""
    monkeypatch.setattr(queue_saving, "PORTION_QUEUES", 3)
    made = Rig()
    for topic in TOPICS:
        made.put(b"one", topic=topic)
    return made


def saved(rig: Rig) -> list[str]:
    """Return the topics whose queue is in its file."""
    return [topic for topic in TOPICS if rig.disk.names(ROOT / "consumequeue" / topic)]


def refused(rig: Rig) -> bool:
    return rig.store.writability.reason is not None


def queues_ms(rig: Rig) -> int:
    return load_checkpoint(rig.disk, ROOT / "checkpoint").queues_ms


def portion(rig: Rig) -> None:
    """Let the worker do one portion, and its owner gather the next."""
    assert rig.queue_flush.run_one()
    assert rig.queue_flush.report_one()


def test_a_portion_at_a_time_and_the_checkpoint_last(rig: Rig) -> None:
    before = queues_ms(rig)
    assert rig.store.flush_queues(thorough=True)
    assert not rig.store.flush_queues(thorough=True), "one job at a time"
    for count in (3, 6):
        portion(rig)
        assert len(saved(rig)) == count
        assert queues_ms(rig) == before
    portion(rig)
    assert len(saved(rig)) == 7
    assert queues_ms(rig) > before
    assert rig.queue_flush.waiting_jobs == 0


def test_what_comes_between_is_saved_too(rig: Rig) -> None:
    rig.store.flush_queues(thorough=True)
    portion(rig)
    for topic in TOPICS:
        rig.put(b"two", topic=topic)
    rig.settle()
    rig.store.flush_queues(thorough=False)
    rig.settle()
    again = rig.again()
    assert [again.bodies(topic) for topic in TOPICS] == [[b"one", b"two"]] * 7
    assert rig.store.queues.waiting_bytes() == 0


def test_a_topic_that_is_deleted_between_two_portions_stays_away(rig: Rig) -> None:
    rig.store.flush_queues(thorough=True)
    portion(rig)
    left = next(topic for topic in TOPICS if topic not in saved(rig))
    rig.store.delete_topic(left)
    rig.settle()
    assert left not in saved(rig)
    assert len(saved(rig)) == 6


def test_a_full_disk_in_the_middle_is_made_good(rig: Rig) -> None:
    rig.store.flush_queues(thorough=True)
    portion(rig)
    rig.disk.fail(Operation.WRITE, errno.ENOSPC)
    rig.settle()
    assert refused(rig)
    assert len(saved(rig)) < 7
    rig.disk.heal()
    rig.store.flush_queues(thorough=True)
    rig.settle()
    assert not refused(rig)
    assert len(saved(rig)) == 7


def test_a_stop_between_two_portions_saves_the_rest(rig: Rig) -> None:
    rig.store.flush_queues(thorough=True)
    portion(rig)
    assert rig.store.close()
    again = rig.again(rig.disk)
    assert again.report.clean
    assert [again.bodies(topic) for topic in TOPICS] == [[b"one"]] * 7
