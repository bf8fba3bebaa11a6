"""What deleting and full disks look like to producers, consumers and operators."""

from __future__ import annotations

import pytest

from gantrymq.model.topic import TopicConfig
from gantrymq.testing.disk import SimulatedFiles
from gantrymq.wire.codes import RequestCode, ResponseCode
from support.broker_rig import BrokerRig, pull
from support.samples import json_request
from support.store_rig import ROOT

CAPACITY = 1 << 30
DAY_S = 86400.0
EVERY_HOUR = ";".join(f"{hour:02d}" for hour in range(24))
SMALL = {
    "mappedFileSizeCommitLog": "65536",
    "mappedFileSizeConsumeQueue": "200",
    "deleteWhen": EVERY_HOUR,
    "maxHashSlotNum": "20",
    "maxIndexNum": "40",
}


def pass_time(rig: BrokerRig, seconds: float) -> None:
    """Let time pass with every worker at work."""
    for _ in range(round(seconds)):
        rig.settle(1.0)


def filled() -> BrokerRig:
    """Return a broker with old messages in six log files, and a topic without any other."""
    rig = BrokerRig(SMALL, disk=SimulatedFiles(capacity=CAPACITY))
    rig.broker.tables.topics.put(TopicConfig("Once", 1, 1))
    assert rig.send(b"the only one", b="Once").code == 0
    for number in range(60):
        assert rig.send(b"%02d" % number + bytes(6000), i=f"KEYS\x01k{number}").code == 0
    pass_time(rig, 62)
    rig.clock.jump(4 * DAY_S)
    assert rig.send(b"young").code == 0
    return rig


def test_a_consumer_at_an_offset_that_was_deleted_is_sent_on() -> None:
    rig = filled()
    assert rig.ask(pull(0)).code == 0
    pass_time(rig, 30)
    moved = rig.ask(pull(0))
    assert moved.code == ResponseCode.PULL_OFFSET_MOVED
    least = int(moved.fields["minOffset"])
    assert least > 0
    assert int(moved.fields["nextBeginOffset"]) == least
    found = rig.ask(pull(least))
    assert found.code == 0
    assert b"young" in rig.ask(pull(60)).body
    assert rig.disk.names(ROOT / "commitlog")[0] != f"{0:020d}"


def test_queues_and_index_follow_the_log() -> None:
    rig = filled()
    queue, index = ROOT / "consumequeue" / "T" / "0", ROOT / "index"
    queues_before, index_before = rig.disk.names(queue), rig.disk.names(index)
    pass_time(rig, 60)
    assert rig.disk.names(queue)[0] > queues_before[0]
    assert len(rig.disk.names(index)) < len(index_before)


def test_an_operator_has_queue_files_removed_that_lead_nowhere() -> None:
    rig = filled()
    queue = rig.store.queues.find("T", 0)
    assert queue is not None
    while rig.store.log.min_offset == 0:
        rig.settle(1.0)
    answer = rig.ask(json_request(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, {}))
    assert answer.code == 0
    pass_time(rig, 30)
    first = int(rig.disk.names(ROOT / "consumequeue" / "T" / "0")[0])
    assert first == queue.min_offset * 20 // 200 * 200, "not one file too many, nor too few"
    # Apache removes a queue without messages and begins it again at 0, where its consumers do not
    # look any more; here its last file stays, for the offset of its next message.
    assert len(rig.disk.names(ROOT / "consumequeue" / "Once" / "0")) == 1
    assert rig.send(b"the second", b="Once").fields["queueOffset"] == "1"


@pytest.mark.parametrize("percent", [91, 97])
def test_a_disk_that_fills_up_and_is_emptied_again(percent: int) -> None:
    rig = BrokerRig({**SMALL, "deleteWhen": "04"}, disk=SimulatedFiles(capacity=CAPACITY))
    assert rig.send(b"before").code == 0
    rig.disk.other_bytes = CAPACITY * percent // 100
    pass_time(rig, 12)
    refused = rig.send(b"refused")
    assert refused.code == ResponseCode.SERVICE_NOT_AVAILABLE
    assert "the disk is full" in str(refused.remark)
    assert rig.ask(pull(0)).code == 0, "it is still read from"
    rig.disk.other_bytes = 0
    waited = 0
    while rig.send(b"after").code != 0:
        waited += 1
        assert waited <= 20, "it goes on by itself, within 20 s"
        rig.settle(1.0)
    assert rig.bodies() == [b"before", b"after"]


def test_a_topic_that_is_kept_for_a_day_beside_one_that_is_kept_for_long() -> None:
    rig = BrokerRig({"fileReservedTime": "720"}, disk=SimulatedFiles(capacity=CAPACITY))
    for topic in ("T", "Long"):
        make(rig, topic, "" if topic == "Long" else "+reserve.time=24")
        rig.store_some(b"old", b=topic)
    rig.clock.jump(2 * DAY_S)
    rig.store_some(b"young")
    pass_time(rig, 80)
    moved = rig.ask(pull(0))
    assert moved.code == ResponseCode.PULL_OFFSET_MOVED
    assert (moved.fields["minOffset"], moved.fields["nextBeginOffset"]) == ("1", "1")
    assert b"young" in rig.ask(pull(1)).body
    assert rig.bodies("Long") == [b"old"]
    assert rig.disk.names(ROOT / "commitlog")[0] == f"{0:020d}", "the others need the file"
    # A start asks again, before anybody is served.
    assert rig.broker.close()
    again = rig.again(rig.disk)
    assert again.ask(pull(0)).code == ResponseCode.PULL_OFFSET_MOVED
    assert again.bodies("Long") == [b"old"]
    # Kept as long as its files: what is hidden stays so, what comes is served.
    make(again, "T", "-reserve.time")
    again.clock.jump(2 * DAY_S)
    pass_time(again, 80)
    assert b"young" in again.ask(pull(1)).body


def make(rig: BrokerRig, topic: str, attributes: str) -> None:
    """Make or change a topic as an operator does."""
    fields = {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": "1",
        "writeQueueNums": "1",
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
        "attributes": attributes,
    }
    asked = rig.begin(json_request(RequestCode.UPDATE_AND_CREATE_TOPIC, fields))
    rig.settle()
    assert asked.answer.code == 0


@pytest.mark.parametrize("said", ["-1", "0", "soon", "1_0"])
def test_a_topics_file_with_a_time_that_is_none_keeps_everything(said: str) -> None:
    rig = BrokerRig({"fileReservedTime": "720"}, disk=SimulatedFiles(capacity=CAPACITY))
    rig.broker.tables.topics.put(TopicConfig("T", 1, 1, attributes={"reserve.time": said}))
    rig.store_some(b"old")
    rig.clock.jump(9 * DAY_S)
    pass_time(rig, 80)
    assert rig.bodies() == [b"old"]
