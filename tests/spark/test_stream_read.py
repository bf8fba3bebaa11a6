"""Streaming reads: micro-batches, limits, restarts, what comes and goes while a query runs."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

from gantrymq.blocking import Producer, PullConsumer
from gantrymq.model.message import Message
from gantrymq.model.queue import MessageQueue
from gantrymq.spark.streams import pin_path, read_stream
from support.spark import places, run_available, wait_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark.conftest import World

MODES = ("broker", "store")


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [b"%06d" % number for number in range(first, first + count)]


def stored(world: World, target: Path) -> list[bytes]:
    frame = world.spark.read.parquet(str(target))
    assert len(set(places(frame.collect()))) == frame.count()  # no (queue, offset) twice
    return sorted(bytes(row.body) for row in frame.select("body").collect())


def source_of(query: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - progress has another type in each release
    return [json.loads(one.json)["sources"][0] for one in query.recentProgress]


def test_a_query_goes_on_where_it_was_in_either_mode(world: World, tmp_path: Path) -> None:
    topic, checkpoint, target = "Switch", tmp_path / "checkpoint", tmp_path / "lake"
    for turn, mode in enumerate(("broker", "store", "broker")):
        world.send(topic, numbered(400, turn * 400))
        frame = world.read_stream(mode, topic, startingOffsets="earliest").load()
        run_available(frame, checkpoint, target)
        assert stored(world, target) == numbered(400 * (turn + 1))
    offsets = max((checkpoint / "offsets").glob("[0-9]*")).read_text().splitlines()[-1]
    told = json.loads(offsets)
    assert set(told) == {"v", "q"}
    assert sum(told["q"][topic]["broker-a"].values()) == 1200


@pytest.mark.parametrize("mode", MODES)
def test_limits_cut_what_is_there_into_batches(world: World, tmp_path: Path, mode: str) -> None:
    topic = f"Limits-{mode}"
    world.send(topic, numbered(1000))
    frame = world.read_stream(mode, topic, startingOffsets="earliest", maxRowsPerTrigger=300).load()
    query = run_available(frame, tmp_path / "checkpoint", tmp_path / "lake")
    rows = [one["numInputRows"] for one in source_of(query) if one["numInputRows"]]
    assert rows == [300, 300, 300, 100]
    assert stored(world, tmp_path / "lake") == numbered(1000)
    latest = source_of(query)[-1]["latestOffset"]
    assert sum(latest["q"][topic]["broker-a"].values()) == 1000


@pytest.mark.parametrize("mode", MODES)
def test_bytes_limit_a_batch(world: World, tmp_path: Path, mode: str) -> None:
    topic = f"Bytes-{mode}"
    world.send(topic, [b"x" * 1000] * 200)
    frame = world.read_stream(
        mode, topic, startingOffsets="earliest", maxBytesPerTrigger=100_000
    ).load()
    query = run_available(frame, tmp_path / "checkpoint", tmp_path / "lake")
    rows = [one["numInputRows"] for one in source_of(query) if one["numInputRows"]]
    assert sum(rows) == 200
    assert max(rows) <= 100
    assert len(rows) >= 3


def memory_query(frame: DataFrame, name: str, checkpoint: Path) -> Any:  # noqa: ANN401
    return (
        frame.writeStream.format("memory")
        .queryName(name)
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime="200 milliseconds")
        .start()
    )


def test_what_arrives_is_read_and_its_progress_is_a_groups(world: World, tmp_path: Path) -> None:
    topic, group = "Arriving", "spark-arriving"
    world.send(topic, numbered(100))
    frame = world.read_stream("broker", topic, startingOffsets="earliest", groupId=group).load()
    query = memory_query(frame, "arriving", tmp_path / "checkpoint")
    try:

        def count() -> int:
            found: int = world.spark.sql("SELECT count(*) AS n FROM arriving").collect()[0].n
            return found

        wait_for("the first hundred", lambda: count() == 100)
        world.send(topic, numbered(50, 100))
        wait_for("the next fifty", lambda: count() == 150)
        with PullConsumer(world.broker.namesrv, group) as consumer:
            queues = consumer.queues(topic)
            # Nothing is read any more, and yet all of it is committed: the next offset to read.
            wait_for(
                "progress of every queue",
                lambda: all(consumer.committed(one) == consumer.max_offset(one) for one in queues),
            )
            assert sum(consumer.committed(one) or 0 for one in queues) == 150
    finally:
        query.stop()


def test_an_available_now_run_commits_its_last_batch(world: World, tmp_path: Path) -> None:
    topic, group = "LastBatch", "spark-last"
    world.send(topic, numbered(100))
    frame = world.read_stream("broker", topic, startingOffsets="earliest", groupId=group).load()
    run_available(frame, tmp_path / "checkpoint", tmp_path / "lake")
    with PullConsumer(world.broker.namesrv, group) as consumer:
        committed = {one: consumer.committed(one) for one in consumer.queues(topic)}
        assert committed == {one: consumer.max_offset(one) for one in consumer.queues(topic)}


def test_progress_of_a_store_read_goes_to_the_broker(world: World, tmp_path: Path) -> None:
    topic, group = "StoreProgress", "spark-store"
    world.send(topic, numbered(60))
    frame = world.read_stream(
        "store", topic, startingOffsets="earliest", groupId=group, nameServer=world.broker.namesrv
    ).load()
    run_available(frame, tmp_path / "checkpoint", tmp_path / "lake")
    with PullConsumer(world.broker.namesrv, group) as consumer:
        committed = [consumer.committed(one) for one in consumer.queues(topic)]
    assert sum(offset or 0 for offset in committed) == 60


def test_latest_is_pinned_before_the_first_batch(world: World, tmp_path: Path) -> None:
    topic, checkpoint, target = "Pinned", tmp_path / "checkpoint", tmp_path / "lake"
    world.send(topic, numbered(10))
    options = world.options("broker", topic, startingOffsets="latest")
    run_available(read_stream(world.spark, str(checkpoint), **options), checkpoint, target)
    world.send(topic, numbered(5, 10))
    pinned = json.loads(Path(pin_path(str(checkpoint))).read_text())
    assert sum(pinned["q"][topic]["broker-a"].values()) == 10
    # A crash before the first commit: all that is left is what was pinned.
    import shutil  # noqa: PLC0415

    shutil.rmtree(checkpoint)
    shutil.rmtree(target, ignore_errors=True)
    run_available(read_stream(world.spark, str(checkpoint), **options), checkpoint, target)
    assert stored(world, target) == numbered(5, 10)


def test_new_queues_and_topics_are_read_from_their_begin(world: World, tmp_path: Path) -> None:
    checkpoint, target = tmp_path / "checkpoint", tmp_path / "lake"
    world.send("Grow-a", numbered(20))

    def run() -> None:
        frame = world.read_stream(
            "broker", "", topicPattern="Grow-.*", startingOffsets="latest"
        ).load()
        run_available(frame, checkpoint, target)

    run()
    world.send("Grow-b", numbered(30, 100))
    run()
    assert stored(world, target) == numbered(30, 100)


def test_a_batch_that_is_planned_again_has_the_same_rows(world: World, tmp_path: Path) -> None:
    topic, checkpoint = "Replay", tmp_path / "checkpoint"
    world.send(topic, numbered(100))
    frame = world.read_stream("broker", topic, startingOffsets="earliest").load()
    run_available(frame, checkpoint, tmp_path / "first")
    world.send(topic, numbered(100, 100))
    for commit in (checkpoint / "commits").iterdir():
        commit.unlink()  # as if the driver had died before it was written
    run_available(frame, checkpoint, tmp_path / "second")
    frame = world.spark.read.parquet(str(tmp_path / "second"))
    found = sorted(bytes(row.body) for row in frame.select("body").collect())
    assert found == numbered(200)  # batch 0 again, and then the rest


def trimmed(root: Path) -> None:
    """Take the first log file away, as retention does."""
    first = min(path for path in (root / "commitlog").iterdir() if path.name.isdecimal())
    first.unlink()


def test_expired_messages_are_an_error_or_are_written_down(world: World, tmp_path: Path) -> None:
    from gantrymq.testing import ThreadedBroker  # noqa: PLC0415

    root, spark = tmp_path / "store", world.spark
    small = {"mappedFileSizeCommitLog": "65536"}
    with (
        ThreadedBroker(directory=root, settings=small) as broker,
        Producer(broker.namesrv) as producer,
    ):
        for number in range(300):
            producer.send(Message(topic="Old", body=b"%06d" % number + b"x" * 500))
    trimmed(root)
    reader = spark.read.format("rocketmq").option("path", str(root)).option("topic", "Old")
    offsets = json.dumps({"Old": {"broker-a": {str(queue): 0 for queue in range(4)}}})
    with pytest.raises(Exception, match="failOnDataLoss") as caught:
        reader.option("startingOffsets", offsets).load().count()
    assert "Old@broker-a:0" in str(caught.value)
    lost = tmp_path / "lost"
    left = (
        reader.option("startingOffsets", offsets)
        .option("failOnDataLoss", "skip")
        .option("lostRangesPath", str(lost))
        .load()
        .count()
    )
    rows = spark.read.json(str(lost)).collect()
    assert left + sum(row.end - row.begin for row in rows) == 300
    assert 0 < left < 300
    assert reader.load().count() == left  # who asks for what is there gets it

    stream = spark.readStream.format("rocketmq").option("path", str(root)).option("topic", "Old")
    stream = stream.option("startingOffsets", offsets)
    with pytest.raises(StreamingQueryException, match="failOnDataLoss"):
        run_available(stream.load(), tmp_path / "checkpoint", tmp_path / "lake")
    goes_on = stream.option("failOnDataLoss", "false").load()
    run_available(goes_on, tmp_path / "checkpoint", tmp_path / "lake")
    assert len(stored(world, tmp_path / "lake")) == left


def test_a_deleted_topic_is_an_error_and_with_warn_it_waits(world: World, tmp_path: Path) -> None:
    topic, checkpoint = "Deleted", tmp_path / "checkpoint"
    world.send(topic, numbered(40))
    frame = world.read_stream("broker", topic, startingOffsets="earliest").load()
    run_available(frame, checkpoint, tmp_path / "lake")
    delete_topic(world, topic)
    with pytest.raises(StreamingQueryException, match=topic):
        run_available(frame, checkpoint, tmp_path / "lake")
    waits = world.read_stream(
        "broker", topic, startingOffsets="earliest", failOnDataLoss="warn"
    ).load()
    run_available(waits, checkpoint, tmp_path / "lake")
    world.send(topic, numbered(10, 100))  # made again: its offsets begin at 0
    with pytest.raises(StreamingQueryException, match="deleted and made again"):
        run_available(frame, checkpoint, tmp_path / "lake")
    run_available(waits, checkpoint, tmp_path / "lake")
    found = world.spark.read.parquet(str(tmp_path / "lake")).collect()
    assert sorted(bytes(row.body) for row in found) == [*numbered(40), *numbered(10, 100)]


def delete_topic(world: World, topic: str) -> None:
    from gantrymq.spark.link import link_to  # noqa: PLC0415
    from gantrymq.spark.options import ConnectionOptions  # noqa: PLC0415
    from gantrymq.wire.codes import RequestCode  # noqa: PLC0415
    from gantrymq.wire.headers.targets import TopicRequest  # noqa: PLC0415

    link = link_to(ConnectionOptions(name_server=world.broker.namesrv, retries=0))
    queue = MessageQueue(topic, "broker-a", 0)  # type: ignore[arg-type]
    address = link.run(link.calls.master(queue))
    header = TopicRequest(topic=topic)
    link.run(link.core.remote.call(address, RequestCode.DELETE_TOPIC_IN_BROKER, header))
    link.run(
        link.core.remote.call(world.broker.namesrv, RequestCode.DELETE_TOPIC_IN_NAMESRV, header)
    )
    time.sleep(0.2)
    link.close()


def test_damage_in_the_log_is_named_or_passed_over(world: World, tmp_path: Path) -> None:
    from gantrymq.testing import ThreadedBroker  # noqa: PLC0415

    root, spark = tmp_path / "store", world.spark
    with ThreadedBroker(directory=root) as broker, Producer(broker.namesrv) as producer:
        for number in range(100):
            producer.send(Message(topic="Hurt", body=b"body-%06d" % number))
    log = min((root / "commitlog").iterdir())
    data = bytearray(log.read_bytes())
    at = data.index(b"body-000050")
    data[at] ^= 0xFF
    log.write_bytes(data)
    reader = spark.read.format("rocketmq").option("path", str(root)).option("topic", "Hurt")
    with pytest.raises(Exception, match="is damaged") as caught:
        reader.load().count()
    assert "Hurt@broker-a" in str(caught.value)
    found = reader.option("failOnDataLoss", "warn").load().collect()
    assert sorted(bytes(row.body) for row in found) == [
        b"body-%06d" % number for number in range(100) if number != 50
    ]
    assert reader.option("verifyCrc", "false").load().count() == 100
