"""Apache's own brokers: written to at every level, read over the wire and out of live files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from gantrymq.blocking import PullConsumer
from gantrymq.testing import ThreadedBroker
from support import apache, tools
from support.pipeline import run_well
from support.routes import wait_for_route
from support.spark import run_available, run_to_end, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.tool("java"), pytest.mark.tool("mvn")]
COUNT = 500


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [b"%06d" % number for number in range(first, first + count)]


def bodies(frame: DataFrame) -> list[bytes]:
    return sorted(bytes(row.body) for row in frame.select("body").collect())


@pytest.mark.parametrize("version", apache.VERSIONS)
def test_sinks_and_both_modes(version: str, spark: SparkSession, tmp_path: Path) -> None:
    try:
        apache.fetch(version)
    except apache.NotFetched as error:
        if tools.required():
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))
    root = tmp_path / "store"
    with apache.name_server(version, tmp_path / "names") as names:
        settings = {
            "storePathRootDir": str(root),
            "namesrvAddr": names.address,
            "mappedFileSizeCommitLog": str(4 << 20),
            "enablePropertyFilter": "true",
            "transactionCheckInterval": "3600000",
        }
        with apache.broker(version, tmp_path / "broker", settings) as broker:
            check(spark, names.address, root, tmp_path)
            if version == apache.VERSIONS[0]:
                move(names.address, tmp_path)
            broker.kill()  # and what it leaves behind is read as its recovery would serve it
            reader = spark.read.format("rocketmq").option("path", str(root))
            assert bodies(reader.option("topic", "Made").load()) == numbered(COUNT)
        names.stop()


def check(spark: SparkSession, namesrv: str, root: Path, work: Path) -> None:
    frame = spark.range(0, COUNT, numPartitions=2).select(
        F.format_string("%06d", "id").alias("body"),
        F.concat(F.lit("t"), (F.col("id") % 2).cast("string")).alias("tags"),
    )
    writer = frame.write.format("rocketmq").option("nameServer", namesrv).mode("append")
    # A broker that has just started takes a while to be in the template's route.
    wait_for_route(namesrv)
    writer.options(topic="Made", retries="20").save()
    read = spark.read.format("rocketmq").option("topic", "Made")
    over_wire, files = read.option("nameServer", namesrv), None
    files = spark.read.format("rocketmq").option("topic", "Made").option("path", str(root))
    wait_for("the queue files", lambda: files.load().count() == COUNT, 60)
    assert bodies(over_wire.load()) == numbered(COUNT)
    assert sorted(over_wire.load().collect()) == sorted(files.load().collect())
    for sql in ("TAGS = 't1'", "TAGS <> 't1'"):
        found = [bodies(one.option("sql92", sql).load()) for one in (over_wire, files)]
        assert found[0] == found[1]
        assert len(found[0]) == COUNT // 2
    copy_at_levels(spark, namesrv, work)


def copy_at_levels(spark: SparkSession, namesrv: str, work: Path) -> None:
    source = {"nameServer": namesrv, "topic": "Made", "startingOffsets": "earliest"}
    group = spark.readStream.format("rocketmq").options(**source, groupId="spark-copies").load()
    run_available(group, work / "lake-checkpoint", work / "lake")
    assert bodies(spark.read.parquet(str(work / "lake"))) == numbered(COUNT)
    with PullConsumer(namesrv, "spark-copies") as consumer:
        queues = consumer.queues("Made")
        assert [consumer.committed(one) for one in queues] == [
            consumer.max_offset(one) for one in queues
        ]
    for level in ("idempotent", "transactional"):
        made = spark.sql("SELECT 'first' AS body").write.format("rocketmq").mode("append")
        made.options(nameServer=namesrv, topic=f"To-{level}").save()
        wait_for(
            f"To-{level}",
            lambda level=level: bool(known(spark, namesrv, f"To-{level}")),
            40,
        )
        for _replay in range(2):
            stream = spark.readStream.format("rocketmq").options(**source).load().select("body")
            run_to_end(
                stream.writeStream.format("rocketmq")
                .options(nameServer=namesrv, topic=f"To-{level}", level=level)
                .option("checkpointLocation", str(work / level))
                .trigger(availableNow=True)
            )
            for left in (work / level / "commits").iterdir():
                left.unlink()
        found = spark.read.format("rocketmq").options(nameServer=namesrv, topic=f"To-{level}")
        assert bodies(found.load()) == [*numbered(COUNT), b"first"]


def move(namesrv: str, work: Path) -> None:
    """Move a topic to a broker of ours, while Apache's is running, with a group's progress."""
    with ThreadedBroker() as ours:
        ours.create_topic("Made", 4)
        options = {"name_server": namesrv, "topic": ["Made"], "target": ours.namesrv,
                   "group": ["spark-copies"], "state": str(work / "moving")}  # fmt: skip
        assert run_well("migrate", **options).figures["messages sent now"] == COUNT
        assert sorted(one.body for one in ours.messages("Made")) == numbered(COUNT)
        with PullConsumer(ours.namesrv, "spark-copies") as consumer:
            queues = consumer.queues("Made")
            committed = [consumer.committed(one) for one in queues]
            assert committed == [consumer.max_offset(one) for one in queues]


def known(spark: SparkSession, namesrv: str, topic: str) -> int:
    """Return how many messages a topic has; 0 as long as nobody knows it."""
    try:
        return spark.read.format("rocketmq").options(nameServer=namesrv, topic=topic).load().count()
    except Exception:  # noqa: BLE001 - of Spark's many kinds
        return 0
