"""Broker statistics as Apache's own tool prints them: what was sent and taken, and when it ages.

The broker is the real one with real clients, and time is the test's: a day of samples costs none.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from gantrymq.store.retention import HOUR_MS, local_hour
from gantrymq.testing.clock import VirtualClock
from gantrymq.testing.threaded import ThreadedBroker
from gantrymq.wire.bodies.stats import BROKER_STATS
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.query import ViewBrokerStatsRequest
from support.mqadmin import mqadmin
from support.remoting import RemotingClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.mqadmin import MqAdmin

pytestmark = [
    pytest.mark.tool("java"),
    pytest.mark.tool("javac"),  # it compiles the program that runs the commands
    pytest.mark.tool("mvn"),
]

TOPIC: Final = "Counted"
GROUP: Final = "readers"
CLUSTER: Final = "DefaultCluster"
QUEUES: Final = 4
TAKEN_S_MAX: Final = 60
SAMPLE_S: Final = 10
TEN_MINUTES: Final = 600


class Sums(NamedTuple):
    """One count over the last minute, hour and day."""

    minute: int
    hour: int
    day: int


class World:
    """A broker with a clock that stands still, and the tool of a release."""

    def __init__(self, broker: ThreadedBroker, tool: MqAdmin) -> None:
        self.broker = broker
        self.tool = tool
        host, _, port = broker.address.rpartition(":")
        self._place = host, int(port)

    def pass_s(self, seconds: int, step: int = SAMPLE_S) -> None:
        """Let time pass in steps, so that no sample is late."""
        for _ in range(seconds // step):
            self.broker.jump(step)

    def send(self, count: int) -> None:
        said = self.tool.one(f"+send {TOPIC} TagA key {count}")
        assert said.count("SEND_OK") == count, said

    def status(self) -> dict[str, str]:
        """Return the table of `brokerStatus`."""
        said = self.tool.one(f"brokerStatus -b {self.broker.address}")
        return dict(re.findall(r"^(\w+) *: (.*?) *$", said, re.MULTILINE))

    def wait_taken(self, count: int) -> None:
        """Wait until consumers have been given so many messages in all."""
        deadline = time.monotonic() + TAKEN_S_MAX
        while int(self.status()["msgGetTotalTodayNow"]) < count:
            assert time.monotonic() < deadline, "the consumer does not get what was sent"
            time.sleep(0.05)

    def sums(self, name: str, key: str) -> Sums:
        """Ask for one count, as the tool does for each that it prints."""
        header = ViewBrokerStatsRequest(stats_name=name, stats_key=key)
        with RemotingClient(*self._place) as client:
            answer = client.want(RequestCode.VIEW_BROKER_STATS_DATA, header)
        found = BROKER_STATS.decode(answer.body)
        return Sums(found.stats_minute.sum, found.stats_hour.sum, found.stats_day.sum)

    def printed(self) -> list[str]:
        """Return what `statsAll` says: messages a second in and out, in and out in 24 hours."""
        # News for the name server, which may not have heard of the broker for a day.
        self.broker.create_topic(f"News-{self.broker.clock.now_ms()}")
        said = self.tool.one(f"statsAll -t {TOPIC}")
        found = re.search(rf"^{TOPIC} +{GROUP} +\d+ +(.*)$", said, re.MULTILINE)
        assert found is not None, said
        return found[1].split()


@pytest.fixture
def world(apache_version: str, tmp_path: Path) -> Iterator[World]:
    with (
        ThreadedBroker(clock=VirtualClock(), directory=tmp_path / "data") as broker,
        mqadmin(apache_version, tmp_path / "tool", broker.namesrv) as tool,
    ):
        broker.create_topic(TOPIC, QUEUES)
        tool.one("+producer writers")
        broker.jump(SAMPLE_S)  # the first samples of all, before there is anything to count
        yield World(broker, tool)


def test_counts_are_what_was_sent_and_taken_and_age(world: World) -> None:
    before = world.status()
    world.send(37)
    world.tool.one(f"+consumer {GROUP} {TOPIC}")
    world.wait_taken(37)
    assert world.sums("TOPIC_PUT_NUMS", TOPIC) == (0, 0, 0), "no sample has been taken"
    world.pass_s(SAMPLE_S)

    # Everything once: by topic, group, queue and broker, in messages and in bytes.
    now = world.status()
    size = int(now["commitLogMaxOffset"]) - int(before["commitLogMaxOffset"])
    for name, key, wanted in (
        ("TOPIC_PUT_NUMS", TOPIC, 37),
        ("TOPIC_PUT_SIZE", TOPIC, size),
        ("GROUP_GET_NUMS", f"{TOPIC}@{GROUP}", 37),
        ("GROUP_GET_SIZE", f"{TOPIC}@{GROUP}", size),
        ("BROKER_PUT_NUMS", CLUSTER, 37),
        ("BROKER_GET_NUMS", CLUSTER, 37),
    ):
        assert world.sums(name, key) == (wanted, 0, 0), name
    keys = [f"{TOPIC}@{queue}@{GROUP}" for queue in range(QUEUES)]
    assert sorted(world.sums("QUEUE_GET_NUMS", key).minute for key in keys) == [9, 9, 9, 10]
    assert sum(world.sums("QUEUE_GET_SIZE", key).minute for key in keys) == size
    changes = {name: int(now[name]) - int(before[name]) for name in before if name in TOTALS}
    assert changes == dict.fromkeys(TOTALS, 37) | {"putMessageSizeTotal": size}
    assert world.printed() == ["3.70", "3.70", "37", "37"]

    # A minute later they are not of this minute any more; the hour has its first sample.
    world.pass_s(TEN_MINUTES - SAMPLE_S)
    assert world.sums("TOPIC_PUT_NUMS", TOPIC) == (0, 37, 0)
    assert world.printed() == ["0.00", "0.00", "37", "37"]

    # More in the next hour: hour and day have sums of their own.
    world.pass_s(6 * TEN_MINUTES, TEN_MINUTES)
    world.send(5)
    world.wait_taken(42)
    world.pass_s(SAMPLE_S)
    world.pass_s(TEN_MINUTES, TEN_MINUTES)
    for name, key in (("TOPIC_PUT_NUMS", TOPIC), ("GROUP_GET_NUMS", f"{TOPIC}@{GROUP}")):
        assert world.sums(name, key) == (5, 5, 37), name
    world.pass_s(5 * TEN_MINUTES, TEN_MINUTES)
    assert world.sums("TOPIC_PUT_NUMS", TOPIC).day == 42
    assert world.printed()[2:] == ["42", "42"]

    # Of the first 37 nothing is left a day later, and of all of them an hour after that.
    world.pass_s(23 * 6 * TEN_MINUTES, TEN_MINUTES)
    assert world.sums("GROUP_GET_NUMS", f"{TOPIC}@{GROUP}") == (0, 0, 5)
    assert world.printed() == ["0.00", "0.00", "5", "5"]
    world.pass_s(6 * TEN_MINUTES, TEN_MINUTES)
    assert world.sums("TOPIC_PUT_NUMS", TOPIC) == (0, 0, 0)


TOTALS: Final = ("msgPutTotalTodayNow", "msgGetTotalTodayNow", "putMessageTimesTotal",
                 "putMessageSizeTotal")  # fmt: skip


def test_days_begin_at_midnight(world: World) -> None:
    world.send(7)
    hours = 24 - local_hour(world.broker.clock.now_ms())
    assert world.status()["msgPutTotalTodayMorning"] == "0"
    world.pass_s(hours * HOUR_MS // 1000, HOUR_MS // 1000)
    world.send(3)
    found = world.status()
    assert (found["msgPutTotalTodayMorning"], found["msgPutTotalTodayNow"]) == ("7", "10")
    world.pass_s(24 * HOUR_MS // 1000, HOUR_MS // 1000)
    found = world.status()
    names = ("msgPutTotalYesterdayMorning", "msgPutTotalTodayMorning", "msgPutTotalTodayNow")
    assert [found[name] for name in names] == ["7", "10", "10"]
