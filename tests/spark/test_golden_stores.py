"""Stores that Apache's brokers left behind, read by Spark: the same messages that Apache serves."""

from __future__ import annotations

from datetime import UTC
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.spark.schema import COLUMNS, ddl
from support.golden import STORE_LABELS, stored_messages
from support.golden_trees import manifest, tree_digest, unpacked

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from pyspark.sql import SparkSession


def milliseconds(value: datetime) -> int:
    return round(value.replace(tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize("label", STORE_LABELS)
def test_every_message_is_there_as_apache_serves_it(
    label: str, spark: SparkSession, tmp_path: Path
) -> None:
    root, known = unpacked(label, tmp_path), manifest(label)
    before = tree_digest(root)
    expected: list[Any] = stored_messages(label)
    # The words of a list are divided by commas, which no topic may have; all of them, by name.
    topics = ",".join(sorted({queue.topic for queue in known.queues}))
    frame = (
        spark.read.format("rocketmq")
        .option("path", str(root))
        .option("topics", topics)
        .schema(ddl(tuple(COLUMNS)))
        .load()
    )
    rows = {(row.topic, row.queueId, row.queueOffset): row for row in frame.collect()}
    assert len(rows) == known.message_count == len(expected)
    for message in expected:
        row = rows[message["topic"], message["queueId"], message["queueOffset"]]
        digest = message.get("bodySha256", message["storedBodySha256"])
        assert sha256(row.body).hexdigest() == digest
        assert row.physicalOffset == message["commitLogOffset"]
        assert row.storeSize == message["storeSize"]
        assert row.msgId == message["msgId"]
        assert (row.tags, row.keys) == (message["tags"], message["keys"])
        assert row.uniqKey == message["uniqKey"]
        assert dict(row.propertiesMap) == message["properties"]
        assert row.bodyCrc == message["bodyCRC"]
        assert (row.flag, row.sysFlag) == (message["flag"], message["sysFlag"])
        assert (row.bornHost, row.storeHost) == (message["bornHost"], message["storeHost"])
        assert milliseconds(row.bornTimestamp) == message["bornTimestamp"]
        assert milliseconds(row.storeTimestamp) == message["storeTimestamp"]
        assert row.reconsumeTimes == message["reconsumeTimes"]
        assert row.preparedTransactionOffset == message["preparedTransactionOffset"]
        assert row.brokerName == "broker-a"
    assert tree_digest(root) == before  # nothing was written


def test_filters_take_what_apache_would_deliver(spark: SparkSession, tmp_path: Path) -> None:
    label = "apache-4.9.7-cqext-sql92"  # tags are in the extension here
    root = unpacked(label, tmp_path)
    expected: list[Any] = [one for one in stored_messages(label) if one["topic"] == "TagTopic"]
    tags = sorted({one["tags"] for one in expected if one["tags"]})[:2]
    reader = spark.read.format("rocketmq").option("path", str(root)).option("topic", "TagTopic")
    by_tag = reader.option("tags", " || ".join(tags)).load().count()
    assert by_tag == sum(one["tags"] in tags for one in expected) > 0
