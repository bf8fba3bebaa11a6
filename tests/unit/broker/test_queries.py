"""Questions about queues and messages, and what unknown queues answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gantrymq.model.group import SubscriptionGroup
from gantrymq.testing.clock import START_MS
from support.broker_rig import BrokerRig
from support.remoting import split_records
from support.samples import json_request

if TYPE_CHECKING:
    from gantrymq.wire.command import Command

SUCCESS, SYSTEM_ERROR, NOT_FOUND = 0, 1, 22
TOPIC_NOT_EXIST, GROUP_NOT_EXIST, INVALID_PARAMETER = 17, 26, 29
QUEUE = {"topic": "T", "queueId": 0}


def ask(rig: BrokerRig, code: int, fields: dict[str, object]) -> Command:
    rig.turns()
    return rig.ask(json_request(code, fields))


def offset(rig: BrokerRig, code: int, **fields: object) -> int:
    answer = ask(rig, code, QUEUE | fields)
    assert answer.code == SUCCESS
    return int(answer.fields["offset"])


def rig_with(count: int = 3) -> BrokerRig:
    rig = BrokerRig()
    for number in range(count):
        rig.store_some(b"%d" % number, i=f"KEYS\x01k{number} all\x02UNIQ_KEY\x01u{number}")
        rig.clock.jump(10)
    return rig


def test_ends_of_queues() -> None:
    rig = rig_with()
    assert (offset(rig, 30), offset(rig, 31)) == (3, 0)
    assert (offset(rig, 30, topic="None"), offset(rig, 31, topic="None")) == (0, -1)
    assert (offset(rig, 30, queueId=-5), offset(rig, 31, queueId=99)) == (0, -1)


def test_moments() -> None:
    rig = rig_with()
    assert ask(rig, 32, QUEUE).fields["timestamp"] == str(START_MS)
    assert ask(rig, 32, {"topic": "None", "queueId": 0}).fields["timestamp"] == "-1"
    assert offset(rig, 29, timestamp=START_MS + 10_000) == 1
    assert offset(rig, 29, timestamp=START_MS + 1) == 1, "none that was asked for is left out"
    assert offset(rig, 29, timestamp=START_MS + 9_000) == 1
    assert offset(rig, 29, timestamp=START_MS + 9_000, boundaryType="upper") == 0
    assert offset(rig, 29, timestamp=START_MS + 9_000, boundaryType="what") == 1
    assert offset(rig, 29, timestamp=0) == 0
    assert offset(rig, 29, timestamp=START_MS + 1, boundaryType="lower") == 1
    assert offset(rig, 29, timestamp=START_MS + 10_000, boundaryType="UPPER") == 1
    assert offset(rig, 29, timestamp=START_MS, topic="None") == 0


def test_how_far_a_group_is() -> None:
    rig = rig_with()
    rig.broker.tables.groups.find_or_create("G")
    group: dict[str, object] = {"consumerGroup": "G"}
    assert offset(rig, 14, **group) == 0, "a young queue is read from its first message"
    absent = ask(rig, 14, QUEUE | group | {"setZeroIfNotFound": "false"})
    assert absent.code == NOT_FOUND
    assert ask(rig, 15, QUEUE | group | {"commitOffset": 2}).code == SUCCESS
    assert offset(rig, 14, **group) == 2
    assert ask(rig, 15, QUEUE | group | {"commitOffset": -1}).code == SUCCESS
    assert ask(rig, 14, QUEUE | group | {"setZeroIfNotFound": "false"}).code == NOT_FOUND
    missing = ask(rig, 15, group)
    assert missing.code == SYSTEM_ERROR
    assert "missing" in str(missing.remark)


def commit(rig: BrokerRig, group: str = "G", **fields: object) -> Command:
    return ask(rig, 15, QUEUE | {"consumerGroup": group, "commitOffset": 2} | fields)


def test_nobody_is_ahead_of_a_topic_or_group_that_is_not_there() -> None:
    rig = rig_with()
    stranger = commit(rig)
    assert (stranger.code, stranger.remark) == (GROUP_NOT_EXIST, "Group G not exist!")
    rig.broker.tables.groups.find_or_create("G")
    for topic in ("New", "%RETRY%G"):
        early = commit(rig, topic=topic)
        assert (early.code, early.remark) == (TOPIC_NOT_EXIST, f"Topic {topic} not exist!")
    # Had it been kept, the group would not see what comes now.
    rig.store_some(b"first", b"second", b"third", b="New")
    assert offset(rig, 14, consumerGroup="G", topic="New") == 0
    rig.broker.tables.topics.create_for_group("%RETRY%G", 1)
    assert commit(rig, topic="%RETRY%G").code == SUCCESS
    assert offset(rig, 14, consumerGroup="G", topic="%RETRY%G") == 2


@pytest.mark.parametrize("group", ["G", "G@H"])
@pytest.mark.parametrize("queue_id", [-1, 1 << 20])
def test_a_queue_that_cannot_be_is_refused_without_noise(
    group: str, queue_id: int, caplog: pytest.LogCaptureFixture
) -> None:
    rig = rig_with()
    rig.broker.tables.groups.put(SubscriptionGroup(group))
    refused = commit(rig, group, queueId=queue_id)
    assert refused.code == INVALID_PARAMETER
    assert str(queue_id) in str(refused.remark)
    assert caplog.text == "", "whoever likes could fill the disk"
    assert commit(rig, group).code == SUCCESS


def test_by_id() -> None:
    rig = rig_with()
    (record,) = split_records(ask(rig, 33, {"offset": 0}).body)
    assert b"u0" in record
    for place in (-1, 1, 2**62):
        answer = ask(rig, 33, {"offset": place})
        assert answer.code == SYSTEM_ERROR
        assert str(place) in str(answer.remark)


def by_key(rig: BrokerRig, key: str, **fields: object) -> Command:
    asked = {"topic": "T", "key": key, "maxNum": 64, "beginTimestamp": 0,
             "endTimestamp": 2**62} | fields  # fmt: skip
    return ask(rig, 12, asked)


def test_by_key() -> None:
    rig = rig_with()
    assert len(split_records(by_key(rig, "all").body)) == 3
    assert len(split_records(by_key(rig, "all", maxNum=2).body)) == 2
    (one,) = split_records(by_key(rig, "u1", _UNIQUE_KEY_QUERY="true").body)
    assert b"u1" in one
    answer = by_key(rig, "all")
    assert int(answer.fields["indexLastUpdateTimestamp"]) == START_MS + 20_000
    assert int(answer.fields["indexLastUpdatePhyoffset"]) > 0
    for nothing in (by_key(rig, "none"), by_key(rig, "all", topic="None"),
                    by_key(rig, "all", endTimestamp=START_MS - 1)):  # fmt: skip
        assert nothing.code == NOT_FOUND
        assert nothing.fields.keys() == answer.fields.keys()


@pytest.mark.parametrize("number", [-1, 0, 2**31 - 1])
def test_no_number_of_hits_does_harm(number: int) -> None:
    answer = by_key(rig_with(), "all", maxNum=number)
    assert answer.code in {SUCCESS, NOT_FOUND}
    assert len(split_records(answer.body)) <= 64
