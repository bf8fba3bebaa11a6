"""What clients say about themselves, and what others are told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gantrymq.model.group import SubscriptionGroup
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.wire.bodies.connections import CONSUMER_CONNECTIONS
from gantrymq.wire.bodies.heartbeat import CONSUMER_IDS, HEARTBEAT
from gantrymq.wire.bodies.lock import LOCK_ANSWER, LOCK_REQUEST, LockRequest
from gantrymq.wire.bodies.route import KV_TABLE
from support.broker_rig import BrokerRig
from support.client_peers import FakePeer, consumer, heartbeat, subscription
from support.samples import json_request

if TYPE_CHECKING:
    import pytest

    from gantrymq.wire.command import Command

SUCCESS, SYSTEM_ERROR, PARSE_FAILED = 0, 1, 23


def beat(rig: BrokerRig, peer: FakePeer, *consumers: Any, **more: Any) -> Command:  # noqa: ANN401
    body = HEARTBEAT.encode(heartbeat(f"c{peer.number}", *consumers, **more))
    return rig.ask(json_request(34, {}, body), peer)


def members(rig: BrokerRig, group: str = "G") -> list[str]:
    answer = rig.ask(json_request(38, {"consumerGroup": group}))
    if answer.code == SYSTEM_ERROR:
        assert group in str(answer.remark)
        return []
    return sorted(CONSUMER_IDS.decode(answer.body).consumer_id_list)


def test_a_heartbeat_makes_group_and_retry_topic() -> None:
    rig = BrokerRig()
    told = rig.routes_changed
    answer = beat(rig, FakePeer(1), consumer("G", subscription("T")))
    assert answer.code == SUCCESS
    assert answer.fields["IS_SUPPORT_HEART_BEAT_V2"] == "true"
    assert answer.version >= 407, "clients take it for the broker's"
    topic = rig.broker.tables.topics.find("%RETRY%G")
    assert topic is not None
    assert topic.write_queues == 1
    assert rig.routes_changed == told + 1
    assert rig.broker.tables.groups.find("G") is not None
    assert members(rig) == ["c1"]


def test_an_illegal_group_does_no_harm() -> None:
    rig = BrokerRig()
    answer = beat(rig, FakePeer(1), consumer("../x", subscription("T")), consumer("G"))
    assert answer.code == SUCCESS
    assert rig.broker.tables.groups.find("../x") is None
    assert rig.broker.tables.topics.find("%RETRY%../x") is None
    assert members(rig) == ["c1"]


def test_a_group_that_may_not_be_made_gets_no_members() -> None:
    rig = BrokerRig(creates_groups=False)
    rig.broker.tables.groups.put(SubscriptionGroup("Known"))
    beats = consumer("G", subscription("T")), consumer("Known", subscription("T"))
    assert beat(rig, FakePeer(1), *beats).code == SUCCESS
    assert members(rig, "G") == []
    assert members(rig, "Known") == ["c1"]
    assert rig.broker.tables.topics.find("%RETRY%G") is None
    assert beat(rig, FakePeer(2), consumer("G", subscription("T"))).code == SUCCESS
    assert members(rig, "G") == []


def test_a_body_that_is_none_is_refused() -> None:
    rig = BrokerRig()
    for body in (b"", b"{", b"[]", b'{"clientID":5}', b'{"clientID":"c"} x'):
        answer = rig.ask(json_request(34, {}, body))
        assert answer.code in {SYSTEM_ERROR, SUCCESS}
        assert (answer.code == SUCCESS) or answer.remark
    assert members(rig) == []


def test_members_are_told_who_comes_and_goes() -> None:
    rig = BrokerRig()
    first, second = FakePeer(1), FakePeer(2)
    beat(rig, first, consumer("G", subscription("T")))
    rig.tick(1)
    first.told.clear()
    beat(rig, second, consumer("G", subscription("T")))
    (notice,) = first.told
    assert (notice.code, notice.is_oneway, notice.fields) == (40, True, {"consumerGroup": "G"})
    first.told.clear()
    beat(rig, second, consumer("G", subscription("T")))
    rig.tick(1)
    assert first.told == [], "nothing has changed"
    rig.ask(json_request(35, {"clientID": "c2", "consumerGroup": "G", "producerGroup": ""}), second)
    assert len(first.told) == 1
    assert members(rig) == ["c1"]
    rig.tick(1)
    beat(rig, second, consumer("G", subscription("T")))
    rig.tick(1)
    first.told.clear()
    rig.service.closed(second)
    assert len(first.told) == 1
    rig.tick(130)
    assert members(rig) == [], "silent for two minutes"


def test_notices_can_be_switched_off() -> None:
    rig = BrokerRig(notifies_members=False)
    group = BrokerRig()
    group.broker.tables.groups.put(SubscriptionGroup("G", notify_members=False))
    for quiet in (rig, group):
        first = FakePeer(1)
        beat(quiet, first, consumer("G", subscription("T")))
        beat(quiet, FakePeer(2), consumer("G", subscription("T")))
        assert first.told == []


def test_a_subscription_is_checked_before_a_client_starts() -> None:
    def check(rig: BrokerRig, kind: str, expression: str) -> Command:
        body = (
            b'{"clientId":"c","group":"G","subscriptionData":{"topic":"T","subString":"%s",'
            b'"expressionType":"%s"}}' % (expression.encode(), kind.encode())
        )
        return rig.ask(json_request(46, {}, body))

    off, on = BrokerRig(), BrokerRig(property_filter=True)
    assert check(off, "TAG", "A").code == SUCCESS
    refused = check(off, "SQL92", "a = 1")
    assert (refused.code, "enablePropertyFilter" in str(refused.remark)) == (SYSTEM_ERROR, True)
    assert check(on, "SQL92", "a = 1").code == SUCCESS
    assert check(on, "SQL92", "a = = 1").code == PARSE_FAILED
    assert check(on, "XPATH", "a").code == PARSE_FAILED


def test_queues_are_locked_for_one_member() -> None:
    rig = BrokerRig()
    queues = [MessageQueue("T", "broker-a", QueueId(number)) for number in range(2)]

    def lock(code: int, client: str, *wanted: MessageQueue) -> set[MessageQueue]:
        body = LOCK_REQUEST.encode(
            LockRequest(consumer_group="G", client_id=client, mq_set=tuple(wanted))
        )
        answer = rig.ask(json_request(code, {}, body))
        assert answer.code == SUCCESS
        return set(LOCK_ANSWER.decode(answer.body).lock_ok_mq_set) if answer.body else set()

    assert lock(41, "c1", queues[0]) == {queues[0]}
    assert lock(41, "c2", *queues) == {queues[1]}
    assert lock(41, "c1", queues[0]) == {queues[0]}
    lock(42, "c2", queues[0])
    assert lock(41, "c2", queues[0]) == set(), "only the holder lets go"
    lock(42, "c1", queues[0])
    assert lock(41, "c2", queues[0]) == {queues[0]}
    rig.tick(61)
    assert lock(41, "c1", *queues) == set(queues), "not refreshed for a minute"


def test_two_opinions_in_one_group_are_noticed(caplog: Any) -> None:  # noqa: ANN401
    rig = BrokerRig()
    beat(rig, FakePeer(1), consumer("G", subscription("T", "A")))
    beat(rig, FakePeer(2), consumer("G", subscription("T", "B")))
    assert "G" in caplog.text
    assert "different" in caplog.text


def test_members_that_subscribe_differently_are_named_everywhere(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = BrokerRig()

    def figures() -> tuple[str, str]:
        table = KV_TABLE.decode(rig.ask(json_request(28, {})).body).table
        return table["subscriptionMismatchGroups"], table["subscriptionMismatchTotal"]

    beat(rig, FakePeer(1), consumer("G", subscription("T", "a || b")))
    beat(rig, FakePeer(2), consumer("G", subscription("T", "b||a")))
    assert (figures(), caplog.text) == (("0", "0"), "")
    third = FakePeer(3)
    beat(rig, third, consumer("G", subscription("T", "c")))
    assert figures() == ("1", "1")
    (warning,) = caplog.messages
    for words in ("group G", "c1, c2 take T a || b", "c3 take T c"):
        assert words in warning
    answer = rig.ask(json_request(203, {"consumerGroup": "G"}))
    shown = CONSUMER_CONNECTIONS.decode(answer.body).mismatch
    assert shown is not None
    assert [one.client_ids for one in shown] == [("c1", "c2"), ("c3",)]
    beat(rig, third, consumer("G", subscription("T", "c")))
    assert len(caplog.messages) == 1, "said once for each change"
    rig.service.closed(third)
    assert figures() == ("0", "1")
