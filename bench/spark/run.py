"""Measures batch reads of a topic with Spark: ours in both modes, and Kafka with its own source.

    python -m bench.spark [--scale 0.01] [--runs 3] [--no-kafka] [--only store,broker,hot,scale]
                          [--pull-messages 32] [--json FILE] [--directory DIR]

Five million messages of 128 bytes in four queues, or partitions, are produced first; then a Spark
with `local[2]` reads all main columns of them into nothing. Kafka, ours over the wire and ours out
of the files run one after the other; then one core against two, and one queue that is read by one
task against two. Counts, bytes and offsets must agree before a time counts.

A task is two processes that work at the same time: Python decodes while the JVM makes rows. So one
task keeps more than one core busy, and on a machine with two cores a second task can only win what
the first one leaves idle: at most 2 x max(JVM, Python) / (JVM + Python), which is printed as `most`
behind the ratio. What a core more brings is the ratio to `1 core`, to which all processes of that
run are bound.

Kafka and its source come from Maven Central by their names. What is printed are medians; a smaller
scale says only that everything runs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src"), str(ROOT / "tests")]

from bench.compare.load import Generator, compile_generator  # noqa: E402
from bench.spark import kafka  # noqa: E402

from gantrymq.spark.options import read_source_options  # noqa: E402
from support import gantry  # noqa: E402

MESSAGES = 5_000_000
BODY_BYTES = 128
QUEUES = 4
QUERY_SECONDS_MAX = 1200
FILL_SECONDS = 2.0
FILL_ROUNDS_MAX = 200
OUR_COLUMNS = ("body", "queueOffset")
Row = dict[str, Any]


def parse_arguments() -> argparse.Namespace:
    """Return the settings."""
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="size of it all (default 1)")
    parser.add_argument("--runs", type=int, default=3, help="runs that count (default 3)")
    parser.add_argument("--no-kafka", action="store_true", help="leave Kafka out")
    parser.add_argument("--only", default="store,broker,hot,scale", help="which of ours (all)")
    parser.add_argument("--pull-messages", type=int, default=32, help="the broker's own limit")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too")
    parser.add_argument("--directory", type=Path, default=ROOT / "build", help="where to write")
    return parser.parse_args()


def measured(name: str, plan: dict[str, Any]) -> Row:
    """Run a Spark of its own; return what it says."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "bench.spark.queries", json.dumps(plan)],
        capture_output=True, text=True, check=False, cwd=ROOT, timeout=QUERY_SECONDS_MAX,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr[-3000:]}")
    told: Row = json.loads(done.stdout.splitlines()[-1])
    median = statistics.median(told["seconds"])
    spread = (max(told["seconds"]) - min(told["seconds"])) / median
    found = {
        **told,
        "name": name,
        "rows_per_s": told["rows"] / median,
        "spread": spread,
        "jvm_s_per_million": statistics.median(told["jvm_s"]) / told["rows"] * 1e6,
        "python_s_per_million": statistics.median(told["python_s"]) / told["rows"] * 1e6,
    }
    print(_line(found), flush=True)
    return found


def _line(row: Row, ratio: str = "") -> str:
    return (
        f"{row['name']:28}{row['rows_per_s']:12,.0f}{row['spread']:9.0%}"
        f"{row['jvm_s_per_million']:9.2f}{row['python_s_per_million']:9.2f}"
        f"{row['partitions']:7}  {ratio}"
    )


def fill(namesrv: str, port: int, work: Path, topic: str, queues: int, count: int) -> None:
    """Send until every queue has its share, as fast as it goes."""
    generator = Generator(compile_generator(work), port)
    options = read_source_options({"nameServer": namesrv, "topic": topic})
    for _ in range(FILL_ROUNDS_MAX):
        generator.send(topic, queues, 8, BODY_BYTES, FILL_SECONDS, batch=32, queues=queues)
        if min(queue_ends(options, queues)) >= count // queues:
            return
    raise SystemExit(f"{topic} was not filled in {FILL_ROUNDS_MAX} rounds")


def queue_ends(options: Any, queues: int) -> list[int]:  # noqa: ANN401
    """Return the ends of the first queues of a topic."""
    from gantrymq.spark.broker_backend import BrokerBackend  # noqa: PLC0415

    backend = BrokerBackend(options)
    bounds = backend.bounds()
    return [one.most for queue, one in bounds.items() if queue.queue_id < queues]


def ours(settings: argparse.Namespace, work: Path, count: int) -> list[Row]:
    """Measure both modes, one core against two, and one hot queue with one task and with two."""
    limits = {
        "mappedFileSizeCommitLog": str(1 << 30),
        "brokerName": "broker-a",
        "maxTransferCountOnMessageInMemory": str(settings.pull_messages),
        "maxTransferBytesOnMessageInMemory": str(max(256 << 10, settings.pull_messages * 400)),
    }
    chosen = settings.only.split(",")
    rows = []
    with gantry.server(work / "ours", limits) as server:
        modes = {
            "store": {"mode": "store", "path": str(work / "ours" / "data" / "store")},
            "broker": {"mode": "broker", "nameServer": server.name_server},
        }
        wanted = {"Bench": QUEUES} if {"store", "broker", "scale"} & set(chosen) else {}
        for topic, queues in (wanted | ({"Hot": 1} if "hot" in chosen else {})).items():
            fill(server.name_server, server.port, work, topic, queues, count)
        time.sleep(3)  # the queues are written out every second
        ends = json.dumps({"Bench": {"broker-a": _shares(count)}})
        bench = {"topic": "Bench", "endingOffsets": ends}
        for mode in (mode for mode in modes if mode in chosen):
            plan = _plan(settings, "rocketmq", {**bench, **modes[mode]}, OUR_COLUMNS)
            rows.append(measured(f"ours, mode={mode}", plan))
        for cores in (1, 2) if "scale" in chosen else ():
            plan = _plan(settings, "rocketmq", {**bench, **modes["store"]}, OUR_COLUMNS)
            name = f"mode=store, {cores} core{'s' * (cores - 1)}"
            rows.append(measured(name, {**plan, "master": f"local[{cores}]", "cpus": cores}))
        for mode in modes if "hot" in chosen else ():
            rows += hot(settings, mode, modes[mode], count)
    return rows


def hot(settings: argparse.Namespace, mode: str, where: dict[str, str], count: int) -> list[Row]:
    """Measure one queue that holds everything: by one task on one core, and on two; by two."""
    rows = []
    for tasks, cpus in ((1, 1), (1, 0), (2, 0)):
        options = {
            **where,
            "queues": json.dumps({"Hot": {"broker-a": [0]}}),
            "endingOffsets": json.dumps({"Hot": {"broker-a": {"0": count}}}),
            "maxRecordsPerPartition": str(-(-count // tasks)),
        }
        name = f"hot, {mode}, {tasks} task{'s' * (tasks - 1)}{', 1 core' * cpus}"
        plan = _plan(settings, "rocketmq", options, OUR_COLUMNS)
        rows.append(measured(name, {**plan, "cpus": cpus}))
    return rows


def _shares(count: int) -> dict[str, int]:
    return {str(queue): count // QUEUES for queue in range(QUEUES)}


def _plan(
    settings: argparse.Namespace, name: str, options: dict[str, str], columns: tuple[str, str]
) -> dict[str, Any]:
    return {"format": name, "options": options, "columns": columns, "runs": settings.runs}


def theirs(settings: argparse.Namespace, work: Path, count: int) -> Row:
    """Measure Kafka with Spark's own source."""
    jars = kafka.class_path("connector").replace(":", ",")
    with kafka.broker(work / "kafka") as address:
        kafka.fill(address, "Bench", count, BODY_BYTES)
        options = {"kafka.bootstrap.servers": address, "subscribe": "Bench"}
        plan = _plan(
            settings, "kafka", {**options, "startingOffsets": "earliest"}, ("value", "offset")
        )
        return measured("Kafka, Spark's source", {**plan, "settings": {"spark.jars": jars}})


def show(rows: list[Row], anchor: Row | None) -> None:
    """Print the table, each row beside what it is compared with."""
    print(f"{'':28}{'':12}{'':9}{'CPU s/M rows':>18}")
    print(f"{'':28}{'rows/s':>12}{'spread':>9}{'JVM':>9}{'Python':>9}{'tasks':>7}  ratio")
    rates = {row["name"]: row["rows_per_s"] for row in rows}
    for row in rows:
        said, rate = "", row["rows_per_s"]
        if row["name"].endswith("2 tasks"):
            alone = row["name"].removesuffix("2 tasks") + "1 task"
            parts = row["jvm_s_per_million"], row["python_s_per_million"]
            said = f"{rate / rates[alone]:.2f} to 1 task (most {2 * max(parts) / sum(parts):.2f}), "
            said += f"{rate / rates[alone + ', 1 core']:.2f} to 1 core"
        elif row["name"].endswith("2 cores"):
            said = f"{rate / rates[row['name'].replace('2 cores', '1 core')]:.2f} to 1 core"
        elif anchor is not None:
            said = f"{rate / anchor['rows_per_s']:.2f} to Kafka"
        print(_line(row, said))


def main() -> None:
    """Measure, print a table, and write the figures."""
    settings = parse_arguments()
    count = max(int(MESSAGES * settings.scale) // QUEUES * QUEUES, 4000)
    settings.directory.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(dir=settings.directory) as name:
        if not settings.no_kafka:
            rows.append(theirs(settings, Path(name), count))
        rows += ours(settings, Path(name), count)
    for row in rows:
        if row["rows"] != count or row["bytes"] != count * BODY_BYTES:
            raise SystemExit(f"{row['name']}: {row['rows']} rows, {row['bytes']} bytes: not equal")
    show(rows, rows[0] if not settings.no_kafka else None)
    if settings.json is not None:
        settings.json.write_text(json.dumps({"messages": count, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
