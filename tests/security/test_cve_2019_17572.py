"""CVE-2019-17572: a topic that a send creates was made a path of as it came.

`../../topic` as the name of a topic let anybody make files outside of the store. Every way is tried
here by which a name can reach a directory: sends, admin requests, groups that get topics of their
own, a log that somebody else wrote, a master that lies to its slave, and the tools that read store
directories.
"""

from __future__ import annotations

import asyncio
import io
import shutil
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING

import msgspec
import pytest

from gantrymq.cli.store_commands import Request, run
from gantrymq.model.group import SubscriptionGroup
from gantrymq.model.names import is_path_safe
from gantrymq.model.topic import TopicConfig
from gantrymq.store.snapshot import open_snapshot
from gantrymq.testing.clock import VirtualClock
from gantrymq.wire.bodies.heartbeat import HEARTBEAT
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.headers.send import ConsumerSendMessageBackRequest
from support.attacks import DATA, EVIL_NAMES, Site, files, sending
from support.client_peers import consumer, heartbeat, subscription
from support.nodes import broker_node, made, name_server
from support.small_stores import config_file, crashed_store, put, small_store, written_store
from support.transport import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOG = "commitlog"
HONEST, EVIL = b"Alpha", b"../ev"
"""Of one length, so that one can be put in place of the other in a log."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("site")) as site:
        yield site


def directories(site: Site) -> list[str]:
    """Return what there is below the directory of queues, and what should not be anywhere."""
    return [path.name for path in site.folder.rglob("*") if "evil" in path.name]


@pytest.mark.parametrize("name", EVIL_NAMES)
def test_cve_2019_17572_a_send_makes_no_directory(site: Site, name: str) -> None:
    around = site.outside()
    for code in (RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE):
        answer = site.ask(code, sending(name), b"x")
        assert answer.code != ResponseCode.SUCCESS
    long = {"topic": name, "defaultTopic": "TBW102", "producerGroup": "g", "queueId": "0"}
    numbers = {"defaultTopicQueueNums": "4", "sysFlag": "0", "bornTimestamp": "0", "flag": "0"}
    assert site.ask(RequestCode.SEND_MESSAGE, long | numbers, b"x").code != ResponseCode.SUCCESS
    assert site.outside() == around
    assert directories(site) == []


@pytest.mark.parametrize("name", EVIL_NAMES)
def test_cve_2019_17572_admin_requests_neither_make_nor_delete(site: Site, name: str) -> None:
    around = site.outside()
    topic = {
        "topic": name, "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1",
        "perm": "6", "topicFilterType": "SINGLE_TAG", "order": "false",
    }  # fmt: skip
    body = msgspec.json.encode({"topicConfigList": [{"topicName": name, "writeQueueNums": 1}]})
    group = msgspec.json.encode({"groupName": name, "retryQueueNums": 1})
    made_of = [
        site.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, topic),
        site.ask(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=body),
        site.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=group),
    ]
    assert [answer.code for answer in made_of if answer.code == ResponseCode.SUCCESS] == []
    site.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": name})
    site.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, {"groupName": name, "cleanOffset": "true"})
    site.ask(RequestCode.CLEAN_UNUSED_TOPIC)
    site.ask_namesrv(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": name})
    assert site.outside() == around
    assert directories(site) == []
    assert site.ask(RequestCode.GET_TOPIC_CONFIG, {"topic": name}).code != ResponseCode.SUCCESS


@pytest.mark.parametrize("name", EVIL_NAMES)
def test_cve_2019_17572_a_group_gets_no_topic_of_such_a_name(site: Site, name: str) -> None:
    around = site.outside()
    joined = HEARTBEAT.encode(heartbeat("c", consumer(name, subscription("T"))))
    site.ask(RequestCode.HEART_BEAT, body=joined)
    sent = site.ask(RequestCode.SEND_MESSAGE_V2, sending("Honest"), b"x")
    assert sent.code == ResponseCode.SUCCESS
    offset = int(sent.fields["msgId"][16:], 16)
    for level in (-1, 0, 1):  # dead letters, as the broker likes, a second
        back = ConsumerSendMessageBackRequest(
            offset=offset, group=name, delay_level=level, origin_topic="Honest"
        )
        answer = site.ask(RequestCode.CONSUMER_SEND_MSG_BACK, back.encode())
        assert answer.code != ResponseCode.SUCCESS
    commit = {"consumerGroup": name, "topic": name, "queueId": "0", "commitOffset": "1"}
    site.ask(RequestCode.UPDATE_CONSUMER_OFFSET, commit)
    pop = {
        "consumerGroup": name, "topic": "Honest", "queueId": "0", "maxMsgNums": "1",
        "invisibleTime": "60000", "pollTime": "0", "bornTime": "0", "initMode": "0",
        "expType": "TAG", "exp": "*",
    }  # fmt: skip
    site.ask(RequestCode.POP_MESSAGE, pop)
    assert site.outside() == around
    assert directories(site) == []
    kept = (path.read_bytes() for path in (site.data / "config").glob("topics.json*"))
    assert not any(b"evil" in content for content in kept)


def test_cve_2019_17572_a_message_cannot_hide_a_name_in_its_properties(site: Site) -> None:
    """The topic behind a delay, a transaction or a retry is in a property; anybody can write it."""
    around = site.outside()
    for name in EVIL_NAMES:
        for more in ("DELAY\x011", "TRAN_MSG\x01true", "TIMER_DELAY_SEC\x011"):
            text = f"REAL_TOPIC\x01{name}\x02REAL_QID\x010\x02RETRY_TOPIC\x01{name}\x02{more}\x02"
            site.ask(RequestCode.SEND_MESSAGE_V2, sending("Honest", text), b"x")
    site.broker.jump(120)
    site.broker.jump(120)
    assert site.outside() == around
    assert directories(site) == []


# -- what others wrote ---------------------------------------------------------------------------


def poisoned(root: Path) -> None:
    """Have a name that leads out in place of an honest one in the log, and no queues."""
    replaced = 0
    for path in (root / LOG).iterdir():
        data = path.read_bytes()
        replaced += data.count(HONEST)
        path.write_bytes(data.replace(HONEST, EVIL))
    assert replaced > 10
    shutil.rmtree(root / "consumequeue")


def test_cve_2019_17572_a_log_that_came_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    root = tmp_path / DATA
    root.parent.mkdir(parents=True)
    crashed_store(root, tmp_path / "writer", 60)
    poisoned(root)
    before = set(files(tmp_path))
    store = small_store(root, VirtualClock())
    store.open(1)
    clock = VirtualClock()
    put(store, 2, clock)  # it goes on
    assert store.reads.max_offset("Beta", 0) == 21
    assert store.close()
    found = set(files(tmp_path)) - before
    assert [name for name in found if not name.startswith(f"{DATA}/")] == []
    assert [name for name in found if "ev" in name.split("/")] == []


@pytest.mark.parametrize("command", ["inspect", "verify", "rebuild", "export"])
def test_cve_2019_17572_the_offline_tools(tmp_path: Path, command: str) -> None:
    root = tmp_path / DATA
    root.parent.mkdir(parents=True)
    crashed_store(root, tmp_path / "writer", 60)
    poisoned(root)
    around = {name for name in files(tmp_path) if not name.startswith(DATA)}
    output = root / "out.jsonl" if command == "export" else None
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        run(Request(command, root, config_file(root), output=output))
    assert said.getvalue()
    assert {name for name in files(tmp_path) if not name.startswith(DATA)} == around
    assert not list(tmp_path.rglob("ev"))


@pytest.mark.parametrize("recover", [True, False])
def test_cve_2019_17572_a_store_read_by_spark(tmp_path: Path, *, recover: bool) -> None:
    root = tmp_path / DATA
    root.parent.mkdir(parents=True)
    written_store(root, 60)
    (root / "consumequeue" / "..evil. ").mkdir()
    # A queue that is good to read, and lies elsewhere.
    shutil.copytree(root / "consumequeue" / "Alpha", tmp_path / "a" / "secret")
    snapshot = open_snapshot(root, config_file(root), recover=recover)
    try:
        assert {queue.topic for queue in snapshot.queues()} == {"Alpha", "Beta"}
        for topic in ("../../../../secret", "../../../../../a/secret", "a/../..", ".."):
            assert snapshot.units(topic, 0, 0, 10) == b""
        assert snapshot.units("Alpha", 0, 0, 10)
    finally:
        snapshot.close()


def test_cve_2019_17572_a_master_that_lies_to_its_slave(tmp_path: Path) -> None:
    async def main() -> None:
        made.clear()
        names = name_server(tmp_path / "names")
        await names.start()
        address = f"127.0.0.1:{names.port}"
        master = broker_node(tmp_path / DATA / "master", address)
        await master.start()
        await master.wait_registered()
        tables = master.broker.tables
        for name in EVIL_NAMES:  # past every check that an honest master has
            tables.topics._table[name] = TopicConfig(name, 1, 1)
            tables.groups._table[name] = SubscriptionGroup(name)
        tables.topics.put(TopicConfig("Honest", 1, 1))
        tables.groups.put(SubscriptionGroup("honest"))
        slave = broker_node(tmp_path / DATA / "slave", address, brokerRole="SLAVE", brokerId="1")
        try:
            await slave.start()
            copied = slave.broker.tables
            await until(lambda: copied.groups.find("honest") is not None)
            await until(lambda: copied.topics.find("Honest") is not None)
            assert [
                name for name in copied.topics.table().topic_config_table if "evil" in name
            ] == []
            assert all(is_path_safe(name) for name in copied.topics.table().topic_config_table)
            for name in EVIL_NAMES:
                assert copied.topics.find(name) is None
        finally:
            for node in (slave, master, names):
                await node.stop()

    asyncio.run(main())
    assert [path for path in tmp_path.rglob("*") if "evil" in path.name] == []
