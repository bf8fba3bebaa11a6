"""What Apache's brokers answered to `mqadmin`, asked of ours: the same questions, equal answers.

A recorded question comes without the broker it was asked of, so a broker is made from the answer:
it has the topics, messages, offsets and clients that the answer shows, and must then answer the
recorded frame the same, but for times, rates and addresses. The golden stores come with what their
broker said of them; ours is opened on a copy and asked the same.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache, partial
from typing import TYPE_CHECKING, Final

import msgspec
import pytest

from gantrymq.broker.settings import broker_rows
from gantrymq.model.topic import TopicConfig
from gantrymq.store.files import OsFiles
from gantrymq.store.settings import known_settings
from gantrymq.wire.bodies.connections import CONSUMER_CONNECTIONS, PRODUCER_CONNECTIONS
from gantrymq.wire.bodies.group import GROUP_LIST, GROUP_TABLE
from gantrymq.wire.bodies.heartbeat import ConsumerData
from gantrymq.wire.bodies.offsets import CONSUMER_OFFSETS, DELAY_OFFSETS
from gantrymq.wire.bodies.queues import QUEUE_ENTRIES
from gantrymq.wire.bodies.replication import HA_STATUS
from gantrymq.wire.bodies.reset import RESET_OFFSETS
from gantrymq.wire.bodies.route import KV_TABLE
from gantrymq.wire.bodies.settings import SETTINGS
from gantrymq.wire.bodies.stats import (
    BROKER_CONSUME_STATS,
    CONSUME_STATS,
    TOPIC_STATS,
    ConsumeStats,
    OffsetProgress,
)
from gantrymq.wire.bodies.topic import MAPPED_TOPIC_CONFIG, TOPIC_LIST, TOPIC_TABLE
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.frame import FrameParser
from support.admin_world import AskedPeer, World
from support.client_peers import heartbeat
from support.golden import STORE, WIRE_FILES, Entry, exchanges, wire_entries
from support.golden_trees import unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from gantrymq.model.queue import MessageQueue
    from gantrymq.wire.command import Command

    Check = Callable[[Command, Command], None]

CLEAN: Final = ("apache-4.9.7-clean", "apache-5.5.0-clean")
SQL: Final = "apache-4.9.7-cqext-sql92"
QUESTIONS: Final = 326
"""What was recorded of the codes below; data that is cut short must not go unnoticed."""
OURS: Final = {"getTransferedTps", "getTransferredTps"}


def command(entry: Entry) -> Command:
    (decoded,) = FrameParser().feed(entry.frame)
    return decoded


@cache
def questions() -> tuple[tuple[str, Command, Command], ...]:
    """Return every recorded admin question to a broker with the answer to it."""
    return tuple(
        (path.parent.name, command(asked), command(answered))
        for path in WIRE_FILES
        if path.parent.name.startswith("mqadmin-") and not path.stem.startswith("live-")
        for asked, answered in exchanges(wire_entries(path))
        if asked.peer != "namesrv" and asked.direction == "c2s"
        if answered is not None and asked.code in CHECKS
    )


# -- a broker made from an answer -----------------------------------------------------------------


def add_queue(world: World, queue: MessageQueue, messages: int) -> None:
    """Have a topic with a queue that holds so many messages."""
    topics = world.tables.topics
    known = topics.find(queue.topic)
    count = max(queue.queue_id + 1, known.read_queues if known else 0)
    topics.put(TopicConfig(queue.topic, count, count))
    world.put(queue.topic, queue.queue_id, messages)


def add_progress(world: World, group: str, rows: Mapping[MessageQueue, OffsetProgress]) -> None:
    for queue, row in rows.items():
        if world.broker.store.reads.max_offset(queue.topic, queue.queue_id) == 0:
            add_queue(world, queue, row.broker_offset)
        world.commit(group, queue.topic, queue.queue_id, row.consumer_offset)
        world.tables.offsets.note_pull(group, queue.topic, queue.queue_id, row.pull_offset)


def without_times(stats: ConsumeStats) -> dict[MessageQueue, tuple[int, int, bool]]:
    return {
        queue: (row.broker_offset, row.consumer_offset, row.last_timestamp > 0)
        for queue, row in stats.offset_table.items()
    }


# -- checks ---------------------------------------------------------------------------------------


def check_code(world: Callable[[], World], asked: Command, answered: Command) -> None:
    reply = world().handle(asked)
    assert (reply.code, bool(reply.body)) == (answered.code, bool(answered.body)), reply.remark


def with_topic_and_group() -> World:
    world = World()
    for name in ("AdmTopic", "WireTopic", "WireOrder"):
        world.topic(name, 3)
    world.group("AdmGroup")
    return world


def check_topic_stats(asked: Command, answered: Command) -> None:
    wanted = TOPIC_STATS.decode(answered.body).offset_table
    world = World()
    for queue, row in wanted.items():
        add_queue(world, queue, row.max_offset)
    found = TOPIC_STATS.decode(world.handle(asked).body).offset_table
    assert found.keys() == wanted.keys()
    for queue, row in wanted.items():
        shown = found[queue]
        assert (shown.min_offset, shown.max_offset) == (row.min_offset, row.max_offset)
        assert bool(shown.last_update_timestamp) == bool(row.last_update_timestamp)


def check_group_stats(asked: Command, answered: Command) -> None:
    wanted = CONSUME_STATS.decode(answered.body)
    world = World()
    add_progress(world, asked.fields["consumerGroup"], wanted.offset_table)
    reply = world.handle(asked)
    found = CONSUME_STATS.decode(reply.body)
    assert without_times(found) == without_times(wanted)


def check_broker_stats(asked: Command, answered: Command) -> None:
    wanted = {
        group: rows
        for one in BROKER_CONSUME_STATS.decode(answered.body).consume_stats_list
        for group, rows in one.items()
    }
    world = World()
    for group, rows in wanted.items():
        world.tables.groups.find_or_create(group)
        for stats in rows:
            add_progress(world, group, stats.offset_table)
    found = {
        group: rows
        for one in BROKER_CONSUME_STATS.decode(world.handle(asked).body).consume_stats_list
        for group, rows in one.items()
    }
    assert wanted.keys() <= found.keys()
    for group, rows in wanted.items():
        ours = [without_times(stats) for stats in found[group]]
        theirs = [without_times(stats) for stats in rows]
        assert sorted(ours, key=str) == sorted(theirs, key=str), group


def check_members(asked: Command, answered: Command) -> None:
    world, group = World(), asked.fields["consumerGroup"]
    if answered.code != 0:
        reply = world.handle(asked)
        assert (reply.code, reply.remark) == (answered.code, answered.remark)
        return
    wanted = CONSUMER_CONNECTIONS.decode(answered.body)
    assert wanted.consume_type is not None
    assert wanted.message_model is not None
    assert wanted.consume_from_where is not None
    data = ConsumerData(
        group_name=group,
        consume_type=wanted.consume_type,
        message_model=wanted.message_model,
        consume_from_where=wanted.consume_from_where,
        subscription_data_set=tuple(wanted.subscription_table.values()),
    )
    for number, client in enumerate(wanted.connection_set, 2):
        world.join(heartbeat(client.client_id, data), AskedPeer(number))
    found = CONSUMER_CONNECTIONS.decode(world.handle(asked).body)
    assert [one.client_id for one in found.connection_set] == [
        one.client_id for one in wanted.connection_set
    ]
    same = ("subscription_table", "consume_type", "message_model", "consume_from_where")
    for name in same:
        assert getattr(found, name) == getattr(wanted, name)


def check_producers(asked: Command, answered: Command) -> None:
    world, group = World(), asked.fields["producerGroup"]
    wanted = PRODUCER_CONNECTIONS.decode(answered.body).connection_set
    for number, client in enumerate(wanted, 2):
        world.join(heartbeat(client.client_id, producers=[group]), AskedPeer(number))
    found = PRODUCER_CONNECTIONS.decode(world.handle(asked).body).connection_set
    assert [(one.client_id, one.language) for one in found] == [
        (one.client_id, one.language) for one in wanted
    ]


def check_readers(asked: Command, answered: Command) -> None:
    world, wanted = World(), set(GROUP_LIST.decode(answered.body).group_list)
    for group in wanted:
        world.commit(group, asked.fields["topic"], 0, 1)
    assert set(GROUP_LIST.decode(world.handle(asked).body).group_list) == wanted


def check_runtime(asked: Command, answered: Command) -> None:
    def names(reply: Command) -> set[str]:
        changing = ("commitLogDiskRatio_", "scheduleMessageOffset_")
        return {
            name
            for name in KV_TABLE.decode(reply.body).table
            if not name.startswith(changing) and name not in OURS
        }

    assert names(answered) - names(World().handle(asked)) == set()


def check_config(asked: Command, answered: Command) -> None:
    reply = World().handle(asked)
    assert reply.fields.keys() == answered.fields.keys()
    ours, theirs = SETTINGS.decode(reply.body), SETTINGS.decode(answered.body)
    assert {"brokerName", "brokerId", "brokerRole", "flushDiskType"} <= ours.keys() & theirs.keys()
    known = {row.name for row in known_settings()} | {row.name for _, row in broker_rows()}
    assert known <= ours.keys()


def check_count(asked: Command, answered: Command) -> None:
    world = World()
    name, key = asked.fields["statsName"], asked.fields["statsKey"]
    topic, _, group = key.partition("@")
    if answered.code == 0 and name == "TOPIC_PUT_NUMS":
        world.broker.counting.broker.put(topic, 0, 1, 1)
    elif answered.code == 0:
        world.broker.counting.broker.got(group, topic, 0, 1, 1)
    reply = world.handle(asked)
    assert (reply.code, reply.remark) == (answered.code, answered.remark)
    if reply.code == 0:
        assert json.loads(reply.body).keys() == json.loads(answered.body).keys()


def check_topic(asked: Command, answered: Command) -> None:
    wanted = MAPPED_TOPIC_CONFIG.decode(answered.body)
    world = World()
    world.tables.topics.put(
        TopicConfig(
            wanted.name, wanted.read_queues, wanted.write_queues, wanted.perm, order=wanted.order
        )
    )
    assert json.loads(world.handle(asked).body) == json.loads(answered.body)


def check_forwarded(asked: Command, answered: Command) -> None:
    world, peer = World(), AskedPeer(2)
    member = ConsumerData(group_name=asked.fields["consumerGroup"])
    world.join(heartbeat(asked.fields["clientId"], member), peer)
    peer.reply = answered
    reply = world.handle(asked)
    assert (reply.code, reply.remark, reply.body) == (
        answered.code,
        answered.remark,
        answered.body,
    )


def check_reset(asked: Command, answered: Command) -> None:
    world, topic, group = World(), asked.fields["topic"], asked.fields["group"]
    world.topic(topic, 2)
    world.group(group)
    if answered.code != 0:
        body = SETTINGS.encode({"useServerSideResetOffset": "false"})
        assert world.ask(RequestCode.UPDATE_BROKER_CONFIG, body=body).code == 0
        reply = world.handle(asked)
        assert (reply.code, reply.remark) == (answered.code, answered.remark)
        return
    wanted = RESET_OFFSETS.decode(answered.body).offset_table
    timestamp = int(asked.fields["timestamp"])
    for queue, offset in wanted.items():
        world.put(topic, queue.queue_id, offset)
    if timestamp > 0:
        world.clock.jump((timestamp - world.clock.now_ms()) / 1000)
        for queue in wanted:
            world.put(topic, queue.queue_id, 2)
    reply = world.handle(asked)
    assert RESET_OFFSETS.decode(reply.body).offset_table == wanted


def check_shape(asked: Command, answered: Command) -> None:
    reply = World().handle(asked)
    assert json.loads(reply.body).keys() == json.loads(answered.body).keys()


def check_entries(asked: Command, answered: Command) -> None:
    world, wanted = World(), QUEUE_ENTRIES.decode(answered.body)
    world.topic("WireTopic", 2)
    world.put("WireTopic", int(asked.fields["queueId"]), wanted.max_queue_index)
    found = QUEUE_ENTRIES.decode(world.handle(asked).body)
    assert (found.min_queue_index, found.max_queue_index) == (
        wanted.min_queue_index,
        wanted.max_queue_index,
    )
    assert len(found.queue_data or ()) == len(wanted.queue_data or ())


def check_tables(asked: Command, answered: Command) -> None:
    reply = World().handle(asked)
    assert reply.code == answered.code
    if asked.code == RequestCode.GET_ALL_TOPIC_CONFIG:
        wanted = TOPIC_TABLE.decode(answered.body).topic_config_table
        found = TOPIC_TABLE.decode(reply.body).topic_config_table
        system = {"TBW102", "SELF_TEST_TOPIC", "SCHEDULE_TOPIC_XXXX", "OFFSET_MOVED_EVENT"}
        assert {name: wanted[name] for name in system & wanted.keys()} == {
            name: found[name] for name in system & wanted.keys()
        }
    elif asked.code == RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG:
        groups = GROUP_TABLE.decode(answered.body).subscription_group_table
        ours = GROUP_TABLE.decode(reply.body).subscription_group_table
        system = {name for name in groups if name.startswith("CID_ONS")}
        assert system
        assert {name: groups[name] for name in system} == {name: ours[name] for name in system}
    else:
        listed = set(TOPIC_LIST.decode(reply.body).topic_list)
        assert {"TBW102", "SELF_TEST_TOPIC"} <= listed & set(
            TOPIC_LIST.decode(answered.body).topic_list
        )


CHECKS: Final[dict[int, Check]] = {
    RequestCode.UPDATE_AND_CREATE_TOPIC: partial(check_code, with_topic_and_group),
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: partial(check_code, with_topic_and_group),
    RequestCode.DELETE_TOPIC_IN_BROKER: partial(check_code, with_topic_and_group),
    RequestCode.DELETE_SUBSCRIPTIONGROUP: partial(check_code, with_topic_and_group),
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: partial(check_code, World),
    RequestCode.CLEAN_UNUSED_TOPIC: partial(check_code, World),
    RequestCode.DELETE_EXPIRED_COMMITLOG: partial(check_code, World),
    RequestCode.UPDATE_BROKER_CONFIG: partial(check_code, World),
    RequestCode.SET_MESSAGE_REQUEST_MODE: partial(check_code, with_topic_and_group),
    RequestCode.GET_TOPIC_STATS_INFO: check_topic_stats,
    RequestCode.GET_CONSUME_STATS: check_group_stats,
    RequestCode.GET_BROKER_CONSUME_STATS: check_broker_stats,
    RequestCode.GET_CONSUMER_CONNECTION_LIST: check_members,
    RequestCode.GET_PRODUCER_CONNECTION_LIST: check_producers,
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: check_readers,
    RequestCode.GET_BROKER_RUNTIME_INFO: check_runtime,
    RequestCode.GET_BROKER_CONFIG: check_config,
    RequestCode.VIEW_BROKER_STATS_DATA: check_count,
    RequestCode.GET_TOPIC_CONFIG: check_topic,
    RequestCode.GET_CONSUMER_RUNNING_INFO: check_forwarded,
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: check_reset,
    RequestCode.GET_BROKER_HA_STATUS: check_shape,
    RequestCode.GET_COLD_DATA_FLOW_CTR_INFO: check_shape,
    RequestCode.QUERY_CONSUME_QUEUE: check_entries,
    RequestCode.GET_ALL_TOPIC_CONFIG: check_tables,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: check_tables,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: check_tables,
}


@pytest.mark.parametrize("code", sorted(CHECKS), ids=lambda code: RequestCode(code).name)
def test_recorded_questions_have_the_recorded_answers(code: int) -> None:
    asked = [(release, one, told) for release, one, told in questions() if one.code == code]
    assert asked, "nothing of it was recorded"
    for _release, request, answered in asked:
        CHECKS[code](request, answered)


def test_nothing_that_was_recorded_is_left_out() -> None:
    assert len(questions()) == QUESTIONS
    by_release = Counter(release for release, _, _ in questions())
    assert len(by_release) == 4


# -- golden stores --------------------------------------------------------------------------------


def opened(label: str, folder: Path) -> tuple[World, dict[str, object]]:
    """Return our broker on a copy of a golden store, and what Apache's said of it."""
    text = (STORE / label / "broker.conf").read_bytes()
    listed = SETTINGS.decode(text)
    stored = {name for row in known_settings() for name in row.names}
    properties = {name: value for name, value in listed.items() if name in stored}
    root = unpacked(label, folder)
    world = World(OsFiles(), properties | {"storePathRootDir": str(root)})
    manifest = (STORE / label / "manifest.json").read_bytes()
    return world, msgspec.json.decode(manifest, type=dict[str, object])


def same_parts(ours: object, theirs: object) -> bool:
    """Tell whether everything that Apache says is said here, and the same."""
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and all(
            name in ours and same_parts(ours[name], value) for name, value in theirs.items()
        )
    return ours == theirs


@pytest.mark.parametrize("label", CLEAN)
def test_the_tables_of_a_golden_store(label: str, tmp_path: Path) -> None:
    world, manifest = opened(label, tmp_path)
    topics = json.loads(world.ask(RequestCode.GET_ALL_TOPIC_CONFIG).body)["topicConfigTable"]
    assert same_parts(topics, manifest["topicConfig"])
    groups = json.loads(world.ask(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG).body)
    assert same_parts(groups["subscriptionGroupTable"], manifest["subscriptionGroups"])
    offsets = CONSUMER_OFFSETS.decode(world.ask(RequestCode.GET_ALL_CONSUMER_OFFSET).body)
    table = {
        key: {str(queue): offset for queue, offset in found.items()}
        for key, found in offsets.offset_table.items()
    }
    assert same_parts(table, manifest["consumerOffsets"])
    delays = DELAY_OFFSETS.decode(world.ask(RequestCode.GET_ALL_DELAY_OFFSET).body)
    assert {str(level): at for level, at in delays.offset_table.items()} == manifest["delayOffsets"]
    world.broker.close()


@pytest.mark.parametrize("label", CLEAN)
def test_the_queues_of_a_golden_store(label: str, tmp_path: Path) -> None:
    world, manifest = opened(label, tmp_path)
    queues = manifest["queues"]
    assert isinstance(queues, list)
    rows: dict[tuple[str, int], tuple[int, int]] = {}
    for topic in {one["topic"] for one in queues}:
        reply = world.ask(RequestCode.GET_TOPIC_STATS_INFO, {"topic": topic})
        for queue, row in TOPIC_STATS.decode(reply.body).offset_table.items():
            rows[topic, queue.queue_id] = row.min_offset, row.max_offset
    wanted = {
        (one["topic"], one["queueId"]): (one["minOffset"], one["maxOffset"]) for one in queues
    }
    assert len(wanted) > 20
    assert {key: rows[key] for key in wanted} == wanted
    runtime = manifest["runtime"]
    table = KV_TABLE.decode(world.ask(RequestCode.GET_BROKER_RUNTIME_INFO).body).table
    assert isinstance(runtime, dict)
    for name in ("commitLogMinOffset", "commitLogMaxOffset"):
        if name in runtime:
            assert table[name] == runtime[name]
    world.broker.close()


@pytest.mark.parametrize("label", [*CLEAN, SQL])
def test_the_entries_of_a_golden_store(label: str, tmp_path: Path) -> None:
    world, manifest = opened(label, tmp_path)
    samples = manifest["consumeQueueSamples"]
    assert isinstance(samples, list)
    assert samples
    for sample in samples:
        wanted = sample["answer"]
        fields = {
            "topic": sample["topic"],
            "queueId": str(sample["queueId"]),
            "index": "0",
            "count": str(len(wanted["queueData"])),
        }
        if wanted.get("filterData", "").startswith("@"):
            fields["consumerGroup"] = ""
        found = json.loads(world.ask(RequestCode.QUERY_CONSUME_QUEUE, fields).body)
        assert found == wanted, sample
    world.broker.close()


def test_a_master_without_slaves_says_so() -> None:
    status = HA_STATUS.decode(World().ask(RequestCode.GET_BROKER_HA_STATUS).body)
    assert (status.master, status.in_sync_slave_nums, status.ha_connection_info) == (True, 0, ())
