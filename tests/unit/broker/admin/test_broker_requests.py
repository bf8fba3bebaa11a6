"""A broker's settings, figures, connections, queues, and what it does not do."""

from __future__ import annotations

import pytest

from gantrymq.broker.admin import connections, forwarding
from gantrymq.broker.admin.refused import REFUSED
from gantrymq.broker.admin.runtime import readable
from gantrymq.errors import InvalidValue
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.wire.bodies.assignment import (
    ASSIGNMENT_QUERY,
    ASSIGNMENTS,
    REQUEST_MODE_SETTING,
    REQUEST_MODE_TABLE,
    AssignmentQuery,
    RequestMode,
    RequestModeSetting,
)
from gantrymq.wire.bodies.auth import ACL_CONFIG
from gantrymq.wire.bodies.connections import (
    CONSUMER_CONNECTIONS,
    PRODUCER_CONNECTIONS,
    PRODUCER_TABLE,
)
from gantrymq.wire.bodies.offsets import CONSUMER_OFFSETS, DELAY_OFFSETS
from gantrymq.wire.bodies.queues import QUEUE_ENTRIES
from gantrymq.wire.bodies.replication import HA_STATUS
from gantrymq.wire.bodies.route import KV_TABLE
from gantrymq.wire.bodies.settings import SETTINGS
from gantrymq.wire.bodies.stats import BROKER_STATS
from gantrymq.wire.codes import LanguageCode, RequestCode
from gantrymq.wire.command import Command
from gantrymq.wire.message_id import offset_id_text
from gantrymq.wire.peer import PeerGone, PeerLate
from support.admin_world import HOST, ROOT, AskedPeer, World
from support.client_peers import consumer, heartbeat, subscription

# -- settings -------------------------------------------------------------------------------------


def change(world: World, **texts: str) -> Command:
    return world.ask(RequestCode.UPDATE_BROKER_CONFIG, body=SETTINGS.encode(texts))


def settings(world: World) -> dict[str, str]:
    return dict(SETTINGS.decode(world.ask(RequestCode.GET_BROKER_CONFIG).body))


def test_all_settings_are_shown_with_a_version() -> None:
    world = World()
    shown = settings(world)
    assert shown["brokerName"] == "broker-a"
    assert shown["storePathRootDir"] == str(ROOT)
    assert shown["fileReservedTime"] == "72"
    version = world.ask(RequestCode.GET_BROKER_CONFIG).fields["version"]
    assert '"counter":0' in version


def test_a_change_holds_at_once_and_after_a_start() -> None:
    world = World()
    texts = {"fileReservedTime": "48", "waitTimeMillsInSendQueue": "300"}
    assert change(world, **texts).code == 0
    assert settings(world).items() >= texts.items()
    assert world.broker.settings.now.send_wait_ms == 300
    assert world.broker.store.cleaner.settings.retention.reserved_hours == 48
    assert '"counter":1' in world.ask(RequestCode.GET_BROKER_CONFIG).fields["version"]
    after = world.again()
    assert settings(after).items() >= texts.items()
    assert change(after, fileReservedTime="24").code == 0
    assert (
        settings(after.again()).items()
        >= {
            "fileReservedTime": "24",
            "waitTimeMillsInSendQueue": "300",
        }.items()
    )


def test_a_change_that_waits_for_the_next_start_says_so() -> None:
    world = World()
    reply = change(world, maxMsgsNumBatch="32")
    assert (reply.code, reply.remark) == (0, "maxMsgsNumBatch will hold from the next start on")
    assert change(world, maxMessageSize="65536").remark is None


@pytest.mark.parametrize(
    ("name", "text", "code", "said"),
    [
        ("storePathRootDir", "/elsewhere", 16, "-c"),
        ("storePathCommitLog", "/elsewhere", 16, "-c"),
        ("namesrvAddr", "10.0.0.1:9876", 16, "-c"),
        ("brokerIP1", "10.0.0.1", 16, "-c"),
        ("listenPort", "1", 16, "-c"),
        ("rocketmqHome", "/x", 16, "-c"),
        ("brokerConfigPath", "/x", 16, "-c"),
        ("aclEnable", "true", 16, "-c"),
        ("noSuchSetting", "1", 16, "noSuchSetting"),
        ("brokerPermission", "9", 29, "0 to 7"),
        ("fileReservedTime", "soon", 29, "fileReservedTime is 'soon'"),
    ],
)
def test_what_may_not_be_changed_is_refused(name: str, text: str, code: int, said: str) -> None:
    world = World()
    before = settings(world)
    reply = change(world, traceOn="false", **{name: text})
    assert reply.code == code
    assert said in (reply.remark or "")
    assert settings(world) == before
    assert not world.files.exists(ROOT / "config" / "live.properties")


def test_a_file_of_changes_with_something_else_in_it_stops_the_start() -> None:
    world = World()
    change(world, traceOn="false")
    world.broker.close()
    path = ROOT / "config" / "live.properties"
    content = b"storePathRootDir=/elsewhere\n"
    world.files.truncate(path, 0)
    world.files.write_at(path, 0, content, len(content))
    with pytest.raises(InvalidValue, match=r"live\.properties.*take it out"):
        World(world.files, world.properties, world.clock)


def test_a_changed_permission_is_told_to_name_servers() -> None:
    world = World()
    world.topic("T")
    before, version = world.routes_changed, world.tables.topics.data_version
    assert change(world, brokerPermission="4").code == 0
    assert world.routes_changed == before + 1
    assert world.tables.topics.data_version != version


def test_text_that_is_none_is_refused() -> None:
    assert World().ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"\xff\xfe=1").code == 1
    assert World().ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"").code == 0


# -- figures --------------------------------------------------------------------------------------


def test_figures_are_those_of_the_store() -> None:
    world = World()
    world.topic("T")
    first = world.clock.now_ms()
    world.put("T", 0, 3)
    table = KV_TABLE.decode(world.ask(RequestCode.GET_BROKER_RUNTIME_INFO).body).table
    assert table["commitLogMaxOffset"] == str(world.broker.store.log.wrote_offset)
    assert table["earliestMessageTimeStamp"] == str(first)
    assert table["brokerVersionDesc"] == "V4_9_7"
    assert table["dispatchBehindBytes"] == "0"


def test_bytes_are_written_as_apache_does() -> None:
    assert [readable(count) for count in (0, 942, 1024, 69_900_000_000, 252 << 30)] == [
        "0 B",
        "942 B",
        "1.0 KiB",
        "65.1 GiB",
        "252.0 GiB",
    ]


def test_one_count() -> None:
    world = World()
    world.broker.counting.broker.put("T", 0, 3, 30)
    world.clock.jump(10.0)
    world.broker.counting.sample()
    asked = {"statsName": "TOPIC_PUT_NUMS", "statsKey": "T"}
    counted = BROKER_STATS.decode(world.ask(RequestCode.VIEW_BROKER_STATS_DATA, asked).body)
    assert (counted.stats_minute.sum, counted.stats_minute.tps) == (3, 0.3)
    for name, key in (("TOPIC_PUT_NUMS", "Nope"), ("NOPE", "T")):
        reply = world.ask(RequestCode.VIEW_BROKER_STATS_DATA, {"statsName": name, "statsKey": key})
        assert (reply.code, reply.remark) == (1, f"The stats <{name}> <{key}> not exist")


def test_replicas_cleaning_and_copies() -> None:
    world = World()
    world.topic("T")
    world.put("T", 0)
    world.commit("G", "T", 0, 1)
    status = HA_STATUS.decode(world.ask(RequestCode.GET_BROKER_HA_STATUS).body)
    assert status.master
    assert status.master_commit_log_max_offset == world.broker.store.log.wrote_offset
    assert world.ask(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE).code == 0
    assert world.ask(RequestCode.DELETE_EXPIRED_COMMITLOG).code == 0
    copied = CONSUMER_OFFSETS.decode(world.ask(RequestCode.GET_ALL_CONSUMER_OFFSET).body)
    assert copied.offset_table == {"T@G": {0: 1}}
    world.tables.delays.set(3, 7)
    delays = DELAY_OFFSETS.decode(world.ask(RequestCode.GET_ALL_DELAY_OFFSET).body)
    assert delays.offset_table == {3: 7}


# -- connections ----------------------------------------------------------------------------------


def test_members_of_a_group_are_shown() -> None:
    world = World()
    peer = AskedPeer(2)
    world.join(heartbeat("c1", consumer("G", subscription("T"))), peer, language=LanguageCode.GO)
    reply = world.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": "G"})
    shown = CONSUMER_CONNECTIONS.decode(reply.body)
    ((client,),) = (shown.connection_set,)
    assert (client.client_id, client.client_addr, client.language) == ("c1", peer.address, "GO")
    assert list(shown.subscription_table) == ["T"]
    assert shown.mismatch is None
    assert b"mismatch" not in reply.body
    nobody = world.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": "Nope"})
    assert (nobody.code, nobody.remark) == (206, "the consumer group[Nope] not online")


def test_members_that_subscribe_differently_are_named() -> None:
    world = World()
    world.join(heartbeat("one", consumer("G", subscription("T", "a"))), AskedPeer(2))
    world.join(heartbeat("two", consumer("G", subscription("T", "b"))), AskedPeer(3))
    reply = world.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": "G"})
    shown = CONSUMER_CONNECTIONS.decode(reply.body).mismatch
    assert shown is not None
    assert {one.client_ids: one.subscriptions for one in shown} == {
        ("one",): ("T TAG a",),
        ("two",): ("T TAG b",),
    }


def test_producers_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.join(heartbeat("p1", producers=["P"]), AskedPeer(2))
    reply = world.ask(RequestCode.GET_PRODUCER_CONNECTION_LIST, {"producerGroup": "P"})
    (shown,) = PRODUCER_CONNECTIONS.decode(reply.body).connection_set
    assert shown.client_id == "p1"
    nobody = world.ask(RequestCode.GET_PRODUCER_CONNECTION_LIST, {"producerGroup": "Nope"})
    assert (nobody.code, nobody.remark) == (1, "the producer group[Nope] not exist")
    every = PRODUCER_TABLE.decode(world.ask(RequestCode.GET_ALL_PRODUCER_INFO).body).data
    assert [one.client_id for one in every["P"]] == ["p1"]
    assert every["P"][0].last_update_timestamp == world.clock.now_ms()
    monkeypatch.setattr(connections, "PRODUCERS_MAX", 0)
    assert world.ask(RequestCode.GET_ALL_PRODUCER_INFO).code == 1


# -- asked of consumers ---------------------------------------------------------------------------


def online(world: World) -> AskedPeer:
    peer = AskedPeer(2)
    world.join(heartbeat("c1", consumer("G", subscription("T"))), peer)
    return peer


RUNNING = {"consumerGroup": "G", "clientId": "c1", "jstackEnable": "false", "AccessKey": "k"}


def test_a_consumer_is_asked_and_its_answer_handed_on() -> None:
    world = World()
    peer = online(world)
    peer.reply = Command(code=0, opaque=3, flag=1, remark="as it came", body=b'{"x":1}')
    reply = world.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, RUNNING)
    assert (reply.code, reply.remark, reply.body) == (0, "as it came", b'{"x":1}')
    ((asked, timeout),) = peer.asked
    assert (asked.code, timeout) == (307, 10.0)
    assert asked.fields == {"consumerGroup": "G", "clientId": "c1", "jstackEnable": "false"}


def test_a_consumer_that_is_not_there_late_or_gone() -> None:
    world = World()
    peer = online(world)
    nobody = world.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, RUNNING | {"clientId": "x"})
    assert (nobody.code, nobody.remark) == (1, "The Consumer <G> <x> not online")
    peer.reply = PeerLate("10 s")
    assert world.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, RUNNING).code == 207
    peer.reply = PeerGone("closed")
    assert world.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, RUNNING).code == 1


def test_not_too_many_wait_for_consumers(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    peer = online(world)
    monkeypatch.setattr(forwarding, "FORWARDED_MAX", 0)
    assert world.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, RUNNING).code == 1
    assert peer.asked == []


def test_a_message_is_handed_to_a_consumer() -> None:
    world = World()
    peer = online(world)
    world.topic("T")
    world.put("T", 0)
    fields = {"consumerGroup": "G", "clientId": "c1", "topic": "T"}
    fields["msgId"] = offset_id_text(HOST, 0)
    assert world.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, fields).code == 0
    ((asked, _),) = peer.asked
    assert asked.body == bytes(world.broker.store.reads.record_at(0) or b"")
    assert asked.fields["brokerName"] == "broker-a"
    assert (asked.fields["topicSysFlag"], asked.fields["groupSysFlag"]) == ("0", "0")
    for text, code in ((offset_id_text(HOST, 99_999), 1), ("nonsense", 29), ("", 29)):
        bad = fields | {"msgId": text}
        assert world.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, bad).code == code
    assert len(peer.asked) == 1


# -- queues ---------------------------------------------------------------------------------------


def test_entries_of_a_queue() -> None:
    world = World()
    world.topic("T")
    world.put("T", 0, 4)
    fields = {"topic": "T", "queueId": "0", "index": "1", "count": "2"}
    shown = QUEUE_ENTRIES.decode(world.ask(RequestCode.QUERY_CONSUME_QUEUE, fields).body)
    assert (shown.min_queue_index, shown.max_queue_index) == (0, 4)
    assert [one.tags_code for one in shown.queue_data or ()] == [2598919, 2598919]
    offline = fields | {"consumerGroup": "G"}
    told = QUEUE_ENTRIES.decode(world.ask(RequestCode.QUERY_CONSUME_QUEUE, offline).body)
    assert told.filter_data == "G@T is not online!"
    for changes, code in (({"queueId": "9"}, 1), ({"topic": "Nope"}, 1), ({"count": "x"}, 1)):
        assert world.ask(RequestCode.QUERY_CONSUME_QUEUE, fields | changes).code == code
    assert world.ask(RequestCode.QUERY_CONSUME_QUEUE).code == 29
    for changes in ({"index": "-5"}, {"index": "99"}, {"count": "-1"}):
        reply = world.ask(RequestCode.QUERY_CONSUME_QUEUE, fields | changes)
        assert QUEUE_ENTRIES.decode(reply.body).queue_data == ()


# -- assignments ----------------------------------------------------------------------------------


def assigned(world: World, client: str = "c1", **more: object) -> list[tuple[int, RequestMode]]:
    query = AssignmentQuery(
        topic=str(more.get("topic", "T")),
        consumer_group="G",
        client_id=client,
        strategy_name=str(more.get("strategy", "AVG")),
    )
    body = ASSIGNMENT_QUERY.encode(query)
    found = ASSIGNMENTS.decode(world.ask(RequestCode.QUERY_ASSIGNMENT, body=body).body)
    if found.message_queue_assignments is None:
        return []
    return [(one.message_queue.queue_id, one.mode) for one in found.message_queue_assignments]


def test_queues_are_shared_out() -> None:
    world = World()
    world.topic("T", 4)
    assert assigned(world) == []
    world.join(heartbeat("c1", consumer("G", subscription("T"))), AskedPeer(2))
    world.join(heartbeat("c2", consumer("G", subscription("T"))), AskedPeer(3))
    assert assigned(world) == [(0, RequestMode.PULL), (1, RequestMode.PULL)]
    assert assigned(world, "c2") == [(2, RequestMode.PULL), (3, RequestMode.PULL)]
    assert assigned(world, "stranger") == []
    assert assigned(world, topic="Nope") == []
    assert assigned(world, strategy="MAGIC") == []
    setting = RequestModeSetting(topic="T", consumer_group="G", mode=RequestMode.POP)
    body = REQUEST_MODE_SETTING.encode(setting)
    assert world.ask(RequestCode.SET_MESSAGE_REQUEST_MODE, body=body).code == 0
    assert assigned(world) == [(-1, RequestMode.POP)]
    table = REQUEST_MODE_TABLE.decode(world.ask(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE).body)
    assert table.message_request_mode_map == {"T": {"G": setting}}
    assert world.again().tables.modes.find("T", "G") == setting


@pytest.mark.parametrize(
    ("topic", "group", "code"), [("%RETRY%G", "G", 16), ("Nope", "G", 17), ("T", "no group", 26)]
)
def test_a_mode_that_cannot_be_is_refused(topic: str, group: str, code: int) -> None:
    world = World()
    world.topic("T")
    world.group("G")
    body = REQUEST_MODE_SETTING.encode(RequestModeSetting(topic=topic, consumer_group=group))
    assert world.ask(RequestCode.SET_MESSAGE_REQUEST_MODE, body=body).code == code


def test_what_all_groups_do_can_be_set() -> None:
    world = World()
    world.topic("T", 4)
    world.topic("%RETRY%G", 1)
    world.join(heartbeat("c1", consumer("G", subscription("T"))), AskedPeer(2))
    world.join(heartbeat("c2", consumer("G", subscription("T"))), AskedPeer(3))
    assert change(world, defaultMessageRequestMode="POP").code == 0
    assert assigned(world) == [(-1, RequestMode.POP)]
    assert assigned(world, topic="%RETRY%G") == [(0, RequestMode.PULL)], "this is always pulled"
    own = RequestModeSetting(topic="T", consumer_group="G", mode=RequestMode.PULL)
    body = REQUEST_MODE_SETTING.encode(own)
    assert world.ask(RequestCode.SET_MESSAGE_REQUEST_MODE, body=body).code == 0
    assert assigned(world) == [(0, RequestMode.PULL), (1, RequestMode.PULL)]


def test_the_mode_of_a_new_group_makes_the_group_if_groups_may_be_made() -> None:
    """An operator says how a group is to read before its first member comes."""
    world = World()
    world.topic("T")
    body = REQUEST_MODE_SETTING.encode(RequestModeSetting(topic="T", consumer_group="New"))
    assert world.ask(RequestCode.SET_MESSAGE_REQUEST_MODE, body=body).code == 0
    assert world.tables.groups.find("New") is not None
    strict = World()
    strict.topic("T")
    strict.tables.groups.auto_create = False
    assert strict.ask(RequestCode.SET_MESSAGE_REQUEST_MODE, body=body).code == 26


def test_queues_of_other_brokers_are_shared_out_too() -> None:
    async def route(topic: str) -> list[MessageQueue]:
        return [MessageQueue(topic, name, QueueId(0)) for name in ("broker-a", "broker-b")]

    world = World(route=route)
    world.join(heartbeat("c1", consumer("G", subscription("T"))), AskedPeer(2))
    assert len(assigned(world)) == 2


# -- what there is not ----------------------------------------------------------------------------


@pytest.mark.parametrize("code", sorted(REFUSED))
def test_what_is_not_served_says_what_to_do(code: int) -> None:
    reply = World().ask(code)
    assert (reply.code, reply.remark) == (3, REFUSED[code])


def test_every_request_code_of_a_broker_is_answered() -> None:
    world = World()
    of_others = {*range(100, 110), *range(216, 222), 205, 206, 224, 304, 311, 312, 313, 318, 319}
    for code in RequestCode:
        if code in world.broker.router.codes or code in of_others:
            continue
        reply = world.ask(code)
        assert (reply.code, bool(reply.remark)) == (3, True), code


@pytest.mark.parametrize(
    ("code", "answered"),
    [(50, 209), (51, 210), (53, 211), *((code, 16) for code in range(3001, 3011))],
)
def test_accounts_cannot_be_changed_while_nobody_checks_them(code: int, answered: int) -> None:
    reply = World().ask(code)
    assert reply.code == answered
    assert "access control is off" in (reply.remark or "")


def test_there_are_no_accounts() -> None:
    world = World()
    shown = world.ask(RequestCode.GET_BROKER_CLUSTER_ACL_INFO).fields
    assert (shown["brokerName"], shown["clusterName"]) == ("broker-a", "DefaultCluster")
    accounts = ACL_CONFIG.decode(world.ask(RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG).body)
    assert accounts.plain_access_configs == ()
