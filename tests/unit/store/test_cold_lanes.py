"""Reads from the disk in turns, each reader within its budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gantrymq.store.cold_lanes import NOBODY, RETRY_S, ColdBudget, ColdLanes
from gantrymq.testing.clock import VirtualClock
from gantrymq.testing.workers import StepWorker
from support.broker_rig import BrokerRig, pull
from support.remoting import split_records

if TYPE_CHECKING:
    import pytest

FOUND, BUSY = 0, 2
HELD = {"sysFlag": 6, "suspendTimeoutMillis": 15_000}


class World:
    """Lines in front of a worker that works when it is told to."""

    def __init__(self, budget: ColdBudget | None = None) -> None:
        self.clock, self.worker = VirtualClock(), StepWorker()
        self.lanes = ColdLanes(self.worker, self.clock)
        self.lanes.budget = budget or ColdBudget()
        self.done: list[str] = []

    def read(self, reader: str, count: int = 1) -> None:
        for _ in range(count):
            self.lanes.submit(reader, lambda: None, lambda _: self.done.append(reader), self._fail)

    def _fail(self, error: Exception) -> None:
        raise error


def test_one_reader_with_many_reads_does_not_keep_another_waiting() -> None:
    world = World()
    world.read("last week", 100)
    world.read("today", 2)
    world.worker.drain()
    assert len(world.done) == 102
    assert world.done.index("today") <= 3
    assert [number for number, who in enumerate(world.done) if who == "today"][1] <= 5


def test_the_reads_of_one_are_bounded() -> None:
    world = World(ColdBudget(reads_max=2))
    assert world.lanes.over("a") == ("", 0.0)
    world.read("a", 2)
    why, wait_s = world.lanes.over("a")
    assert "2 reads of a wait for the disk already (coldReadsPerGroup)" in why
    assert wait_s == RETRY_S
    assert world.lanes.over("b") == ("", 0.0)
    world.worker.drain()
    assert world.lanes.over("a") == ("", 0.0)
    assert world.lanes.refusals == {"reads": 1, "bytes": 0}


def test_bytes_of_one_reader_and_of_all() -> None:
    world = World(ColdBudget(reader_bytes=1_000, all_bytes=1_500))
    for reader in ("a", "b", "c"):
        assert world.lanes.over(reader) == ("", 0.0)
    world.lanes.was_read("a", 1_400)
    why, wait_s = world.lanes.over("a")
    assert why == "reads of a from the disk have used up 1000 bytes a second (cgColdReadThreshold)"
    assert 0.4 < wait_s < 0.5
    assert world.lanes.over("b") == ("", 0.0)
    world.lanes.was_read("b", 500)
    why, _ = world.lanes.over("c")
    assert "all groups" in why
    assert "globalColdReadThreshold" in why
    assert world.lanes.over(NOBODY) == ("", 0.0), "the broker's own reads have no budget"
    world.clock.jump(2.0)
    assert world.lanes.over("c") == ("", 0.0)
    world.lanes.expire()
    world.lanes.budget = ColdBudget()
    world.lanes.was_read("a", 10**9)
    assert world.lanes.over("a") == ("", 0.0), "without limits nothing is counted"
    assert world.lanes.read_bytes == 10**9 + 1_900


# -- a whole broker ----------------------------------------------------------------------------


def cold(**settings: Any) -> BrokerRig:  # noqa: ANN401
    """Return a broker of which nothing is in memory."""
    rig = BrokerRig(**settings)
    rig.store_some(*(b"%02d" % number + bytes(400) for number in range(40)))
    rig.store.reads.cold.tail_bytes = 0
    evict(rig)
    return rig


def evict(rig: BrokerRig) -> None:
    """Take out of memory what a read has brought there."""
    for file in rig.store.log.files:
        rig.disk.evict(file.region.path)


def asked(group: str, offset: int = 0, **more: Any) -> bytes:  # noqa: ANN401
    return pull(offset, consumerGroup=group, maxMsgNums="8", **more)


def test_a_group_over_its_budget_of_the_disk_waits_and_others_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gantrymq.store.packed_read.TAIL_BYTES", 0)
    rig = cold(cold_group_bytes=2_000)
    first = rig.begin(asked("old"))
    rig.work("cold_read")
    assert first.answer.code == FOUND
    evict(rig)
    held = rig.begin(asked("old", 8, **HELD))
    rig.work("cold_read")
    assert not held.is_answered
    other = rig.begin(asked("other"))
    rig.work("cold_read")
    assert other.answer.code == FOUND, "another group is not disturbed"
    rig.tick(3.0)
    rig.work("cold_read")
    assert held.answer.code == FOUND
    assert len(split_records(held.answer.body)) == 8, "nothing is passed over"
    assert rig.broker.limiting.throttled.totals["COLD_READS"] == 1


def test_a_pull_that_would_have_to_wait_for_long_is_told_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gantrymq.store.packed_read.TAIL_BYTES", 0)
    rig = cold(cold_group_bytes=100)
    first = rig.begin(asked("old"))
    rig.work("cold_read")
    assert first.answer.code == FOUND
    evict(rig)
    answer = rig.ask(asked("old", 8, **HELD))
    assert answer.code == BUSY
    assert str(answer.remark).startswith("[COLD_READS]reads of old from the disk have used up 100")
    assert rig.store.statistics.busy["COLD_READS"] == 1
