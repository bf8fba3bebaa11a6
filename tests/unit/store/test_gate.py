"""When a reply may leave, and with which status."""

from __future__ import annotations

import pytest

from gantrymq.store.gate import DurabilityGate
from gantrymq.store.status import PutStatus

FLUSH_S = 5.0
REPLICA_S = 3.0


@pytest.fixture
def gate() -> DurabilityGate:
    return DurabilityGate(FLUSH_S, REPLICA_S)


def hold(
    gate: DurabilityGate, now: float = 0.0, *, flush: int = -1, replica: int = -1
) -> list[PutStatus]:
    """Return a list that will hold the status."""
    out: list[PutStatus] = []
    gate.hold(out.append, now, flush_offset=flush, replica_offset=replica)
    return out


def test_who_waits_for_nothing_leaves_at_once(gate: DurabilityGate) -> None:
    assert hold(gate) == [PutStatus.PUT_OK]
    assert gate.next_deadline() is None


def test_the_disk_lets_out_everyone_behind_it_in_order(gate: DurabilityGate) -> None:
    left: list[int] = []
    for offset in (100, 200, 300):
        gate.hold(lambda _status, at=offset: left.append(at), 0.0, flush_offset=offset)  # type: ignore[misc]
    gate.flushed(99)
    assert left == []
    gate.flushed(200)
    assert left == [100, 200]
    gate.flushed(300)
    assert left == [100, 200, 300]
    assert (gate.flushed_offset, gate.next_deadline()) == (300, None)


def test_what_is_on_the_disk_already_need_not_wait(gate: DurabilityGate) -> None:
    gate.flushed(100)
    assert hold(gate, flush=100) == [PutStatus.PUT_OK]
    assert hold(gate, flush=101) == []


def test_offsets_do_not_go_back(gate: DurabilityGate) -> None:
    gate.flushed(100)
    gate.flushed(50)
    gate.replicated(70)
    gate.replicated(60)
    assert (gate.flushed_offset, gate.replicated_offset) == (100, 70)


@pytest.mark.parametrize("disk_first", [True, False])
def test_both_sides_must_have_it(gate: DurabilityGate, disk_first: bool) -> None:
    out = hold(gate, flush=100, replica=100)
    first, second = (gate.flushed, gate.replicated)[:: 1 if disk_first else -1]
    first(100)
    assert out == []
    second(100)
    assert out == [PutStatus.PUT_OK]


def test_each_side_has_its_own_time(gate: DurabilityGate) -> None:
    disk, replica = hold(gate, 1.0, flush=100), hold(gate, 1.0, replica=100)
    assert gate.next_deadline() == 1.0 + REPLICA_S
    gate.expire(3.9)
    assert (disk, replica) == ([], [])
    gate.expire(4.0)
    assert (disk, replica) == ([], [PutStatus.FLUSH_SLAVE_TIMEOUT])
    assert gate.next_deadline() == 1.0 + FLUSH_S
    gate.expire(6.0)
    assert disk == [PutStatus.FLUSH_DISK_TIMEOUT]
    gate.flushed(100)
    gate.replicated(100)
    assert (len(disk), len(replica)) == (1, 1)


def test_a_late_replica_outweighs_a_late_disk(gate: DurabilityGate) -> None:
    out = hold(gate, flush=100, replica=100)
    gate.expire(4.0)
    assert out == []
    gate.expire(5.0)
    assert out == [PutStatus.FLUSH_SLAVE_TIMEOUT]


def test_a_late_disk_shows_when_the_replica_has_it(gate: DurabilityGate) -> None:
    out = hold(gate, flush=100, replica=100)
    gate.replicated(100)
    gate.expire(5.0)
    assert out == [PutStatus.FLUSH_DISK_TIMEOUT]


def test_shut_is_for_everyone_and_for_good(gate: DurabilityGate) -> None:
    disk, both = hold(gate, flush=100), hold(gate, flush=100, replica=100)
    gate.shut("EIO")
    gate.shut("another reason")
    assert disk == both == [PutStatus.UNKNOWN_ERROR]
    assert gate.failure == "EIO"
    gate.flushed(1000)
    gate.replicated(1000)
    assert (gate.flushed_offset, gate.replicated_offset) == (0, 0)
    assert hold(gate, flush=100) == hold(gate) == [PutStatus.UNKNOWN_ERROR]


def test_a_failure_outweighs_a_time_out(gate: DurabilityGate) -> None:
    out = hold(gate, flush=100, replica=100)
    gate.expire(4.0)
    gate.shut("EIO")
    assert out == [PutStatus.UNKNOWN_ERROR]


def test_a_waiter_may_come_while_others_leave(gate: DurabilityGate) -> None:
    later: list[PutStatus] = []
    gate.hold(lambda _status: gate.hold(later.append, 0.0, flush_offset=200), 0.0, flush_offset=100)
    gate.flushed(100)
    assert later == []
    gate.flushed(200)
    assert later == [PutStatus.PUT_OK]


def test_what_is_known_already_leaves_with_what_is_waited_for(gate: DurabilityGate) -> None:
    out: list[PutStatus] = []
    known = PutStatus.SLAVE_NOT_AVAILABLE
    gate.hold(out.append, 0.0, outcome=known)
    assert out == [known]
    gate.hold(out.append, 0.0, flush_offset=100, outcome=known)
    assert out == [known]
    gate.flushed(100)
    assert out == [known, known]
    gate.hold(out.append, 0.0, flush_offset=200, outcome=known)
    gate.expire(FLUSH_S)
    assert out == [known, known, known]  # the replica's status wins over a late disk
    gate.hold(out.append, 0.0, flush_offset=300, outcome=known)
    gate.shut("the disk failed")
    assert out[3:] == [PutStatus.UNKNOWN_ERROR]


def broken(_status: PutStatus) -> None:
    raise RuntimeError("its connection is in a state that nobody thought of")


@pytest.mark.parametrize("way", ["flushed", "expired", "shut"])
def test_a_reply_that_fails_strands_nobody(
    gate: DurabilityGate, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    first = hold(gate, flush=100)
    gate.hold(broken, 0.0, flush_offset=200)
    last = hold(gate, flush=300)
    if way == "flushed":
        gate.flushed(300)
    elif way == "expired":
        gate.expire(FLUSH_S)
    else:
        gate.shut("the disk failed")
    assert len(first) == len(last) == 1
    assert first == last
    assert gate.next_deadline() is None
    assert caplog.text.count("an answer to a send could not be made") == 1
    assert "nobody thought of" in caplog.text
