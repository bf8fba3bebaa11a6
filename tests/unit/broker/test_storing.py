"""The last step of a send: four outcomes, whoever waits, and when there is no room to wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.testing.disk_faults import Operation
from support.broker_rig import BrokerRig, commands
from support.samples import json_request, send_fields

if TYPE_CHECKING:
    from support.broker_rig import Asked

SUCCESS, BUSY, FLUSH_DISK_TIMEOUT, SLAVE_NOT_AVAILABLE, FLUSH_SLAVE_TIMEOUT = 0, 2, 10, 11, 12
SYSTEM_ERROR = 1
SYNC_FLUSH = {"flushDiskType": "SYNC_FLUSH", "syncFlushTimeout": "5000"}
SYNC_MASTER = {"brokerRole": "SYNC_MASTER", "slaveTimeout": "3000"}

LANE = {"e": "0", "i": ""}
"""An ordinary send, which the kernel takes."""
POLICY = {"e": "-1", "i": ""}
"""One that Python has to look at."""
EITHER = pytest.mark.parametrize("way", [LANE, POLICY], ids=["lane", "policy"])


def ask(rig: BrokerRig, way: dict[str, Any], count: int = 1, **more: object) -> Asked:
    data = b"".join(
        json_request(310, send_fields(**{"b": "T"} | way | more), b"m%d" % number, opaque=number)
        for number in range(count)
    )
    return rig.begin(data)


def stored(rig: BrokerRig) -> int:
    rig.turns()
    return sum(rig.store.reads.max_offset("T", queue_id) for queue_id in range(2))


@EITHER
def test_nobody_waits_for_an_asynchronous_disk(way: dict[str, Any]) -> None:
    rig = BrokerRig()
    asked = ask(rig, way, 3)
    assert asked.is_answered
    assert [(one.code, one.opaque) for one in asked.answers] == [(0, 0), (0, 1), (0, 2)]


@EITHER
def test_a_reply_waits_for_the_disk(way: dict[str, Any]) -> None:
    rig = BrokerRig(SYNC_FLUSH)
    asked = ask(rig, way, 3)
    rig.turns()
    assert not asked.is_answered
    assert stored(rig) == 0, "what is not on the disk is nobody's to read"
    rig.work("log_flush")
    assert [one.code for one in asked.answers] == [SUCCESS] * 3
    assert stored(rig) == 3


@EITHER
def test_a_disk_that_takes_too_long_is_said_and_the_message_stays(way: dict[str, Any]) -> None:
    rig = BrokerRig(SYNC_FLUSH)
    asked = ask(rig, way)
    rig.tick(4.9)
    assert not asked.is_answered
    rig.tick(0.2)
    answer = asked.answer
    assert answer.code == FLUSH_DISK_TIMEOUT
    assert answer.fields["queueOffset"] == "0"
    assert len(answer.fields["msgId"]) == 32
    rig.settle()
    assert stored(rig) == 1


@EITHER
def test_a_disk_that_fails_is_never_success(way: dict[str, Any]) -> None:
    rig = BrokerRig(SYNC_FLUSH)
    first = ask(rig, way, 2)
    rig.disk.fail(Operation.SYNC, times=None)
    rig.work("log_flush")
    rig.turns()
    for answer in first.answers:
        assert answer.code == SYSTEM_ERROR
        assert "Input/output error" in str(answer.remark)
        assert answer.fields == {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
    later = ask(rig, way)
    assert later.answer.code == 14
    assert "Input/output error" in str(later.answer.remark)


@EITHER
def test_a_master_without_slaves_says_so(way: dict[str, Any]) -> None:
    rig = BrokerRig(SYNC_MASTER)
    answer = ask(rig, way).answer
    assert answer.code == SLAVE_NOT_AVAILABLE
    assert answer.fields["queueOffset"] == "0"
    assert stored(rig) == 1


class OneSlave:
    """A slave that is connected."""

    def is_available(self, end: int) -> bool:
        return True

    def shown_until(self) -> int | None:
        return None

    def moved(self) -> None:
        """Send nothing."""


@EITHER
def test_a_reply_waits_for_the_slave(way: dict[str, Any]) -> None:
    rig = BrokerRig(SYNC_MASTER)
    rig.store.replicas = OneSlave()
    there, late = ask(rig, way), ask(rig, way)
    rig.turns()
    assert not there.is_answered
    end = rig.store.log.wrote_offset
    rig.store.gate.replicated(end // 2)
    assert there.answer.code == SUCCESS
    assert not late.is_answered
    rig.tick(3.1)
    assert late.answer.code == FLUSH_SLAVE_TIMEOUT
    assert late.answer.fields["msgId"]
    assert stored(rig) == 2


@pytest.mark.parametrize("settings", [SYNC_FLUSH, SYNC_MASTER], ids=["disk", "slave"])
def test_who_does_not_want_to_wait_does_not(settings: dict[str, str]) -> None:
    rig = BrokerRig(settings)
    assert ask(rig, LANE, i="WAIT\x01false").answer.code == SUCCESS
    rig.settle()
    assert stored(rig) == 1


@EITHER
def test_too_many_waiting_sends_are_refused_and_not_stored(way: dict[str, Any]) -> None:
    rig = BrokerRig(SYNC_FLUSH, waiting_sends_max=4)
    first = ask(rig, way, 4)
    end = rig.store.log.wrote_offset
    refused = ask(rig, way).answer
    assert refused.code == BUSY
    assert str(refused.remark).startswith("[OVERLOAD]")
    assert "sendThreadPoolQueueCapacity" in str(refused.remark)
    assert rig.store.log.wrote_offset == end
    rig.work("log_flush")
    assert [one.code for one in first.answers] == [SUCCESS] * 4
    again = ask(rig, way)
    rig.work("log_flush")
    assert again.answer.code == SUCCESS, "room comes back"


def test_oneway_sends_are_stored_without_a_word() -> None:
    for settings in ({}, SYNC_FLUSH, SYNC_MASTER):
        rig = BrokerRig(settings)
        for way in (LANE, POLICY):
            pendings = rig.take(json_request(310, send_fields(b="T", **way), b"x", flag=2))
            rig.settle()
            assert commands(pendings) == []
        assert stored(rig) == 2


def test_a_stop_answers_whoever_waits() -> None:
    rig = BrokerRig(SYNC_FLUSH)
    asked = ask(rig, LANE, 2)
    assert rig.broker.close()
    assert [one.code for one in asked.answers] == [SUCCESS] * 2
    assert BrokerRig.again(rig).bodies() == [b"m0", b"m1"]
