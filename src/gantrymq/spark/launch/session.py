"""Making the Spark session that a job runs in.

Three things go wrong when people start PySpark by hand: another Python on the workers (then the
format `rocketmq` is not found), no Java or an old one, and a session zone that shifts timestamps.
They are set here. What the user sets with `--conf`, or what `spark-submit` brings, is left alone.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from gantrymq.errors import GantryError
from gantrymq.spark.launch.java import find_java

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

    from pyspark.sql import SparkSession

PYSPARK_MIN: Final = (4, 1)
DEFAULT_MASTER: Final = "local[*]"
SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxBytesPerBatch": "16m",
    "spark.python.authenticate.socketTimeout": "60s",
    "spark.speculation": "false",  # two attempts of one task would write the same files
    "spark.ui.showConsoleProgress": "false",  # the launcher draws its own line
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
"""What a session of ours has unless the user says otherwise."""
LOCAL_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "8",
    "spark.log.level": "ERROR",
}
"""On one machine: no web page nobody asked for, and no two hundred tiny tasks."""


CORES_UNKNOWN: Final = 8
"""Taken where a session is only the client of a Spark Connect server, which does not tell."""


class NoSpark(GantryError):
    """PySpark cannot be used; the text says what to do, in one line."""


def check_pyspark() -> None:
    """See that there is a PySpark that will do.

    Raises:
        NoSpark: there is none, or it is too old.
    """
    try:
        import pyspark  # noqa: PLC0415  (480 MB that a broker does not need)
    except ImportError:
        raise NoSpark(
            'the pipeline needs PySpark, which is not installed: pip install "gantrymq[spark]"'
        ) from None
    parts = pyspark.__version__.split(".")
    if tuple(int(part) for part in parts[:2] if part.isdecimal()) < PYSPARK_MIN:
        least = ".".join(map(str, PYSPARK_MIN))
        raise NoSpark(
            f"PySpark {pyspark.__version__} is too old, {least} is the least: "
            f'pip install "pyspark>={least}"'
        )


def prepare_environment(environment: MutableMapping[str, str]) -> None:
    """Set the Python of driver and workers, and the Java, where the user has set none.

    Raises:
        NoJava: there is none to be had.
    """
    environment.setdefault("PYSPARK_PYTHON", sys.executable)
    environment.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    environment["JAVA_HOME"] = str(find_java(environment).home)


def make_session(
    name: str,
    *,
    master: str | None = None,
    remote: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return a session: Spark Connect with `remote`, else one of this process.

    Without a master that of `spark-submit` is taken, or all cores of this machine.

    Raises:
        NoSpark: PySpark is missing or too old, or the session cannot be made.
        NoJava: there is none to be had.
    """
    check_pyspark()
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted and (remote is None or remote.startswith("local")):
        prepare_environment(os.environ)
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    builder = SparkSession.Builder().appName(name)
    if remote is not None:
        builder = builder.remote(remote)
    elif not submitted:
        builder = builder.master(master or DEFAULT_MASTER)
    local = remote is None and not submitted and (master or DEFAULT_MASTER).startswith("local")
    chosen = {**SETTINGS, **(LOCAL_SETTINGS if local else {}), **(settings or {})}
    if remote is not None:
        # The rest belongs to the server, which was started by somebody else.
        chosen = {key: value for key, value in chosen.items() if key.startswith("spark.sql.")}
        chosen.pop("spark.sql.streaming.stateStore.providerClass")
    for key, value in chosen.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except (PySparkException, RuntimeError, ImportError) as error:
        raise NoSpark(f"no Spark session: {str(error).strip().splitlines()[0]}") from error
    return session


def cores_of(session: SparkSession) -> int:
    """Return how many tasks a session's Spark runs at the same time."""
    if type(session).__module__.startswith("pyspark.sql.connect"):
        return CORES_UNKNOWN
    return int(session.sparkContext.defaultParallelism)
