"""A hundred thousand rows that Spark writes, and Apache's Java client that consumes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from interop.peers import scenarios
from interop.peers.clients import command_of
from support import peers
from support.spark import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from spark.conftest import World

pytestmark = [pytest.mark.tool("java"), pytest.mark.tool("mvn")]
ROWS = 100_000


def test_all_rows_are_consumed_by_java(world: World, tmp_path: Path) -> None:
    topic = world.broker.create_topic("ForJava", 4)
    rows = world.spark.range(0, ROWS, numPartitions=4).select(
        F.format_string("row %06d é", "id").alias("body"), F.lit("spark").alias("tags")
    )
    options = {"nameServer": world.broker.namesrv, "topic": topic}
    rows.write.format("rocketmq").options(**options).mode("append").save()
    port = int(world.broker.address.rpartition(":")[2])
    command = command_of("java-4.9.7")
    with peers.running(command, world.broker.namesrv, tmp_path / "java") as peer:
        java = scenarios.World(peer, world.broker.namesrv, port, "for-java")
        consumer = java.consumer(topic, tag="spark", **{"from": "first"})
        wait_for("all rows", lambda: len(consumer.received()) >= ROWS)
        assert sorted(consumer.bodies()) == [f"row {number:06d} é" for number in range(ROWS)]
        consumer.stop()
