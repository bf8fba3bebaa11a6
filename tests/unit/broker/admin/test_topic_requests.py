"""Topics over the wire: made, changed, deleted with all they own, listed in pages."""

from __future__ import annotations

import pytest

from gantrymq.broker.admin import paging, parts, topics
from gantrymq.model.topic import Perm, TopicConfig
from gantrymq.store.broker_statistics import Stat
from gantrymq.wire.bodies.assignment import RequestModeSetting
from gantrymq.wire.bodies.stats import TOPIC_STATS
from gantrymq.wire.bodies.topic import (
    DATA_VERSION,
    MAPPED_TOPIC_CONFIG,
    TOPIC_CONFIG_LIST,
    TOPIC_LIST,
    TOPIC_TABLE,
    TopicConfigList,
)
from gantrymq.wire.codes import RequestCode, ResponseCode
from support.admin_world import World, slave

FIELDS = {
    "topic": "T",
    "defaultTopic": "TBW102",
    "readQueueNums": "3",
    "writeQueueNums": "2",
    "perm": "6",
    "topicFilterType": "SINGLE_TAG",
    "topicSysFlag": "0",
    "order": "true",
}


def test_a_topic_is_made_saved_and_told() -> None:
    world = World()
    reply = world.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, FIELDS)
    assert (reply.code, reply.remark) == (0, None)
    wanted = TopicConfig("T", 3, 2, Perm.READ | Perm.WRITE, order=True)
    assert world.tables.topics.find("T") == wanted
    assert not world.tables.topics.is_dirty
    assert world.routes_changed == 1
    assert world.again().tables.topics.find("T") == wanted


def test_a_topic_is_changed_and_its_attributes_are_changes() -> None:
    world = World()
    world.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, FIELDS | {"attributes": "+message.type=FIFO"})
    world.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, FIELDS | {"perm": "4"})
    found = world.tables.topics.find("T")
    assert found is not None
    assert (found.perm, found.attributes) == (Perm.READ, {"message.type": "FIFO"})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"topic": "a/b"}, "a/b"),
        ({"topic": ""}, "blank"),
        ({"topic": "x" * 128}, "127"),
        ({"topic": "TBW102"}, "conflict with system topic"),
        ({"topic": "rmq_sys_X"}, "conflict with system topic"),
        ({"readQueueNums": "-1"}, "-1 read queues"),
        ({"writeQueueNums": "65537"}, "65537 write queues"),
        ({"perm": "8"}, "perm is 8"),
        ({"topicFilterType": "ANY"}, "SINGLE_TAG"),
        ({"attributes": "message.type=FIFO"}, "+key=value"),
        ({"attributes": "+cleanup.policy=COMPACTION"}, "does not do"),
    ],
)
def test_a_topic_that_cannot_be_is_refused(changes: dict[str, str], said: str) -> None:
    world = World()
    before = dict(world.tables.topics.all())
    reply = world.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, FIELDS | changes)
    assert reply.code == ResponseCode.INVALID_PARAMETER
    assert said in (reply.remark or "")
    assert world.tables.topics.all() == before


def test_a_missing_field_is_named() -> None:
    reply = World().ask(RequestCode.UPDATE_AND_CREATE_TOPIC, {"topic": "T"})
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert "defaultTopic" in (reply.remark or "")


def test_several_topics_are_made_or_none() -> None:
    world = World()
    good = TopicConfigList(topic_config_list=(TopicConfig("A", 1, 1), TopicConfig("B", 2, 2)))
    bad = TopicConfigList(topic_config_list=(TopicConfig("C", 1, 1), TopicConfig("a b", 2, 2)))
    code = RequestCode.UPDATE_AND_CREATE_TOPIC_LIST
    assert world.ask(code, body=TOPIC_CONFIG_LIST.encode(good)).code == 0
    assert world.ask(code, body=TOPIC_CONFIG_LIST.encode(bad)).code == 29
    assert world.ask(code, body=b"[").code == 1
    assert {"A", "B", "C"} & world.tables.topics.all().keys() == {"A", "B"}


def test_too_many_topics_at_once_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "TOPICS_AT_ONCE_MAX", 1)
    both = TopicConfigList(topic_config_list=(TopicConfig("A", 1, 1), TopicConfig("B", 2, 2)))
    reply = World().ask(
        RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=TOPIC_CONFIG_LIST.encode(both)
    )
    assert (reply.code, reply.remark) == (29, "2 topics in one request: give at most 1")


def test_a_deleted_topic_leaves_nothing() -> None:
    world = World()
    world.topic("T")
    world.put("T", 0, 3)
    world.put("Other", 0)
    world.commit("G", "T", 0, 2)
    world.tables.modes.put(RequestModeSetting(topic="T", consumer_group="G"))
    world.broker.counting.broker.add(Stat.TOPIC_PUT_NUMS, "T", 3)
    world.broker.counting.store.put("T", 3, 30)
    released: list[bool] = []
    world.broker.held.hold("T", 0, 60_000, released.append)
    reply = world.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "T"})
    assert reply.code == 0
    assert world.tables.topics.find("T") is None
    assert world.broker.store.queues.find("T", 0) is None
    assert world.tables.offsets.all_of("G", "T") is None
    assert world.tables.modes.find("T", "G") is None
    assert world.broker.counting.broker.view("TOPIC_PUT_NUMS", "T") is None
    assert "T" not in world.broker.counting.store.topics
    assert released == [True]
    assert len(world.broker.held) == 0
    after = world.again()
    assert after.tables.topics.find("T") is None
    assert after.tables.offsets.groups_of("T") == frozenset()
    assert after.broker.store.reads.max_offset("T", 0) == 0


def test_retry_topics_of_pops_go_with_their_topic() -> None:
    world = World()
    for name in ("T", "%RETRY%G_T", "%RETRY%G+T", "%RETRY%G"):
        world.tables.topics.put(TopicConfig(name, 1, 1))
    world.commit("G", "T", 0, 1)
    assert world.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "T"}).code == 0
    left = {name for name in world.tables.topics.all() if name.startswith("%RETRY%")}
    assert left == {"%RETRY%G"}


@pytest.mark.parametrize("topic", [" ", "TBW102", "../up", "a/b"])
def test_what_may_not_be_deleted_is_refused(topic: str) -> None:
    assert World().ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": topic}).code == 29


def test_deleting_what_is_not_there_is_no_error() -> None:
    assert World().ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "Nope"}).code == 0


def test_queues_without_a_topic_are_cleaned() -> None:
    world = World()
    world.topic("T")
    world.put("T", 0)
    world.put("Gone", 0)
    assert world.ask(RequestCode.CLEAN_UNUSED_TOPIC).code == 0
    assert world.broker.store.queues.topics() == ["T"]


def test_one_topic_is_shown() -> None:
    world = World()
    world.topic("T", 3)
    reply = world.ask(RequestCode.GET_TOPIC_CONFIG, {"topic": "T", "lo": "true"})
    shown = MAPPED_TOPIC_CONFIG.decode(reply.body)
    assert (shown.name, shown.read_queues, shown.mapping_detail) == ("T", 3, None)
    assert world.ask(RequestCode.GET_TOPIC_CONFIG, {"topic": "Nope"}).code == 17


def test_all_topics_come_at_once_to_who_does_not_page() -> None:
    world = World()
    reply = world.ask(RequestCode.GET_ALL_TOPIC_CONFIG)
    table = TOPIC_TABLE.decode(reply.body)
    assert table.topic_config_table == world.tables.topics.all()
    assert table.data_version == world.tables.topics.data_version
    assert reply.fields == {"totalTopicNum": str(len(table.topic_config_table))}


def test_pages_follow_each_other_until_the_table_changes() -> None:
    world = World()
    total = len(world.tables.topics.all())
    version = DATA_VERSION.encode(world.tables.topics.data_version).decode()

    def page(start: int, known: str) -> list[str]:
        fields = {"topicSeq": str(start), "maxTopicNum": "5", "dataVersion": known}
        reply = world.ask(RequestCode.GET_ALL_TOPIC_CONFIG, fields)
        return list(TOPIC_TABLE.decode(reply.body).topic_config_table)

    pages = [page(start, version if start else "") for start in range(0, total, 5)]
    assert sorted(name for one in pages for name in one) == sorted(world.tables.topics.all())
    assert page(total, version) == []
    assert page(-3, version) == pages[0]
    world.topic("New")
    assert page(5, version) == page(0, version)
    assert world.ask(RequestCode.GET_ALL_TOPIC_CONFIG, {"dataVersion": "{"}).code == 1


def test_a_page_is_never_longer_than_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "PAGE_MAX", 4)
    reply = World().ask(RequestCode.GET_ALL_TOPIC_CONFIG, {"maxTopicNum": "1000000"})
    assert len(TOPIC_TABLE.decode(reply.body).topic_config_table) == 4


def test_a_table_larger_than_a_frame_is_refused_with_a_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parts, "BODY_BYTES_MAX", 100)
    reply = World().ask(RequestCode.GET_ALL_TOPIC_CONFIG)
    assert reply.code == 1
    assert "maxTopicNum" in (reply.remark or "")


def test_statistics_show_every_queue() -> None:
    world = World()
    world.topic("T", 2)
    start = world.clock.now_ms()
    world.put("T", 1, 3)
    reply = world.ask(RequestCode.GET_TOPIC_STATS_INFO, {"topic": "T"})
    shown = {
        queue.queue_id: (row.min_offset, row.max_offset, row.last_update_timestamp)
        for queue, row in TOPIC_STATS.decode(reply.body).offset_table.items()
    }
    assert shown == {0: (0, 0, 0), 1: (0, 3, start + 2000)}
    assert world.ask(RequestCode.GET_TOPIC_STATS_INFO, {"topic": "Nope"}).code == 17


def test_statistics_of_too_many_queues_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "QUEUE_ROWS_MAX", 100)
    world = World()
    world.topic("T", 101)
    reply = world.ask(RequestCode.GET_TOPIC_STATS_INFO, {"topic": "T"})
    assert reply.code == 1
    assert "more than 100 queues" in (reply.remark or "")


def test_reserved_topics_are_listed() -> None:
    reply = World().ask(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)
    names = TOPIC_LIST.decode(reply.body).topic_list
    assert {"TBW102", "SCHEDULE_TOPIC_XXXX", "DefaultCluster", "broker-a"} <= set(names)


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        (RequestCode.UPDATE_AND_CREATE_TOPIC, FIELDS),
        (RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, {}),
        (RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "T"}),
        (RequestCode.CLEAN_UNUSED_TOPIC, {}),
        (RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}),
        (RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, {}),
        (RequestCode.DELETE_SUBSCRIPTIONGROUP, {"groupName": "G"}),
        (RequestCode.CLONE_GROUP_OFFSET, {"srcGroup": "A", "destGroup": "B"}),
        (RequestCode.SET_MESSAGE_REQUEST_MODE, {}),
        (RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, {"topic": "T", "group": "G"}),
    ],
)
def test_a_slave_refuses_changes(code: int, fields: dict[str, str]) -> None:
    reply = slave().ask(code, fields)
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert "slave broker" in (reply.remark or "")
