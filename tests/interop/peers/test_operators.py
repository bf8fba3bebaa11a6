"""What an operator does with `mqadmin` while clients run: topics, dead letters, offsets."""

from __future__ import annotations

import json
import re
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import pytest

from interop.conftest import had_here
from interop.peers.clients import command_of
from interop.peers.scenarios import SETTINGS, World, texts
from support import apache, gantry, peers
from support.mqadmin import mqadmin
from support.peers import PeerError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.mqadmin import MqAdmin

pytestmark = [
    pytest.mark.tool("java"),
    pytest.mark.tool("javac"),
    pytest.mark.tool("mvn"),
]
WAIT_S_MAX: Final = 70
NOT_MEMORY: Final = {"accessMessageInMemoryMaxRatio": "0"}
"""Everything counts as on the disk, so that a new group begins where it wants to."""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as held:
        yield held


def queues(tool: MqAdmin, topic: str) -> list[dict[str, object]]:
    """Return how a route describes a topic's queues."""
    said = tool.one(f"topicRoute -t {topic}")
    found = re.search(r'"queueDatas":(\[.*?\])', said, re.DOTALL)
    assert found is not None, said
    described: list[dict[str, object]] = json.loads(found[1])
    return described


def rows(tool: MqAdmin, topic: str) -> list[list[str]]:
    """Return the queues that `topicStatus` lists, with their offsets."""
    said = tool.one(f"topicStatus -t {topic}")
    return [line.split()[:4] for line in said.splitlines() if line.startswith("broker-a ")]


def test_topics_are_as_they_were_made_here_and_with_apache(
    stack: ExitStack, tmp_path: Path
) -> None:
    apache_version = had_here("4.9.7")
    ours = {"brokerName": "broker-a"}
    with (
        gantry.server(tmp_path / "server", ours) as server,
        mqadmin("4.9.7", tmp_path / "tool", server.name_server) as tool,
    ):
        address = f"127.0.0.1:{server.port}"
        assert "success" in tool.one(f"updateTopic -b {address} -t Made -r 3 -w 5 -p 6")
        assert "success" in tool.one(f"updateTopic -b {address} -t Ordered -r 2 -w 2 -p 4 -o true")
        wanted, listed = queues(tool, "Made"), rows(tool, "Made")
        assert [(one["readQueueNums"], one["writeQueueNums"], one["perm"]) for one in wanted] == [
            (3, 5, 6)
        ]
        assert [row[1] for row in listed] == ["0", "1", "2", "3", "4"]
    with (
        gantry.server(tmp_path / "server", ours) as server,
        mqadmin("4.9.7", tmp_path / "tool2", server.name_server) as tool,
    ):
        assert queues(tool, "Made") == wanted, "a restart changes nothing"
        assert rows(tool, "Made") == listed

    # Apache goes on with our files, changes a topic, and we go on with its files.
    names = stack.enter_context(apache.name_server(apache_version, tmp_path / "names"))
    store = {
        "storePathRootDir": str(tmp_path / "server" / "data" / "store"),
        "namesrvAddr": names.address,
        **gantry.SMALL_FILES,
    }
    with (
        apache.broker(apache_version, tmp_path / "apache", store) as broker,
        mqadmin("4.9.7", tmp_path / "tool3", names.address) as tool,
    ):
        wait_for(tool, "Made")
        assert queues(tool, "Made") == wanted
        assert queues(tool, "Ordered")[0]["perm"] == 4
        assert "success" in tool.one(f"updateTopic -b {broker.address} -t Theirs -r 7 -w 6 -p 2")
        broker.stop()
    with (
        gantry.server(tmp_path / "server", ours) as server,
        mqadmin("4.9.7", tmp_path / "tool4", server.name_server) as tool,
    ):
        (theirs,) = queues(tool, "Theirs")
        assert (theirs["readQueueNums"], theirs["writeQueueNums"], theirs["perm"]) == (7, 6, 2)
        assert queues(tool, "Made") == wanted


def wait_for(tool: MqAdmin, topic: str) -> None:
    """Wait until name servers know a topic."""
    deadline = time.monotonic() + WAIT_S_MAX
    while "queueDatas" not in tool.one(f"topicRoute -t {topic}"):
        assert time.monotonic() < deadline, f"{topic} has no route"
        time.sleep(0.2)


def test_without_new_topics_a_send_is_told_that_there_is_none(
    stack: ExitStack, tmp_path: Path
) -> None:
    command = command_of("java-4.9.7")
    settings = {"autoCreateTopicEnable": "false"}
    server = stack.enter_context(gantry.server(tmp_path / "server", settings))
    peer = stack.enter_context(peers.running(command, server.name_server, tmp_path / "java"))
    world = World(peer, server.name_server, server.port, "unknown")
    with pytest.raises(PeerError, match="No route info of this topic"):
        world.send("NobodyMadeIt", [{"body": "first"}])
    # A client that believes that there is one is told by the broker.
    topic, producer = world.topic(), world.producer()
    world.send(topic, [{"body": "known"}], producer=producer)
    tool = stack.enter_context(mqadmin("4.9.7", tmp_path / "tool", server.name_server))
    assert "success" in tool.one(f"deleteTopic -c DefaultCluster -t {topic}")
    with pytest.raises(PeerError, match="last code: 17"):
        world.send(topic, [{"body": "gone"}], producer=producer)


def test_dead_letters_are_found_by_the_operator(stack: ExitStack, tmp_path: Path) -> None:
    command = command_of("java-4.9.7")
    server = stack.enter_context(gantry.server(tmp_path / "server", SETTINGS))
    peer = stack.enter_context(peers.running(command, server.name_server, tmp_path / "java"))
    tool = stack.enter_context(mqadmin("4.9.7", tmp_path / "tool", server.name_server))
    world = World(peer, server.name_server, server.port, "dead")
    topic, group = world.topic(), world.new_name("group")
    consumer = world.consumer(topic, group, failures=9, retries=1, quick=True)
    world.send(topic, [{"body": "fails and fails"}])
    assert world.wait(lambda: len(consumer.received()) == 2)
    wait_for(tool, f"%DLQ%{group}")
    (dead,) = queues(tool, f"%DLQ%{group}")
    assert (dead["readQueueNums"], dead["writeQueueNums"], dead["perm"]) == (1, 1, 6)
    found = tool.one(f"consumeMessage -t %DLQ%{group} -g tool -c 1")
    assert "fails and fails" in found
    world.nothing_else(consumer, ["fails and fails"] * 2)


def test_where_a_group_begins_and_where_it_is_sent_to(stack: ExitStack, tmp_path: Path) -> None:
    command = command_of("java-4.9.7")
    server = stack.enter_context(gantry.server(tmp_path / "server", NOT_MEMORY))
    peer = stack.enter_context(peers.running(command, server.name_server, tmp_path / "java"))
    tool = stack.enter_context(mqadmin("4.9.7", tmp_path / "tool", server.name_server))
    world = World(peer, server.name_server, server.port, "begins")
    topic = world.topic(1)
    old, new, later = texts(4, "old"), texts(4, "new"), texts(4, "later")
    producer = world.producer()
    world.send(topic, [{"body": body} for body in old], producer=producer)
    # A moment of a group has whole seconds.
    time.sleep(2.1)
    moment = time.time_ns() // 1_000_000 - 1000
    world.send(topic, [{"body": body} for body in new], producer=producer)
    groups = {begin: world.new_name(begin) for begin in ("first", "last", "timestamp")}
    readers = {
        begin: world.consumer(topic, group, **{"from": begin}, moment=moment, quick=True)
        for begin, group in groups.items()
    }
    world.all_of(readers["first"], old + new)
    world.all_of(readers["timestamp"], new)
    world.nothing_else(readers["last"], [])
    world.send(topic, [{"body": body} for body in later], producer=producer)
    world.all_of(readers["first"], old + new + later)
    world.all_of(readers["timestamp"], new + later)
    world.all_of(readers["last"], later)

    # Sent back while it runs, to a moment; the others stay where they are.
    stamp = time.strftime("%Y-%m-%d#%H:%M:%S", time.gmtime(moment / 1000)) + f":{moment % 1000:03}"
    said = tool.one(f"resetOffsetByTime -g {groups['last']} -t {topic} -s {stamp}")
    assert re.search(r"\s0\s+4\s", said), said
    world.all_of(readers["last"], later + new + later)
    world.nothing_else(readers["timestamp"], new + later)
    world.nothing_else(readers["first"], old + new + later)
