"""How far groups are behind, in messages and in seconds, and who is connected."""

from __future__ import annotations

import pytest

from gantrymq.metrics.lag import ASKING_S_MAX, Ages
from gantrymq.model.topic import TopicConfig
from gantrymq.wire.bodies.heartbeat import HEARTBEAT
from support.broker_rig import BrokerRig
from support.client_peers import consumer, heartbeat, subscription
from support.samples import json_request
from support.scraping import RigScrapes, Samples


@pytest.fixture
def rig() -> BrokerRig:
    return BrokerRig()


def send(rig: BrokerRig, count: int, topic: str = "T", queue: int = 0) -> None:
    for _ in range(count):
        rig.send(b"x", b=topic, e=str(queue))
    rig.settle()


def commit(rig: BrokerRig, offset: int, group: str = "g", topic: str = "T", queue: int = 0) -> None:
    rig.broker.tables.offsets.commit(group, topic, queue, offset)


def test_lag_is_told_by_group_and_by_queue(rig: BrokerRig) -> None:
    send(rig, 5)
    send(rig, 3, queue=1)
    commit(rig, 2)
    commit(rig, 3, queue=1)
    rig.broker.tables.offsets.note_pull("g", "T", 0, 4)
    found = RigScrapes(rig)()
    of = {"consumer_group": "g", "topic": "T"}
    assert found.value("rocketmq_consumer_lag_messages", **of, is_retry="false") == 3
    assert found.value("rocketmq_consumer_inflight_messages", **of) == 2
    assert found.value("rocketmq_consumer_ready_messages", **of) == 1
    assert found.value("gantrymq_queue_lag_messages", **of, queue_id="0") == 3
    assert found.value("gantrymq_queue_lag_messages", **of, queue_id="1") == 0
    assert found.value("gantrymq_queue_lag_seconds", **of, queue_id="1") == 0


def test_lag_in_time_is_the_age_of_the_first_that_is_not_committed(rig: BrokerRig) -> None:
    scrape = RigScrapes(rig)
    send(rig, 1)
    rig.tick(60)
    send(rig, 1)
    rig.tick(40)
    commit(rig, 0)
    found = scrape()
    assert found.value("gantrymq_queue_lag_seconds", consumer_group="g") == pytest.approx(100, 0.1)
    assert found.value("rocketmq_consumer_lag_latency", topic="T") == pytest.approx(100_000, 0.1)
    assert found.value(
        "gantrymq_group_oldest_unconsumed_seconds", consumer_group="g"
    ) == pytest.approx(100, 0.1)
    commit(rig, 1)
    rig.broker.tables.offsets.note_pull("g", "T", 0, 2)
    found = scrape()
    assert found.value("rocketmq_consumer_lag_latency", topic="T") == pytest.approx(40_000, 0.1)
    assert found.value("rocketmq_consumer_queueing_latency", topic="T") == 0
    commit(rig, 2)
    assert scrape().value("rocketmq_consumer_lag_latency", topic="T") == 0


def test_both_spellings_of_apache_are_there(rig: BrokerRig) -> None:
    send(rig, 1)
    commit(rig, 0)
    found = RigScrapes(rig)()
    assert (
        found["rocketmq_consumer_lag_latency"]
        == found["rocketmq_consumer_lag_latency_milliseconds"]
    )


def test_a_queue_that_a_group_never_committed_does_not_count(rig: BrokerRig) -> None:
    send(rig, 5)
    send(rig, 5, queue=1)
    commit(rig, 5)
    assert RigScrapes(rig)().value("rocketmq_consumer_lag_messages", topic="T") == 0


def test_a_retry_topic_is_called_one(rig: BrokerRig) -> None:
    rig.broker.tables.topics.put(TopicConfig("%RETRY%g", 1, 1))
    commit(rig, 0, topic="%RETRY%g")
    found = RigScrapes(rig)()
    assert found.value("rocketmq_consumer_lag_messages", topic="%RETRY%g", is_retry="true") == 0


def test_those_furthest_behind_are_shown_and_the_rest_is_one(rig: BrokerRig) -> None:
    send(rig, 10)
    for number in range(8):
        commit(rig, number, group=f"g{number}")
    found = RigScrapes(rig, shown_max=3)()
    groups = {
        row.labels["consumer_group"]: row.value
        for row in found.rows("rocketmq_consumer_lag_messages")
    }
    assert groups == {"g0": 10, "g1": 9, "g2": 8, "_other": 7 + 6 + 5 + 4 + 3}
    assert len(found.rows("gantrymq_queue_lag_messages")) == 3
    assert left_out(found, "groups") == left_out(found, "queues") == system_pairs(rig) + 5


def left_out(found: Samples, kind: str) -> float:
    return found.value("gantrymq_metrics_left_out", kind=kind)


def system_pairs(rig: BrokerRig) -> int:
    """Return how many groups of the broker's own have offsets: all in one queue."""
    offsets = rig.broker.tables.offsets
    return sum(
        not group.startswith("g")
        for topic in offsets.topics()
        for group in offsets.groups_of(topic)
    )


def test_an_age_is_asked_for_once_while_a_group_stands_still(
    rig: BrokerRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    stored_ms = Ages._stored_ms

    async def noted(self: Ages, topic: str, queue_id: int, offset: int) -> int | None:
        asked.append(offset)
        return await stored_ms(self, topic, queue_id, offset)

    monkeypatch.setattr(Ages, "_stored_ms", noted)
    scrape = RigScrapes(rig)
    send(rig, 3)
    commit(rig, 1)
    rig.broker.tables.offsets.note_pull("g", "T", 0, 3)
    for _ in range(3):
        scrape()
    assert asked == [1]
    commit(rig, 2)
    scrape()
    assert asked == [1, 2]


def test_a_slow_disk_costs_a_scrape_two_seconds_and_no_more(
    rig: BrokerRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(self: Ages, topic: str, queue_id: int, offset: int) -> int | None:
        rig.clock.jump(0.5)
        return 1

    monkeypatch.setattr(Ages, "_stored_ms", slow)
    send(rig, 40)
    for number in range(40):
        commit(rig, number, group=f"g{number}")
    scrape, begun = RigScrapes(rig), rig.clock.monotonic()
    found = scrape()
    assert rig.clock.monotonic() - begun == pytest.approx(ASKING_S_MAX)
    assert left_out(found, "ages") > 0
    told = len(found.rows("gantrymq_queue_lag_seconds"))
    for _ in range(12):
        found = scrape()
    assert len(found.rows("gantrymq_queue_lag_seconds")) > told, "the next one goes on"


def test_members_are_counted_by_group(rig: BrokerRig) -> None:
    told = heartbeat("c1", consumer("g", subscription("T")), producers=["p"])
    rig.ask(json_request(34, {}, HEARTBEAT.encode(told)))
    found = RigScrapes(rig)()
    assert found.value("rocketmq_consumer_connections", consumer_group="g") == 1
    (producer,) = found.rows("rocketmq_producer_connections")
    assert (producer.value, producer.labels["language"]) == (1, "java")
