"""What waits goes with the topic or group that it is of, and begins with the role of master."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gantrymq.store.settings import BrokerRole
from support.timed_rig import TimedRig, decoded

POP_RETRY = "%RETRY%g_T"
DELETE_TOPIC, DELETE_GROUP = 215, 207
POLLING_TIMEOUT, TOPIC_NOT_EXIST, MESSAGE_ILLEGAL = 210, 17, 13
HALF: dict[str, Any] = {"TRAN_MSG": "true", "PGROUP": "PG", "UNIQ_KEY": "k1"}
COMMIT = 8


def retried(rig: TimedRig) -> list[bytes]:
    return [record.body for record in decoded(rig.pop().body)]


def test_a_topic_that_is_made_again_brings_back_nothing_of_its_first_life() -> None:
    rig = TimedRig()
    rig.send(b"old")
    assert len(decoded(rig.pop().body)) == 1
    rig.wait(1)
    assert rig.ask(DELETE_TOPIC, topic="T").code == 0
    rig.settle()
    rig.wait(1)
    rig.send(b"new")  # at the same offset
    assert retried(rig) == [b"new"]
    rig.wait(9)
    assert retried(rig) == [], "the first life's check point is over, and nothing comes of it"
    rig.wait(3)
    assert retried(rig) == [b"new"], "that of the second life counts"


def test_a_group_that_is_made_again_brings_back_nothing_of_its_first_life() -> None:
    rig = TimedRig()
    rig.send(b"m")
    assert len(decoded(rig.pop().body)) == 1
    rig.wait(1)
    fields = {"groupName": "g", "cleanOffset": "true"}
    assert rig.ask(DELETE_GROUP, **fields).code == 0
    rig.wait(1)
    assert retried(rig) == [b"m"], "it begins anew"
    rig.wait(9)
    assert retried(rig) == []
    rig.wait(3)
    assert retried(rig) == [b"m"]


def test_a_pop_that_waits_on_a_topic_is_answered_when_that_goes() -> None:
    rig = TimedRig()
    rig.send(b"first")
    rig.pop()
    waiting = rig.hold_pop(pollTime=15_000)
    assert rig.ask(DELETE_TOPIC, topic="T").code == 0
    rig.settle()
    assert waiting.answer.code in {POLLING_TIMEOUT, TOPIC_NOT_EXIST}


def test_orderly_pops_and_counts_of_timers_go_with_their_topic() -> None:
    rig = TimedRig()
    rig.send(b"first")
    rig.send(b"timer", TIMER_DELAY_SEC="60")
    rig.wait(1)
    assert len(decoded(rig.pop(order="true", queueId=0).body)) == 1
    assert rig.broker.timed.timers.counts["T"] == 1
    assert rig.ask(DELETE_TOPIC, topic="T").code == 0
    rig.settle()
    assert "T" not in rig.broker.timed.timers.counts
    rig.send(b"again")
    assert len(decoded(rig.pop(order="true", queueId=0).body)) == 1, "nothing is out any more"


# -- transactions to a moment ----------------------------------------------------------------------


def commit(rig: TimedRig, sent: dict[str, str]) -> int:
    offset = int(sent["msgId"][16:], 16)
    return rig.ask(
        37, producerGroup="PG", tranStateTableOffset=sent["queueOffset"], commitLogOffset=offset,
        commitOrRollback=COMMIT, fromTransactionCheck="false", msgId="k1", transactionId="k1",
    ).code  # fmt: skip


def test_a_committed_message_waits_for_its_moment() -> None:
    rig = TimedRig()
    rig.send(b"first")
    sent = rig.send(b"later", TIMER_DELAY_SEC="5", **HALF)
    assert sent.code == 0
    rig.wait(4)
    assert commit(rig, sent.fields) == 0
    rig.wait(4)
    assert rig.bodies("T") == [b"first"], "counted from the commit"
    rig.wait(3)
    assert rig.bodies("T") == [b"first", b"later"]
    rig.wait(10)
    assert rig.bodies("T") == [b"first", b"later"], "once"


def test_a_moment_that_is_over_at_the_commit_is_now() -> None:
    rig = TimedRig()
    rig.send(b"first")
    moment = str(rig.clock.now_ms() + 2_000)
    sent = rig.send(b"due", TIMER_DELIVER_MS=moment, **HALF)
    rig.wait(4)
    assert rig.bodies("T") == [b"first"]
    assert commit(rig, sent.fields) == 0
    rig.settle()
    assert rig.bodies("T") == [b"first", b"due"]


def test_a_half_message_that_may_not_wait_so_long_is_refused_at_once() -> None:
    rig = TimedRig()
    rig.send(b"first")
    assert rig.send(b"x", TIMER_DELAY_SEC=str(10 * 86_400), **HALF).code == MESSAGE_ILLEGAL


# -- a change of role ------------------------------------------------------------------------------


def test_a_slave_begins_with_timers_pops_and_delays_when_it_becomes_the_master() -> None:
    first = TimedRig()
    first.send(b"popped")
    first.pop()
    first.send(b"timer", TIMER_DELAY_SEC="9")
    first.send(b"delayed", DELAY="3")
    first.wait(6)  # tables are saved
    disk = first.disk.kill()
    first.is_alive = False
    slave = TimedRig({"brokerRole": "SLAVE"}, {"broker_id": 1}, disk, first.clock)
    slave.wait(30)
    assert slave.bodies("T") == [b"popped"], "its master delivers"
    broker = slave.broker
    replication = replace(broker.store_settings.replication, role=BrokerRole.ASYNC_MASTER)
    broker.store.writability.is_slave = False
    broker.became_master(replace(broker.store_settings, replication=replication))
    slave.wait(5)
    assert sorted(slave.bodies("T")) == [b"delayed", b"popped", b"timer"]
    assert retried(slave)[0] in {b"popped", b"timer", b"delayed"}
    assert slave.bodies(POP_RETRY) == [b"popped"], "nobody had acknowledged it"
    broker.became_master(broker.store_settings)
    slave.wait(5)
    assert len(slave.bodies("T")) == 3, "to be told twice changes nothing"
