"""Spark finds the format by itself: two lines, in a Python that has done nothing else."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pyspark_rocketmq
from gantrymq.spark.source import RocketMQSource

if TYPE_CHECKING:
    from spark.conftest import World

PROGRAM = """
from support import spark as sparks
spark = sparks.start("local[1]")
reader = spark.read.format("rocketmq").option("nameServer", "{namesrv}")
frame = reader.option("topic", "{topic}").load()
print("rows:", frame.count())
"""


def test_the_module_that_spark_looks_for_has_the_class() -> None:
    assert pyspark_rocketmq.DefaultSource is RocketMQSource
    assert RocketMQSource.name() == "rocketmq"
    assert "pushFilters" not in vars(RocketMQSource)


def test_two_lines_are_enough(world: World) -> None:
    world.send("TwoLines", [b"one", b"two", b"three"])
    program = PROGRAM.format(namesrv=world.broker.namesrv, topic="TwoLines")
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, 'tests')\n{program}"],
        capture_output=True, text=True, check=False, timeout=180,
    )  # fmt: skip
    assert "rows: 3" in done.stdout, done.stderr[-2000:]
