"""The read side of a store: nothing is seen before it is safe, and unknown queues are empty."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from gantrymq.store import query
from gantrymq.store.search import Boundary
from gantrymq.store.status import GetStatus
from gantrymq.testing.disk import Operation
from support.store_rig import Rig

if TYPE_CHECKING:
    from gantrymq.store.message_store import MessageStore

FOREVER = (0, 2**63 - 1)


def seen(store: MessageStore, log_offset: int) -> list[object]:
    """Return every answer that could tell of a message with key k."""
    reads = store.reads
    return [
        reads.record_at(log_offset) is not None,
        len(reads.query_by_key("T", "k", 32, *FOREVER).records),
        reads.earliest_timestamp() is not None,
        reads.earliest_stored("T", 0) is not None,
        reads.stored_at("T", 0, 0) is not None,
        reads.max_offset("T", 0),
        reads.offset_at("T", 0, 2**62, Boundary.LOWER),
        store.get("T", 0, 0, 32).status,
    ]


NOTHING = [False, 0, False, False, False, 0, 0, GetStatus.NO_MESSAGE_IN_QUEUE]
ONE = [True, 1, True, True, True, 1, 1, GetStatus.FOUND]


def test_an_unforced_message_is_not_there() -> None:
    rig = Rig({"flushDiskType": "SYNC_FLUSH"})
    stored = rig.put(b"x", properties={"KEYS": "k"})
    assert rig.store.log.committed_offset > rig.store.dispatched_offset
    assert seen(rig.store, stored.log_offset) == NOTHING
    rig.log_flush.run_one()  # on the disk, and nobody knows
    assert seen(rig.store, stored.log_offset) == NOTHING
    rig.log_flush.report_one()
    assert seen(rig.store, stored.log_offset) == ONE


def test_of_several_only_those_that_are_forced() -> None:
    rig = Rig({"flushDiskType": "SYNC_FLUSH"})
    first = rig.put(b"x", properties={"KEYS": "k"})
    rig.settle()
    second = rig.put(b"y", properties={"KEYS": "k"})
    assert seen(rig.store, first.log_offset) == ONE
    assert rig.store.reads.record_at(second.log_offset) is None
    rig.settle()
    assert rig.store.reads.record_at(second.log_offset) is not None


def test_a_dispatch_that_a_full_disk_cut_short_shows_nothing() -> None:
    rig = Rig()
    # The queue takes its unit; the index, which comes next, finds no room for its file.
    rig.disk.fail(
        Operation.CREATE, errno.ENOSPC, times=None, where=lambda path: path.parent.name == "index"
    )
    stored = rig.put(b"x", properties={"KEYS": "k"})
    assert rig.store.dispatched_offset == 0 < rig.store.log.committed_offset
    queue = rig.store.queues.find("T", 0)
    assert queue is not None
    assert queue.max_offset == 1
    assert seen(rig.store, stored.log_offset)[:-1] == NOTHING[:-1]
    rig.disk.heal()
    rig.store.retry_dispatch()
    assert seen(rig.store, stored.log_offset) == ONE


def test_of_messages_with_a_key_those_that_fit_into_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig()
    stored = [rig.put(bytes(800), properties={"KEYS": "k"}).log_offset for _ in range(6)]
    record = rig.store.reads.record_at(stored[0])
    assert record is not None
    monkeypatch.setattr(query, "ANSWER_BYTES_MAX", 3 * len(record) + 1)
    found = rig.store.reads.query_by_key("T", "k", 32, *FOREVER)
    assert found.records == [rig.store.reads.record_at(offset) for offset in stored[-3:]]
    monkeypatch.setattr(query, "ANSWER_BYTES_MAX", 10)
    found = rig.store.reads.query_by_key("T", "k", 32, *FOREVER)
    assert found.records == [rig.store.reads.record_at(stored[-1])], "never none for its length"


def test_a_queue_that_nobody_knows_is_empty() -> None:
    reads = Rig().store.reads
    assert (reads.min_offset("U", 3), reads.max_offset("U", 3)) == (0, 0)
    assert reads.offset_at("U", 3, 5) == 0
    assert reads.earliest_stored("U", 3) is None
    assert reads.stored_at("U", 3, 0) is None
    assert reads.query_by_key("U", "k", 32, *FOREVER).records == []
    assert reads.earliest_timestamp() is None


@pytest.fixture
def timed() -> Rig:
    """Return a store with messages stored 10 s apart, from the clock's beginning."""
    rig = Rig()
    for number in range(20):
        rig.put(b"%d" % number)
        rig.clock.jump(10)
    return rig


def test_offsets_and_times(timed: Rig) -> None:
    reads = timed.store.reads
    first = reads.earliest_stored("T", 0)
    assert first is not None
    assert first == reads.earliest_timestamp() == reads.stored_at("T", 0, 0)
    assert reads.stored_at("T", 0, 7) == first + 70_000
    assert reads.stored_at("T", 0, 20) is None
    assert reads.offset_at("T", 0, first + 71_000) == 7
    assert reads.offset_at("T", 0, first + 71_000, Boundary.LOWER) == 8
    assert reads.offset_at("T", 0, first + 79_000, Boundary.UPPER) == 7
    assert (reads.min_offset("T", 0), reads.max_offset("T", 0)) == (0, 20)


def test_a_slave_sends_nobody_elsewhere() -> None:
    """Its master's offsets count, and it may be behind: offsetCheckInSlave."""
    rig = Rig()
    rig.put(b"x")
    rig.settle()
    assert rig.store.close()
    slave = rig.again(brokerRole="SLAVE")
    found = slave.store.get("T", 0, 77, 32)
    assert (found.status, found.next_offset) == (GetStatus.OFFSET_OVERFLOW_BADLY, 77)
    assert slave.store.get("U", 0, 77, 32).next_offset == 77
    assert slave.store.close()
    checks = rig.again(slave.disk.kill(), brokerRole="SLAVE", offsetCheckInSlave="true")
    assert checks.store.get("T", 0, 77, 32).next_offset == 1
