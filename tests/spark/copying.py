"""A driver that is meant to be killed: copies what is in a topic to another one, and ends.

python tests/spark/copying.py '{"master": ..., "source": {...}, "sink": {...}, ...}'
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]

from gantrymq.spark.streams import read_stream  # noqa: E402
from support import spark as sparks  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def copying(spark: SparkSession, plan: dict[str, Any]) -> DataStreamWriter:
    """Return the query that a plan describes, not started yet."""
    frame = read_stream(spark, plan["checkpoint"], **plan["source"]).select("body")
    return (
        frame.writeStream.format("rocketmq")
        .options(**plan["sink"])
        .option("checkpointLocation", plan["checkpoint"])
        .trigger(availableNow=True)
    )


def main() -> None:
    """Run the query that the argument describes."""
    plan = json.loads(sys.argv[1])
    spark = sparks.start(plan["master"])
    sparks.run_to_end(copying(spark, plan))
    spark.stop()


if __name__ == "__main__":
    main()
