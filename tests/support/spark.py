"""A Spark for tests: one session in each process, small and quick to start; ways to look at it."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

QUICK_JAVA: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"
"""Options of a Java that lives for seconds: the better compiler would never pay."""
MASTER: Final = "local[2,3]"
"""Two cores, and three attempts for a task: a plain local master makes no second one."""
SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.python.authenticate.socketTimeout": "60s",
}
WAIT_S: Final = 120.0
STARTS_MAX: Final = 3


def start(master: str = MASTER, **more: str) -> SparkSession:
    """Return a session whose workers run this very Python."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).appName("gantrymq tests")
    for name, value in {**SETTINGS, **more}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def run_available(frame: DataFrame, checkpoint: Path, target: Path) -> StreamingQuery:
    """Write what is there to Parquet, and wait until it is."""
    return run_to_end(
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(checkpoint))
        .option("path", str(target))
        .trigger(availableNow=True)
    )


def run_to_end(writer: DataStreamWriter) -> StreamingQuery:
    """Start a query that ends by itself, and wait until it has.

    The Python of a source must answer within ten seconds, a limit of Spark's own, which a busy
    machine may not keep. Such a query has done nothing, and is started again.
    """
    for tries_left in reversed(range(STARTS_MAX)):
        query = writer.start()
        try:
            ended = query.awaitTermination(int(WAIT_S))
        except StreamingQueryException as error:
            if not tries_left or "failed to connect back" not in str(error):
                raise
            continue
        if not ended:
            query.stop()
            raise TimeoutError(f"{query.name} did not end within {WAIT_S} s")
        return query
    raise AssertionError


def wait_for(what: str, check: Any, wait_s: float = WAIT_S) -> None:  # noqa: ANN401
    """Wait until a check says yes."""
    deadline = time.monotonic() + wait_s
    while not check():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {wait_s} s")
        time.sleep(0.1)


def places(rows: Iterable[Any]) -> list[tuple[str, int, int]]:
    """Return broker, queue and offset of rows, in order."""
    return sorted((row.brokerName, row.queueId, row.queueOffset) for row in rows)
