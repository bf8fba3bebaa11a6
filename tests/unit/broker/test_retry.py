"""Messages that consumers send back: later again, or to the dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.model.group import SubscriptionGroup
from gantrymq.model.topic import Perm, TopicConfig
from gantrymq.wire.properties import decode_properties
from support.broker_rig import BrokerRig
from support.samples import json_request

if TYPE_CHECKING:
    from gantrymq.wire.command import Command

SUCCESS, SYSTEM_ERROR, NO_PERMISSION, GROUP_NOT_EXIST = 0, 1, 16, 26
SCHEDULE = "SCHEDULE_TOPIC_XXXX"


def rig_with(**settings: Any) -> BrokerRig:  # noqa: ANN401
    rig = BrokerRig(**settings)
    rig.broker.tables.groups.put(SubscriptionGroup("G", retry_times_max=2))
    rig.store_some(b"poison", i="KEYS\x01k\x02TAGS\x01A", h="5")
    return rig


def back(rig: BrokerRig, offset: int = 0, *, flag: int = 0, **fields: object) -> Command:
    given = {"offset": offset, "group": "G", "delayLevel": 0, "originTopic": "T"} | fields
    asked = rig.begin(json_request(36, given, flag=flag))
    rig.settle()
    return asked.answer


def test_it_comes_again_on_a_longer_and_longer_way() -> None:
    rig = rig_with()
    assert back(rig).code == SUCCESS
    (waiting,) = rig.records(SCHEDULE, 2)
    rig.settle(9.9)
    assert rig.bodies("%RETRY%G") == []
    rig.settle(0.2)
    (again,) = rig.records("%RETRY%G")
    first_id = "7F00000100002A9F0000000000000000"
    kept = decode_properties(again.properties)
    assert (again.body, again.flag, again.reconsume_times) == (b"poison", 5, 1)
    assert (again.born_timestamp, again.born_host) == (waiting.born_timestamp, rig.peer.host)
    assert kept["KEYS"] == "k"
    assert (kept["RETRY_TOPIC"], kept["ORIGIN_MESSAGE_ID"]) == ("T", first_id)
    assert back(rig, again.log_offset).code == SUCCESS
    (second,) = rig.records(SCHEDULE, 3)
    kept = decode_properties(second.properties)
    assert (kept["RETRY_TOPIC"], kept["ORIGIN_MESSAGE_ID"]) == ("T", first_id), "the first ones"
    assert second.reconsume_times == 2
    assert back(rig, second.log_offset).code == SUCCESS
    assert rig.bodies("%DLQ%G") == [b"poison"], "twice is the most that this group tries"


def test_a_level_that_is_given_counts() -> None:
    rig = rig_with()
    back(rig, delayLevel=1)
    assert rig.bodies(SCHEDULE, 0) == [b"poison"]
    back(rig, delayLevel=99)
    assert rig.bodies(SCHEDULE, 17) == [b"poison"]


@pytest.mark.parametrize("fields", [{"delayLevel": -1}, {"maxReconsumeTimes": 0}])
def test_straight_to_the_dead_letters(fields: dict[str, Any]) -> None:
    rig = rig_with()
    assert back(rig, **fields).code == SUCCESS
    (dead,) = rig.records("%DLQ%G")
    assert "DELAY" not in decode_properties(dead.properties)
    topic = rig.broker.tables.topics.find("%DLQ%G")
    assert topic is not None
    assert (topic.read_queues, topic.write_queues, topic.perm) == (1, 1, Perm.READ | Perm.WRITE)
    rig.settle(7200)
    assert rig.bodies("%RETRY%G") == []


@pytest.mark.parametrize("offset", [-1, 1, 50, 10**9, 2**62])
def test_a_message_that_is_not_there(offset: int) -> None:
    rig = rig_with()
    before = rig.store.log.wrote_offset
    answer = back(rig, offset)
    assert answer.code == SYSTEM_ERROR
    assert str(offset) in str(answer.remark)
    assert rig.store.log.wrote_offset == before


def test_refusals() -> None:
    rig = rig_with(creates_groups=False)
    before = rig.store.log.wrote_offset
    unknown = back(rig, group="Nobody")
    assert (unknown.code, "Nobody" in str(unknown.remark)) == (GROUP_NOT_EXIST, True)
    rig.broker.tables.topics.put(TopicConfig("%RETRY%G", 1, 1, Perm.READ))
    assert back(rig).code == NO_PERMISSION
    rig.broker.tables.groups.put(SubscriptionGroup("Never", retry_queues=0))
    assert back(rig, group="Never").code == SUCCESS, "and nothing happens"
    missing = rig.ask(json_request(36, {"group": "G"}))
    assert missing.code == SYSTEM_ERROR
    assert rig.store.log.wrote_offset == before


def test_a_broker_that_may_not_be_written() -> None:
    rig = rig_with()
    object.__setattr__(rig.broker.settings.now, "permission", 4)
    assert back(rig).code == NO_PERMISSION


def test_the_answer_waits_for_the_disk() -> None:
    rig = BrokerRig({"flushDiskType": "SYNC_FLUSH"})
    rig.begin_send(b"x")
    rig.settle()
    asked = rig.begin(json_request(36, {"offset": 0, "group": "G", "delayLevel": 0}))
    rig.turns()
    assert not asked.is_answered
    rig.work("log_flush")
    rig.turns()
    assert asked.answer.code == SUCCESS
