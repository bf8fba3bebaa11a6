"""Batch reads of a live broker, over the wire and out of its files: the same rows either way."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.functions import spark_partition_id

from gantrymq.blocking import Producer
from gantrymq.model.message import Message
from gantrymq.spark.slices import PACK_ROWS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from spark.conftest import World

COUNT = 3000
MODES = ("broker", "store")
MEET_S = 60.0


@pytest.fixture(scope="module")
def orders(world: World) -> str:
    """Return a topic with messages of all kinds, stored in two halves with a time between them."""
    with Producer(world.broker.namesrv) as producer:
        for half in range(2):
            for start in range(0, COUNT // 2, 250):
                numbers = range(half * COUNT // 2 + start, half * COUNT // 2 + start + 250)
                producer.send_batch(
                    [
                        Message(
                            topic="Orders",
                            body=b"order %d" % number,
                            tags=f"t{number % 3}",
                            keys=(f"k{number}", "all"),
                            properties={"price": str(number % 10)},
                        )
                        for number in numbers
                    ]
                )
            time.sleep(0.05)
        producer.send("Orders", b"z" * 20_000, tags="big")  # compressed on its way
    world.settle("Orders")
    return "Orders"


def bodies(rows: list[Any]) -> list[bytes]:
    return sorted(bytes(row.body) for row in rows)


ALL = sorted([*(b"order %d" % number for number in range(COUNT)), b"z" * 20_000])


def test_both_modes_give_the_same_rows(world: World, orders: str) -> None:
    found = {mode: sorted(world.read(mode, orders).load().collect()) for mode in MODES}
    assert bodies(found["broker"]) == ALL
    assert found["broker"] == found["store"]
    columns = world.read("broker", orders).load().columns
    assert columns == [
        "topic", "brokerName", "queueId", "queueOffset", "storeTimestamp", "bornTimestamp",
        "flag", "tags", "keys", "body", "properties",
    ]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_filters_by_tag_sql_and_key(world: World, orders: str, mode: str) -> None:
    read = world.read
    assert read(mode, orders, tags="t1 || t2").load().count() == COUNT * 2 // 3
    assert read(mode, orders, subExpression="t0").load().count() == COUNT // 3
    assert read(mode, orders, sql92="price > 7 AND TAGS = 't0'").load().count() == COUNT // 5 // 3
    assert bodies(read(mode, orders, keys="k7,k8").load().collect()) == [b"order 7", b"order 8"]
    assert read(mode, orders, keys="all").load().count() == COUNT


@pytest.mark.parametrize("mode", MODES)
def test_offsets_choose_a_range(world: World, orders: str, mode: str) -> None:
    starts = {orders: {"broker-a": {"0": 10, "1": -1, "2": -1, "3": -1}}}
    ends = {orders: {"broker-a": {"0": 25}}}
    options = {"startingOffsets": json.dumps(starts), "endingOffsets": json.dumps(ends)}
    rows = world.read(mode, orders, **options).load().collect()
    assert [(row.queueId, row.queueOffset) for row in rows] == [(0, each) for each in range(10, 25)]
    queues = json.dumps({orders: {"broker-a": [1]}})
    some = world.read(mode, "", queues=queues).load()
    assert {row.queueId for row in some.select("queueId").distinct().collect()} == {1}


def test_a_time_means_the_first_message_stored_then(world: World, orders: str) -> None:
    rows = world.read("broker", orders).schema("storeTimestamp timestamp").load().collect()
    times = sorted({row.storeTimestamp for row in rows})
    middle = times[len(times) // 2].isoformat()
    expected = sum(row.storeTimestamp.isoformat() >= middle for row in rows)
    for mode in MODES:
        late = world.read(mode, orders, startingTimestamp=middle).load().count()
        early = world.read(mode, orders, endingOffsets=f"timestamp:{middle}").load().count()
        assert (late, early) == (expected, COUNT + 1 - expected)
        assert world.read(mode, orders, startingTimestamp=2**42).load().count() == 0


@pytest.mark.parametrize("mode", MODES)
def test_a_group_says_where_to_begin(world: World, orders: str, mode: str, tmp_path: Path) -> None:
    from gantrymq.blocking import PullConsumer  # noqa: PLC0415

    with PullConsumer(world.broker.namesrv, "readers") as consumer:
        for queue in consumer.queues(orders):
            consumer.pull(queue, 0)  # makes the group
            consumer.commit(queue, consumer.max_offset(queue) - 2)
    if mode == "store":  # the broker saves progress every few seconds
        world.broker.jump(10)
        path = world.root / "config" / "consumerOffset.json"
        from support.spark import wait_for  # noqa: PLC0415

        wait_for("progress", lambda: path.exists() and "readers" in path.read_text(), 20)
    assert world.read(mode, orders, startingOffsets="group:readers").load().count() == 8


@pytest.mark.parametrize("mode", MODES)
def test_slices_make_tasks_and_change_nothing(world: World, orders: str, mode: str) -> None:
    sliced = world.read(mode, orders, minPartitions=8).load()
    assert sliced.rdd.getNumPartitions() >= 8
    assert bodies(sliced.collect()) == ALL
    small = world.read(mode, orders, maxRecordsPerPartition=100).load()
    assert bodies(small.collect()) == ALL
    assert world.read(mode, orders).load().rdd.getNumPartitions() == 1  # too small to be cut


def test_eight_queues_are_eight_tasks(world: World) -> None:
    topic = world.broker.create_topic("Eight", 8)
    world.spark.range(0, 8 * PACK_ROWS_MAX, numPartitions=8).selectExpr(
        "cast(id as string) body", f"cast(id div {PACK_ROWS_MAX} as int) queueId"
    ).write.format("rocketmq").options(nameServer=world.broker.namesrv, topic=topic).mode(
        "append"
    ).save()
    frame = world.read("broker", topic).schema("queueId int, queueOffset long").load()
    tasks = frame.groupBy("queueId", spark_partition_id().alias("task")).count().collect()
    assert {(row.queueId, row["count"]) for row in tasks} == {
        (queue, PACK_ROWS_MAX) for queue in range(8)
    }
    assert len({row.task for row in tasks}) == len(tasks) == frame.rdd.getNumPartitions() == 8


@pytest.mark.parametrize("mode", MODES)
def test_two_tasks_read_one_queue_at_the_same_time(world: World, mode: str, tmp_path: Path) -> None:
    topic = world.broker.create_topic(f"Hot-{mode}", 1)
    world.send(topic, [b"%06d" % number for number in range(COUNT)])
    folder = str(tmp_path)

    def meet(batches: Iterable[Any]) -> Iterator[Any]:
        """Wait within the first batch until another task has its first one too."""
        import os  # noqa: PLC0415
        import time  # noqa: PLC0415

        import pyarrow as pa  # noqa: PLC0415

        offsets: list[int] = []
        for batch in batches:
            offsets += batch.column(0).to_pylist()
            with open(f"{folder}/{os.getpid()}", "wb"):  # noqa: PTH123
                pass
            give_up = time.monotonic() + MEET_S
            while len(os.listdir(folder)) < 2:  # noqa: PTH208
                if time.monotonic() > give_up:
                    raise TimeoutError("the other half was not read meanwhile")
                time.sleep(0.01)
        ends = [[min(offsets)], [max(offsets)], [len(offsets)]]
        yield pa.RecordBatch.from_arrays([pa.array(one) for one in ends], ["a", "b", "n"])

    frame = world.read(mode, topic, minPartitions=2).schema("queueOffset long").load()
    halves = frame.mapInArrow(meet, "a long, b long, n long").collect()
    assert sorted(map(tuple, halves)) == [
        (0, COUNT // 2 - 1, COUNT // 2),
        (COUNT // 2, COUNT - 1, COUNT // 2),
    ]


def test_a_frame_is_what_was_there_when_it_was_loaded(world: World) -> None:
    world.send("Frozen", [b"a", b"b"])
    frame = world.read("broker", "Frozen").load()
    assert frame.count() == 2
    world.send("Frozen", [b"c"])
    assert frame.count() == 2
    assert world.read("broker", "Frozen").load().count() == 3


def test_patterns_find_topics_but_not_those_of_the_system(world: World) -> None:
    world.send("Pattern-a", [b"1"])
    world.send("Pattern-b", [b"2"])
    for mode in MODES:
        found = world.read(mode, "", topicPattern="Pattern-.*").load().collect()
        assert {row.topic for row in found} == {"Pattern-a", "Pattern-b"}


def test_a_sql_view(world: World, orders: str) -> None:
    world.spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW orders_view USING rocketmq "
        f"OPTIONS (nameServer '{world.broker.namesrv}', topic '{orders}')"
    )
    found = world.spark.sql("SELECT count(*) AS n FROM orders_view WHERE tags = 't1'").collect()
    assert found[0].n == COUNT // 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"startingOffset": "latest", "minPartitions": "-1"}, "did you mean startingOffsets?"),
        ({"startingOffsets": '{"Orders": {"broker-x": {"0": 1}}}'}, "Orders@broker-x:0"),
        ({"topic": "NoSuchTopic"}, "NoSuchTopic"),
        ({"commitOffsets": "true"}, "commitOffsets is for streams"),
    ],
)
def test_what_cannot_be_is_said_before_anything_runs(
    world: World, orders: str, options: dict[str, str], said: str
) -> None:
    given = {"topic": orders, **options}
    with pytest.raises(PySparkException, match=_quoted(said)):
        world.read(given.pop("mode", "broker"), given.pop("topic"), **given).load().count()


def test_a_schema_with_an_unknown_column(world: World, orders: str) -> None:
    with pytest.raises(PySparkException, match="did you mean queueOffset"):
        world.read("store", orders).schema("queueOfset long").load().count()
    with pytest.raises(PySparkException, match="body as string: it is binary"):
        world.read("store", orders).schema("body string").load().count()


def _quoted(text: str) -> str:
    import re  # noqa: PLC0415

    return re.escape(text)
