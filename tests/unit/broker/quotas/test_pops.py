"""Pops over a quota wait for it, or are told why not."""

from __future__ import annotations

from gantrymq.model.group import SubscriptionGroup
from support.timed_rig import TimedRig

FOUND, BUSY = 0, 2


def limited(rate: int) -> TimedRig:
    rig = TimedRig()
    rig.broker.tables.groups.put(
        SubscriptionGroup("g", attributes={"quota.read.requests": str(rate)})
    )
    for number in range(6):
        assert rig.send(b"%d" % number).code == FOUND
    rig.settle()
    return rig


def test_a_pop_waits_for_its_turn() -> None:
    rig = limited(2)
    for _ in range(2):
        assert rig.pop(maxMsgNums=1).code == FOUND
    held = rig.hold_pop(maxMsgNums=1, pollTime=10_000)
    assert not held.is_answered
    rig.wait(1.0)
    assert held.answer.code == FOUND


def test_a_pop_that_does_not_wait_is_refused_with_the_cause() -> None:
    rig = limited(1)
    assert rig.pop(maxMsgNums=1).code == FOUND
    answer = rig.pop(maxMsgNums=1, pollTime=0)
    assert answer.code == BUSY
    assert str(answer.remark).startswith("[QUOTA_GROUP]the group g has used up its quota")
