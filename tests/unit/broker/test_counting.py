"""What is counted is what happened, whichever way it came."""

from __future__ import annotations

from typing import Any

import pytest

from gantrymq.store.broker_statistics import Stat
from support.broker_rig import BrokerRig, pull


def test_sends_of_lane_and_policy_and_pulls_are_counted() -> None:
    rig = BrokerRig()
    for _ in range(3):
        rig.send(b"lane")
    for _ in range(2):
        rig.send(b"policy", i="WAIT\x01false")
    rig.turns()
    put: list[tuple[str, int]] = []
    got: list[tuple[int, int, int]] = []
    counting = rig.broker.counting
    real_topics, real_got = counting.store.put_topics, counting.store.got_many

    def put_topics(counts: list[tuple[bytes, int, int]]) -> None:
        put.extend((topic.decode(), messages) for topic, messages, _size in counts)
        real_topics(counts)

    def got_many(hits: int, misses: int, messages: int) -> None:
        got.append((hits, misses, messages))
        real_got(hits, misses, messages)

    counting.store.put_topics = put_topics  # type: ignore[method-assign, assignment]
    counting.store.got_many = got_many  # type: ignore[method-assign, assignment]
    rig.ask(pull(0))
    rig.ask(pull(5))
    counting.collect()
    assert put == [("T", 3)]
    assert got == [(1, 1, 5)]
    counting.collect()
    assert len(got) == 1, "nothing is counted twice"


def test_messages_are_counted_with_the_size_of_their_records() -> None:
    rig = BrokerRig()
    begin = rig.broker.store.log.wrote_offset
    rig.send(b"lane")
    middle = rig.broker.store.log.wrote_offset
    rig.send(b"policy", i="WAIT\x01false")
    rig.turns()
    end = rig.broker.store.log.wrote_offset
    counts = rig.broker.counting.broker
    rig.broker.counting.collect()
    rig.clock.jump(10)
    rig.broker.counting.sample()
    sizes = [middle - begin, end - middle]
    assert min(sizes) > 80, "more than their bodies"
    for name, key, wanted in (
        ("TOPIC_PUT_NUMS", "T", 2),
        ("TOPIC_PUT_SIZE", "T", sum(sizes)),
    ):
        found = counts.view(name, key)
        assert found is not None, name
        assert found.stats_minute.sum == wanted, name


@pytest.mark.parametrize(("counts", "wanted"), [("true", 1), ("false", None)])
def test_deliveries_of_delayed_messages_are_counted_if_asked_for(
    counts: str, wanted: int | None
) -> None:
    rig = BrokerRig({"enableScheduleMessageStats": counts})
    rig.send(b"later", i="DELAY\x011")
    rig.turns()
    rig.tick(2.0)
    rig.turns()
    assert rig.bodies() == [b"later"]
    rig.clock.jump(10)
    rig.broker.counting.sample()
    view = rig.broker.counting.broker.view
    waiting, found = view("TOPIC_PUT_NUMS", "SCHEDULE_TOPIC_XXXX"), view("TOPIC_PUT_NUMS", "T")
    assert waiting is not None
    assert waiting.stats_minute.sum == 1
    by_queue = view("QUEUE_PUT_NUMS", "SCHEDULE_TOPIC_XXXX@0")
    assert by_queue is not None
    assert by_queue.stats_minute.sum == 1
    assert (None if found is None else found.stats_minute.sum) == wanted


def test_many_topics_are_collected_now_and_then_and_whenever_asked_for() -> None:
    counting = BrokerRig().broker.counting
    lane = [(b"T-%d" % number, 1, 100) for number in range(3000)]
    taken: list[int] = []

    def take() -> list[tuple[bytes, int, int]]:
        taken.append(len(lane))
        return lane

    counting._take_counts = take
    for _ in range(8):
        counting.sample()
    assert len(taken) == 2, "three of four samples do without three thousand topics"
    assert counting.collect() == 3000
    assert counting.broker.total(Stat.TOPIC_PUT_NUMS, "T-0") == 3


def test_how_long_pulls_took_is_counted() -> None:
    rig = BrokerRig()
    rig.store_some(b"a", b"b")
    reads = rig.store.reads
    real = reads.begin_pull

    def slow(*given: Any) -> None:  # noqa: ANN401
        rig.clock.jump(0.03)
        real(*given)

    reads.begin_pull = slow  # type: ignore[method-assign, assignment]
    rig.ask(pull(0))
    rig.ask(pull(2))  # finds nothing, and is not counted
    counting = rig.broker.counting
    counting.collect()
    rig.clock.jump(10)
    counting.sample()
    (count,) = counting.broker._tables[Stat.GROUP_GET_LATENCY].values()
    assert (count.value, count.times) == (30, 1)
