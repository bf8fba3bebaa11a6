"""What the tests of the pipeline have in common: one Spark, one broker, a topic for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gantrymq.blocking import Producer
from gantrymq.model.message import Message
from gantrymq.testing import ThreadedBroker
from support import spark as sparks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Return the process's Spark."""
    session = sparks.start()
    yield session
    session.stop()


class World:
    """A broker with its directory, and readers of both."""

    def __init__(self, spark: SparkSession, broker: ThreadedBroker, root: Path) -> None:
        self.spark = spark
        self.broker = broker
        self.root = root

    def options(self, mode: str, topic: str, **more: object) -> dict[str, str]:
        """Return the options of a read in a mode."""
        given = {"mode": mode, "topic": topic, **more}
        if mode == "broker":
            given["nameServer"] = self.broker.namesrv
        else:
            given["path"] = str(self.root)
        return {name: str(value) for name, value in given.items() if value not in {None, ""}}

    def read(self, mode: str, topic: str, **more: object) -> DataFrameReader:
        """Return a batch reader."""
        return self.spark.read.format("rocketmq").options(**self.options(mode, topic, **more))

    def read_stream(self, mode: str, topic: str, **more: object) -> DataStreamReader:
        """Return a stream reader."""
        options = self.options(mode, topic, **more)
        return self.spark.readStream.format("rocketmq").options(**options)

    def send(self, topic: str, bodies: Sequence[bytes]) -> None:
        """Send messages in batches, and wait until the files have them."""
        with Producer(self.broker.namesrv) as producer:
            for start in range(0, len(bodies), 500):
                part = bodies[start : start + 500]
                producer.send_batch([Message(topic=topic, body=body) for body in part])
        self.settle(topic)

    def settle(self, topic: str) -> None:
        """Wait until the queue files hold all that the broker has."""
        from gantrymq.store.snapshot import open_snapshot  # noqa: PLC0415

        expected = len(self.broker.messages(topic))
        snapshot = open_snapshot(self.root)

        def is_there() -> bool:
            found = sum(
                one.max_offset - one.min_offset for one in snapshot.queues() if one.topic == topic
            )
            return found >= expected

        sparks.wait_for(f"{topic} in the queue files", is_there, 20)
        snapshot.close()


@pytest.fixture(scope="session")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Return a broker that all tests of a process share; each has topics of its own."""
    root = tmp_path_factory.mktemp("store")
    with ThreadedBroker(directory=root) as broker:
        yield World(spark, broker, root)


@pytest.fixture(autouse=True)
def quick_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every Java that a test starts be one that starts quickly."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", sparks.QUICK_JAVA)
