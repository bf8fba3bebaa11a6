"""Sinks: what arrives in topics, at each level, in batches and in streams."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from support.spark import run_to_end

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame

    from spark.conftest import World

LEVELS = ("at_least_once", "idempotent", "transactional")


def bodies(world: World, topic: str) -> list[bytes]:
    return sorted(message.body for message in world.broker.messages(topic))


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [b"%06d" % number for number in range(first, first + count)]


def write(world: World, frame: DataFrame, **options: str) -> None:
    writer = frame.write.format("rocketmq").option("nameServer", world.broker.namesrv)
    writer.options(**options).mode("append").save()


@pytest.mark.parametrize("level", LEVELS)
def test_a_batch_is_written_once(world: World, level: str) -> None:
    frame = world.spark.range(0, 500, numPartitions=3).select(
        F.format_string("%06d", "id").alias("body")
    )
    write(world, frame, topic=f"Batch-{level}", level=level)
    assert bodies(world, f"Batch-{level}") == numbered(500)


def test_rows_say_topic_tags_keys_properties_and_flag(world: World) -> None:
    frame = world.spark.sql(
        """SELECT 'RowsA' AS topic, cast('one' AS binary) AS body, 'red' AS tags,
                  array('k1', 'k2') AS keys, map('color', 'blue', 'TAGS', 'left out') AS properties,
                  7 AS flag
           UNION ALL SELECT 'RowsB', cast('two' AS binary), null, null, null, null"""
    )
    write(world, frame, tags="plain")
    (one,) = world.broker.messages("RowsA")
    assert (one.body, one.tags, one.keys) == (b"one", "red", ("k1", "k2"))
    assert one.properties["color"] == "blue"
    assert one.flag == 7
    (two,) = world.broker.messages("RowsB")
    assert (two.body, two.tags) == (b"two", "plain")


def test_queues_and_keys_decide_where_rows_go(world: World) -> None:
    world.send("Where", [b"first"])  # makes the topic
    frame = world.spark.range(40).select(
        F.format_string("q%02d", "id").alias("body"),
        (F.col("id") % 4).cast("int").alias("queueId"),
    )
    write(world, frame, topic="Where")
    for message in world.broker.messages("Where"):
        if message.body.startswith(b"q"):
            assert message.queue.queue_id == int(message.body[1:]) % 4
    keyed = world.spark.range(0, 60, numPartitions=2).select(
        F.format_string("k%02d", "id").alias("body"),
        (F.col("id") % 5).cast("string").alias("shardingKey"),
    )
    write(world, keyed, topic="Where")
    queues: dict[int, set[int]] = {}
    for message in world.broker.messages("Where"):
        if message.body.startswith(b"k"):
            queues.setdefault(int(message.body[1:]) % 5, set()).add(message.queue.queue_id)
    assert all(len(found) == 1 for found in queues.values())
    assert len(queues) == 5


def test_delayed_rows_come_later(world: World) -> None:
    world.send("Later", [b"now"])
    frame = world.spark.sql("SELECT 'later' AS body, 3 AS delayLevel")
    write(world, frame, topic="Later")
    assert bodies(world, "Later") == [b"now"]
    world.broker.jump(15)
    assert bodies(world, "Later") == [b"later", b"now"]
    with pytest.raises(PySparkException, match="knows no delays"):
        write(world, frame, topic="Later", level="idempotent")


def test_refused_rows_go_to_the_dead_letters_if_that_is_wanted(world: World) -> None:
    frame = world.spark.sql(
        "SELECT 'good' AS body UNION ALL SELECT repeat('x', 5000000) UNION ALL SELECT 'fine'"
    )
    with pytest.raises(PySparkException, match="body"):
        write(world, frame.coalesce(1), topic="Strict")
    write(world, frame.coalesce(1), topic="Strict2", onError="dlq:Refused")
    assert bodies(world, "Strict2") == [b"fine", b"good"]


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ("id AS number", {"topic": "T"}, "there is a column number"),
        ("id AS body", {"topic": "T"}, "cast it to binary or string"),
        ("'x' AS tags", {"topic": "T"}, "no column body"),
        ("'x' AS body", {}, "Give the option topic"),
        ("'x' AS body", {"topic": "T", "level": "exactly"}, "say one of at_least_once"),
        ("'x' AS body", {"topic": "T", "topics": "x"}, "there is no option topics"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_runs(
    world: World, columns: str, options: dict[str, str], said: str
) -> None:
    frame = world.spark.range(1).selectExpr(columns)
    with pytest.raises(PySparkException, match=said):
        write(world, frame, **options)


def copy(world: World, source: str, target: str, level: str, checkpoint: Path) -> Any:  # noqa: ANN401
    frame = world.read_stream(
        "broker", source, startingOffsets="earliest", maxRowsPerTrigger=200
    ).load()
    return run_to_end(
        frame.select("body", "tags")
        .writeStream.format("rocketmq")
        .option("nameServer", world.broker.namesrv)
        .option("topic", target)
        .option("level", level)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
    )


@pytest.mark.parametrize("level", LEVELS)
def test_a_batch_that_is_replayed(world: World, tmp_path: Path, level: str) -> None:
    source, target = f"From-{level}", f"To-{level}"
    world.send(source, numbered(500))
    world.send(target, [b"before"])  # somebody else's
    copy(world, source, target, level, tmp_path / "checkpoint")
    assert bodies(world, target) == sorted([b"before", *numbered(500)])
    # The driver died after its last batch was sent, and before Spark noted it.
    commits = sorted(
        (path for path in (tmp_path / "checkpoint" / "commits").iterdir() if path.name.isdecimal()),
        key=lambda path: int(path.name),
    )
    commits[-1].unlink()
    commits[-1].with_name(f".{commits[-1].name}.crc").unlink(missing_ok=True)
    copy(world, source, target, level, tmp_path / "checkpoint")
    counts = Counter(bodies(world, target))
    assert set(counts) == {b"before", *numbered(500)}
    if level == "at_least_once":
        assert sum(counts.values()) == 601  # the last hundred came twice
    else:
        assert set(counts.values()) == {1}


def test_order_is_kept_in_a_queue(world: World) -> None:
    frame = world.spark.range(0, 5000, numPartitions=1).select(
        F.format_string("%06d", "id").alias("body"), F.lit("same").alias("shardingKey")
    )
    write(world, frame, topic="Ordered", batchBytes="20000")
    found = [message.body for message in world.broker.messages("Ordered")]
    assert found == numbered(5000)


def test_a_task_that_failed_half_way_sends_the_rest(world: World, tmp_path: Path) -> None:
    """The second attempt finds in the queue what the first has sent."""
    marker = tmp_path / "failed"

    def flaky(numbers: Any) -> Any:  # noqa: ANN401 - an iterator, in a worker
        import os  # noqa: PLC0415

        for number in numbers:
            if number == 2000 and not os.path.exists(marker):  # noqa: PTH110
                open(marker, "w").close()  # noqa: PTH123
                time.sleep(2)  # what came before is on its way to the broker
                raise RuntimeError("half way")
            yield (f"{number:06d}",)

    world.spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "300")
    try:
        numbers = world.spark.sparkContext.parallelize(range(3000), 1)
        frame = world.spark.createDataFrame(numbers.mapPartitions(flaky), "body string")
        write(world, frame, topic="HalfWay", level="idempotent", batchBytes="10000")
    finally:
        world.spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")
    assert marker.exists()
    assert bodies(world, "HalfWay") == numbered(3000)
    attempts = {
        message.properties["SPK"].split(":")[0] for message in world.broker.messages("HalfWay")
    }
    assert len(attempts) == 1  # both attempts have the job's name


def test_others_may_send_meanwhile(world: World, tmp_path: Path) -> None:
    world.send("Busy", [b"other"] * 50)
    world.send("BusyFrom", numbered(300))
    copy(world, "BusyFrom", "Busy", "idempotent", tmp_path / "checkpoint")
    world.send("Busy", [b"other"] * 50)
    world.send("BusyFrom", numbered(300, 300))
    copy(world, "BusyFrom", "Busy", "idempotent", tmp_path / "checkpoint")
    counts = Counter(bodies(world, "Busy"))
    assert counts.pop(b"other") == 100
    assert sorted(counts.elements()) == numbered(600)
