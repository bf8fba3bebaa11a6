"""A broker as a whole: what a kill leaves, what a stop saves, what changes while it runs."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from gantrymq.model.topic import TopicConfig
from gantrymq.store.errors import StoreDamaged
from gantrymq.store.settings import BrokerRole
from gantrymq.testing.disk_faults import Operation
from gantrymq.wire.batch import BatchMessage, encode_batch
from gantrymq.wire.bodies.settings import SETTINGS
from support.broker_rig import BrokerRig, pull
from support.samples import json_request

SUCCESS, MESSAGE_ILLEGAL, NO_PERMISSION, TOPIC_NOT_EXIST = 0, 13, 16, 17


def names(rig: BrokerRig) -> set[str]:
    return set(rig.broker.tables.topics.all())


def test_a_topic_survives_a_kill_right_after_its_creation() -> None:
    rig = BrokerRig()
    rig.settle(60)
    rig.broker.tables.topics.put(TopicConfig("New", 3, 5))
    rig.work("config")  # nobody waited for any timer
    later = rig.again()
    found = later.broker.tables.topics.find("New")
    assert found == TopicConfig("New", 3, 5)
    assert later.send(b"x", b="New", e="4").code == SUCCESS


def test_a_topic_whose_settings_were_not_saved_is_restored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = BrokerRig()
    rig.settle(60)
    rig.store_some(b"acknowledged", b="New", e="6", d="8")
    later = rig.again()
    found = later.broker.tables.topics.find("New")
    assert found is not None
    assert (found.read_queues, found.write_queues) == (7, 7)
    (told,) = [one for one in caplog.records if "restored" in one.getMessage()]
    assert told.levelno == logging.WARNING
    assert "New" in told.getMessage()
    answer = later.ask(pull(topic="New", queueId="6"))
    assert answer.code == SUCCESS
    assert later.send(b"more", b="New", e="6").fields["queueOffset"] == "1"
    later.work("config")
    assert "New" in names(later.again())


def test_a_few_queues_are_restored_at_least() -> None:
    rig = BrokerRig()
    rig.store_some(b"x", b="New", e="0")
    later = rig.again()
    found = later.broker.tables.topics.find("New")
    assert found is not None
    assert found.write_queues == 4


def test_a_deleted_topic_does_not_come_back() -> None:
    rig = BrokerRig()
    rig.store_some(b"x", b="Gone")
    rig.settle(1)
    rig.broker.tables.topics.remove("Gone")
    rig.work("config")
    later = rig.again()  # its queue is built again from the log
    assert "Gone" not in names(later)
    assert later.ask(pull(topic="Gone")).code == TOPIC_NOT_EXIST


def test_without_the_file_every_topic_with_messages_is_restored() -> None:
    rig = BrokerRig()
    rig.store_some(b"x", b="New")
    assert rig.broker.close()
    disk = rig.disk.kill()
    config = rig.broker.store_settings.paths.config
    for name in ("topics.json", "topics.json.bak"):
        if disk.exists(config / name):
            disk.remove(config / name)
    assert "New" in names(rig.again(disk))


def test_after_a_clean_stop_nothing_is_restored(caplog: pytest.LogCaptureFixture) -> None:
    rig = BrokerRig()
    rig.store_some(b"x", b="New")
    assert rig.broker.close()
    later = rig.again()
    assert later.report.clean
    assert names(later) == names(rig)
    assert "restored" not in caplog.text


def test_offsets_of_groups_are_saved_on_the_timer_and_at_the_end() -> None:
    rig = BrokerRig(offsets_interval_ms=5000)
    rig.store_some(b"a", b"b")
    rig.ask(pull(1, sysFlag=5, commitOffset="1"))
    rig.settle(5.1)
    rig.ask(pull(2, sysFlag=5, commitOffset="2"))
    killed = rig.again()
    assert killed.broker.tables.offsets.find("group", "T", 0) == 1
    killed.ask(pull(2, sysFlag=5, commitOffset="2"))
    assert killed.broker.close()
    assert killed.again().broker.tables.offsets.find("group", "T", 0) == 2


def test_a_file_that_cannot_be_read_is_named_and_the_store_is_let_go() -> None:
    rig = BrokerRig()
    assert rig.broker.close()
    disk = rig.disk.kill()
    config = rig.broker.store_settings.paths.config
    for name in ("topics.json", "topics.json.bak"):
        disk.place(config / name, b"{ this is no table")
    with pytest.raises(StoreDamaged, match=r"topics\.json"):
        rig.again(disk)
    for name in ("topics.json", "topics.json.bak"):
        disk.remove(config / name)
    assert rig.again(disk).send(b="New").code == SUCCESS


def test_a_stop_that_cannot_save_says_so() -> None:
    rig = BrokerRig()
    rig.broker.tables.topics.put(TopicConfig("New"))
    rig.disk.fail(Operation.RENAME, times=None)
    assert not rig.broker.close()


def change(rig: BrokerRig, **settings: str) -> int:
    answer = rig.begin(json_request(25, {}, SETTINGS.encode(settings)))
    rig.settle()
    return answer.answer.code


def test_settings_change_while_it_runs() -> None:
    rig = BrokerRig()
    rig.store_some(b"x")
    told = rig.routes_changed
    rig.broker.tables.topics.put(TopicConfig("Ordered", 2, 2, order=True))
    assert rig.send(b="Ordered").code == SUCCESS
    assert change(rig, brokerPermission="4") == SUCCESS
    assert rig.routes_changed > told
    refused = rig.send(b="Ordered")
    assert refused.code == NO_PERMISSION, "the lane too"
    assert str(refused.remark).startswith("the broker[broker-a] sending message is forbidden")
    assert rig.ask(pull()).code == SUCCESS
    assert change(rig, brokerPermission="2") == SUCCESS
    assert rig.send(b="Ordered").code == SUCCESS
    refused = rig.ask(pull())
    assert refused.code == NO_PERMISSION
    assert str(refused.remark).startswith("the broker[broker-a] pulling message is forbidden")
    assert change(rig, brokerPermission="6", longPollingEnable="false") == SUCCESS
    assert rig.send().code == SUCCESS
    assert change(rig, autoCreateSubscriptionGroup="false") == SUCCESS
    assert rig.ask(pull(consumerGroup="Stranger")).code == 26


def test_a_setting_that_lets_sends_in_later_reaches_the_lane() -> None:
    rig = BrokerRig()
    assert change(rig, startAcceptSendRequestTimeStamp=str(rig.clock.now_ms() + 5000)) == SUCCESS
    assert rig.send().code == 1
    rig.clock.jump(5)
    assert rig.send().code == SUCCESS


def test_what_clients_are_told_about_tracing_is_the_same_in_every_answer() -> None:
    rig = BrokerRig(trace_on=False)
    assert rig.send(e="-1").fields["TRACE_ON"] == "false"
    assert rig.send(e="0").fields["TRACE_ON"] == "false"
    assert change(rig, traceOn="true") == SUCCESS
    for queue_id in ("-1", "0"):
        answer = rig.send(e=queue_id)
        assert answer.fields["TRACE_ON"] == "true", "while it runs, by either way"
        assert answer.fields["MSG_REGION"] == "DefaultRegion"
        assert len(answer.fields["msgId"]) == 32


def test_a_slave_knows_that_it_is_one() -> None:
    rig = BrokerRig({"brokerRole": "SLAVE"}, broker_id=1)
    assert rig.broker.is_slave
    assert rig.broker.store_settings.replication.role is BrokerRole.SLAVE
    rig.settle(10)
    assert rig.broker.close()


def test_an_idle_broker_has_little_to_do() -> None:
    rig = BrokerRig()
    rig.settle(1)
    for _ in range(100):
        assert rig.due is not None
        rig.tick(max(rig.due - rig.clock.monotonic(), 0.001))
    assert rig.clock.monotonic() > 10, "more than ten wake-ups a second"


def test_restored_topics_are_told_to_name_servers() -> None:
    rig = BrokerRig()
    rig.store_some(b"x", b="New")
    later: Any = rig.again()
    assert "New" in later.broker.tables.topics.table().topic_config_table


def test_what_a_group_may_not_read_is_answered_when_it_is_in_its_file() -> None:
    rig = BrokerRig()
    assert rig.ask(pull()).code == 19  # which makes the group
    rig.settle(6)
    asked = rig.begin(json_request(353, {"group": "group", "topic": "T", "readable": "false"}))
    rig.turns()
    assert not asked.is_answered
    rig.work("config")
    rig.turns()
    assert asked.answer.code == SUCCESS
    again = rig.again()
    assert again.ask(pull()).code == NO_PERMISSION, "a kill right behind the answer changes nothing"


def config_file(rig: BrokerRig, name: str = "topics.json") -> Any:  # noqa: ANN401
    return rig.broker.store_settings.paths.config / name


@pytest.mark.parametrize("broken", [b"", b"{ this is no table", b'{"topicConfigTable":{"T":3}}'])
def test_topics_that_only_a_damaged_file_had_come_back_with_their_messages(
    broken: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    rig = BrokerRig()
    rig.settle(60)
    rig.store_some(b"x", b="Older")
    rig.settle(60)
    rig.store_some(b"keep me", b="Newer", e="1")
    assert rig.broker.close()
    disk = rig.disk.kill()
    disk.place(config_file(rig), broken)
    later = rig.again(disk)
    assert later.report.clean
    assert {"T", "Older", "Newer"} <= names(later)
    assert later.bodies("Newer", 1) == [b"keep me"]
    (told,) = [one for one in caplog.messages if "backup was read" in one]
    assert "topics.json" in told
    # What was there is kept to be looked at, and is not made the backup of the next file.
    assert disk.read(config_file(rig, "topics.json.damaged")) == broken
    later.settle(10)
    assert b"no table" not in disk.read(config_file(rig, "topics.json.bak"))
    assert "Newer" in names(later.again())


def test_an_empty_file_without_a_backup_is_told_from_an_empty_table() -> None:
    rig = BrokerRig()
    rig.store_some(b"x", b="New")
    assert rig.broker.close()
    disk = rig.disk.kill()
    disk.place(config_file(rig), b"")
    if disk.exists(config_file(rig, "topics.json.bak")):
        disk.remove(config_file(rig, "topics.json.bak"))
    assert "New" in names(rig.again(disk))


def test_topics_that_are_left_out_of_a_file_are_named(caplog: pytest.LogCaptureFixture) -> None:
    rig = BrokerRig()
    assert rig.broker.close()
    disk = rig.disk.kill()
    disk.place(
        config_file(rig),
        b'{"topicConfigTable":{"%RETRY%a/b":{"topicName":"%RETRY%a/b"},"T":{"topicName":"T"}}}',
    )
    assert "T" in names(rig.again(disk))
    assert "%RETRY%a/b" in caplog.text


# -- a topic without queues to write to ----------------------------------------------------------


def update_topic(rig: BrokerRig, read: int, write: int) -> int:
    fields = {
        "topic": "T",
        "defaultTopic": "TBW102",
        "readQueueNums": str(read),
        "writeQueueNums": str(write),
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
    }
    answer = rig.begin(json_request(17, fields))
    rig.settle()
    return answer.answer.code


def test_a_topic_is_drained_and_filled_again(caplog: pytest.LogCaptureFixture) -> None:
    rig = BrokerRig()
    rig.store_some(b"one", b"two")
    assert update_topic(rig, 2, 0) == SUCCESS
    assert rig.send(e="-1").code == NO_PERMISSION  # there is no queue to choose
    # Whoever has not heard of it yet is heard: as with Apache, its queue is there to read.
    assert rig.send(b"three", e="0").fields["queueOffset"] == "2"
    assert rig.ask(pull()).code == SUCCESS
    later = rig.again()
    found = later.broker.tables.topics.find("T")
    assert found is not None
    assert (found.read_queues, found.write_queues) == (2, 0)
    assert later.bodies() == [b"one", b"two", b"three"]
    assert update_topic(later, 2, 2) == SUCCESS
    assert later.send(b"four", e="0").fields["queueOffset"] == "3"
    assert later.bodies() == [b"one", b"two", b"three", b"four"]
    assert "Traceback" not in caplog.text


def test_a_topic_without_any_queue_takes_nothing() -> None:
    rig = BrokerRig()
    assert update_topic(rig, 0, 0) == SUCCESS
    assert rig.send(e="0").code != SUCCESS
    assert rig.again().send(b="New").code == SUCCESS  # and it stops nobody


def test_no_topic_of_a_file_stops_a_start(caplog: pytest.LogCaptureFixture) -> None:
    rig = BrokerRig()
    assert rig.broker.close()
    disk = rig.disk.kill()
    long = "é" * 100  # 200 bytes: the lane takes 127
    disk.place(
        config_file(rig),
        (
            '{"topicConfigTable":{"None":{"topicName":"None","readQueueNums":0,'
            f'"writeQueueNums":0}},"{long}":{{"topicName":"{long}"}},"T":{{"topicName":"T"}},'
            '"Huge":{"topicName":"Huge","readQueueNums":100000,"writeQueueNums":4}}}'
        ).encode(),
    )
    later = rig.again(disk)
    assert {"None", "T"} <= names(later)
    assert "Huge" not in names(later)
    assert "Huge" in caplog.text
    assert f"sends to topic {long} are checked one by one" in caplog.text
    assert later.send(e="0").code == SUCCESS
    assert later.send(b="None", e="0").code != SUCCESS


# -- the largest message -------------------------------------------------------------------------


def test_the_largest_message_changes_while_it_runs() -> None:
    rig = BrokerRig()
    assert rig.send(b"x" * 2000).code == SUCCESS
    assert change(rig, maxMessageSize="1000") == SUCCESS
    assert rig.send(b"x" * 1000).code == SUCCESS
    refused = rig.send(b"x" * 1001)
    assert refused.code == MESSAGE_ILLEGAL
    assert "maxMessageSize" in str(refused.remark)
    assert rig.send(b"x" * 1001, i="DELAY\x011\x02").code == MESSAGE_ILLEGAL
    assert change(rig, maxMessageSize="3000") == SUCCESS
    assert rig.send(b"x" * 3000).code == SUCCESS
    assert [len(body) for body in rig.bodies()] == [2000, 1000, 3000]


def test_a_batch_is_no_larger_than_the_largest_message() -> None:
    rig = BrokerRig({"maxMessageSize": "1000"})
    one = encode_batch([BatchMessage(0, b"x" * 400, b"")])
    assert rig.send(one * 2, code=320, m="true").code == SUCCESS
    refused = rig.send(one * 3, code=320, m="true")
    assert refused.code == MESSAGE_ILLEGAL
    assert str(len(one) * 3) in str(refused.remark)
    assert len(rig.bodies()) == 2
