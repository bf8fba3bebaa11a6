"""Reads in one call, with what is easily forgotten: pinned offsets, a fresh load each time.

from gantrymq.spark.streams import read_stream

orders = read_stream(spark, "/data/checkpoints/orders", nameServer="127.0.0.1:9876",
                     topic="Orders", startingOffsets="latest", groupId="orders-to-lake")
orders.writeStream.option("checkpointLocation", "/data/checkpoints/orders")...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUFFIX: Final = ".rocketmq-start.json"


def read(spark: SparkSession, *, schema: str | None = None, **options: object) -> DataFrame:
    """Return topics as they are now; `schema` names the columns that are wanted."""
    reader = spark.read.format("rocketmq").options(**_texts(options))
    return (reader if schema is None else reader.schema(schema)).load()


def read_stream(
    spark: SparkSession, checkpoint: str, *, schema: str | None = None, **options: object
) -> DataFrame:
    """Return topics as a stream whose starting offsets are written beside its checkpoint.

    A query that dies before its first batch is committed begins again where it was to begin, also
    with `latest`, a time or a group.
    """
    options.setdefault("pinPath", pin_path(checkpoint))
    reader = spark.readStream.format("rocketmq").options(**_texts(options))
    return (reader if schema is None else reader.schema(schema)).load()


def pin_path(checkpoint: str) -> str:
    """Return the file beside a checkpoint that has the starting offsets."""
    return checkpoint.rstrip("/") + SUFFIX


def _texts(options: dict[str, object]) -> dict[str, str]:
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
        if value is not None
    }
