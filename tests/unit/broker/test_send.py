"""Sends that policy sees: what is refused and why, and what is stored instead of what was sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.broker.send import Sending
from gantrymq.errors import InvalidValue
from gantrymq.model.group import SubscriptionGroup
from gantrymq.model.topic import FilterType, Perm, TopicConfig
from gantrymq.testing.clock import START_MS
from gantrymq.wire.properties import decode_properties
from gantrymq.wire.sysflag import SystemFlag
from support.broker_rig import BrokerRig, commands
from support.samples import binary_request, inner_message, json_request, send_fields

if TYPE_CHECKING:
    from gantrymq.kernel.values import Record

SUCCESS, SYSTEM_ERROR, MESSAGE_ILLEGAL, NOT_AVAILABLE = 0, 1, 13, 14
NO_PERMISSION, TOPIC_NOT_EXIST, GROUP_NOT_EXIST, INVALID = 16, 17, 26, 29
BODY_MAX = 100


def properties_of(record: Record) -> dict[str, str]:
    return decode_properties(record.properties)


def rig_with(**settings: Any) -> BrokerRig:  # noqa: ANN401
    rig = BrokerRig({"maxMessageSize": str(BODY_MAX)}, **settings)
    rig.broker.tables.topics.put(TopicConfig("ReadOnly", 4, 4, Perm.READ))
    rig.broker.tables.groups.put(SubscriptionGroup("G", retry_times_max=3))
    return rig


REFUSED: dict[str, tuple[dict[str, Any], bytes, int, str]] = {
    "topic with a way out": ({"b": "../x"}, b"x", INVALID, "../x"),
    "topic with a control character": ({"b": "a\x07b"}, b"x", INVALID, "topic"),
    "topic without a name": ({"b": " "}, b"x", INVALID, "blank"),
    "topic too long": ({"b": "t" * 128}, b"x", INVALID, "127"),
    "topic of the system": ({"b": "SCHEDULE_TOPIC_XXXX"}, b"x", NO_PERMISSION, "forbidden"),
    "half topic": ({"b": "RMQ_SYS_TRANS_HALF_TOPIC"}, b"x", NO_PERMISSION, "forbidden"),
    "timers' topic": ({"b": "rmq_sys_wheel_timer"}, b"x", NO_PERMISSION, "forbidden"),
    "log of pop": ({"b": "rmq_sys_REVIVE_LOG_DefaultCluster"}, b"x", NO_PERMISSION, "forbidden"),
    "unknown topic and template": ({"b": "New", "c": "None"}, b"x", TOPIC_NOT_EXIST, "updateTopic"),
    "template that gives nothing": ({"b": "New", "c": "T"}, b"x", TOPIC_NOT_EXIST, "New"),
    "topic that may not be written": ({"b": "ReadOnly"}, b"x", NO_PERMISSION, "ReadOnly"),
    "queue beyond the last": ({"e": "2"}, b"x", INVALID, "has 2 queues"),
    "queue far beyond the last": ({"e": "2147483647"}, b"x", INVALID, "2147483647"),
    "no body": ({}, b"", MESSAGE_ILLEGAL, "no body"),
    "body too large": ({}, bytes(BODY_MAX + 1), MESSAGE_ILLEGAL, "maxMessageSize"),
    "properties too long": ({"i": f"k\x01{'v' * 32768}"}, b"x", MESSAGE_ILLEGAL, "32767"),
    "properties too long with ours": (
        {"i": f"k\x01{'v' * 32760}"}, b"x", MESSAGE_ILLEGAL, "32767"),
    "retry of no group": ({"b": "%RETRY%"}, b"x", GROUP_NOT_EXIST, "group not exist"),
    "batch to a retry topic": (
        {"b": "%RETRY%G", "m": "true"}, inner_message(b"x"), MESSAGE_ILLEGAL, "batch"),
    "delayed batch": (
        {"m": "true", "i": "DELAY\x011"}, inner_message(b"x"), MESSAGE_ILLEGAL, "delayed"),
    "half batch": (
        {"m": "true", "i": "TRAN_MSG\x01true"}, inner_message(b"x"), MESSAGE_ILLEGAL, "batch"),
    "half without its property": ({"f": "4"}, b"x", MESSAGE_ILLEGAL, "TRAN_MSG"),
    "rolled back before it began": ({"f": "12"}, b"x", MESSAGE_ILLEGAL, "sysFlag 12"),
    "half batch by its flag": (
        {"m": "true", "f": "4"}, inner_message(b"x"), MESSAGE_ILLEGAL, "sysFlag 4"),
    "delay level that is none": ({"i": "DELAY\x01soon"}, b"x", SYSTEM_ERROR, "'soon'"),
    "batch cut short": ({"m": "true"}, inner_message(b"x")[:-1], SYSTEM_ERROR, "batch"),
    "batch of nothing": ({"m": "true"}, b"", MESSAGE_ILLEGAL, "batch"),
    "batch with an empty message": ({"m": "true"}, inner_message(b""), MESSAGE_ILLEGAL, "no body"),
    "number that is none": ({"e": "one"}, b"x", SYSTEM_ERROR, "'one'"),
    "missing field": ({"b": None}, b"x", SYSTEM_ERROR, "missing"),
}  # fmt: skip


@pytest.mark.parametrize("make", [json_request, binary_request])
@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_why_and_store_nothing(name: str, make: Any) -> None:  # noqa: ANN401
    fields, body, code, words = REFUSED[name]
    rig = rig_with()
    before = rig.store.log.wrote_offset
    for request_code in (310, 320):
        all_fields = send_fields(**{"b": "T", "i": ""} | fields)
        answer = rig.ask(make(request_code, all_fields, body, opaque=42))
        assert (answer.code, answer.opaque) == (code, 42), answer
        assert answer.remark is not None
        assert words.lower() in answer.remark.lower(), answer.remark
        # Clients look for these two in refusals as well, without checking that they are there.
        assert answer.fields == {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
    assert rig.store.log.wrote_offset == before
    assert rig.broker.tables.topics.find("New") is None
    assert rig.take(make(310, all_fields, body, flag=2)) == [None], "oneway is silent"


@pytest.mark.parametrize("code", [310, 320])
def test_a_broker_that_may_not_be_written_refuses_ordered_topics_alone(code: int) -> None:
    """As Apache's: clients learn from name servers, and until then nothing of theirs fails."""
    rig = rig_with(permission=4)
    rig.broker.tables.topics.put(TopicConfig("Ordered", 2, 2, order=True))
    refused = rig.send(b="Ordered", code=code)
    assert refused.code == NO_PERMISSION
    assert "brokerPermission" in str(refused.remark)
    assert rig.store.log.wrote_offset == 0
    assert rig.send(b="T").code == SUCCESS
    assert rig.send(b="T", e="-1").code == SUCCESS, "in the lane and out of it"


def test_sends_before_the_first_moment_are_refused_in_the_lane_too() -> None:
    rig = rig_with(accepts_sends_from_ms=START_MS + 1000)
    answer = rig.send()
    assert answer.code == SYSTEM_ERROR
    assert "startAcceptSendRequestTimeStamp" in str(answer.remark)
    assert rig.store.log.wrote_offset == 0
    rig.clock.jump(1)
    assert rig.send().code == SUCCESS


def test_a_slave_takes_no_send() -> None:
    rig = BrokerRig({"brokerRole": "SLAVE"}, broker_id=1)
    answer = rig.send()
    assert answer.code == NOT_AVAILABLE
    assert "slave" in str(answer.remark)
    assert rig.store.log.wrote_offset == 0


def test_a_full_disk_is_said() -> None:
    rig = BrokerRig()
    rig.store.writability.forbid("space", "the disk is 91 % full")
    answer = rig.send()
    assert answer.code == NOT_AVAILABLE
    assert "91 %" in str(answer.remark)
    rig.store.writability.allow("space")
    assert rig.send().code == SUCCESS


def test_transactions_can_be_refused() -> None:
    rig = rig_with(rejects_transactions=True)
    answer = rig.send(i="TRAN_MSG\x01true\x02PGROUP\x01P")
    assert answer.code == NO_PERMISSION
    assert "sending transaction message is forbidden" in str(answer.remark)
    assert rig.store.log.wrote_offset == 0


# -- where it goes --------------------------------------------------------------------------------


def test_an_unknown_topic_is_made_after_the_template() -> None:
    rig = rig_with()
    told = rig.routes_changed
    answer = rig.send(b"first", b="New", d="3", e="2")
    assert answer.code == SUCCESS
    assert answer.fields["queueId"] == "2"
    made = rig.broker.tables.topics.find("New")
    assert made is not None
    assert (made.read_queues, made.write_queues, made.perm) == (3, 3, Perm.READ | Perm.WRITE)
    assert rig.routes_changed == told + 1
    rig.tick(1)  # the topics of the rig were saved a moment ago
    rig.work("config")
    assert b'"New"' in rig.disk.read(rig.broker.store_settings.paths.config / "topics.json")
    assert rig.send(b"second", b="New", d="3", e="2").fields["queueOffset"] == "1"
    assert rig.bodies("New", 2) == [b"first", b"second"]


def test_a_template_bounds_the_queues() -> None:
    rig = rig_with(topic_queues=8)
    rig.send(b="New", d="100")
    made = rig.broker.tables.topics.find("New")
    assert made is not None
    assert made.write_queues == 8


def test_topics_are_not_made_where_that_is_off() -> None:
    rig = rig_with(creates_topics=False)
    answer = rig.send(b="New")
    assert answer.code == TOPIC_NOT_EXIST
    assert "autoCreateTopicEnable" in str(answer.remark)
    assert rig.store.log.wrote_offset == 0


def test_a_negative_queue_is_the_brokers_choice() -> None:
    rig = rig_with()
    rig.broker.tables.topics.put(TopicConfig("Wide", 4, 4))
    chosen = {rig.send(b="Wide", e="-1").fields["queueId"] for _ in range(200)}
    assert chosen == {"0", "1", "2", "3"}
    assert sum(len(rig.bodies("Wide", queue_id)) for queue_id in range(4)) == 200


def test_read_queues_beyond_the_written_ones_can_be_written() -> None:
    """As on an Apache broker: the larger number counts."""
    rig = rig_with()
    rig.broker.tables.topics.put(TopicConfig("Mixed", 6, 2))
    assert rig.send(b="Mixed", e="5").code == SUCCESS
    assert rig.send(b="Mixed", e="6").code == INVALID


def test_a_message_tried_too_often_goes_to_the_dead_letters() -> None:
    rig = rig_with()
    assert rig.send(b"again", b="%RETRY%G", j="2", i="DELAY\x013", l=None).code == SUCCESS
    assert rig.send(b"dead", b="%RETRY%G", j="3", i="DELAY\x013\x02k\x01v", l=None).code == SUCCESS
    assert rig.bodies("SCHEDULE_TOPIC_XXXX", 2) == [b"again"]
    (dead,) = rig.records("%DLQ%G")
    assert dead.body == b"dead"
    assert properties_of(dead) == {"k": "v", "CLUSTER": "DefaultCluster"}
    assert dead.reconsume_times == 3
    made = rig.broker.tables.topics.find("%DLQ%G")
    assert made is not None
    assert (made.write_queues, made.perm) == (1, Perm.READ | Perm.WRITE)


def test_the_clients_own_limit_counts_from_its_version_on() -> None:
    rig = rig_with()
    assert rig.send(b="%RETRY%G", j="2", l="2", i="").code == SUCCESS
    assert len(rig.bodies("%DLQ%G")) == 1


def test_a_retry_makes_its_group_if_groups_may_be_made() -> None:
    """A consumer that could not send a message back sends it to another broker, as a producer."""
    rig = rig_with()
    assert rig.send(b"again", b="%RETRY%New", j="1", i="", l=None).code == SUCCESS
    assert rig.bodies("%RETRY%New") == [b"again"]
    assert rig.broker.tables.groups.find("New") is not None
    strict = rig_with(creates_groups=False)
    refused = strict.send(b"again", b="%RETRY%New", j="1", i="", l=None)
    assert (refused.code, "New" in str(refused.remark)) == (GROUP_NOT_EXIST, True)
    assert strict.store.log.wrote_offset == 0


def test_a_batch_for_a_group_is_taken_from_those_who_know_of_retries() -> None:
    rig = rig_with()
    rig.broker.tables.groups.put(SubscriptionGroup("Never", retry_times_max=0))
    two = inner_message(b"one") + inner_message(b"two")
    for group in ("G", "Never"):
        assert rig.send(two, b=f"%RETRY%{group}", m="true", l="16").code == SUCCESS
        assert rig.bodies(f"%RETRY%{group}") == [b"one", b"two"]
        # No limit is named, as Apache's producers do; or it is reached.
        for more in ({"l": None}, {"l": "0"}, {"l": "2", "j": "2"}):
            refused = rig.send(two, b=f"%RETRY%{group}", m="true", **more)
            assert refused.code == MESSAGE_ILLEGAL
    assert rig.bodies("%DLQ%G") == rig.bodies("%DLQ%Never") == []


# -- what is stored -------------------------------------------------------------------------------


def test_a_delayed_message_waits_elsewhere_and_its_answer_names_its_queue() -> None:
    rig = rig_with()
    answer = rig.send(b"later", e="1", i="DELAY\x0199\x02KEYS\x01k\x02WAIT\x01true")
    assert answer.code == SUCCESS
    assert answer.fields["queueId"] == "1"
    (waiting,) = rig.records("SCHEDULE_TOPIC_XXXX", 17)
    stored = properties_of(waiting)
    assert (stored["DELAY"], stored["REAL_TOPIC"], stored["REAL_QID"]) == ("18", "T", "1")
    assert "WAIT" not in stored
    assert rig.bodies("T", 1) == []


def test_what_the_broker_adds_and_leaves_out() -> None:
    rig = rig_with()
    rig.send(b"x", e="-1", h="9", j="0", i="WAIT\x01true\x02a\x01b\x02CLUSTER\x01lie")
    (record,) = rig.records("T", 0) or rig.records("T", 1)
    assert properties_of(record) == {"a": "b", "CLUSTER": "DefaultCluster"}
    assert (record.flag, record.born_host) == (9, rig.peer.host)
    assert record.store_timestamp == START_MS


def test_a_topic_of_many_tags_marks_its_messages_whichever_way_they_come() -> None:
    rig = rig_with()
    rig.broker.tables.topics.put(TopicConfig("Many", 1, 1, filter_type=FilterType.MULTI_TAG))
    rig.send(b"x", b="Many")
    rig.send(b"y", b="Many", e="-1")
    assert [one.sys_flag & SystemFlag.MULTI_TAGS for one in rig.records("Many")] == [
        SystemFlag.MULTI_TAGS
    ] * 2


def test_a_batch_is_stored_message_by_message() -> None:
    rig = rig_with()
    body = inner_message(b"a", b"KEYS\x01k1", flag=5) + inner_message(b"b", b"KEYS\x01k2")
    # The first goes by policy, as its topic is new; the second takes the lane.
    for number in range(2):
        answer = rig.send(body, b="Batch", m="true", code=320)
        assert answer.code == SUCCESS
        assert answer.fields["queueOffset"] == str(2 * number)
        assert len(answer.fields["msgId"].split(",")) == 2
    records = rig.records("Batch")
    assert [record.body for record in records] == [b"a", b"b"] * 2
    assert [record.flag for record in records] == [5, 0] * 2
    assert [properties_of(record)["KEYS"] for record in records] == ["k1", "k2"] * 2


@pytest.mark.parametrize("queue", ["0", "-1"])
def test_nothing_in_a_batch_waits_whichever_way_it_comes(queue: str) -> None:
    """Clients refuse such batches; Apache's broker stores them so, and so does the lane."""
    rig = rig_with()
    batch = inner_message(b"now", b"DELAY\x013") + inner_message(b"too")
    assert rig.send(batch, code=320, m="true", i="", e=queue).code == SUCCESS
    assert rig.bodies("T", 0) + rig.bodies("T", 1) == [b"now", b"too"]


@pytest.mark.parametrize("properties", ["DELAY\x013\x02TRAN_MSG\x01true", "TAGS\x01t"])
def test_a_retry_with_the_flag_of_its_transaction_is_seen_again(properties: str) -> None:
    """Clients before 4.6.1 leave it on; the message was committed long ago."""
    rig = rig_with()
    assert rig.send(b"again", b="%RETRY%G", j="1", f="4", l=None, i=properties).code == SUCCESS
    rig.settle(11)
    assert rig.bodies("%RETRY%G") == [b"again"]


@pytest.mark.parametrize("code", [10, 310])
def test_both_forms_of_a_send_are_read(code: int) -> None:
    long = {
        "producerGroup": "P", "topic": "T", "defaultTopic": "TBW102", "defaultTopicQueueNums": 4,
        "queueId": -1, "sysFlag": 0, "bornTimestamp": 5, "flag": 0, "properties": "k\x01v",
    }  # fmt: skip
    rig = rig_with()
    fields = long if code == 10 else send_fields(b="T", e="-1", i="k\x01v")
    assert rig.ask(json_request(code, fields, b"x")).code == SUCCESS
    (record,) = rig.records("T", 0) or rig.records("T", 1)
    assert properties_of(record)["k"] == "v"


def test_a_fault_of_ours_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = rig_with()

    def fails(*_: object) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(Sending, "_target", fails)
    answer = rig.send(e="-1")
    assert answer.code == SYSTEM_ERROR
    assert "on purpose" in str(answer.remark)
    assert commands(rig.take(json_request(310, send_fields(b="T", e="-1"), b"x", flag=2))) == []


def test_too_many_topics_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = rig_with()

    def full(*_: object, **__: object) -> None:
        raise InvalidValue("this broker has 100000 topics, which is the most")

    monkeypatch.setattr(rig.broker.tables.topics, "create_on_send", full)
    answer = rig.send(b="OneMore")
    assert answer.code == SYSTEM_ERROR
    assert "100000 topics" in str(answer.remark)
    assert rig.store.log.wrote_offset == 0
