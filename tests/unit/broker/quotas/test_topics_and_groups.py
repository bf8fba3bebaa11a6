"""Quotas of topics and groups: who is over is refused or waits, and is told the cause."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from gantrymq.broker.quotas import throttled
from gantrymq.model.group import SubscriptionGroup
from gantrymq.model.topic import TopicConfig
from gantrymq.wire.bodies.group import GROUP_CONFIG
from gantrymq.wire.bodies.settings import SETTINGS
from support.broker_rig import BrokerRig, pull
from support.client_peers import FakePeer
from support.remoting import split_records
from support.samples import json_request, send_fields

if TYPE_CHECKING:
    from gantrymq.wire.command import Command

FOUND, BUSY, NOT_FOUND = 0, 2, 19
HELD = {"sysFlag": 6, "suspendTimeoutMillis": 15_000}
UPDATE_TOPIC, UPDATE_CONFIG, UPDATE_GROUP = 17, 25, 200


def limited(topic: str = "", group: str = "") -> BrokerRig:
    """Return a broker whose topic T, or group `group`, has quotas: `send.bytes=100`."""
    rig = BrokerRig()
    if topic:
        name, _, value = topic.partition("=")
        rig.broker.tables.topics.put(TopicConfig("T", 2, 2, attributes={f"quota.{name}": value}))
    if group:
        name, _, value = group.partition("=")
        rig.broker.tables.groups.put(
            SubscriptionGroup("group", attributes={f"quota.{name}": value})
        )
    return rig


def said(answer: Command) -> str:
    """Return the remark."""
    return answer.remark or ""


def wait_ms(answer: Command) -> int:
    """Return how long the remark says to wait."""
    found = re.search(r"wait (\d+) ms", said(answer))
    assert found is not None, answer.remark
    return int(found[1])


def sends(count: int, size: int = 100) -> bytes:
    return b"".join(
        json_request(310, send_fields(b="T", i=""), bytes(size), opaque=number)
        for number in range(count)
    )


# -- sends --------------------------------------------------------------------------------------


def test_sends_beyond_the_bytes_of_a_topic_are_refused_until_time_has_passed() -> None:
    rig = limited(topic="send.bytes=10000")
    assert rig.send(bytes(9_000)).code == FOUND
    assert rig.send(bytes(9_000)).code == FOUND, "whoever finds something left may go on"
    asked = rig.begin_send(bytes(9_000))
    assert not asked.is_answered, "the refusal is held back for a moment: its sender slows down"
    rig.tick(throttled.REFUSAL_S_MAX)
    assert asked.answer.code == BUSY
    assert said(asked.answer).startswith(
        "[QUOTA_TOPIC]the topic T has used up its quota of 10000 bytes a second (quota.send.bytes)"
    )
    assert 700 < wait_ms(asked.answer) < 1_000
    assert asked.answer.fields["MSG_REGION"] == "DefaultRegion"
    assert len(rig.bodies()) == 2, "nothing of it was stored"
    rig.tick(wait_ms(asked.answer) / 1000)
    assert rig.send(b"again").code == FOUND
    assert rig.store.statistics.busy["QUOTA_TOPIC"] == 1


def test_the_rate_of_the_lane_is_the_quota() -> None:
    rig = limited(topic="send.bytes=50000")
    asked = []
    for _ in range(100):  # ten seconds, several times as much as may be
        asked.append(rig.begin(sends(200)))
        rig.tick(0.1)
    rig.tick(throttled.REFUSAL_S_MAX)
    codes = [answer.code for one in asked for answer in one.answers]
    stored = codes.count(FOUND)
    assert stored + codes.count(BUSY) == 20_000, "everybody was answered"
    size = rig.store.log.wrote_offset / stored
    assert 9 * 50_000 < stored * size < 12 * 50_000 + 200 * size
    assert len(rig.bodies()) == stored, "what was refused was not stored, the rest was"


def test_a_topic_within_its_quota_takes_the_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = limited(topic="send.bytes=1000000")
    monkeypatch.setattr(
        rig.broker._sending, "send", lambda *_: pytest.fail("an ordinary send came to policy")
    )
    assert [one.code for one in rig.begin(sends(50)).answers] == [FOUND] * 50
    counts = rig.broker.limiting.quotas
    assert counts.watches_lane


def test_without_quotas_the_lane_is_not_watched() -> None:
    rig = BrokerRig()
    rig.store_some(b"x")
    assert not rig.broker.limiting.quotas.watches_lane
    assert len(rig.broker.limiting.quotas) == 0


def test_a_quota_of_requests() -> None:
    rig = limited(topic="send.requests=3")
    asked = [rig.begin_send(b"x") for _ in range(6)]
    rig.tick(throttled.REFUSAL_S_MAX)
    assert [one.answer.code for one in asked] == [FOUND] * 3 + [BUSY] * 3
    assert "3 requests a second (quota.send.requests)" in said(asked[-1].answer)


def test_other_topics_are_not_disturbed() -> None:
    rig = limited(topic="send.requests=1")
    rig.broker.tables.topics.put(TopicConfig("Other", 2, 2))
    assert rig.send(b"x").code == FOUND
    over = rig.begin_send(b"x")
    for _ in range(20):
        assert rig.send(b"x", b="Other").code == FOUND
    rig.tick(1.0)
    assert over.answer.code == BUSY


def test_oneway_sends_over_a_quota_are_not_answered_and_not_stored() -> None:
    rig = limited(topic="send.requests=1")
    assert rig.send(b"x").code == FOUND
    rig.take(json_request(310, send_fields(b="T", i=""), b"y", flag=2))
    rig.tick(1.0)
    assert rig.bodies() == [b"x"]


def test_who_leaves_while_a_refusal_is_held_back_is_forgotten() -> None:
    rig = limited(topic="send.requests=1")
    assert rig.send(b"x").code == FOUND
    asked = rig.begin_send(b"x")
    assert len(rig.broker.limiting.throttled) == 1
    rig.peer.is_open = False
    rig.service.closed(rig.peer)
    assert len(rig.broker.limiting.throttled) == 0
    rig.tick(1.0)
    assert not asked.is_answered


def test_beyond_the_bound_refusals_are_not_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttled, "WAITING_MAX", 2)
    rig = limited(topic="send.requests=1")
    assert rig.send(b"x").code == FOUND
    asked = [rig.begin_send(b"x") for _ in range(3)]
    assert [one.is_answered for one in asked] == [False, False, True]


def test_a_stop_leaves_nobody_waiting() -> None:
    rig = limited(topic="send.requests=1")
    assert rig.send(b"x").code == FOUND
    asked = rig.begin_send(b"x")
    rig.broker.close()
    assert asked.answer.code == BUSY


# -- settings and attributes, live --------------------------------------------------------------


def change_topic(rig: BrokerRig, attributes: str) -> Command:
    fields = {
        "topic": "T", "defaultTopic": "TBW102", "readQueueNums": "2", "writeQueueNums": "2",
        "perm": "6", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
        "attributes": attributes,
    }  # fmt: skip
    asked = rig.begin(json_request(UPDATE_TOPIC, fields))
    rig.settle()
    return asked.answer


def test_an_operator_gives_a_topic_a_quota_and_takes_it_away() -> None:
    rig = BrokerRig()
    assert change_topic(rig, "+quota.send.requests=1").code == FOUND
    assert rig.send(b"1").code == FOUND
    over = rig.begin_send(b"2")
    rig.tick(0.3)
    assert over.answer.code == BUSY
    assert change_topic(rig, "-quota.send.requests").code == FOUND
    assert [rig.send(b"%d" % number).code for number in range(5)] == [FOUND] * 5
    refused = change_topic(rig, "+quota.send.bytes=many")
    assert "quota.send.bytes" in said(refused)
    assert "a number from 0" in said(refused)


def change_settings(rig: BrokerRig, **changes: str) -> None:
    asked = rig.begin(json_request(UPDATE_CONFIG, {}, SETTINGS.encode(changes)))
    rig.settle()
    assert asked.answer.code == FOUND, asked.answer.remark


def test_a_default_holds_for_every_topic_that_says_nothing_itself() -> None:
    rig = BrokerRig()
    rig.broker.tables.topics.put(TopicConfig("Free", 2, 2, attributes={"quota.send.requests": "0"}))
    change_settings(rig, quotaTopicSendRequests="1")
    assert rig.send(b"1").code == FOUND
    over = rig.begin_send(b"2")
    rig.tick(0.3)
    assert over.answer.code == BUSY
    assert [rig.send(b"x", b="Free").code for _ in range(5)] == [FOUND] * 5
    change_settings(rig, quotaTopicSendRequests="0")
    assert [rig.send(b"x").code for _ in range(5)] == [FOUND] * 5


def test_a_group_gets_its_quota_by_a_request() -> None:
    rig = BrokerRig()
    rig.store_some(*(bytes(500) for _ in range(4)))
    config = SubscriptionGroup("group", attributes={"+quota.read.bytes": "1000"})
    asked = rig.begin(json_request(UPDATE_GROUP, {}, GROUP_CONFIG.encode(config)))
    rig.settle()
    assert asked.answer.code == FOUND, asked.answer.remark
    assert rig.ask(pull(0)).code == FOUND
    assert not rig.begin(pull(0, **HELD)).is_answered


# -- reads --------------------------------------------------------------------------------------


def messages(answer: Command) -> int:
    return len(split_records(answer.body))


def test_a_pull_over_the_quota_of_its_group_waits_for_it_and_is_then_answered() -> None:
    rig = limited(group="read.bytes=1000")
    rig.store_some(*(bytes(500) for _ in range(8)))
    first = rig.ask(pull(0, maxMsgNums="4"))
    assert (first.code, messages(first)) == (FOUND, 4)
    asked = rig.begin(pull(4, **HELD))
    rig.tick(0.5)
    assert not asked.is_answered
    assert len(rig.broker.limiting.throttled) == 1
    rig.tick(2.0)
    assert (asked.answer.code, messages(asked.answer)) == (FOUND, 4), "nothing was lost"
    assert rig.broker.limiting.throttled.totals["QUOTA_GROUP"] == 1


def test_over_a_while_a_group_reads_no_more_than_its_quota() -> None:
    rig = limited(group="read.bytes=2000")
    rig.store_some(*(bytes(100) for _ in range(300)))
    offset, size = 0, 0
    asked = rig.begin(pull(0, maxMsgNums="5", **HELD))
    for _ in range(100):  # ten seconds
        rig.tick(0.1)
        while asked.is_answered:
            assert asked.answer.code == FOUND, asked.answer.remark
            offset += messages(asked.answer)
            size += len(asked.answer.body)
            asked = rig.begin(pull(offset, maxMsgNums="5", **HELD))
    assert 9 * 2_000 < size < 12 * 2_000


def test_a_pull_whose_turn_is_far_off_is_told_so() -> None:
    rig = limited(group="read.bytes=100")
    rig.store_some(bytes(2_000))
    assert rig.ask(pull(0)).code == FOUND
    answer = rig.ask(pull(0, **HELD))
    assert answer.code == BUSY, "a client pauses for seconds after an error; it does not spin"
    assert said(answer).startswith("[QUOTA_GROUP]the group group has used up its quota of 100")
    assert wait_ms(answer) > 5_000
    assert rig.store.statistics.busy["QUOTA_GROUP"] == 1


def test_a_pull_that_does_not_want_to_wait_waits_a_second_at_most() -> None:
    rig = limited(group="read.requests=10")
    rig.store_some(b"x")
    for _ in range(10):
        assert rig.ask(pull(0)).code == FOUND
    soon = rig.begin(pull(0))
    assert not soon.is_answered
    rig.tick(0.2)
    assert soon.answer.code == FOUND


def test_the_kernel_does_not_remember_pulls_that_have_a_quota() -> None:
    rig = limited(group="read.requests=5")
    rig.store_some(b"x")
    peer = FakePeer(7)
    asked = [rig.begin(pull(0, opaque=number), peer) for number in range(8)]
    assert [one.is_answered for one in asked] == [True] * 5 + [False] * 3
    rig.tick(1.0)
    assert all(one.answer.code == FOUND for one in asked)


def test_a_quota_for_reads_of_a_topic_holds_for_all_groups_together() -> None:
    rig = limited(topic="read.requests=2")
    rig.store_some(b"x")
    assert rig.ask(pull(0, consumerGroup="a")).code == FOUND
    assert rig.ask(pull(0, consumerGroup="b")).code == FOUND
    third = rig.begin(pull(0, consumerGroup="c"))
    assert not third.is_answered
    rig.tick(1.0)
    assert third.answer.code == FOUND


def test_an_empty_pull_that_waits_for_a_message_is_counted_once() -> None:
    rig = limited(group="read.requests=1")
    asked = rig.begin(pull(0, **HELD))
    assert not asked.is_answered
    rig.store_some(b"x")
    rig.tick()
    assert asked.answer.code == FOUND, "its second look at the queue is no second request"


def test_who_leaves_while_waiting_for_a_quota_is_forgotten() -> None:
    rig = limited(group="read.requests=1")
    rig.store_some(b"x")
    assert rig.ask(pull(0)).code == FOUND
    rig.begin(pull(0, **HELD))
    assert len(rig.broker.limiting.throttled) == 1
    rig.service.closed(rig.peer)
    assert len(rig.broker.limiting.throttled) == 0


def test_meters_of_those_who_do_nothing_are_forgotten() -> None:
    rig = BrokerRig(topic_send_requests=10)
    for number in range(50):
        assert rig.send(b"x", b=f"T{number}").code == FOUND
    assert len(rig.broker.limiting.quotas) >= 50
    rig.tick(61.0)
    assert len(rig.broker.limiting.quotas) == 0
