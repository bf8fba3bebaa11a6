"""Pulls: who may read what, the four codes, waiting, and what wakes a waiting pull."""

from __future__ import annotations

from typing import Any

import pytest

from gantrymq.broker import hold
from gantrymq.broker.pull import Pulling
from gantrymq.model.group import MessageModel, SubscriptionGroup
from gantrymq.model.topic import Perm, TopicConfig
from gantrymq.testing.disk_faults import Operation
from gantrymq.wire.bodies.heartbeat import HEARTBEAT
from support.broker_rig import BINARY, BrokerRig, pull
from support.client_peers import FakePeer, consumer, heartbeat, subscription
from support.remoting import split_records
from support.samples import json_request
from support.store_rig import frames

FOUND, SYSTEM_ERROR, NO_PERMISSION, TOPIC_NOT_EXIST = 0, 1, 16, 17
NOT_FOUND, RETRY, MOVED, PARSE_FAILED, NOT_SUBSCRIBED, NOT_LATEST = 19, 20, 21, 23, 24, 25
GROUP_NOT_EXIST, FILTER_NOT_EXIST, FILTER_NOT_LATEST, INVALID = 26, 27, 28, 29
HOLD, SUBSCRIBE, COMMIT = 2, 4, 1
PARKED = {"sysFlag": HOLD | SUBSCRIBE, "suspendTimeoutMillis": 15_000}


def beat(rig: BrokerRig, peer: FakePeer, *consumers: Any) -> None:  # noqa: ANN401
    body = HEARTBEAT.encode(heartbeat(f"client-{peer.number}", *consumers))
    assert rig.ask(json_request(34, {}, body), peer).code == FOUND


def rig_with(**settings: Any) -> BrokerRig:  # noqa: ANN401
    rig = BrokerRig(**settings)
    tables = rig.broker.tables
    tables.topics.put(TopicConfig("WriteOnly", 4, 4, Perm.WRITE))
    tables.groups.put(SubscriptionGroup("Off", consume_enabled=False))
    tables.groups.put(SubscriptionGroup("Alone", broadcast_enabled=False))
    return rig


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], int, str]] = {
    "broker not readable": ({"permission": 2}, {}, NO_PERMISSION, "brokerPermission"),
    "unknown group": (
        {"creates_groups": False}, {"consumerGroup": "New"}, GROUP_NOT_EXIST, "updateSubGroup"),
    "illegal group": ({}, {"consumerGroup": "../x"}, GROUP_NOT_EXIST, "../x"),
    "group switched off": ({}, {"consumerGroup": "Off"}, NO_PERMISSION, "Off"),
    "unknown topic": ({}, {"topic": "New"}, TOPIC_NOT_EXIST, "New"),
    "topic not readable": ({}, {"topic": "WriteOnly"}, NO_PERMISSION, "WriteOnly"),
    "negative queue": ({}, {"queueId": "-1"}, INVALID, "-1"),
    "queue beyond the last": ({}, {"queueId": "2"}, INVALID, "2 queues"),
    "tags that do not parse": ({}, {"subscription": "||"}, PARSE_FAILED, "||"),
    "unknown expression type": ({}, {"expressionType": "XPATH"}, PARSE_FAILED, "XPATH"),
    "SQL92 where it is off": (
        {}, {"expressionType": "SQL92", "subscription": "a=1"}, SYSTEM_ERROR,
        "enablePropertyFilter"),
    "SQL92 that does not parse": (
        {"property_filter": True}, {"expressionType": "SQL92", "subscription": "a=="},
        PARSE_FAILED, "parse"),
    "nobody of the group is here": ({}, {"sysFlag": "0"}, NOT_SUBSCRIBED, "heartbeat"),
}  # fmt: skip


@pytest.mark.parametrize("codec", [0, BINARY])
@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_why(name: str, codec: int) -> None:
    settings, fields, code, words = REFUSED[name]
    rig = rig_with(**settings)
    rig.broker.store.open_topic("T", 2)
    rig.store_some(b"secret") if "permission" not in settings else None
    answer = rig.ask(pull(codec=codec, opaque=9, **fields))
    assert (answer.code, answer.opaque, answer.body) == (code, 9, b"")
    assert words in str(answer.remark)
    assert len(rig.broker.held) == 0


def test_a_group_can_be_kept_from_a_topic() -> None:
    rig = rig_with()
    rig.store_some(b"secret")
    rig.broker.tables.groups.find_or_create("group")
    rig.broker.tables.groups.forbid("group", "T", forbidden=True)
    assert rig.ask(pull()).code == NO_PERMISSION


def test_subscriptions_come_with_heartbeats() -> None:
    rig = rig_with()
    rig.store_some(b"a", tags="A")
    rig.store_some(b"b", tags="B")
    beat(rig, rig.peer, consumer("group", subscription("T", "B", version=5)))
    by_group: dict[str, Any] = {"sysFlag": "0", "subscription": None}
    answer = rig.ask(pull(subVersion="5", **by_group))
    assert answer.code == FOUND
    assert len(split_records(answer.body)) == 1
    assert answer.fields["nextBeginOffset"] == "2"
    newer = rig.ask(pull(subVersion="6", expressionType="SQL92", **by_group))
    assert newer.code == NOT_LATEST
    assert "heartbeat" in str(newer.remark)
    other = rig.ask(pull(topic="%RETRY%group", subVersion="0", **by_group))
    assert other.code == NOT_SUBSCRIBED


def test_a_pull_with_newer_tags_than_are_known_gets_everything_until_they_are() -> None:
    """A client looks at the tags itself; refused, it would wait for its next heartbeat, 30 s."""
    rig = rig_with()
    rig.store_some(b"a", tags="A")
    rig.store_some(b"b", tags="B")
    by_group: dict[str, Any] = {"sysFlag": "0", "subscription": None}
    beat(rig, rig.peer, consumer("group", subscription("T", "B", version=5)))
    for _ in range(2):  # a pull that is known again, too
        newer = rig.ask(pull(subVersion="6", **by_group))
        assert newer.code == FOUND
        assert len(split_records(newer.body)) == 2
    beat(rig, rig.peer, consumer("group", subscription("T", "A", version=6)))
    latest = rig.ask(pull(subVersion="6", **by_group))
    assert len(split_records(latest.body)) == 1
    assert latest.fields["nextBeginOffset"] == "2"


def test_broadcast_can_be_forbidden() -> None:
    rig = rig_with()
    group = consumer("Alone", subscription("T"), model=MessageModel.BROADCASTING)
    beat(rig, rig.peer, group)
    answer = rig.ask(pull(consumerGroup="Alone", sysFlag="0", subVersion="0"))
    assert answer.code == NO_PERMISSION
    assert "broadcast" in str(answer.remark)


def test_filters_of_groups_must_be_there_and_new() -> None:
    rig = rig_with(property_filter=True)
    sql = subscription("T", "a = 1", version=5).__class__(
        topic="T", expression="a = 1", version=5, expression_type="SQL92"
    )
    beat(rig, rig.peer, consumer("group", sql))
    asked: dict[str, Any] = {"sysFlag": "0", "subscription": None}
    rig.store_some(b"one", i="a\x011")
    rig.store_some(b"two", i="a\x012")
    answer = rig.ask(pull(subVersion="5", **asked))
    assert answer.code == FOUND
    assert len(split_records(answer.body)) == 1
    rig.broker.tables.filters.remove_group("group")
    rig.broker.service._pulling._selections.forget()
    assert rig.ask(pull(subVersion="5", **asked)).code == FILTER_NOT_EXIST


# -- the four codes -------------------------------------------------------------------------------

OFFSETS = {
    "the first": (0, FOUND, 3),
    "in the middle": (1, FOUND, 3),
    "the end": (3, NOT_FOUND, 3),
    "behind the end": (4, MOVED, 3),
    "before the first": (-1, MOVED, 0),
    "far behind the end": (2**62, MOVED, 3),
}


@pytest.mark.parametrize("codec", [0, BINARY])
@pytest.mark.parametrize("name", OFFSETS)
def test_where_a_pull_begins_decides_its_code(name: str, codec: int) -> None:
    offset, code, following = OFFSETS[name]
    rig = rig_with()
    rig.store_some(b"a", b"b", b"c")
    answer = rig.ask(pull(offset, codec=codec))
    assert answer.code == code
    assert answer.fields == {
        "suggestWhichBrokerId": "0", "nextBeginOffset": str(following), "minOffset": "0",
        "maxOffset": "3",
    }  # fmt: skip
    assert answer.serialize_type == codec
    assert len(split_records(answer.body)) == (3 - offset if code == FOUND else 0)


@pytest.mark.parametrize(("offset", "code"), [(0, NOT_FOUND), (5, MOVED)])
def test_an_empty_queue(offset: int, code: int) -> None:
    answer = rig_with().ask(pull(offset))
    assert (answer.code, answer.fields["nextBeginOffset"]) == (code, "0")


def test_nothing_that_matches_is_come_again_at_once() -> None:
    rig = rig_with()
    rig.store_some(b"a", b"b", tags="A")
    answer = rig.ask(pull(subscription="B", sysFlag=HOLD | SUBSCRIBE))
    assert (answer.code, answer.fields["nextBeginOffset"]) == (RETRY, "2")


@pytest.mark.parametrize("count", ["0", "-1", "2147483647", "1"])
def test_any_number_of_messages_may_be_asked_for(count: str) -> None:
    rig = rig_with()
    rig.store_some(*(b"%d" % number for number in range(100)))
    answer = rig.ask(pull(maxMsgNums=count))
    assert answer.code == FOUND
    found = split_records(answer.body)
    assert 1 <= len(found) <= 32, "the broker's own bounds hold"
    assert answer.fields["nextBeginOffset"] == str(len(found))


def test_offsets_are_committed_with_a_pull() -> None:
    rig = rig_with()
    rig.store_some(b"a", b"b")
    rig.ask(pull(1, sysFlag=COMMIT | SUBSCRIBE, commitOffset="1"))
    assert rig.broker.tables.offsets.find("group", "T", 0) == 1
    rig.ask(pull(2, sysFlag=SUBSCRIBE, commitOffset="2"))
    assert rig.broker.tables.offsets.find("group", "T", 0) == 1
    refused = rig.ask(pull(2, sysFlag=COMMIT | SUBSCRIBE, commitOffset="2", topic="New"))
    assert refused.code == TOPIC_NOT_EXIST
    assert rig.broker.tables.offsets.find("group", "New", 0) < 0


def test_a_pending_reset_moves_the_reader() -> None:
    rig = rig_with()
    rig.store_some(b"a", b"b", b"c")
    rig.broker.tables.offsets.reset("group", "T", 0, 1)
    answer = rig.ask(pull(3))
    assert (answer.code, answer.fields["nextBeginOffset"]) == (MOVED, "1")


def test_a_pull_that_commits_does_not_undo_a_reset_that_waits() -> None:
    rig = rig_with()
    rig.store_some(b"a", b"b", b"c")
    offsets = rig.broker.tables.offsets
    offsets.reset("group", "T", 0, 1)
    answer = rig.ask(pull(3, sysFlag=COMMIT | SUBSCRIBE, commitOffset="3"))
    assert (answer.code, answer.fields["nextBeginOffset"]) == (MOVED, "1")
    assert offsets.find("group", "T", 0) == 1, "a member that dies now begins where it was sent"
    rig.ask(pull(2, sysFlag=COMMIT | SUBSCRIBE, commitOffset="2"))
    assert offsets.find("group", "T", 0) == 2


def test_a_slave_sends_its_readers_back() -> None:
    rig = BrokerRig({"brokerRole": "SLAVE"}, broker_id=1)
    answer = rig.ask(pull(0, sysFlag=COMMIT | HOLD | SUBSCRIBE, commitOffset="7"))
    assert answer.code == RETRY, "its master may have more"
    assert answer.fields["suggestWhichBrokerId"] == "0"
    assert rig.broker.tables.offsets.find("group", "T", 0) < 0, "its master keeps the offsets"
    assert len(rig.broker.held) == 0


def test_a_large_answer_is_not_copied() -> None:
    rig = BrokerRig()
    body = bytes(40_000)
    rig.store_some(body, body, body)
    asked = rig.begin(pull())
    assert [len(one) for one in split_records(asked.answer.body)] == [40_000 + 114] * 3


# -- waiting --------------------------------------------------------------------------------------


def test_a_pull_waits_and_a_message_wakes_it() -> None:
    rig = rig_with()
    asked = rig.begin(pull(0, **PARKED))
    assert not asked.is_answered
    rig.store_some(b"here", e="1")
    assert not asked.is_answered, "another queue's"
    rig.store_some(b"here")
    assert asked.answer.code == FOUND
    assert len(split_records(asked.answer.body)) == 1
    assert len(rig.broker.held) == 0


def test_only_a_tag_that_is_wanted_wakes() -> None:
    rig = rig_with()
    wants_a = rig.begin(pull(0, subscription="A", **PARKED))
    wants_b = rig.begin(pull(0, subscription="B || C", **PARKED))
    wants_all = rig.begin(pull(0, **PARKED))
    rig.store_some(b"x", tags="D")
    assert wants_all.is_answered
    assert not wants_a.is_answered
    rig.store_some(b"y", tags="C")
    assert wants_b.answer.code == FOUND
    assert not wants_a.is_answered
    rig.tick(15.1)
    assert wants_a.answer.code == RETRY, "what does not match is passed over"
    assert wants_a.answer.fields["nextBeginOffset"] == "2"


def test_nothing_came_in_time() -> None:
    rig = rig_with()
    asked = rig.begin(pull(0, **PARKED))
    rig.tick(14.9)
    assert not asked.is_answered
    rig.tick(0.2)
    assert asked.answer.code == NOT_FOUND
    assert asked.answer.fields["nextBeginOffset"] == "0"
    assert len(rig.broker.held) == 0


def test_without_long_polling_a_pull_waits_shortly() -> None:
    rig = rig_with(long_polling=False, short_polling_ms=1000)
    asked = rig.begin(pull(0, **PARKED))
    rig.tick(0.9)
    assert not asked.is_answered
    rig.tick(0.2)
    assert asked.answer.code == NOT_FOUND


def test_a_burst_wakes_a_pull_once_and_it_reads_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = rig_with()
    asked = rig.begin(pull(0, **PARKED))
    reads = []
    real = Pulling._read

    def counted(self: Pulling, *arguments: Any, **more: Any) -> None:  # noqa: ANN401
        reads.append(arguments)
        real(self, *arguments, **more)

    monkeypatch.setattr(Pulling, "_read", counted)
    rig.take(frames([b"%d" % number for number in range(20)]))
    assert reads == []
    rig.turns()
    assert len(reads) == 1
    assert len(split_records(asked.answer.body)) == 20


def test_a_peer_that_leaves_is_forgotten() -> None:
    rig = rig_with()
    other = FakePeer(2)
    for number in range(3):
        rig.begin(pull(0, opaque=number, **PARKED))
    stays = rig.begin(pull(0, **PARKED), other)
    assert len(rig.broker.held) == 4
    rig.service.closed(rig.peer)
    assert len(rig.broker.held) == 1
    rig.store_some(b"x")
    assert stays.answer.code == FOUND
    assert rig.service._pulling._waiting == {}


def test_a_peer_that_left_while_the_disk_was_read_is_not_held() -> None:
    rig = rig_with()
    rig.peer.is_open = False
    assert rig.begin(pull(0, **PARKED)).answer.code == NOT_FOUND
    assert len(rig.broker.held) == 0


def test_many_waits_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold, "HELD_MAX", 3)
    rig = rig_with()
    asked = [rig.begin(pull(0, opaque=number, **PARKED)) for number in range(5)]
    assert [one.is_answered for one in asked] == [False, False, False, True, True]
    assert asked[4].answer.code == NOT_FOUND


def test_a_stop_answers_whoever_waits() -> None:
    rig = rig_with()
    asked = rig.begin(pull(0, **PARKED))
    assert rig.broker.close()
    assert asked.answer.code == NOT_FOUND


def test_a_oneway_pull_is_silent() -> None:
    rig = rig_with()
    frame = json_request(11, {"consumerGroup": "group", "topic": "New", "queueId": 0,
                              "queueOffset": 0, "maxMsgNums": 1, "sysFlag": 4, "commitOffset": 0,
                              "suspendTimeoutMillis": 0, "subVersion": 0}, flag=2)  # fmt: skip
    assert rig.take(frame) == [None]


def test_a_fault_of_ours_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = rig_with()
    waits = [rig.begin(pull(0, opaque=number, **PARKED)) for number in range(2)]

    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(rig.store.reads, "begin_pull", fails)
    now = rig.ask(pull())
    assert (now.code, now.remark) == (SYSTEM_ERROR, "ZeroDivisionError: on purpose")
    rig.store_some(b"x")
    assert [one.answer.code for one in waits] == [SYSTEM_ERROR] * 2


def test_a_message_is_seen_only_when_it_is_on_the_disk() -> None:
    rig = BrokerRig({"flushDiskType": "SYNC_FLUSH"})
    asked = rig.begin(pull(0, **PARKED))
    rig.take(json_request(310, {"a": "g", "b": "T", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 1,
                                "h": 0, "i": ""}, b"x"))  # fmt: skip
    rig.tick(1)
    assert not asked.is_answered
    rig.work("log_flush")
    rig.turns()
    assert asked.answer.code == FOUND


# -- a disk in trouble ----------------------------------------------------------------------------


@pytest.fixture
def cold_rig(monkeypatch: pytest.MonkeyPatch) -> BrokerRig:
    """Return a broker with two messages that are not in memory."""
    monkeypatch.setattr("gantrymq.store.packed_read.TAIL_BYTES", 0)
    rig = BrokerRig()
    rig.store_some(b"one", b"two")
    rig.store.reads.cold.tail_bytes = 0
    for file in rig.store.log.files:
        rig.disk.evict(file.region.path)
    return rig


def test_a_disk_that_cannot_be_read_is_said_and_nobody_spins(cold_rig: BrokerRig) -> None:
    rig = cold_rig
    asked = rig.begin(pull(sysFlag=HOLD | SUBSCRIBE))
    rig.disk.fail(Operation.READ)
    rig.work("cold_read")
    assert asked.answer.code == SYSTEM_ERROR
    assert "Input/output error" in str(asked.answer.remark)
    again = rig.begin(pull())
    rig.work("cold_read")
    assert again.answer.code == FOUND
    assert len(split_records(again.answer.body)) == 2


def test_more_reads_than_the_disk_takes_are_refused_with_the_cause(
    cold_rig: BrokerRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gantrymq.store.cold_read.JOBS_MAX", 1)
    rig = cold_rig
    first, second = rig.begin(pull()), rig.begin(pull(opaque=8))
    assert second.answer.code == SYSTEM_ERROR
    assert "1 reads wait for the disk" in str(second.answer.remark)
    rig.work("cold_read")
    assert first.answer.code == FOUND
