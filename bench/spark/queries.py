"""One Spark that reads one thing several times: started by `run.py` as a process of its own.

    python -m bench.spark.queries '{"format": "rocketmq", "options": {...}, "runs": 3, ...}'

Prints a JSON object: seconds of every run, rows, sums that both sides must agree on, and the CPU
seconds of the JVM and of the Python workers, apart.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src"), str(ROOT / "tests")]

from pyspark.sql import SparkSession  # noqa: E402

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "2g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def cpu_seconds() -> tuple[float, float]:
    """Return what the processes below this one have used: the JVM, and the Python workers."""
    children: dict[int, list[int]] = {}
    used: dict[int, tuple[float, float]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            name, _, rest = (entry / "stat").read_text().rpartition(")")
        except OSError:
            continue
        fields = rest.split()
        children.setdefault(int(fields[1]), []).append(int(entry.name))
        # Of the JVM only its own: the workers are its children, and counted themselves.
        is_java = name.endswith("(java")
        ticks = sum(int(field) for field in fields[11 : 13 if is_java else 15])
        spent = ticks / os.sysconf("SC_CLK_TCK")
        used[int(entry.name)] = (spent, 0.0) if is_java else (0.0, spent)
    java = python = 0.0
    waiting = [os.getpid()]
    while waiting:
        found = children.get(waiting.pop(), [])
        java += sum(used[one][0] for one in found)
        python += sum(used[one][1] for one in found)
        waiting += found
    return java, python


def main() -> None:
    """Read what the argument says."""
    plan = json.loads(sys.argv[1])
    if plan.get("cpus"):  # for the JVM and the workers too, which inherit it
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: plan["cpus"]])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(plan.get("master", "local[2]"))
    for name, value in {**SETTINGS, **plan.get("settings", {})}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    reader = spark.read.format(plan["format"]).options(**plan["options"])
    if plan.get("schema"):
        reader = reader.schema(plan["schema"])
    body, offset = plan["columns"]
    frame = reader.load()
    sums = frame.selectExpr(
        "count(1) AS rows", f"sum(length({body})) AS bytes", f"sum({offset}) AS offsets"
    ).collect()[0]
    seconds, java, python = [], [], []
    for _ in range(plan["runs"] + 1):
        before, begun = cpu_seconds(), time.perf_counter()
        reader.load().write.format("noop").mode("overwrite").save()
        seconds.append(time.perf_counter() - begun)
        after = cpu_seconds()
        java.append(after[0] - before[0])
        python.append(after[1] - before[1])
    told = {**sums.asDict(), "seconds": seconds[1:], "jvm_s": java[1:], "python_s": python[1:]}
    print(json.dumps({"partitions": frame.rdd.getNumPartitions(), **told}))
    spark.stop()


main()
