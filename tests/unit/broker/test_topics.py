"""The topics of a broker: what exists from the start, what a send may create, what is kept."""

from __future__ import annotations

import msgspec
import pytest

from gantrymq.broker import topics as topics_module
from gantrymq.broker.topics import BrokerNames, Topics, TopicSettings
from gantrymq.errors import ContentError, InvalidValue
from gantrymq.model.offsets import DataVersion
from gantrymq.model.topic import READ_WRITE, UNIT_FLAG, Perm, TopicConfig
from gantrymq.testing.clock import START_MS, VirtualClock
from gantrymq.wire import fastjson
from gantrymq.wire.bodies.topic import TOPIC_TABLE, TopicTable
from support.golden import STORE_LABELS
from support.stores import golden_store

NAMES = BrokerNames("DefaultCluster", "broker-a", "DefaultRegion")
TRACE = "RMQ_SYS_TRACE_TOPIC"


class World:
    """A table and what it told."""

    def __init__(self, settings: TopicSettings | None = None) -> None:
        self.changed: list[TopicConfig] = []
        self.removed: list[str] = []
        self.clock = VirtualClock()
        self.topics = Topics(
            NAMES,
            settings or TopicSettings(),
            self.clock,
            self.changed.append,
            self.removed.append,
        )


def test_a_new_broker_has_the_topics_that_a_new_apache_broker_has() -> None:
    table = msgspec.json.decode(
        golden_store("apache-5.5.0-pop-v2records").files["config/topics.json"]
    )
    users = {"V6Topic", "PopShort"}
    apache = {
        name: (topic["readQueueNums"], topic["writeQueueNums"], topic["perm"])
        for name, topic in table["topicConfigTable"].items()
        if name not in users and not name.startswith(("%", "ttt"))
    }
    made = World(TopicSettings(trace_topic=TRACE)).topics.all()
    assert {
        name: (topic.read_queues, topic.write_queues, int(topic.perm))
        for name, topic in made.items()
    } == apache


def test_what_is_switched_off_is_not_there_or_cannot_be_used() -> None:
    settings = TopicSettings(
        auto_create=False, cluster_topic=False, broker_topic=False, timers=False
    )
    topics = World(settings).topics
    assert topics.find("TBW102") is None
    assert topics.find(TRACE) is None
    assert topics.find("rmq_sys_wheel_timer") is None
    for name in ("DefaultCluster", "broker-a"):
        topic = topics.find(name)
        assert topic is not None
        assert topic.perm == Perm.INHERIT


def test_a_send_creates_a_topic_after_the_template() -> None:
    world = World()
    made = world.topics.create_on_send("Orders", "TBW102", 4, unit=False)
    assert made == TopicConfig("Orders", 4, 4, READ_WRITE)
    assert world.topics.find("Orders") == made
    assert world.changed == [made]
    assert world.topics.data_version == DataVersion(0, START_MS, 1)
    assert world.topics.create_on_send("Orders", "TBW102", 8, unit=True) == made
    assert world.changed == [made]


@pytest.mark.parametrize(("asked", "made"), [(4, 4), (16, 8), (0, 1), (-3, 1)])
def test_a_created_topic_has_at_most_the_template_s_queues_and_one_at_least(
    asked: int, made: int
) -> None:
    topic = World().topics.create_on_send("T", "TBW102", asked, unit=True)
    assert topic is not None
    assert (topic.read_queues, topic.write_queues) == (made, made)
    assert topic.system_flags == UNIT_FLAG


def test_the_cluster_s_topic_is_a_template_too_and_an_ordinary_one_is_not() -> None:
    topics = World(TopicSettings(auto_create=False)).topics
    assert topics.create_on_send("A", "DefaultCluster", 4, unit=False) is not None
    assert topics.create_on_send("B", "A", 4, unit=False) is None
    assert topics.create_on_send("B", "Nobody", 4, unit=False) is None
    assert topics.create_on_send("B", "TBW102", 4, unit=False) is None
    assert topics.find("B") is None


def test_a_saved_template_creates_nothing_once_it_is_switched_off() -> None:
    saved = World().topics.encode()
    topics = World(TopicSettings(auto_create=False)).topics
    topics.load(saved)
    template = topics.find("TBW102")
    assert template is not None
    assert template.perm == READ_WRITE
    assert topics.create_on_send("B", "TBW102", 4, unit=False) is None


def test_a_send_cannot_create_a_directory_elsewhere() -> None:
    topics = World().topics
    with pytest.raises(InvalidValue, match="directory"):
        topics.create_on_send("../../x", "TBW102", 4, unit=False)
    with pytest.raises(InvalidValue, match="directory"):
        topics.create_for_group("%RETRY%a/b", 1)
    assert not topics.is_dirty


def test_a_group_gets_its_retry_topic_once_and_order_follows() -> None:
    world = World()
    made = world.topics.create_for_group("%RETRY%g", 2, READ_WRITE, 2)
    assert made == TopicConfig("%RETRY%g", 2, 2, READ_WRITE, system_flags=2)
    assert world.topics.create_for_group("%RETRY%g", 5) == made
    assert len(world.changed) == 1
    ordered = world.topics.create_for_group("%RETRY%g", 5, order=True)
    assert ordered == msgspec.structs.replace(made, order=True)
    assert world.changed == [made, ordered]
    assert world.topics.create_for_group("%RETRY%g", 5, order=True) is ordered


def test_every_change_moves_the_version_and_is_told() -> None:
    world = World()
    world.clock.jump(5)
    world.topics.put(TopicConfig("T"))
    world.topics.put(TopicConfig("T", perm=Perm.READ))
    assert world.topics.remove("T")
    assert not world.topics.remove("T")
    assert world.removed == ["T"]
    assert [int(topic.perm) for topic in world.changed] == [6, 4]
    assert world.topics.data_version == DataVersion(0, START_MS + 5000, 3)


def test_order_is_set_from_the_name_server_and_never_taken_back() -> None:
    world = World()
    world.topics.put(TopicConfig("T"))
    world.topics.set_order(["T", "Unknown"])
    assert world.topics.is_order("T")
    assert not world.topics.is_order("Unknown")
    counter = world.topics.data_version.counter
    world.topics.set_order(["T"])
    world.topics.set_order([])
    assert world.topics.data_version.counter == counter
    assert world.changed[-1].order


def test_reserved_names() -> None:
    topics = World(TopicSettings(trace_topic="MyTrace")).topics
    for name in ("TBW102", "DefaultCluster", "broker-a", "MyTrace", "rmq_sys_anything"):
        assert topics.is_system(name)
    assert not topics.is_system("Orders")
    assert {"DefaultCluster_REPLY_TOPIC", "SCHEDULE_TOPIC_XXXX"} < topics.system_names()
    assert topics.may_send("TBW102")
    assert not topics.may_send("SCHEDULE_TOPIC_XXXX")
    assert not topics.may_send("RMQ_SYS_TRANS_HALF_TOPIC")


def test_attributes_change_by_their_signs() -> None:
    topics = World().topics
    made = topics.change(TopicConfig("T", attributes={"+message.type": "FIFO"}))
    assert made.attributes == {"message.type": "FIFO"}
    kept = topics.change(TopicConfig("T", read_queues=3))
    assert kept.attributes == {"message.type": "FIFO"}
    assert topics.change(TopicConfig("T", attributes={"-message.type": ""})).attributes == {}
    with pytest.raises(InvalidValue, match="cannot be 'ODD'"):
        topics.change(TopicConfig("T", attributes={"+message.type": "ODD"}))
    assert topics.find("T") == TopicConfig("T")


def test_a_broker_has_room_for_so_many_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = World().topics
    monkeypatch.setattr(topics_module, "TOPICS_MAX", len(topics.all()) + 1)
    topics.put(TopicConfig("One"))
    with pytest.raises(InvalidValue, match="delete some"):
        topics.put(TopicConfig("Two"))
    topics.put(TopicConfig("One", read_queues=2))
    topics.remove("One")
    topics.put(TopicConfig("Two"))


def test_a_slave_becomes_its_master() -> None:
    world = World()
    world.topics.put(TopicConfig("Gone"))
    world.changed.clear()
    table = TopicTable(
        data_version=DataVersion(7, 8, 9),
        topic_config_table={
            "New": TopicConfig("New"),
            "TBW102": TopicConfig("TBW102", 8, 8, READ_WRITE | Perm.INHERIT),
            "../evil": TopicConfig("../evil"),
        },
    )
    world.topics.adopt(table)
    assert set(world.topics.all()) == {"New", "TBW102"}
    assert world.topics.left_out == ("../evil",)
    assert world.changed == [TopicConfig("New")]
    assert "Gone" in world.removed
    assert world.topics.data_version == DataVersion(7, 8, 9)
    assert world.topics.is_dirty


@pytest.mark.parametrize("label", STORE_LABELS)
def test_apache_s_file_is_written_again_as_it_was(label: str) -> None:
    content = golden_store(label).files.get("config/topics.json")
    assert content is not None
    topics = World(TopicSettings(trace_topic=TRACE)).topics
    before = msgspec.json.decode(content)
    topics.load(content)
    assert not topics.is_dirty
    after = msgspec.json.decode(topics.encode())
    newer = "5.5.0" in label
    for name, topic in before["topicConfigTable"].items():
        kept = after["topicConfigTable"][name]
        assert (kept if newer else {key: kept[key] for key in topic}) == topic
    assert before["dataVersion"].items() <= after["dataVersion"].items()
    if newer:
        assert after == before


def test_more_topics_than_a_body_may_hold_are_read_from_a_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fastjson, "JSON_ENTRIES_MAX", 100)
    content = World().topics.encode()
    with pytest.raises(ContentError, match="at most 100"):
        TOPIC_TABLE.decode(content)
    topics = World(TopicSettings(auto_create=False)).topics
    topics.load(content)
    assert topics.find("TBW102") is not None


def test_a_file_that_is_none_changes_nothing() -> None:
    topics = World().topics
    before = topics.encode()
    for content in (b"[]", b'{"topicConfigTable":{"T":{"perm":"x"}}}', b"{", b"\xff"):
        with pytest.raises(ContentError, match=r"topics\.json"):
            topics.load(content)
    assert topics.encode() == before
